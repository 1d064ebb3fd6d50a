"""How torch's workers make batches: known delays are found in the parts of the first batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from multiprocessing import Value
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dataprep.reading.augment import Augmentation
from dataprep.reading.normalisation import IMAGENET_MEAN, IMAGENET_STD
from iobench.clock import VirtualClock
from iobench.loaders import FirstBatch, LoaderSettings, SplitsFirstBatch, TimesBatches
from iobench.loaders.torch_loader import TorchLoader
from iobench.results.trial import Location

torch = pytest.importorskip("torch")
torch_dataset: Any = torch.utils.data.IterableDataset

# The delays are powers of two, so that their sums are exact.
LISTING_S, START_S, FETCH_S, DECODE_S, COLLATE_S = 4.0, 2.0, 0.5, 0.25, 0.125
BATCH, SAMPLES = 4, 10


class SharedClock(VirtualClock):
    """A clock of several processes, which only sleeping advances.

    ``looks`` counts how often this process has read it.
    """

    def __init__(self) -> None:
        self._now = Value("d", 0.0)
        self.looks = 0

    def now_s(self) -> float:
        """Return the seconds that all processes have slept."""
        self.looks += 1
        return float(self._now.value)

    def sleep(self, seconds: float) -> None:
        """Advance the clock; the sleeps of several processes add up."""
        with self._now.get_lock():
            self._now.value += seconds


class Slow:
    """Samples of class 0 that take ``FETCH_S`` to read and ``DECODE_S`` to decode."""

    def __init__(self, samples: int, clock: SharedClock, *, decode: bool) -> None:
        from dataprep.reading.torch_epochs import Items

        self._clock, self._samples = clock, samples
        self.labels, self.name = np.zeros(samples, np.int64), str
        self.items = Items(self, self._decode if decode else None, seed=0)

    def _decode(self, image: Any, rng: np.random.Generator) -> Any:
        self._clock.sleep(DECODE_S)
        return np.zeros((3, 1, 1), np.uint8)

    def set_epoch(self, epoch: int) -> None:
        """Do nothing, since every epoch is the same."""

    def read(self, number: int) -> tuple[Any, int]:
        """Read the sample with this number."""
        self._clock.sleep(FETCH_S)
        return self.items.item(b"", number, epoch=0)


class SlowMap(Slow):
    """Such samples as a data set of torch's map style."""

    def __len__(self) -> int:
        return self._samples

    def __getitems__(self, numbers: Sequence[int]) -> list[tuple[Any, int]]:
        return [self.read(number) for number in numbers]


class SlowIterable(Slow, torch_dataset):  # type: ignore[misc]
    """Such samples as a data set of torch's iterable style."""

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return map(self.read, range(self._samples))


class SlowLoader(TorchLoader):
    """A loader that takes ``LISTING_S`` to list samples and ``COLLATE_S`` to collate a batch."""

    name = "slow"
    holds = "files"
    kind: type[Slow] = SlowMap
    samples = SAMPLES
    dataset: Slow

    def open(self, transform: Augmentation | None) -> Any:
        """Return a data set of this loader's kind."""
        clock = self.clock
        assert isinstance(clock, SharedClock)
        clock.sleep(LISTING_S)
        self.dataset = self.kind(self.samples, clock, decode=transform is not None)
        return self.dataset

    def _collate(self) -> Callable[[Any], Any] | None:
        def put_together(items: Any) -> Any:
            self.clock.sleep(COLLATE_S)
            return [image for image, _ in items], [label for _, label in items]

        return put_together


@pytest.fixture(params=[SlowMap, SlowIterable], ids=["map", "iterable"])
def kind(request: pytest.FixtureRequest) -> type[Slow]:
    """Return the map style or the iterable style."""
    style: type[Slow] = request.param
    return style


@pytest.fixture
def clock() -> SharedClock:
    """Return a shared clock that shows 0."""
    return SharedClock()


