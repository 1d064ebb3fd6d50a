"""A complete split is read by number, by shard, and from start to end."""

from __future__ import annotations

import io
import itertools
import json
import multiprocessing
import pickle
import secrets
import shutil
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import dataprep
from dataprep.errors import (
    ConfigError,
    CorruptRecord,
    DatasetChanged,
    DatasetError,
    FormatMissing,
    ImageError,
    ManifestMissing,
    ObjectNotFound,
    SchemaTooNew,
)
from dataprep.job.parts import Part
from dataprep.reading import sample_reader as module
from dataprep.reading.epoch_order import Order
from dataprep.reading.record_reader import Records
from dataprep.reading.staging import stage
from dataprep.stores import StoreOptions
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Versioned
from dataprep.stores.s3 import S3Store
from iobench.servers.moto_server import MotoServer
from tests.commandline import FORMATS
from tests.dataprep.conftest import Calls

COUNT = 120
MANIFEST = "train.manifest.json"


def make(tree: Path, output: str, **options: object) -> str:
    """Make an output of ``tree`` in all formats, with several shards each."""
    content = {
        "source": str(tree),
        "output": output,
        "format": FORMATS,
        "image": {"size": 96},
        "shard_size": "1MB",
        "dask": {"workers": 2, "processes": False},
        **options,
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(content))
    return output


def label_space_and_first(uri: str) -> tuple[object, object]:
    """The label space and the first sample, which need every kind of object of an output."""
    dataset = dataprep.open(uri)
    return dataset.label_space, dataset[0]


def change(store: MemoryStore, key: str, edit: Callable[[bytearray], object]) -> None:
    """Change the bytes of an object."""
    data = bytearray(store.get(key))
    edit(data)
    store.put(key, data)


@pytest.fixture(params=FORMATS)
def dataset(uri_of_dataset: str, request: pytest.FixtureRequest) -> dataprep.Dataset:
    """The drawn tree in memory, in each format. Read only."""
    return dataprep.open(uri_of_dataset, format=request.param)


class TestSequence:
    def test_iteration_is_indexing(self, dataset: dataprep.Dataset) -> None:
        """Iteration gives every sample once, in the order of the numbers, across shards."""
        walked = [sample.image for sample in dataset]
        assert len(dataset.shards()) >= 3
        assert len(walked) == len(set(walked)) == len(dataset) == COUNT
        assert walked == [dataset[i].image for i in range(COUNT)]
        assert f"'train' {dataset.format}: 120 samples" in repr(dataset)

    def test_indices(self, dataset: dataprep.Dataset) -> None:
        """Negative numbers and NumPy's integers are valid indices."""
        assert dataset[5] == dataset[np.int64(5)] == dataset[np.uint8(5)] == dataset[-115]
        assert dataset[np.int64(-1)] == dataset[119]
        assert dataset.place(np.int64(-1)) == dataset.place(119)
        assert (dataset.images[-1] == dataset.images[119]).all()

    @pytest.mark.parametrize("index", [120, -121, 10**9])
    def test_out_of_range(self, dataset: dataprep.Dataset, index: int) -> None:
        """An index beyond the samples is an IndexError with the number of samples."""
        for read in (dataset.__getitem__, dataset.images.__getitem__, dataset.place):
            with pytest.raises(IndexError, match=f"sample {index} of 120"):
                read(index)

    @pytest.mark.parametrize(
        "cut", [slice(0, 3), slice(-2, None), slice(None, None, 50), slice(5, 0, -2), slice(7, 7)]
    )
    def test_slice(self, dataset: dataprep.Dataset, cut: slice) -> None:
        """A slice is a list of samples, or of images."""
        numbers = range(COUNT)[cut]
        assert dataset[cut] == [dataset[i] for i in numbers]
        assert [image.shape for image in dataset.images[cut]] == [
            dataset.images[i].shape for i in numbers
        ]


