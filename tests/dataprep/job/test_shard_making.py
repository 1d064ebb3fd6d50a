"""A worker stores one shard in a fixed order, or stops, within its memory."""

from __future__ import annotations

import contextlib
import hashlib
import io
import mmap
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from crc32c import crc32c
from PIL import Image

from dataprep.config.shard_config import DaskOptions
from dataprep.errors import JobError, LeaseLost, SourceChanged, StoreFull
from dataprep.formats import IndexEntry, RecordOptions, Sample, format_names, get_format
from dataprep.image import Converted, ImagePolicy, convert
from dataprep.job import shard_buffer
from dataprep.job.conversion import Progress, Report
from dataprep.job.in_process import InProcess
from dataprep.job.shard_buffer import Records, ShardBuffer
from dataprep.job.shard_making import make_shard
from dataprep.job.shard_task import ShardTask, cut_into_chunks
from dataprep.job.split_plan import PlannedSample
from dataprep.labels import LabelSpace
from dataprep.output.receipt import Receipt
from dataprep.output.samples_table import SampleTable
from dataprep.output.versions import versions_that_determine_bytes
from dataprep.sources import Listing, Located
from dataprep.stores import Buffer, ObjectInfo, Store
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Upload, Uploads

RECEIPT = "receipts/train-00002-of-00007.json"
BOTH = (("tfrecord", 1), ("recordio", 0))


def jpeg(shade: int, side: int = 40) -> bytes:
    """A JPEG of one shade."""
    sink = io.BytesIO()
    Image.new("RGB", (side, side), (shade, 255 - shade, 7)).save(sink, "JPEG")
    return sink.getvalue()


def huge() -> bytes:
    """A small JPEG with comments of more than 128 MB."""
    image = jpeg(9)
    return image[:2] + (b"\xff\xfe\xff\xff" + bytes(65_533)) * 1_960 + image[2:]


class Files:
    """A source in memory."""

    uri = "files"

    def __init__(self, files: dict[str, bytes], concurrency: int = 1) -> None:
        self.files, self.concurrency = files, concurrency

    def list(self) -> Listing:
        """Fail: no test lists it."""
        raise NotImplementedError

    def read(self, item: Located) -> bytes:
        """The bytes of one file."""
        return self.files[item.name]


class NotedStore(MemoryStore):
    """Keeps the order in which objects are created, and can fail at one of them."""

    def __init__(self, fails_at: str = "nothing") -> None:
        super().__init__(f"memory://{secrets.token_hex(8)}")
        self.stored: list[str] = []
        self.fails_at = fails_at
        self.slots: list[bool] = []
        self.slot = False

    def create(self, key: str, data: Buffer) -> bool:
        """Create an object, and note its key."""
        if key.startswith(self.fails_at):
            raise StoreFull("full")
        self.stored.append(key)
        self.slots.append(self.slot)
        return super().create(key, data)

    @contextlib.contextmanager
    def upload_slot(self) -> Iterator[None]:
        """A slot that notes when it is acquired and released."""
        self.slot = True
        yield
        self.slot = False


