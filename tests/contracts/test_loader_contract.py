"""Every loader reads each sample once with its label, and its epochs end."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import psutil
import pytest

import dataprep
from dataprep.errors import ConfigError
from dataprep.labels import LabelSpace
from dataprep.reading.augment import Augmentation, sample_rng
from dataprep.reading.read_counter import ReadTotals
from dataprep.stores import StoreOptions, open_store
from iobench.clock import SystemClock
from iobench.data.data_summary import summarize_data
from iobench.data.warm_part import warm_part
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import (
    LOADERS,
    Batch,
    CountsBatches,
    CountsReads,
    HoldsSamples,
    Loader,
    LoaderSettings,
    SplitsFirstBatch,
)
from iobench.loaders.protocol import MemoryRung
from iobench.results.trial import Location
from iobench.servers.moto_server import MotoServer
from iobench.trials.loop_metrics import first_batch_metrics

pytestmark = pytest.mark.slow

SAMPLES, CLASSES, SIZE = 120, 6, 64
FRAMEWORKS = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
FRAMEWORK_OF = {"tf-data": "tensorflow", "mxnet-record": "mxnet"}
# The library leaves files open until they are garbage-collected.
LEAVES_FILES_OPEN = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
MARKS = {**dict.fromkeys([*FRAMEWORK_OF, "dali"], FRAMEWORKS), "webdataset": LEAVES_FILES_OPEN}
TESTED = (
    *("raw", "torch-map", "torch-iterable", "torch-folder", "tf-data", "mxnet-record"),
    *("dali", "webdataset"),
)
NAMES = [pytest.param(name, marks=MARKS.get(name, ()), id=name) for name in TESTED]
DECODING = [point for point in NAMES if point.id != "raw"]
FROM_FILES = ("torch-folder",)
LOCAL_ONLY = ("dali", "webdataset")
ALWAYS_DECODE = ("mxnet-record", "dali", "webdataset")


class Data(NamedTuple):
    """The same 120 samples in four locations, with their images and labels."""

    locations: dict[str, Location]
    labels: dict[bytes, int]
    shard_samples: Sequence[tuple[bytes, int]]
    file_samples: Sequence[tuple[bytes, int]]


@pytest.fixture(scope="module")
def data(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, s3_server: MotoServer
) -> Iterator[Data]:
    """The drawn tree as files and as shards of all formats, on disk and on S3."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MotoServer.ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.delenv("AWS_PROFILE", raising=False)
        s3_server.create_bucket("loaders")
        output = tmp_path_factory.mktemp("loaders") / "out"
        dataprep.shard(
            dataprep.ShardConfig.model_validate(
                {
                    "source": str(tree),
                    "output": str(output),
                    "format": ("tfrecord", "recordio", "webdataset"),
                    "image": {"mode": "exact", "size": 320, "upscale": True, "quality": 97},
                    "shard_size": "1.2MB",
                    "label_offset": {"tfrecord": 1, "recordio": 1, "webdataset": 1},
                }
            )
        )
        options = StoreOptions(endpoint_url=s3_server.url)
        for folder, prefix in ((output, "shards"), (tree, "files")):
            bucket = open_store(f"s3://loaders/{prefix}", options)
            local = open_store(folder)
            for entry in local.list():
                bucket.put(entry.key, local.get(entry.key))
        yield Data(
            {
                "shards@disk": Location(str(output), "shards"),
                "files@disk": Location(str(tree), "files"),
                "shards@s3": Location("s3://loaders/shards", "shards", options),
                "files@s3": Location("s3://loaders/files", "files", options),
            },
            *_samples(tree, output),
        )


def _samples(
    tree: Path, output: Path
) -> tuple[dict[bytes, int], list[tuple[bytes, int]], list[tuple[bytes, int]]]:
    """The label of each image, the samples of the shards, and those of the files."""
    dataset = dataprep.open(output)
    assert len(dataset.manifest.formats["tfrecord"].shards) >= 3
    contents = [(bytes(sample.image), sample.label) for sample in dataset]
    paths = sorted(path for path in tree.rglob("*") if path.is_file())
    index = LabelSpace.of(path.parent.name for path in paths).index
    files = [(path.read_bytes(), index[path.parent.name]) for path in paths]
    return dict([*contents, *files]), contents, files


