"""One shard: what is stored, in what order, and what ends it."""

from __future__ import annotations

import contextlib
import io
import secrets
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from PIL import Image

from dataprep.config import DaskOptions
from dataprep.errors import JobError, LeaseLost, SourceChanged, StoreFull
from dataprep.formats import RecordOptions, get_format
from dataprep.image import Converted, ImagePolicy, convert
from dataprep.job.in_process import InProcess
from dataprep.job.worker import Progress, Report, ShardTask, make_shard
from dataprep.labels import LabelSpace
from dataprep.manifest import Receipt
from dataprep.plan import Item
from dataprep.samples import SampleTable
from dataprep.sources import Listing, Located
from dataprep.stores import Buffer, ObjectInfo
from dataprep.stores.memory import MemoryStore
from dataprep.versions import determining

RECEIPT = "receipts/train-00002-of-00007.json"
BOTH = (("tfrecord", 1), ("recordio", 0))


def jpeg(shade: int, side: int = 40) -> bytes:
    """A JPEG of one shade."""
    sink = io.BytesIO()
    Image.new("RGB", (side, side), (shade, 255 - shade, 7)).save(sink, "JPEG")
    return sink.getvalue()


class Files:
    """A source in memory."""

    uri = "files"

    def __init__(self, files: dict[str, bytes], concurrency: int = 1) -> None:
        self.files, self.concurrency = files, concurrency

    def list(self) -> Listing:
        """Not asked for."""
        raise NotImplementedError

    def read(self, item: Located) -> bytes:
        """One file."""
        return self.files[item.name]


class NotedStore(MemoryStore):
    """Keeps the order of puts; may fail at one."""

    def __init__(self, fails_at: str = "nothing") -> None:
        super().__init__(f"memory://{secrets.token_hex(8)}")
        self.stored: list[str] = []
        self.fails_at = fails_at
        self.slots: list[bool] = []
        self.slot = False

    def put(self, key: str, data: Buffer) -> ObjectInfo:
        """Keep a copy."""
        if key.startswith(self.fails_at):
            raise StoreFull("full")
        self.stored.append(key)
        self.slots.append(self.slot)
        return super().put(key, data)

    @contextlib.contextmanager
    def upload_slot(self) -> Iterator[None]:
        """A slot that notes when it is held."""
        self.slot = True
        yield
        self.slot = False