class HashedStore(NotedStore):
    """Takes uploads as the S3 store does. ``known`` has the MD5s that were passed along."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, bytes] = {}

    def create_upload(self, upload: Upload) -> ObjectInfo | None:
        """Create the object, and note its MD5."""
        self._note(upload)
        return self.head(upload.key) if self.create(upload.key, upload.data) else None

    def replace_upload(self, upload: Upload, version: str) -> ObjectInfo | None:
        """Replace the object, and note its MD5."""
        self._note(upload)
        is_replaced = self.replace(upload.key, upload.data, version)
        return self.head(upload.key) if is_replaced else None

    def _note(self, upload: Upload) -> None:
        """Note the MD5 of an upload."""
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(_Hashed):
            patch.setattr(hashlib, "md5", _refuse_to_hash)
            self.known[upload.key] = upload.md5


class _Hashed(Exception):
    """An MD5 was computed."""


def _refuse_to_hash(*_: object, **__: object) -> None:
    """Fail: the MD5 must not be computed."""
    raise _Hashed


def task(files: dict[str, bytes], store: MemoryStore, **changes: object) -> ShardTask:
    """The task of shard 2 of 7 with ``files``, which are stored unchanged."""
    space = LabelSpace.of(name.partition("/")[0] for name in files)
    shard_task = ShardTask(
        fingerprint="f" * 64,
        versions=versions_that_determine_bytes(),
        split="train",
        shard=2,
        shards=7,
        first_number=100,
        samples=[
            PlannedSample(Located(name, len(data)), space.index[name.partition("/")[0]])
            for name, data in files.items()
        ],
        label_space=space,
        policy=ImagePolicy(),
        label_offsets=BOTH,
        source=Files(files),
        store=store,
    )
    return replace(shard_task, **changes)  # type: ignore[arg-type]


def run_in_threads(task: ShardTask, threads: int, report: Report = lambda progress: None) -> None:
    """Make a shard in this process with this number of threads."""
    options = DaskOptions(workers=threads, retries=0)
    InProcess(options, report).run([lambda: task], lambda result: None)


def store_with_shard(
    files: dict[str, bytes], store: NotedStore | None = None, **changes: object
) -> NotedStore:
    """A store with the shard that was made of ``files``."""
    store = store or NotedStore()
    make_shard(task(files, store, **changes), lambda progress: None)
    return store


def contents(store: MemoryStore) -> dict[str, bytes]:
    """The content of every object."""
    return {info.key: store.get(info.key) for info in store.list()}


@pytest.fixture
def files() -> dict[str, bytes]:
    """Twenty images of two classes, not sorted by name."""
    images = {}
    for i in range(20):
        folder, number = "ba"[i % 2], (i * 7) % 20
        images[f"{folder}/{number:02}.JPEG"] = jpeg(i * 12)
    return images


@pytest.mark.parametrize("before", range(6))
def test_nothing_is_stored_once_the_lock_is_lost(files: dict[str, bytes], before: int) -> None:
    """The lock is checked before each object, and the receipt is the last one."""
    requests: list[int] = []

    def check_lock() -> None:
        requests.append(len(requests))
        if len(requests) > before:
            raise LeaseLost("taken over")

    store = NotedStore()
    with pytest.raises(LeaseLost):
        store_with_shard(files, store, check_lock=check_lock)
    assert len(store.stored) <= before
    assert RECEIPT not in store.stored


def test_the_lock_is_asked_once_for_each_new_object(files: dict[str, bytes]) -> None:
    """Each new object needs one check, because a check is a request to the store."""
    requests: list[int] = []
    store = NotedStore()
    store_with_shard(files, store, check_lock=lambda: requests.append(1))
    assert len(requests) == len(store.stored) == 6


def receipt(store: MemoryStore) -> Receipt:
    """The stored receipt."""
    return Receipt.from_json(store.get(RECEIPT), RECEIPT)


class TestStored:
    @pytest.mark.parametrize("concurrency", [1, 6])
    def test_order_and_places(self, files: dict[str, bytes], concurrency: int) -> None:
        """Records and rows are in the order of the task, and one range has one whole record."""
        store = store_with_shard(files, source=Files(files, concurrency))
        rows = receipt(store).rows
        assert [row.source for row in rows] == list(files)
        assert [row.number for row in rows] == list(range(100, 120))
        for name, offset in BOTH:
            form = get_format(name)
            key = f"{name}/train-00002-of-00007{form.extension}"
            payloads = [bytes(record.payload) for record in form.read(store.get(key), key)]
            for row, image, payload in zip(rows, files.values(), payloads, strict=True):
                at, length, _ = (row.records or {})[name]
                (record,) = form.read(store.get_range(key, at, length), key)
                assert bytes(record.payload) == payload
                assert bytes(form.decode(payload, RecordOptions(offset)).image) == image

    def test_the_receipt_is_last(self, files: dict[str, bytes]) -> None:
        """Shards are stored before their indexes and the receipt last, all within the slot."""
        store, slots_at_reports = NotedStore(), list[bool]()
        make_shard(
            task(files, store), lambda p: slots_at_reports.append(store.slot), store.upload_slot()
        )
        shards = ["tfrecord/train-00002-of-00007", "recordio/train-00002-of-00007.rec"]
        indexes = [
            "index/tfrecord/train-00002-of-00007.idx",
            "index/recordio/train-00002-of-00007.idx",
            "index/recordio/train-00002-of-00007.lst",
        ]
        assert sorted(store.stored) == sorted([*shards, *indexes, RECEIPT])
        for name in ("tfrecord", "recordio"):
            first, *_ = (key for key in store.stored if f"{name}/" in key)
            assert first.startswith(name)
        assert store.stored[-1] == RECEIPT
        assert store.slots == [True] * 6
        assert {*slots_at_reports} == {False}

    @pytest.mark.parametrize("fails_at", ["tfrecord/", "recordio/", "index/recordio/", "receipts/"])
    def test_no_receipt_without_everything(self, files: dict[str, bytes], fails_at: str) -> None:
        """If any object cannot be stored, there is no receipt."""
        store = NotedStore(fails_at)
        with pytest.raises(StoreFull):
            store_with_shard(files, store)
        assert RECEIPT not in {info.key for info in store.list()}

    @pytest.mark.parametrize("threads", [1, 2, 7])
    def test_threads_change_nothing(self, files: dict[str, bytes], threads: int) -> None:
        """Any number of threads gives the same bytes and receipt, with broken images or without."""
        files["a/broken.JPEG"] = files["a/07.JPEG"][:-40]
        files["b/text.txt"] = b"no image"
        policy = ImagePolicy(size=24)
        alone, together = store_with_shard(files, policy=policy), NotedStore()
        run_in_threads(task(files, together, policy=policy), threads)
        again = store_with_shard(files, policy=policy, source=Files(files, 5))
        assert contents(alone) == contents(again) == contents(together)
        assert together.stored[-1] == RECEIPT

    def test_threads_convert_side_by_side(
        self, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Chunks are converted by several threads at once, with the same rows."""
        meeting = threading.Barrier(3)

        def convert_together(data: bytes, policy: ImagePolicy, *, name: str = "") -> Converted:
            meeting.wait(timeout=60)
            return convert(data, policy, name=name)

        monkeypatch.setattr("dataprep.job.conversion.convert", convert_together)
        monkeypatch.setattr("dataprep.job.in_process._CHUNK_SAMPLES", 6)
        few = dict(list(files.items())[:18])
        store = NotedStore()
        run_in_threads(task(few, store), 3)
        assert [row.status for row in receipt(store).rows] == ["written"] * 18

    @pytest.mark.parametrize("is_there", [False, True])
    def test_the_md5_of_a_shard_is_passed_along(
        self, files: dict[str, bytes], is_there: bool
    ) -> None:
        """The MD5 is computed while records are added, so that no store reads the shard again."""
        store = HashedStore()
        assert isinstance(store, Uploads)
        shards = ["tfrecord/train-00002-of-00007", "recordio/train-00002-of-00007.rec"]
        for key in shards if is_there else ():
            store.put(key, b"left by another run")
        store_with_shard(files, store)
        assert {key: store.known[key] for key in shards} == {
            key: hashlib.md5(store.get(key)).digest() for key in shards
        }