@contextmanager
def opened(name: str, location: Location | None, **settings: Any) -> Iterator[Loader]:
    """Open a loader and close it afterwards. The test is skipped without the loader's framework."""
    options = {"batch_size": 16, "image_size": SIZE, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TensorFlow and MXNet emit warnings of their own on import
        try:
            loader = LOADERS.load(name)(location, LoaderSettings(**options), SystemClock())
        except Unavailable as error:
            if "is not installed" not in str(error):
                raise
            pytest.skip(str(error))
    try:
        yield loader
    finally:
        loader.close()


def location_of(data: Data, name: str, where: str = "disk") -> Location:
    """The location that this loader reads."""
    return data.locations[f"{'files' if name in FROM_FILES else 'shards'}@{where}"]


def numbers(array: Any) -> list[int]:
    """The labels of any framework as integers."""
    values = array.asnumpy() if hasattr(array, "asnumpy") else array
    labels: list[int] = np.asarray(values).astype(int).tolist()
    return labels


def pixels(array: Any) -> Any:
    """The images of any framework as a float array (N, 3, S, S)."""
    values = np.asarray(array.asnumpy() if hasattr(array, "asnumpy") else array)
    return np.moveaxis(values, -1, 1) if values.shape[-1] == 3 else values


def encoded(images: Any) -> list[bytes]:
    """The images of a batch that was not decoded, as bytes."""
    values = images.numpy() if hasattr(images, "numpy") else images
    return [bytes(image) for image in values]


def labels_of(batches: Sequence[Batch]) -> list[int]:
    """All labels of an epoch in order."""
    return [label for batch in batches for label in numbers(batch.labels)]


def parts_of(name: str, workers: int) -> Sequence[str]:
    """The parts of the time to the first batch that this loader reports."""
    if name == "raw":
        return ("listing", "fetch", "decode", *([] if workers else ["worker_start"]))
    built = ("listing", "worker_start")
    few = {"tf-data": built, "dali": built, "webdataset": built, "mxnet-record": ("listing",)}
    return few.get(name, ("listing", "worker_start", "fetch", "decode"))


def children() -> set[int]:
    """Ids of the live processes that this process has started itself.

    Their own children do not count, because a browser of other tests starts and ends processes.
    """
    return {child.pid for child in psutil.Process().children()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["disk", "s3"])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_each_sample_once(data: Data, name: str, where: str, workers: int) -> None:
    """Two epochs have each label as often as the data have it, in full batches."""
    if where == "s3" and name in LOCAL_ONLY:
        pytest.skip("the loader reads only local paths")
    location = location_of(data, name, where)
    expected = Counter(
        label for _, label in (data.file_samples if name in FROM_FILES else data.shard_samples)
    )
    with opened(name, location, workers=workers) as loader:
        for number in range(2):
            batches = list(loader.epoch(number))
            assert Counter(labels_of(batches)) == expected
            assert sum(batch.samples for batch in batches) == SAMPLES
            assert all(len(numbers(batch.labels)) == batch.samples <= 16 for batch in batches)
            short = [batch for batch in batches if batch.samples < 16]
            assert len(short) <= max(1, workers)


@pytest.mark.parametrize("name", DECODING)
def test_workers_read_where_opencv_has_threads(data: Data, name: str) -> None:
    """Forked workers do not wait for OpenCV's threads, which were started in the parent only."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(2)
    try:
        cv2.cvtColor(np.zeros((1500, 1500, 3), np.uint8), cv2.COLOR_RGB2BGRA)  # starts the threads
        with opened(name, location_of(data, name), workers=2) as loader:
            assert sum(batch.samples for batch in loader.epoch(0)) == SAMPLES
    finally:
        cv2.setNumThreads(before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["disk", "s3"])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_reads_are_counted(data: Data, name: str, where: str, workers: int) -> None:
    """A sample is counted before it is consumed, and a full epoch counts each sample and its bytes.

    DALI and the webdataset library do not count.
    """
    if name in LOCAL_ONLY:
        assert not hasattr(LOADERS.load(name), "read_pattern")
        return
    location = location_of(data, name, where)
    size = summarize_data(location, "files" if name in FROM_FILES else "tfrecord").bytes
    with opened(name, location, workers=workers) as loader:
        assert isinstance(loader, CountsReads)
        pattern = loader.read_pattern(size / SAMPLES)
        # The pipelines of TensorFlow and MXNet read in one stream with any number of threads.
        one_stream = name in ("tf-data", "mxnet-record")
        assert pattern.streams == (1 if one_stream else max(1, workers))
        assert pattern.window_samples >= 1
        consumed = 0
        for epochs in (1, 2):
            for batch in loader.epoch(epochs):
                consumed += batch.samples
                assert loader.read_so_far().samples >= consumed
            totals = loader.read_so_far()
            assert totals.samples == epochs * SAMPLES
            # A request to a store may read over a gap, which costs less than another request.
            most = 1.1 if where == "disk" else 2.0
            assert 0.9 * size <= totals.bytes / epochs <= most * size


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_a_warm_part_is_all_that_is_read(data: Data, name: str, workers: int) -> None:
    """A warm-up part reads each sample of every second shard or file once, with the same labels."""
    location = location_of(data, name)
    form = "files" if name in FROM_FILES else "tfrecord"
    part = warm_part(location, summarize_data(location, form).bytes)
    assert 0.3 < part.share < 0.8
    if name in FROM_FILES:
        expected = Counter(label for _, label in data.file_samples[::2])
    else:
        shards = dataprep.open(location.uri).shards()[::2]
        expected = Counter(sample.label for shard in shards for sample in shard)
    with opened(name, part.location, workers=workers) as loader:
        for number in range(2):
            assert Counter(labels_of(list(loader.epoch(number)))) == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("where", ["disk", "s3"])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_the_parts_of_the_first_batch_add_up(
    data: Data, name: str, where: str, workers: int
) -> None:
    """The reported parts of the first batch add up to at most its time, and do not change later."""
    if where == "s3" and name in LOCAL_ONLY:
        pytest.skip("the loader reads only local paths")
    with opened(name, location_of(data, name, where), workers=workers) as loader:
        assert isinstance(loader, SplitsFirstBatch)
        assert loader.first_batch() is None
        asked_s = time.perf_counter()
        batches = iter(loader.epoch(0))
        next(batches)
        first_s = time.perf_counter() - asked_s
        split = first_batch_metrics(loader, first_s)
        assert sum(split.values()) == pytest.approx(first_s)
        reported = {metric for metric, seconds in split.items() if seconds >= 0}
        assert reported == {f"first_batch_{part}_s" for part in (*parts_of(name, workers), "rest")}
        assert split["first_batch_listing_s"] > 0
        parts = loader.first_batch()
        assert sum(batch.samples for batch in batches) > 0
        assert sum(batch.samples for batch in loader.epoch(1)) == SAMPLES
        assert loader.first_batch() == parts


@pytest.mark.parametrize("name", [point for point in NAMES if point.id not in ALWAYS_DECODE])
@pytest.mark.parametrize("where", ["disk", "s3"])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_without_decode(data: Data, name: str, where: str, workers: int) -> None:
    """Without decoding, batches hold each encoded image once, beside its own label."""
    with opened(name, location_of(data, name, where), workers=workers, decode=False) as loader:
        samples = [
            pair
            for batch in loader.epoch(0)
            for pair in zip(encoded(batch.images), numbers(batch.labels), strict=True)
        ]
    assert len({image for image, _ in samples}) == SAMPLES
    assert all(data.labels[image] == label for image, label in samples)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
def test_mxnet_says_where_it_has_fewer_threads(data: Data) -> None:
    """MXNet reports that it leaves one processor free, because it then has fewer threads."""
    location, most = location_of(data, "mxnet-record"), len(os.sched_getaffinity(0))
    with opened("mxnet-record", location, workers=1) as few:
        assert not any("workers" in note for note in few.notes)
    with opened("mxnet-record", location, workers=most + 7) as loader:
        assert f"{most + 7} workers mean {max(1, most - 1)}" in " ".join(loader.notes)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
def test_mxnet_always_decodes(data: Data) -> None:
    """MXNet refuses to return encoded images, and names a loader that returns them."""
    with pytest.raises(Unavailable, match="always decodes: take the loader 'raw'"):
        LOADERS.load("mxnet-record")(
            data.locations["shards@disk"], LoaderSettings(decode=False), SystemClock()
        )


@pytest.mark.frameworks
def test_dali_says_what_it_does_not(data: Data) -> None:
    """DALI refuses undecoded images and locations without a path, and always has a thread."""
    with opened("dali", location_of(data, "dali"), shuffle=False) as loader:
        assert "0 workers mean one thread" in " ".join(loader.notes)
    for location, decode, text in (
        (data.locations["shards@disk"], False, "always decodes: take the loader 'raw'"),
        (data.locations["shards@s3"], True, "at a path: give data @disk"),
    ):
        with pytest.raises(Unavailable, match=text):
            LOADERS.load("dali")(location, LoaderSettings(decode=decode), SystemClock())
    with pytest.raises(Unavailable, match="no GPU here: dali-gpu decodes on a GPU"):
        LOADERS.load("dali-gpu")(data.locations["shards@disk"], LoaderSettings(), SystemClock())


@pytest.mark.parametrize("name", DECODING)
@pytest.mark.parametrize("normalise", [True, False], ids=["normalised", "as they are"])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_shapes(data: Data, name: str, normalise: bool, workers: int) -> None:
    """Images have the framework's own layout, and are float32 or uint8."""
    shape = (16, SIZE, SIZE, 3) if name == "tf-data" else (16, 3, SIZE, SIZE)
    options: dict[str, Any] = {"colour_jitter": True, "pca_noise": True, "workers": workers}
    with opened(name, location_of(data, name), normalise=normalise, **options) as loader:
        batch = next(iter(loader.epoch(0)))
        assert tuple(batch.images.shape) == shape
        kind = "float32" if normalise or name == "mxnet-record" else "uint8"
        assert kind in str(batch.images.dtype)
        label = "float32" if name == "mxnet-record" else "int64"
        assert label in str(batch.labels.dtype)
        values = pixels(batch.images).astype(float)
        if normalise:
            assert -2.2 < values.min() < values.max() < 2.7
        else:
            assert values.max() > 100


@pytest.mark.parametrize("name", DECODING)
def test_unshuffled_centres(data: Data, name: str) -> None:
    """Without shuffling and augmentation, the images are the stored images in their order."""
    samples = data.file_samples if name in FROM_FILES else data.shard_samples
    reference = Augmentation(size=192, random=False, normalise=False)
    expected = np.stack([reference(image, sample_rng(0, 0, 0)) for image, _ in samples])
    plain: dict[str, Any] = {"augment": False, "shuffle": False, "normalise": False}
    with opened(name, location_of(data, name), image_size=192, **plain) as loader:
        # Each batch is copied at once: ImageRecordIter uses the memory of a batch again.
        batches = [
            (numbers(batch.labels), pixels(batch.images).astype(float)) for batch in loader.epoch(0)
        ]
    labels = [label for batch_labels, _ in batches for label in batch_labels]
    assert labels == [label for _, label in samples]
    read_images = np.concatenate([images for _, images in batches])
    # Each framework has its own filter, so only the means of blocks agree.
    read_means, expected_means = (
        images.reshape(-1, 3, 24, 8, 24, 8).mean((3, 5)) for images in (read_images, expected)
    )
    assert np.abs(read_means - expected_means).mean((1, 2, 3)).max() < 5
    assert np.abs(read_means - np.roll(expected_means, 1, axis=0)).mean() > 20


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_order(data: Data, name: str, workers: int) -> None:
    """The order depends on the epoch and the seed only, and both change it."""

    def orders(seed: int) -> list[list[int]]:
        with opened(name, location_of(data, name), workers=workers, seed=seed) as loader:
            return [labels_of(list(loader.epoch(number))) for number in range(2)]

    first = orders(seed=1)
    assert first[0] != first[1]
    assert orders(seed=1) == first
    assert orders(seed=2)[0] != first[0]


@pytest.mark.parametrize("name", DECODING)
def test_augmentation_repeats(data: Data, name: str) -> None:
    """The same seed gives the same pixels with any number of workers. Epochs have other pixels."""

    def images(workers: int, epoch: int) -> Any:
        options: dict[str, Any] = {"shuffle": False, "colour_jitter": True, "workers": workers}
        with opened(name, location_of(data, name), **options) as loader:
            return np.concatenate([pixels(batch.images) for batch in loader.epoch(epoch)])

    alone = images(0, 0)
    assert not np.array_equal(alone, images(0, 1))
    if name != "torch-iterable":  # its workers take turns, so that the order differs
        assert np.array_equal(alone, images(1, 0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("when", ["after an epoch", "within an epoch"])
def test_close(data: Data, name: str, when: str) -> None:
    """No process outlives ``close``, and closing twice does nothing."""
    before = children()
    with opened(name, location_of(data, name), workers=2) as loader:
        batches = iter(loader.epoch(0))
        next(batches)
        if name.startswith("torch"):
            assert len(children() - before) == 2
        if when == "after an epoch":
            assert sum(batch.samples for batch in batches) > 0
        loader.close()
        assert children() == before


@pytest.mark.parametrize("name", NAMES)
def test_an_epoch_may_be_left(data: Data, name: str) -> None:
    """An epoch that was not read to its end does not reach into the next epoch."""
    with opened(name, location_of(data, name), workers=2) as loader:
        for _ in loader.epoch(0):
            break
        assert len(labels_of(list(loader.epoch(1)))) == SAMPLES


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_read(data: Data, name: str) -> None:
    """A loader refuses empty data, and data that it does not read, when it is created."""
    empty = Location("/nowhere", "empty")
    other = data.locations["shards@disk" if name in FROM_FILES else "files@disk"]
    for location in (None, empty) if name == "raw" else (None, empty, other):
        with pytest.raises(ConfigError, match=f"loader '{name}' reads"), opened(name, location):
            pass


@pytest.mark.parametrize("name", NAMES)
def test_missing_data_is_told(tmp_path: Path, name: str) -> None:
    """If data are missing, creating the loader or its first epoch raises an error of one line."""
    location = Location(str(tmp_path / "gone"), "files" if name in FROM_FILES else "shards")
    with pytest.raises(OSError, match="gone") as caught, opened(name, location) as loader:
        next(iter(loader.epoch(0)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [p for p in DECODING if p.id not in LOCAL_ONLY])
def test_remote_notes(data: Data, name: str) -> None:
    """A loader has no note that applies to S3 only."""
    with (
        opened(name, location_of(data, name), workers=1) as local,
        opened(name, location_of(data, name, "s3"), workers=1) as remote,
    ):
        assert remote.notes == local.notes


@pytest.mark.parametrize("name", [point for point in NAMES if "torch" in str(point.id)])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_ranks_share_the_samples(data: Data, name: str, workers: int) -> None:
    """All ranks of an epoch together read each sample once, and every rank has some samples."""
    location = location_of(data, name)
    shares = []
    for rank in range(3):
        ranks: dict[str, Any] = {"rank": rank, "world_size": 3}
        with opened(name, location, workers=workers, decode=False, **ranks) as loader:
            assert getattr(loader, "by_rank", False)
            shares.append({image for b in loader.epoch(0) for image in encoded(b.images)})
            if isinstance(loader, CountsBatches):
                full_batches = [batch for batch in loader.epoch(0) if batch.samples == 16]
                assert loader.whole_batches() == len(full_batches)
    assert all(shares)
    assert sum(map(len, shares)) == len(set.union(*shares)) == SAMPLES


@pytest.mark.parametrize("name", NAMES)
def test_a_loader_that_does_not_share_does_not_say_so(data: Data, name: str) -> None:
    """A loader reads a part of the samples on one of two ranks exactly if it says so."""
    with opened(name, location_of(data, name), rank=1, world_size=2) as loader:
        shares = getattr(loader, "by_rank", False)
        assert (len(labels_of(list(loader.epoch(0)))) < SAMPLES) == shares


TORCH = [point for point in NAMES if "torch" in str(point.id)]
RUNGS: tuple[MemoryRung, ...] = ("collate", "augment", "decode")


@contextmanager
def holding(
    data: Data, name: str, rung: MemoryRung, samples: int, limit_bytes: int = 2**28, **settings: Any
) -> Iterator[Loader]:
    """Open a loader that gets samples from memory: a number of samples, or as many as fit."""
    with opened(name, location_of(data, name), **settings) as loader:
        assert isinstance(loader, HoldsSamples)
        loader.hold(rung, samples, limit_bytes)
        yield loader


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_samples_in_memory_come_as_stored_ones(
    data: Data, name: str, rung: MemoryRung, workers: int
) -> None:
    """Samples in memory have the labels, batches, order and dtype of stored samples."""
    with opened(name, location_of(data, name), workers=workers) as real:
        contents = [[numbers(batch.labels) for batch in real.epoch(number)] for number in range(2)]
        (first, *_) = real.epoch(2)
    with holding(data, name, rung, SAMPLES, workers=workers) as loader:
        held = [[numbers(batch.labels) for batch in loader.epoch(number)] for number in range(2)]
        assert held == contents
        (batch, *_) = loader.epoch(2)
        assert (batch.images.shape, batch.images.dtype) == (first.images.shape, first.images.dtype)
        assert batch.images.is_contiguous()


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_samples_in_memory_are_counted(
    data: Data, name: str, rung: MemoryRung, workers: int
) -> None:
    """Samples in memory are counted once in each epoch, with 0 bytes, without their preparation."""
    with holding(data, name, rung, SAMPLES, workers=workers) as loader:
        assert isinstance(loader, CountsReads)
        for epochs in range(3):
            assert loader.read_so_far() == ReadTotals(epochs * SAMPLES, 0)
            assert sum(batch.samples for batch in loader.epoch(epochs)) == SAMPLES


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("rung", ["decode", "collate"])
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_samples_in_memory_are_the_stored_ones(
    data: Data, name: str, rung: MemoryRung, workers: int
) -> None:
    """Samples in memory are the stored pixels in the first epoch, and the bytes in every epoch."""
    settings: dict[str, Any] = {"workers": workers, "colour_jitter": True, "normalise": False}
    epochs = range(2 if rung == "decode" else 1)
    with (
        opened(name, location_of(data, name), **settings) as real,
        holding(data, name, rung, SAMPLES, **settings) as loader,
    ):
        for number in epochs:
            pairs = zip(real.epoch(number), loader.epoch(number), strict=True)
            assert all(np.array_equal(a.images, b.images) for a, b in pairs)


@pytest.mark.parametrize("name", TORCH)
def test_decoded_samples_are_augmented_anew(data: Data, name: str) -> None:
    """Decoded samples in memory are close to the stored images, or are augmented in each epoch."""
    plain: dict[str, Any] = {"augment": False, "normalise": False, "image_size": 192}
    with (
        opened(name, location_of(data, name), **plain) as real,
        holding(data, name, "augment", SAMPLES, **plain) as loader,
    ):
        for expected, held in zip(real.epoch(0), loader.epoch(0), strict=True):
            difference = np.abs(pixels(expected.images).astype(float) - pixels(held.images))
            assert difference.mean() < 4
    with holding(data, name, "augment", SAMPLES, shuffle=False) as loader:
        first, second = ([b.images.numpy() for b in loader.epoch(number)] for number in range(2))
    assert not np.array_equal(first[0], second[0])


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("workers", [0, 2], ids=["no workers", "2 workers"])
def test_few_samples_in_memory_are_given_again(data: Data, name: str, workers: int) -> None:
    """A few samples in memory are repeated. The first batches have distinct, stored samples."""
    limit = 12 * 3 * SIZE * SIZE + 1
    settings: dict[str, Any] = {"workers": workers, "normalise": False, "batch_size": 4}
    with (
        opened(name, location_of(data, name), **settings) as real,
        holding(data, name, "collate", 30, limit, **settings) as loader,
    ):
        assert "takes 30 samples, 12 of which are in memory" in " ".join(loader.notes)
        batches = list(loader.epoch(0))
        first = 12 // 4
        for expected, held in zip(list(real.epoch(0))[:first], batches, strict=False):
            assert np.array_equal(expected.images, held.images)
        images = [image.tobytes() for batch in batches for image in batch.images.numpy()]
        assert len(images) == SAMPLES
        assert len(set(images)) == 12
        assert all(
            len({image.tobytes() for image in batch.images.numpy()}) == batch.samples
            for batch in batches[:first]
        )


@pytest.mark.parametrize("name", TORCH)
def test_memory_that_holds_no_sample_is_refused(data: Data, name: str) -> None:
    """A memory limit below one sample is refused with the available memory."""
    with (
        pytest.raises(TrialFailed, match=r"input decode: no sample fits into 10 bytes"),
        holding(data, name, "decode", SAMPLES, 10),
    ):
        pass


@pytest.mark.parametrize("name", TORCH)
def test_nothing_is_read_while_samples_in_memory_are_given(
    data: Data, name: str, tmp_path: Path
) -> None:
    """While samples in memory are returned, stored data are not read and may be missing."""
    location = location_of(data, name)
    copy = tmp_path / "copy"
    shutil.copytree(location.uri, copy)
    with opened(name, Location(str(copy), location.holds)) as loader:
        assert isinstance(loader, HoldsSamples)
        loader.hold("decode", SAMPLES, 2**28)
        for path in copy.rglob("*"):
            if path.is_file() and (path.suffix in (".jpg", ".png") or "tfrecord/" in str(path)):
                path.write_bytes(b"")
        assert sum(batch.samples for batch in loader.epoch(0)) == SAMPLES