class TestContent:
    def test_labels_count_from_0(self, dataset: dataprep.Dataset) -> None:
        """Labels count from 0, whatever offset the records have."""
        offsets = {name: entry.label_offset for name, entry in dataset.manifest.formats.items()}
        folders = [source.partition("/")[0] for source in dataset.samples["source"]]
        expected = [sorted(set(folders)).index(folder) for folder in folders]
        assert offsets == {"tfrecord": 1, "recordio": 0, "webdataset": 0}
        assert [sample.label for sample in dataset] == dataset.labels.tolist() == expected
        assert dataset.labels.dtype == np.int64
        assert [dataset.label_space.labels[i].synset for i in expected] == folders

    def test_a_custom_offset(self, tree: Path) -> None:
        """A label offset from the config is subtracted."""
        uri = f"memory://{secrets.token_hex(4)}"
        offsets = {"tfrecord": -7, "recordio": 500, "webdataset": -3}
        make(tree, uri, label_offset=offsets, image={"size": 32})
        for form in FORMATS:
            labels = [sample.label for sample in dataprep.open(uri, format=form)]
            assert labels == dataprep.open(uri).labels.tolist()
            assert set(labels) == set(range(6))

    def test_images(self, dataset: dataprep.Dataset) -> None:
        """Images are uint8 RGB as Pillow decodes them, except for rounding."""
        for sample, pixels in zip(dataset, dataset.images, strict=True):
            expected = np.asarray(Image.open(io.BytesIO(sample.image)).convert("RGB"))
            assert (pixels.dtype, pixels.shape) == (np.dtype(np.uint8), expected.shape)
            assert np.abs(pixels.astype(np.int16) - expected).mean() < 1.0
            assert min(pixels.shape[:2]) <= 256

    def test_an_image_that_cannot_be_decoded(self, changeable: MemoryStore) -> None:
        """A broken image is an error with its number, shard and offset. Others can be read."""
        dataset = dataprep.open(changeable.uri, format="recordio", check=False)
        key, offset, _ = dataset.place(3)
        image = bytes(changeable.get(key)).index(b"\xff\xd8", offset)
        change(
            changeable, key, lambda data: data.__setitem__(slice(image, image + 600), bytes(600))
        )
        assert dataset.images[4].shape
        with pytest.raises(ImageError, match=rf"sample 3 \(.*{key} at byte {offset:,}\): "):
            dataset.images[3]

    def test_columns(self, tree: Path, tmp_path: Path) -> None:
        """Failed samples have a row in ``samples``. Row i of ``written`` describes sample i."""
        source = Path(shutil.copytree(tree, tmp_path / "photos"))
        for path in sorted(source.rglob("*.JPEG"))[::7]:
            path.write_bytes(b"")
        dataset = dataprep.open(
            make(source, f"memory://{secrets.token_hex(4)}", max_failures="50%")
        )
        assert len(dataset.written) == len(dataset) == 102
        assert len(dataset.samples) == COUNT
        assert dataset.written["tfrecord_offset"].dtype == np.int64
        for number, sample in enumerate(dataset):
            row = dataset.written.iloc[number]
            assert sample.filename.decode() == row["source"].rpartition("/")[2]
            assert sample.label == row["label"]

    def test_place(self, dataset: dataprep.Dataset) -> None:
        """The bytes at the location of a sample are its record."""
        for number in range(0, COUNT, 17):
            data = dataset.read(*dataset.place(number))
            assert dataset[number].image in data
            assert len(data) < len(dataset[number].image) + 4000  # every member has a header

    def test_the_table_is_fetched_once(self, uri_of_dataset: str, calls: Calls) -> None:
        """All columns come from one read of the table."""
        dataset = dataprep.open(uri_of_dataset)
        read = calls(MemoryStore, "get")
        assert len(dataset.labels) == len(dataset.written) == len(dataset.samples) == COUNT
        assert [key for _, key in read] == ["train.samples.parquet"]


class TestSharing:
    def test_pickled(self, dataset: dataprep.Dataset) -> None:
        """A data set and a shard have small pickles, whose copies read the same samples."""
        assert len(dataset.samples) == COUNT
        assert list(dataset.shards()[0])
        data = pickle.dumps(dataset)
        shard = pickle.loads(pickle.dumps(dataset.shards()[1]))
        copy = pickle.loads(data)
        assert len(data) < 2000
        assert (copy.split, copy.format, len(copy)) == ("train", dataset.format, COUNT)
        assert shard == dataset.shards()[1]
        assert list(shard) == [dataset[i] for i in shard.samples]
        assert copy[7] == dataset[7] == pickle.loads(pickle.dumps(copy[7]))
        assert pickle.loads(pickle.dumps(next(iter(dataset)))) == dataset[0]

    def test_threads(self, dataset: dataprep.Dataset) -> None:
        """Eight threads with one instance read the samples of one thread."""
        expected = [sample.image for sample in dataset]
        order = [i * 37 % COUNT for i in range(3 * COUNT)]
        with ThreadPoolExecutor(8) as pool:
            images = list(pool.map(lambda i: dataset[i].image, order))
        assert images == [expected[i] for i in order]