class TestSamples:
    @pytest.mark.parametrize(
        ("name", "data", "policy", "status", "kind", "notes", "reason"),
        [
            ("broken.JPEG", b"no image", {}, "failed", "not_an_image", "", ""),
            ("empty.JPEG", b"", {}, "failed", "corrupt", "", ""),
            ("notes.txt", b"words", {}, "skipped", "not_an_image", "", ""),
            (
                "small.JPEG",
                jpeg(9, 39),
                {"min_size": 40},
                "skipped",
                "too_small",
                "too_small",
                "39 x 39 pixels",
            ),
            (
                "photo.png",
                jpeg(9),
                {"wrong_container": "convert"},
                "written",
                "",
                "wrong_container",
                "",
            ),
            (
                "photo.png",
                jpeg(9),
                {"wrong_container": "fail"},
                "failed",
                "wrong_container",
                "",
                "",
            ),
            ("huge.JPEG", b"", {}, "failed", "too_large", "", "128 MB"),
            (
                "large.JPEG",
                jpeg(9) * 9,
                {"max_source_bytes": 4_000},
                "failed",
                "too_large",
                "",
                "4,000",
            ),
        ],
    )
    def test_what_fails_and_what_is_skipped(
        self,
        files: dict[str, bytes],
        name: str,
        data: bytes,
        policy: dict[str, object],
        status: str,
        kind: str,
        notes: str,
        reason: str,
    ) -> None:
        """A failed or skipped sample is in the receipt with its reason, and in no record."""
        store = NotedStore()
        changed = {**files, f"a/{name}": data if name != "huge.JPEG" else huge()}
        chosen = ImagePolicy.model_validate(policy)
        result = make_shard(task(changed, store, policy=chosen), lambda progress: None)
        *others, odd = receipt(store).rows
        assert {(row.status, row.notes) for row in others} == {("written", "")}
        assert (odd.status, odd.kind, bool(odd.records)) == (status, kind, status == "written")
        assert reason in odd.reason
        assert odd.notes == notes
        assert (result.samples, result.failed) == (21, status == "failed")
        assert [name for name, _ in result.examples] == [f"a/{name}"] * result.failed
        table = SampleTable(["tfrecord", "recordio"])
        table.add(receipt(store).samples, 2)
        assert getattr(table.counts, status) == 1 + 20 * (status == "written")
        assert len(store.get("tfrecord/train-00002-of-00007")) < 1_000_000

    def test_odd_names(self, files: dict[str, bytes]) -> None:
        """A name with tabs, line feeds and bytes that are not UTF-8 becomes one escaped line."""
        store = store_with_shard({"a/tab\tline\nbyte\udcff.JPEG": jpeg(1), **files})
        assert receipt(store).rows[0].source == "a/tab\\x09line\\x0abyte\\xff.JPEG"
        lines = store.get("index/recordio/train-00002-of-00007.lst").decode().splitlines()
        assert lines[0] == "100\t0.000000\ta/tab\\x09line\\x0abyte\\xff.JPEG"
        assert len(lines) == 21