def task(files: dict[str, bytes], store: MemoryStore, **changes: object) -> ShardTask:
    """Shard 2 of 7 of ``files``, kept as they are."""
    space = LabelSpace.of(name.partition("/")[0] for name in files)
    made = ShardTask(
        fingerprint="f" * 64,
        versions=determining(),
        split="train",
        shard=2,
        shards=7,
        first_number=100,
        items=[
            Item(Located(name, len(data)), space.index[name.partition("/")[0]])
            for name, data in files.items()
        ],
        label_space=space,
        policy=ImagePolicy(),
        label_offsets=BOTH,
        source=Files(files),
        store=store,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def run_in_threads(made: ShardTask, threads: int, report: Report = lambda progress: None) -> None:
    """Make a shard in this process, by so many threads."""
    options = DaskOptions(workers=threads, retries=0)
    InProcess(options, report).run([lambda: made], lambda result: None)


@pytest.fixture
def files() -> dict[str, bytes]:
    """Twenty images of two classes, in no order of their names."""
    return {f"{'ba'[i % 2]}/{(i * 7) % 20:02}.JPEG": jpeg(i * 12) for i in range(20)}


def test_a_run_that_lost_its_lock_stores_no_receipt(files: dict[str, bytes]) -> None:
    """The lock is checked once, when all else is stored."""
    store = NotedStore()

    def refuse() -> None:
        assert len(store.stored) == 5
        raise LeaseLost("taken over")

    with pytest.raises(LeaseLost):
        make_shard(task(files, store, permit=refuse), lambda progress: None)
    assert not any(key.startswith("receipts/") for key in store.stored)


def test_the_lock_is_checked_once_for_each_shard(files: dict[str, bytes]) -> None:
    """Another request for each object would cost as much as a small one."""
    store, checked = NotedStore(), []
    make_shard(task(files, store, permit=lambda: checked.append(1)), lambda progress: None)
    assert (len(checked), len(store.stored)) == (1, 6)


def receipt(store: MemoryStore) -> Receipt:
    """The receipt that was stored."""
    return Receipt.from_json(store.get(RECEIPT), RECEIPT)


class TestStored:
    @pytest.mark.parametrize("concurrency", [1, 6])
    def test_order(self, files: dict[str, bytes], concurrency: int) -> None:
        """Records and rows stand in the order of the task, in every format."""
        store = NotedStore()
        make_shard(task(files, store, source=Files(files, concurrency)), lambda progress: None)
        assert [row.source for row in receipt(store).rows] == list(files)
        assert [row.number for row in receipt(store).rows] == list(range(100, 120))
        for name, offset in BOTH:
            form = get_format(name)
            key = f"{name}/train-00002-of-00007{form.extension}"
            records = list(form.read(store.get(key), key))
            found = [
                bytes(form.decode(record.payload, RecordOptions(offset)).image)
                for record in records
            ]
            assert found == list(files.values())

    def test_places(self, files: dict[str, bytes]) -> None:
        """The receipt says where each record lies, so that one range gives it whole."""
        store = NotedStore()
        make_shard(task(files, store), lambda progress: None)
        for row, image in zip(receipt(store).rows, files.values(), strict=True):
            assert row.records is not None
            for name, offset in BOTH:
                form = get_format(name)
                at, length, _ = row.records[name]
                key = f"{name}/train-00002-of-00007{form.extension}"
                (record,) = form.read(store.get_range(key, at, length), key)
                assert bytes(form.decode(record.payload, RecordOptions(offset)).image) == image

    def test_the_receipt_is_last(self, files: dict[str, bytes]) -> None:
        """Shards are stored before their indexes, and the receipt after everything else."""
        store = NotedStore()
        make_shard(task(files, store), lambda progress: None)
        assert sorted(store.stored) == sorted(
            [
                "tfrecord/train-00002-of-00007",
                "index/tfrecord/train-00002-of-00007.idx",
                "recordio/train-00002-of-00007.rec",
                "index/recordio/train-00002-of-00007.idx",
                "index/recordio/train-00002-of-00007.lst",
                RECEIPT,
            ]
        )
        for name in ("tfrecord", "recordio"):
            first, *_ = (key for key in store.stored if f"{name}/" in key)
            assert first.startswith(name)
        assert store.stored[-1] == RECEIPT

    @pytest.mark.parametrize("fails_at", ["tfrecord/", "recordio/", "index/recordio/", "receipts/"])
    def test_no_receipt_without_everything(self, files: dict[str, bytes], fails_at: str) -> None:
        """Whatever could not be stored, there is no receipt then."""
        store = NotedStore(fails_at)
        with pytest.raises(StoreFull):
            make_shard(task(files, store), lambda progress: None)
        assert RECEIPT not in {info.key for info in store.list()}

    def test_the_slot_is_held_while_storing(self, files: dict[str, bytes]) -> None:
        """The upload slot is taken for all of the storing, and for nothing else."""
        store = NotedStore()
        seen: list[bool] = []
        make_shard(task(files, store), lambda p: seen.append(store.slot), store.upload_slot())
        assert store.slots == [True] * 6
        assert seen
        assert not any(seen)

    def test_the_same_again(self, files: dict[str, bytes]) -> None:
        """The same task gives the same bytes, receipt included."""
        stores = [NotedStore(), NotedStore()]
        for store, concurrency in zip(stores, (1, 5), strict=True):
            made = task(files, store, source=Files(files, concurrency))
            make_shard(made, lambda progress: None)
        one, other = ({i.key: s.get(i.key) for i in s.list()} for s in stores)
        assert one == other

    @pytest.mark.parametrize("threads", [1, 2, 7])
    def test_threads_change_nothing(self, files: dict[str, bytes], threads: int) -> None:
        """Images that are converted side by side, broken ones among them, give the same bytes."""
        files["a/broken.JPEG"] = files["a/07.JPEG"][:-40]
        files["b/text.txt"] = b"no image"
        policy = ImagePolicy(size=24)
        alone, together = NotedStore(), NotedStore()
        make_shard(task(files, alone, policy=policy), lambda progress: None)
        run_in_threads(task(files, together, policy=policy), threads)
        one, other = ({i.key: s.get(i.key) for i in s.list()} for s in (alone, together))
        assert one == other
        assert together.stored[-1] == alone.stored[-1] == RECEIPT

    def test_threads_convert_side_by_side(
        self, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Chunks are converted by several threads at once, to the same rows."""
        meeting = threading.Barrier(3)

        def met(data: bytes, policy: ImagePolicy, *, name: str = "") -> Converted:
            meeting.wait(timeout=60)
            return convert(data, policy, name=name)

        monkeypatch.setattr("dataprep.job.worker.convert", met)
        monkeypatch.setattr("dataprep.job.in_process._PART_SAMPLES", 6)
        few = dict(list(files.items())[:18])
        store = NotedStore()
        run_in_threads(task(few, store), 3)
        assert [row.status for row in receipt(store).rows] == ["written"] * 18


class TestSamples:
    def test_what_fails_and_what_is_skipped(self, files: dict[str, bytes]) -> None:
        """A broken image fails, clutter is skipped, both stay in the receipt and in no record."""
        files["a/broken.JPEG"] = b"no image"
        files["a/notes.txt"] = b"words"
        files["a/empty.JPEG"] = b""
        store = NotedStore()
        result = make_shard(task(files, store), lambda progress: None)
        rows = {row.source: row for row in receipt(store).rows}
        assert rows["a/broken.JPEG"].status == "failed"
        assert rows["a/empty.JPEG"].status == "failed"
        assert rows["a/notes.txt"].status == "skipped"
        assert not rows["a/broken.JPEG"].records
        assert (result.samples, result.failed) == (23, 2)
        assert {name for name, _ in result.examples} == {"a/broken.JPEG", "a/empty.JPEG"}
        assert receipt(store).formats["tfrecord"].records == 20

    def test_small_images_are_skipped(self, files: dict[str, bytes]) -> None:
        """Images below the least size are skipped with a reason and a count, and fail nothing."""
        files = {**files, "a/small.JPEG": jpeg(9, side=39)}
        store = NotedStore()
        result = make_shard(task(files, store, policy=ImagePolicy(min_size=40)), lambda _: None)
        assert result.failed == 0
        *others, small = receipt(store).rows
        assert {row.status for row in others} == {"written"}
        assert (small.status, small.kind, small.notes) == ("skipped", "too_small", "too_small")
        assert "39 x 39 pixels" in small.reason
        table = SampleTable(["tfrecord", "recordio"])
        table.add(receipt(store).samples, 2)
        assert (table.counts.skipped, table.counts.failed, table.counts.written) == (1, 0, 20)
        assert table.warnings({})["too_small"] == 1

    def test_names_that_promise_something_else(self, files: dict[str, bytes]) -> None:
        """A name that its content contradicts is noted, or fails where the policy says so."""
        files = {**files, "a/photo.png": jpeg(9)}
        for how in ("convert", "fail"):
            store = NotedStore()
            policy = ImagePolicy.model_validate({"wrong_container": how})
            make_shard(task(files, store, policy=policy), lambda _: None)
            *others, wrong = receipt(store).rows
            assert {row.notes for row in others} == {""}
            if how == "convert":
                assert (wrong.status, wrong.notes) == ("written", "wrong_container")
            else:
                assert (wrong.status, wrong.kind) == ("failed", "wrong_container")

    def test_a_record_above_128_mb(self, files: dict[str, bytes]) -> None:
        """An image whose record would be above 128 MB fails its sample; the shard is made."""
        image = jpeg(9)
        comment = b"\xff\xfe\xff\xff" + bytes(65_533)
        files["a/huge.JPEG"] = image[:2] + comment * 1_960 + image[2:]
        assert 128_000_000 < len(files["a/huge.JPEG"]) < ImagePolicy().max_source_bytes
        store = NotedStore()
        result = make_shard(task(files, store), lambda progress: None)
        assert result.failed == 1
        row = receipt(store).rows[-1]
        assert (row.status, row.kind) == ("failed", "too_large")
        assert "128 MB" in row.reason
        assert len(store.get("tfrecord/train-00002-of-00007")) < 1_000_000

    def test_a_file_above_the_limit(self, files: dict[str, bytes]) -> None:
        """A file above max_source_bytes fails its sample unread."""
        largest = max(files, key=lambda name: len(files[name]))
        limit = len(files[largest]) - 1
        store = NotedStore()
        policy = ImagePolicy(max_source_bytes=limit)
        result = make_shard(task(files, store, policy=policy), lambda progress: None)
        assert result.failed >= 1
        rows = {row.source: row for row in receipt(store).rows}
        assert f"{limit:,}" in rows[largest].reason
        assert rows[largest].source_sha256 == ""

    def test_odd_names(self, files: dict[str, bytes]) -> None:
        """A name with tabs, line feeds and bytes that are not UTF-8 is one escaped line."""
        odd = "a/tab\tline\nbyte\udcff.JPEG"
        store = NotedStore()
        make_shard(task({odd: jpeg(1), **files}, store), lambda progress: None)
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
        made = task(files, store)
        name = made.items[11].located.name
        changed = {**files, name: files[name] + b"\0"}
        made = replace(made, source=Files(changed, concurrency))
        with pytest.raises(SourceChanged, match=name):
            run_in_threads(made, threads)
        assert store.stored == []

    def test_other_libraries(self, files: dict[str, bytes]) -> None:
        """A worker with another version of a codec refuses, and names both."""
        versions = tuple(
            (name, "0.1" if name == "simplejpeg" else version) for name, version in determining()
        )
        store = NotedStore()
        with pytest.raises(JobError, match=r"simplejpeg .* instead of 0\.1"):
            make_shard(task(files, store, versions=versions), lambda progress: None)
        assert store.stored == []

    @pytest.mark.parametrize("threads", [1, 3])
    def test_a_report_that_raises(self, files: dict[str, bytes], threads: int) -> None:
        """Whoever is told of the progress can end the work; nothing is stored."""

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
        """What was reported adds up to every sample, byte and failure of the shard."""
        files["a/broken.JPEG"] = b"no image"
        reported: list[Progress] = []
        report: Callable[[Progress], None] = reported.append
        make_shard(task(files, NotedStore()), report)
        total = sum(reported, start=Progress())
        assert total == Progress(21, sum(map(len, files.values())), 1)

    def test_difference(self) -> None:
        """What is new since an earlier report."""
        assert Progress(3, 4, 5) - Progress(1, 1, 5) == Progress(2, 3, 0)
        assert DaskOptions().retries == 2