class TestOpening:
    def test_the_format(self, uri_of_dataset: str, tree: Path) -> None:
        """The default format is TFRecord, or the only one. A missing format is refused."""
        assert dataprep.open(uri_of_dataset).format == "tfrecord"
        only = make(tree, f"memory://{secrets.token_hex(4)}", format=("recordio",))
        assert dataprep.open(only).format == "recordio"
        with pytest.raises(FormatMissing, match="it has recordio"):
            dataprep.open(only, format="webdataset")

    @pytest.mark.parametrize(
        ("key", "content", "kind", "message"),
        [
            (MANIFEST, b'{"schema": 2}', SchemaTooNew, "upgrade dataprep-iobench"),
            (MANIFEST, b"{}", DatasetError, "not a manifest"),
            (MANIFEST, {"formats": {}}, DatasetError, "not a manifest.*formats"),
            ("labels.json", b"[", DatasetError, "cannot be read"),
            ("labels.json", None, ObjectNotFound, "is missing: dataprep verify memory"),
            ("tfrecord/train-00000", None, ObjectNotFound, "is missing: dataprep verify memory"),
        ],
    )
    def test_what_cannot_be_read_is_named(
        self,
        changeable: MemoryStore,
        key: str,
        content: bytes | dict[str, object] | None,
        kind: type[Exception],
        message: str,
    ) -> None:
        """The error has the location of the object, and the command that lists all faults."""
        for info in list(changeable.list(key)):
            if content is None:
                changeable.delete(info.key)
            elif isinstance(content, dict):
                changed_manifest = {**json.loads(changeable.get(key)), **content}
                changeable.put(key, json.dumps(changed_manifest).encode())
            else:
                changeable.put(key, content)
        with pytest.raises(kind, match=f"{changeable.uri}/{key}.*{message}"):
            label_space_and_first(changeable.uri)

    @pytest.mark.parametrize(("lost", "message"), [(0, "4 of 4"), (1, "3 of 4"), (4, "no")])
    def test_an_unfinished_split(self, changeable: MemoryStore, lost: int, message: str) -> None:
        """The error has the number of finished shards, and a command for the others."""
        with pytest.raises(ManifestMissing, match=r"no complete split 'test' .* it has 'train'"):
            dataprep.open(changeable.uri, "test")
        receipts = sorted(info.key for info in changeable.list("receipts/"))
        for key in [MANIFEST, *receipts[:lost]]:
            changeable.delete(key)
        with pytest.raises(ManifestMissing, match=f"{message} shards are finished; run .* resume"):
            dataprep.open(changeable.uri)

    def test_no_output(self, tmp_path: Path) -> None:
        """A folder without an output, and a missing folder, are a FileNotFoundError."""
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "notes.txt").write_text("x")
        (tmp_path / "empty").mkdir()
        for name in ("other", "empty", "nowhere"):
            with pytest.raises(
                ManifestMissing, match="dataprep has stored nothing there"
            ) as caught:
                dataprep.open(tmp_path / name)
            assert isinstance(caught.value, FileNotFoundError)


class Watched(MemoryStore):
    """Records when each shard is requested, and how many are in memory at once."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.asked: list[str] = []
        self.threads: set[int] = set()
        self.alive: list[weakref.ref[Any]] = []
        self.most_alive = 0
        self.second = threading.Event()
        self.meeting: threading.Barrier | None = None

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Return a new buffer for each whole shard, so that its end can be observed."""
        versioned = super().get_versioned(key, offset, length)
        if length is not None or not key.startswith(("tfrecord/", "recordio/", "webdataset/")):
            return versioned
        self.asked.append(key)
        if len(self.asked) == 2:
            self.second.set()
        self.threads.add(threading.get_ident())
        if self.meeting is not None and len(self.asked) <= 3:
            self.meeting.wait(60)
        array = np.frombuffer(bytearray(versioned.data), np.uint8)
        self.alive.append(weakref.ref(array))
        self.most_alive = max(self.most_alive, sum(ref() is not None for ref in self.alive))
        return Versioned(array.data, versioned.version)  # type: ignore[arg-type]