class TestStops:
    @pytest.mark.parametrize(("concurrency", "threads"), [(1, 1), (6, 1), (1, 3), (6, 3)])
    def test_a_changed_source(
        self, files: dict[str, bytes], concurrency: int, threads: int
    ) -> None:
        """A file of another size than planned ends the shard, and nothing is stored."""
        store = NotedStore()
        changed_result = task(files, store)
        name = changed_result.samples[11].located.name
        changed = {**files, name: files[name] + b"\0"}
        changed_result = replace(changed_result, source=Files(changed, concurrency))
        with pytest.raises(SourceChanged, match=name):
            run_in_threads(changed_result, threads)
        assert store.stored == []

    def test_other_libraries(self, files: dict[str, bytes]) -> None:
        """A worker with another version of a codec refuses the task, with both versions."""
        versions = tuple(
            (name, "0.1" if name == "simplejpeg" else version)
            for name, version in versions_that_determine_bytes()
        )
        store = NotedStore()
        with pytest.raises(JobError, match=r"simplejpeg .* instead of 0\.1"):
            make_shard(task(files, store, versions=versions), lambda progress: None)
        assert store.stored == []

    @pytest.mark.parametrize("threads", [1, 3])
    def test_a_report_that_raises(self, files: dict[str, bytes], threads: int) -> None:
        """An exception of the progress callback ends the shard, and nothing is stored."""

        class Enough(BaseException):
            pass

        def report(progress: Progress) -> None:
            raise Enough

        store = NotedStore()
        with pytest.raises(Enough):
            run_in_threads(task(files, store), threads, report)
        assert store.stored == []


class TestProgress:
    def test_adds_up(self, files: dict[str, bytes]) -> None:
        """The progress adds up to every sample, byte and failure of the shard."""
        files["a/broken.JPEG"] = b"no image"
        reported: list[Progress] = []
        report: Callable[[Progress], None] = reported.append
        make_shard(task(files, NotedStore()), report)
        total = sum(reported, start=Progress())
        assert total == Progress(21, sum(map(len, files.values())), 1)

    def test_difference(self) -> None:
        """The difference of two reports is the progress between them."""
        assert Progress(3, 4, 5) - Progress(1, 1, 5) == Progress(2, 3, 0)
        assert DaskOptions().retries == 2


PLACE = ("train", 1, 4)
IMAGES = [bytes([number]) * size for number, size in enumerate((40_000, 1, 900_000, 300_000))]


def filled(name: str, store: Store) -> ShardBuffer:
    """A shard of these images in memory."""
    buffer = ShardBuffer(get_format(name), store)
    samples = [Sample(image, label=number, number=number) for number, image in enumerate(IMAGES)]
    for part in (samples[:1], [], samples[1:]):
        buffer.append(Records.of(get_format(name), RecordOptions(), part))
    return buffer