@pytest.fixture
def opened(
    tmp_path: Path, clock: SharedClock, kind: type[Slow]
) -> Iterator[Callable[..., SlowLoader]]:
    """Yield a function that opens loaders, which are closed after the test."""
    results: list[SlowLoader] = []

    def open_loader(samples: int = SAMPLES, **settings: Any) -> SlowLoader:
        options = LoaderSettings(batch_size=BATCH, prefetch=1, **settings)
        loader = SlowLoader(Location(str(tmp_path), "files"), options, clock)
        loader.kind, loader.samples = kind, samples
        results.append(loader)
        return loader

    yield open_loader
    for loader in results:
        loader.close()


@pytest.mark.parametrize("decode", [True, False], ids=["decoded", "encoded"])
@pytest.mark.parametrize("samples", [SAMPLES, BATCH - 1], ids=["whole batch", "short batch"])
def test_every_part_is_found(
    opened: Callable[..., SlowLoader], clock: SharedClock, decode: bool, samples: int
) -> None:
    """Without workers, the parts are listing, fetching and decoding.

    The clock is read twice for listing, for the batch and for each decoding. It is not read after
    the first batch, when the data set has its own transform again.
    """
    loader = opened(samples=samples, decode=decode)
    assert isinstance(loader, SplitsFirstBatch)
    assert loader.first_batch() is None
    batches = iter(loader.epoch(0))
    count = next(batches).samples
    decode_s = count * DECODE_S * decode
    parts = FirstBatch(LISTING_S, 0.0, count * FETCH_S, decode_s)
    assert loader.first_batch() == parts
    assert clock.now_s() == LISTING_S + count * FETCH_S + decode_s + COLLATE_S
    looks = clock.looks
    assert looks == 4 + 2 * count * decode + 1
    assert loader.dataset.items.transform == (loader.dataset._decode if decode else None)
    assert sum(batch.samples for batch in batches) == samples - count
    assert sum(batch.samples for batch in loader.epoch(1)) == samples
    assert clock.looks == looks
    assert loader.first_batch() == parts