@pytest.fixture(params=FORMATS)
def watched(
    uri_of_dataset: str, request: pytest.FixtureRequest
) -> tuple[dataprep.Dataset, Watched]:
    """A data set of several shards, and the store that records its reads."""
    store = Watched(uri_of_dataset)
    return dataprep.Dataset(store, "train", request.param), store


class TestShards:
    def test_the_shards(self, dataset: dataprep.Dataset) -> None:
        """Shards are in the order of the manifest, and together have every sample once."""
        shards = dataset.shards()
        entries = dataset.manifest.formats[dataset.format].shards
        for shard, entry in zip(shards, entries, strict=True):
            assert (shard.key, shard.bytes) == (entry.key, entry.bytes)
            assert (len(shard), shard.sha256) == (entry.records, entry.sha256)
        assert [number for shard in shards for number in shard.samples] == list(range(COUNT))
        assert [shard.number for shard in shards] == list(range(len(shards)))

    def test_some_in_another_order(self, watched: tuple[dataprep.Dataset, Watched]) -> None:
        """``iterate`` and a shard's own iterator read each shard in one request."""
        dataset, store = watched
        first, *_, last = dataset.shards()
        read_images = [sample.image for sample in dataset.iterate([last, first])]
        assert read_images == [dataset[i].image for i in (*last.samples, *first.samples)]
        assert [sample.image for sample in last] == read_images[: len(last)]
        assert store.asked == [last.key, first.key, last.key]
        assert list(dataset.iterate([])) == []

    def test_large_shards(
        self, watched: tuple[dataprep.Dataset, Watched], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One large shard is fetched ahead on another thread, and two are in memory at most."""
        monkeypatch.setattr(module, "_MAX_BYTES_AHEAD", 0)
        dataset, store = watched
        samples: Iterator[object] = iter(dataset)
        samples = itertools.chain([next(samples)], samples)
        assert store.second.wait(60)  # the shard is fetched before its samples are requested
        for number, shard in enumerate(dataset.shards()):
            for _ in shard.samples:
                next(samples)
                assert len(store.asked) <= number + 2
        assert store.asked == [shard.key for shard in dataset.shards()]
        assert threading.get_ident() not in store.threads
        assert store.most_alive == 2
        del samples
        assert not [ref for ref in store.alive if ref() is not None]

    def test_small_shards(self, watched: tuple[dataprep.Dataset, Watched]) -> None:
        """Of small shards, three are requested before one arrives."""
        dataset, store = watched
        store.meeting = threading.Barrier(3)
        assert len(list(dataset)) == COUNT

    def test_iterators(self, watched: tuple[dataprep.Dataset, Watched]) -> None:
        """Two iterators do not disturb each other, and a dropped one leaves no thread."""
        dataset, _ = watched
        before = set(threading.enumerate())
        samples: Iterator[object] = iter(dataset)
        next(samples)
        assert set(threading.enumerate()) > before
        del samples
        assert set(threading.enumerate()) == before
        assert all(
            sample.image == other.image for sample, other in zip(dataset, dataset, strict=True)
        )

    def test_a_missing_shard(self, changeable: MemoryStore) -> None:
        """The samples before a missing shard are read, then the error names it."""
        dataset = dataprep.open(changeable.uri)
        first, second, *_ = dataset.shards()
        changeable.delete(second.key)
        samples = iter(dataset)
        assert len(list(itertools.islice(samples, len(first)))) == len(first)
        with pytest.raises(ObjectNotFound, match=second.key):
            next(samples)

    def test_a_damaged_record(self, changeable: MemoryStore) -> None:
        """The samples before a damaged record are read. The error has shard, record and byte."""
        dataset = dataprep.open(changeable.uri)
        key, offset, _ = dataset.place(5)
        change(changeable, key, lambda data: data.__setitem__(offset, data[offset] ^ 1))
        samples = iter(dataset)
        assert len(list(itertools.islice(samples, 5))) == 5
        with pytest.raises(CorruptRecord, match=f"{key}: record 5 at byte {offset}"):
            next(samples)
        with pytest.raises(CorruptRecord, match=f"{key} at {offset}: record 0"):
            dataset[5]
        assert dataset[6].image

    @pytest.mark.parametrize("times", [0, 2], ids=["empty", "longer"])
    def test_another_number_of_records(self, changeable: MemoryStore, times: int) -> None:
        """A shard that is cut or extended between records is an error, not other samples."""
        dataset = dataprep.open(changeable.uri)
        shard = dataset.shards()[0]
        changeable.put(shard.key, changeable.get(shard.key) * times)
        samples = iter(shard)
        kept = min(times, 1) * len(shard)
        assert len(list(itertools.islice(samples, kept))) == kept
        message = rf"{shard.key}: it does not have the {len(shard)} records"
        with pytest.raises(CorruptRecord, match=message):
            next(samples)


class TestSomeShards:
    """``of_shards`` makes a data set of some of the shards."""

    def test_it_has_their_samples(self, dataset: dataprep.Dataset) -> None:
        """The data set has the samples, labels and rows of these shards, numbered from 0."""
        first, _, third, *_ = dataset.shards()
        part = dataset.of_shards([third.number, first.number, np.int64(first.number)])
        numbers = [*first.samples, *third.samples]
        assert len(part) == len(numbers) < COUNT
        assert list(part) == [part[i] for i in range(len(part))] == [dataset[i] for i in numbers]
        assert part.labels.tolist() == dataset.labels[numbers].tolist()
        assert part.label_space == dataset.label_space
        assert part.written["source"].tolist() == dataset.written["source"].iloc[numbers].tolist()
        assert [part.place(i) for i in range(len(part))] == [dataset.place(i) for i in numbers]
        assert [shard.key for shard in part.shards()] == [first.key, third.key]
        assert [shard.number for shard in part.shards()] == [0, 1]
        assert [sample.image for sample in part.shards()[1]] == [s.image for s in third]

    @given(st.sets(st.integers(0, 3), min_size=1), st.sampled_from(FORMATS))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
    def test_any_shards(self, uri_of_dataset: str, numbers: set[int], format: str) -> None:
        """Every reader by number agrees with the whole data set, and all parts add up to it."""
        dataset = dataprep.open(uri_of_dataset, format=format)
        part = dataset.of_shards(numbers)
        shards = [shard for shard in dataset.shards() if shard.number in numbers]
        records, all_records = Records(part), Records(dataset)
        expected = [number for shard in shards for number in shard.samples]
        assert [bytes(image) for image in records.fetch(range(len(part)))] == [
            bytes(image) for image in all_records.fetch(expected)
        ]
        assert (len(records), records.samples_by_share(Order())) == (
            len(expected),
            (len(expected),),
        )
        entry = part.manifest.formats[format]
        assert (entry.records, entry.bytes) == (len(part), sum(shard.bytes for shard in shards))
        assert sorted(records.samples_of_rank(Order(seed=3), 1).tolist()) == list(range(len(part)))

    def test_failed_samples_of_these_shards_stay_in_the_table(
        self, tree: Path, tmp_path: Path
    ) -> None:
        """``samples`` has the rows of these shards, and the rows of all shards add up."""
        source = Path(shutil.copytree(tree, tmp_path / "photos"))
        for path in sorted(source.rglob("*.JPEG"))[::7]:
            path.write_bytes(b"")
        uri = make(source, f"memory://{secrets.token_hex(4)}", max_failures="50%")
        dataset = dataprep.open(uri)
        parts = [dataset.of_shards([shard.number]) for shard in dataset.shards()]
        assert sum(len(part.samples) for part in parts) == COUNT
        assert sum(len(part.written) for part in parts) == len(dataset) == 102

    def test_some_of_some(self, dataset: dataprep.Dataset) -> None:
        """Numbers of shards count in the data set that is asked."""
        part = dataset.of_shards([1, 2, 3]).of_shards([0, 2])
        keys = [shard.key for shard in dataset.shards()]
        assert [shard.key for shard in part.shards()] == [keys[1], keys[3]]
        assert part[0] == dataset[dataset.shards()[1].samples[0]]

    def test_pickled(self, dataset: dataprep.Dataset) -> None:
        """A copy in another process reads the same shards."""
        part = dataset.of_shards([1, 3])
        copy = pickle.loads(pickle.dumps(part))
        assert [shard.key for shard in copy.shards()] == [shard.key for shard in part.shards()]
        assert list(copy) == list(part)

    def test_records_are_still_checked(self, changeable: MemoryStore) -> None:
        """A flipped byte of RecordIO is detected by the checksum of its record."""
        dataset = dataprep.open(changeable.uri, format="recordio")
        last = dataset.shards()[3]
        part = dataset.of_shards([1, 3])
        key, offset, length = dataset.place(last.samples[2])
        changed = offset + length // 2
        change(changeable, key, lambda data: data.__setitem__(changed, data[changed] ^ 1))
        number = len(part.shards()[0]) + 2
        for read in (part.__getitem__, Records(part).image):
            with pytest.raises(CorruptRecord, match="CRC-32C"):
                read(number)
        assert part[number - 1].image

    def test_a_split_made_anew_is_refused(self, changeable: MemoryStore) -> None:
        """The smaller data set belongs to the manifest that was opened."""
        part = dataprep.open(changeable.uri).of_shards([0])
        manifest = json.loads(changeable.get(MANIFEST))
        changeable.put(MANIFEST, json.dumps({**manifest, "created": "later"}).encode())
        with pytest.raises(DatasetChanged):
            part[0]

    def test_a_share_is_divided_among_all_ranks(self, uri_of_dataset: str, tmp_path: Path) -> None:
        """Some shards of a host's share are a data set with the numbers of the share."""
        stage(uri_of_dataset, str(tmp_path / "share"), host=Part(1, 2))
        share = dataprep.open(tmp_path / "share")
        part = share.of_shards([len(share.shards()) - 1])
        assert list(part) == [share[i] for i in share.shards()[-1].samples]
        order = Order(rank=1, world_size=3)
        assert Records(part).order_on_host(order) == order

    @pytest.mark.parametrize(
        ("numbers", "message"),
        [
            ([], "cannot be read without a shard"),
            ([4], "has no shard 4: .* from 0 to 3"),
            ([-1], "has no shard -1"),
        ],
    )
    def test_shards_that_are_not_there(
        self, dataset: dataprep.Dataset, numbers: list[int], message: str
    ) -> None:
        """The error has the wrong number and the valid ones."""
        with pytest.raises(ConfigError, match=message):
            dataset.of_shards(numbers)


@pytest.fixture
def remote(tree: Path, bucket: str, s3_server: MotoServer) -> dataprep.Dataset:
    """The drawn tree on S3."""
    options = StoreOptions(endpoint_url=s3_server.url)
    uri = make(tree, f"s3://{bucket}/out", store=options.model_dump())
    return dataprep.open(uri, options=options)


def read_all(dataset: dataprep.Dataset, answers: Any) -> None:
    """Read all samples by number in a forked process."""
    assert isinstance(dataset.store, S3Store)
    images = [dataset[i].image for i in range(COUNT)]
    answers.put((id(dataset.store._client()), images))


class TestOnS3:
    def test_requests(self, remote: dataprep.Dataset, calls: Calls) -> None:
        """An index requests only its record, and iteration requests each shard once."""
        labels = remote.labels.tolist()
        read = calls(S3Store, "get_versioned")
        assert remote[50].label == labels[50]
        assert [location for _, *location in read] == [[*remote.place(50)]]
        read.clear()
        assert [sample.label for sample in remote] == labels
        assert sorted(key for _, key, *_ in read) == [shard.key for shard in remote.shards()]

    def test_other_processes(self, remote: dataprep.Dataset) -> None:
        """Forked and new processes read through their own connections."""
        expected = [sample.image for sample in remote]
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()
        child = context.Process(target=read_all, args=(remote, answers))
        child.start()
        assert [remote[i].image for i in range(COUNT)] == expected
        client, images = answers.get()
        child.join()
        assert images == expected
        assert isinstance(remote.store, S3Store)
        assert client != id(remote.store._client())
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            assert pool.submit(remote.__getitem__, 7).result(60) == remote[7]

    def test_close(self, remote: dataprep.Dataset) -> None:
        """The end of a ``with`` block closes the connections."""
        assert isinstance(remote.store, S3Store)
        with remote as dataset:
            assert dataset[3].image
            assert remote.store._open_client is not None
        assert remote.store._open_client is None


class TestClosing:
    def test_nothing_is_read_afterwards(self, uri_of_dataset: str) -> None:
        """Reading a closed data set is an error. Samples that were read before remain."""
        with dataprep.open(uri_of_dataset) as dataset:
            labels = dataset.labels
            samples = iter(dataset)
            next(samples)
        dataset.close()
        assert len(dataset) == COUNT
        assert dataset.labels is labels
        for read in (lambda: dataset[0], lambda: dataset.label_space, lambda: next(iter(dataset))):
            with pytest.raises(DatasetError, match="is closed: open it again"):
                read()
        with pytest.raises(DatasetError, match="is closed"):
            list(samples)
        assert pickle.loads(pickle.dumps(dataset))[0].image
