"""Epochs of one trial, on a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from iobench.clock import VirtualClock
from iobench.loaders import Batch, LoaderSettings
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.training import SeveralEpochs
from iobench.trial import Cold
from tests.iobench.loops.fakes import SAMPLES, START_S, WAIT_S, SlowConsumer, TellingLoader, warm

pytestmark = pytest.mark.slow


class FakeCache:
    """Notes what is done, and whether every loader that was built is closed by then."""

    def __init__(self, loaders: list[TellingLoader], *, restarts: bool) -> None:
        self.restarts, self._loaders = restarts, loaders
        self.done: list[tuple[str, bool]] = []

    def before(self) -> None:
        """Closed loaders have unmapped their files."""
        self.done.append(("before", self._closed()))

    def after(self, samples: int) -> Cold:
        """One verdict an epoch."""
        self.done.append((f"after {samples}", self._closed()))
        return Cold("cold", "cold", 0.0, 1.0)

    def whole(self) -> Cold:
        """Of as many."""
        return Cold("cold", "cold", why=str(len(self.done)))

    def _closed(self) -> bool:
        return all(loader.closed for loader in self._loaders)


class Trial:
    """Two epochs of four batches."""

    def __init__(self, *, restarts: bool) -> None:
        self.clock = VirtualClock()
        self.loaders: list[TellingLoader] = []
        self.cache = FakeCache(self.loaders, restarts=restarts)
        self.epochs = SeveralEpochs(self.build(), self.build, self.cache, SAMPLES)  # type: ignore[arg-type]
        self.consumer = warm(SlowConsumer, self.clock)

    def build(self) -> TellingLoader:
        """A loader more; the first is not begun before the cache is prepared."""
        loader = TellingLoader(None, LoaderSettings(batch_size=SAMPLES), self.clock)
        loader.batches = 4
        self.loaders.append(loader)
        return loader

    def drive(self, epoch: Callable[[], Iterator[Batch]]) -> LoopTimes:
        """All of it, its first step left out."""
        return drive(epoch, self.consumer, self.clock, leave_out=1)


def test_workers_end_before_files_are_evicted() -> None:
    """A loader an epoch; each with an order of its own."""
    trial = Trial(restarts=True)
    trial.epochs.run(2, trial.drive)
    trial.epochs.close()
    assert [loader.epochs for loader in trial.loaders] == [[0], [1]]
    assert all(loader.closed for loader in trial.loaders)
    found = trial.epochs.records()
    after = f"after {4 * SAMPLES}"
    assert [what for what, _ in trial.cache.done] == ["before", after, "before", after]
    assert [closed for what, closed in trial.cache.done if what == after] == [True, True]
    assert [one["samples"] for one in found] == [4 * SAMPLES] * 2
    assert trial.epochs.cold() == Cold("cold", "cold", why="4")
    assert trial.epochs.notes == ["a fake"]


def test_workers_go_on_where_nothing_is_evicted() -> None:
    """The same loader, judged while it lives, and at the end when it is closed."""
    trial = Trial(restarts=False)
    trial.epochs.run(3, trial.drive)
    trial.epochs.close()
    trial.epochs.records()
    (loader,) = trial.loaders
    assert loader.epochs == [0, 1, 2]
    closed = [closed for what, closed in trial.cache.done if what.startswith("after")]
    assert closed == [False, False, True]


def test_the_first_batch_is_that_of_the_first_epoch() -> None:
    """Told by its loader before it is closed."""
    trial = Trial(restarts=True)
    trial.epochs.run(2, trial.drive)
    assert trial.epochs.first.metrics["first_batch_listing_s"] == START_S
    assert trial.epochs.times[0].time_to_first_batch_s == START_S + WAIT_S
    assert trial.epochs.times[1].time_to_first_batch_s == WAIT_S


def test_what_the_device_computed_is_that_of_each_epoch() -> None:
    """The same consumer trains through all of them."""
    trial = Trial(restarts=True)
    trial.epochs.run(2, trial.drive)
    assert trial.consumer.steps == 8
    for times in trial.epochs.times:
        assert len(times.compute_s) == len(times.step_s) == 3
        assert 0 < times.au_mlperf < 1


def test_an_epoch_that_fails_leaves_a_loader_to_close() -> None:
    """The one that is open."""
    trial = Trial(restarts=True)
    with pytest.raises(ZeroDivisionError):
        trial.epochs.run(2, lambda epoch: 1 // 0)  # type: ignore[arg-type, return-value]
    trial.epochs.close()
    assert trial.loaders[-1].closed