def index_entries(buffer: ShardBuffer) -> list[IndexEntry]:
    """The entries of an index."""
    positions = zip(buffer.offsets, buffer.lengths, strict=True)
    return [
        IndexEntry(i, i, offset, length, str(i)) for i, (offset, length) in enumerate(positions)
    ]


@pytest.mark.parametrize("first_bytes", [4096, 1_000_000, 2**27])
@pytest.mark.parametrize("name", format_names())
def test_a_shard_is_stored_with_its_hash_and_places(
    name: str, first_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records are at their offsets, even in a shard whose memory had to grow."""
    monkeypatch.setattr(shard_buffer, "_INITIAL_BYTES", first_bytes)
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    buffer = filled(name, store)
    stored_shard = buffer.put(PLACE, index_entries(buffer))
    content = store.get(stored_shard.file.key)
    assert stored_shard.file.sha256 == hashlib.sha256(content).hexdigest()
    assert (stored_shard.file.bytes, stored_shard.records) == (len(content), len(IMAGES))
    assert content.endswith(buffer.format.trailer)
    ends = [*buffer.offsets[1:], len(content) - len(buffer.format.trailer)]
    for offset, length, end, crc, image in zip(
        buffer.offsets, buffer.lengths, ends, buffer.crcs, IMAGES, strict=True
    ):
        assert offset + length == end
        assert crc == crc32c(content[offset:end])
        assert image in content[offset:end]
    for index in stored_shard.indexes:
        assert index.sha256 == hashlib.sha256(store.get(index.key)).hexdigest()


def test_memory_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard uses the memory of an earlier shard, and none of its content."""
    sizes: list[int] = []
    real = shard_buffer._map_memory

    def noting_map_memory(size: int) -> mmap.mmap:
        sizes.append(size)
        return real(size)

    monkeypatch.setattr(shard_buffer, "_map_memory", noting_map_memory)
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    beside = filled("recordio", store)
    first, buffers_made = filled("tfrecord", store), len(sizes)
    first_shard = first.put(PLACE, index_entries(first))
    second = filled("tfrecord", store)
    assert len(sizes) == buffers_made
    assert second.put(("train", 2, 4), index_entries(second)).file.sha256 == first_shard.file.sha256
    assert beside.offsets[0] == 0


def test_the_shard_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """SHA-256 sees each byte of a shard and of each index once."""
    hashed: list[int] = []
    real = hashlib.sha256

    class Counting:
        def __init__(self, data: bytes = b"") -> None:
            self._real = real(data)
            hashed.append(len(data))

        def update(self, data: memoryview) -> None:
            hashed.append(len(data))
            self._real.update(data)

        def hexdigest(self) -> str:
            return self._real.hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Counting)
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    buffer = filled("tfrecord", store)
    stored_shard = buffer.put(PLACE, index_entries(buffer))
    assert sum(hashed) == stored_shard.file.bytes + sum(
        index.bytes for index in stored_shard.indexes
    )


class Runs(Files):
    """A source that reads neighbours of one container together."""

    def read_runs(self, items: Sequence[Located]) -> Iterator[bytes]:
        """Fail: no test reads runs."""
        raise NotImplementedError


def test_parts_of_a_shard_end_where_runs_end() -> None:
    """A part of a shard has whole runs. A run much longer than a part is divided evenly."""
    lengths = {"a": 10, "b": 30, "c": 5, "d": 400, "e": 3}
    items = []
    for run, length in lengths.items():
        located = [Located(f"{run}/{number}", 1, run, number) for number in range(length)]
        items += [PlannedSample(location, 0) for location in located]
    whole_task = task({}, MemoryStore("memory://runs"))
    in_runs = replace(whole_task, samples=items, source=Runs({}))
    parts = cut_into_chunks(in_runs, 32)
    assert [*parts] == [0, 40, 145, 245, 345, 445]
    assert [item for part in parts.values() for item in part.samples] == items
    numbers = [part.first_number - whole_task.first_number for part in parts.values()]
    assert numbers == [*parts]
    assert [*cut_into_chunks(replace(in_runs, source=Files({})), 300)] == [0, 300]