def test_a_worker_tells_its_parts(
    opened: Callable[..., SlowLoader], clock: SharedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker reports its parts with the time of its own start."""
    monkeypatch.setattr("cv2.setNumThreads", lambda threads: clock.sleep(START_S))
    loader = opened(samples=BATCH, workers=1)  # The worker makes no second batch ahead.
    next(iter(loader.epoch(0)))
    assert loader.first_batch() == FirstBatch(LISTING_S, START_S, BATCH * FETCH_S, BATCH * DECODE_S)
    assert clock.now_s() == LISTING_S + START_S + BATCH * (FETCH_S + DECODE_S) + COLLATE_S


def test_the_parts_are_those_of_the_first_worker(
    opened: Callable[..., SlowLoader], clock: SharedClock
) -> None:
    """The parts are the delays of the first worker, and no more than the time that passed."""
    loader = opened(workers=2)
    batches = iter(loader.epoch(0))
    next(batches)
    parts = loader.first_batch()
    assert parts is not None
    spans = [span for span in parts if span is not None]
    assert parts.listing_s == LISTING_S
    assert spans[2] >= BATCH * FETCH_S
    assert spans[3] >= BATCH * DECODE_S
    assert sum(spans) <= clock.now_s()
    assert sum(batch.samples for batch in batches) >= SAMPLES - BATCH


@pytest.mark.parametrize("last", [BATCH, 1], ids=["whole last batch", "short last batch"])
def test_a_worker_notes_when_it_made_its_batches(
    opened: Callable[..., SlowLoader], clock: SharedClock, last: int
) -> None:
    """A batch lasts from the request for its first sample until it is collated.

    This holds in every epoch. The time between epochs belongs to no batch.
    """
    sizes = [BATCH, last]
    loader = opened(samples=sum(sizes), workers=1)
    assert isinstance(loader, TimesBatches)
    assert loader.worker_batches() == ()
    for number in range(2):
        assert [batch.samples for batch in loader.epoch(number)] == sizes
        clock.sleep(100.0)
    sizes *= 2
    lengths_s = [size * (FETCH_S + DECODE_S) + COLLATE_S for size in sizes]
    batches = loader.worker_batches()
    assert [batch.end_s - batch.begin_s for batch in batches] == lengths_s
    assert [batch.worker for batch in batches] == [0] * len(sizes)
    assert batches[0].begin_s == LISTING_S
    assert all(before.end_s <= after.begin_s for before, after in pairwise(batches))


def test_batches_of_several_workers_have_their_numbers(
    opened: Callable[..., SlowLoader], clock: SharedClock
) -> None:
    """The loader keeps the batches when its workers have ended."""
    loader = opened(workers=2)
    assert sum(batch.samples for batch in loader.epoch(0)) >= SAMPLES
    loader.close()
    assert {batch.worker for batch in loader.worker_batches()} == {0, 1}


def test_without_workers_there_are_no_batches_of_theirs(
    opened: Callable[..., SlowLoader],
) -> None:
    """A loop without workers makes its batches itself, while it waits."""
    loader = opened()
    assert sum(batch.samples for batch in loader.epoch(0)) == SAMPLES
    assert loader.worker_batches() == ()


@pytest.mark.parametrize(("worker", "tells"), [(None, True), (0, True), (1, False)])
def test_only_the_first_worker_looks(
    monkeypatch: pytest.MonkeyPatch, clock: SharedClock, worker: int | None, tells: bool
) -> None:
    """Only the first worker, or this process without workers, measures the parts."""
    from iobench.loaders import torch_batches

    info = None if worker is None else SimpleNamespace(id=worker)
    monkeypatch.setattr(torch_batches, "get_worker_info", lambda: info)
    items = SlowMap(1, clock, decode=True).items
    watch = torch_batches.FirstBatchWatch(items, len, clock, 0.0)
    assert [watch.collate([None]), watch.collate([None] * 2)] == [1, 2]
    assert (watch.parts() is not None) is tells


def test_an_epoch_without_samples_has_no_parts(opened: Callable[..., SlowLoader]) -> None:
    """The parts are unknown if there is no first batch."""
    loader = opened(samples=0)
    assert list(loader.epoch(0)) == []
    assert loader.first_batch() is None


def test_the_error_of_a_decoder_is_raised(
    opened: Callable[..., SlowLoader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error of a decoder is raised, and no parts are recorded."""

    def broken(self: Slow, image: Any, rng: np.random.Generator) -> Any:
        raise ValueError("not this one")

    monkeypatch.setattr(Slow, "_decode", broken)
    loader = opened()
    with pytest.raises(ValueError, match="not this one"):
        next(iter(loader.epoch(0)))
    assert loader.first_batch() is None


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("normalise", [True, False])
def test_batches_are_those_of_the_default_collate(workers: int, normalise: bool) -> None:
    """Pixels and normalised images are collated alike in this process and in a worker."""
    from iobench.loaders.torch_batches import normalised_batch, uint8_batch

    pixels = np.random.default_rng(0).integers(0, 256, (50, 3, 8, 9), np.uint8)
    items = [(torch.from_numpy(image), label) for label, image in enumerate(pixels)]
    collate = normalised_batch if normalise else uint8_batch
    loader: Any = torch.utils.data.DataLoader(
        items,
        batch_size=20,
        num_workers=workers,
        collate_fn=collate,
    )
    batches = list(loader)
    assert [len(labels) for _, labels in batches] == [20, 20, 10]
    mean, std = np.array(IMAGENET_MEAN)[:, None, None], np.array(IMAGENET_STD)[:, None, None]
    expected = ((pixels / 255 - mean) / std).astype(np.float32) if normalise else pixels
    images = torch.cat([images for images, _ in batches]).numpy()
    assert images.dtype == expected.dtype
    assert np.allclose(images, expected, atol=1e-5)
    assert torch.cat([labels for _, labels in batches]).tolist() == list(range(50))
