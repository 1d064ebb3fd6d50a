"""The loaders mock and null, which read nothing, on a virtual clock."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import VirtualClock
from iobench.loaders import Loader, LoaderSettings, null
from iobench.loaders.mock import MockLoader
from iobench.loaders.null import NullLoader


def times(
    batches: int, compute_s: float = 0.0, clock: VirtualClock | None = None, **settings: Any
) -> list[float]:
    """Return the arrival times of batches in seconds, in a loop with steps of ``compute_s``."""
    clock = clock or VirtualClock()
    loader = MockLoader(None, LoaderSettings(**settings), clock)
    arrivals_s = []
    for batch in islice(loader.epoch(0), batches):
        assert batch.samples == len(batch.labels) == settings["batch_size"]
        arrivals_s.append(clock.now_s())
        clock.sleep(compute_s)
    return arrivals_s


def test_without_workers() -> None:
    """Batches are made in the caller's time, one after the other."""
    assert times(3, batch_size=10, item_s=0.01) == pytest.approx([0.1, 0.2, 0.3])
    assert times(3, 1.0, batch_size=10, item_s=0.01) == pytest.approx([0.1, 1.2, 2.3])


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_workers_scale(workers: int) -> None:
    """N workers give N batches in the time that one worker takes for one."""
    arrivals_s = times(10 * workers, batch_size=10, item_s=0.01, workers=workers, prefetch=2)
    expected_s = [0.1 * (1 + number // workers) for number in range(10 * workers)]
    assert arrivals_s == pytest.approx(expected_s)


@pytest.mark.parametrize("workers", [1, 3, 7])
@pytest.mark.parametrize("compute_s", [0.02, 0.2])
def test_the_slower_of_two_counts(workers: int, compute_s: float) -> None:
    """With prefetch, a step takes the larger of the times of supply and work."""
    arrivals_s = times(200, compute_s, batch_size=10, item_s=0.01, workers=workers, prefetch=2)
    step_s = (arrivals_s[-1] - arrivals_s[99]) / 100
    assert step_s == pytest.approx(max(compute_s, 0.1 / workers), rel=0.02)


def test_a_bounded_number_is_ahead() -> None:
    """After a long pause ``workers * prefetch`` batches are ready, and no others have begun."""
    clock = VirtualClock()
    settings = LoaderSettings(batch_size=10, item_s=0.01, workers=2, prefetch=3)
    batches = MockLoader(None, settings, clock).epoch(0)
    next(batches)
    clock.sleep(1000.0)
    resumed_s = clock.now_s()
    # The batch consumed at the start has requested one more, so that six are ready.
    waits = []
    for _ in range(10):
        next(batches)
        waits.append(clock.now_s() - resumed_s)
    assert waits[:6] == pytest.approx([0.0] * 6)
    assert waits[6:8] == pytest.approx([0.1, 0.1])


@given(
    workers=st.integers(1, 8),
    prefetch=st.integers(1, 4),
    compute_s=st.floats(0, 1),
    item_s=st.floats(0, 0.1),
)
def test_never_faster_than_its_workers(
    workers: int, prefetch: int, compute_s: float, item_s: float
) -> None:
    """Batches never come before the workers can have made them."""
    settings: dict[str, Any] = {
        "batch_size": 8,
        "item_s": item_s,
        "workers": workers,
        "prefetch": prefetch,
    }
    arrivals_s = times(40, compute_s, **settings)
    assert arrivals_s == sorted(arrivals_s)
    for number, at_s in enumerate(arrivals_s):
        assert at_s >= 8 * item_s * (1 + number // workers) - 1e-9


def test_finished_parts_are_counted() -> None:
    """Finished batches count, and so does the finished part of those that are being made."""
    clock = VirtualClock()
    settings = LoaderSettings(batch_size=10, item_s=0.01, workers=2, prefetch=2)
    loader = MockLoader(None, settings, clock)
    assert loader.read_so_far() == ReadTotals()
    batches = loader.epoch(0)
    next(batches)  # It comes at 0.1 s. Then the third batch begins, and the fifth is requested.
    assert loader.read_so_far() == ReadTotals(20, 0)
    clock.sleep(0.0351)
    assert loader.read_so_far() == ReadTotals(20 + 2 * 3, 0)
    clock.sleep(100.0)
    assert loader.read_so_far() == ReadTotals(50, 0)


@given(
    workers=st.integers(0, 8),
    prefetch=st.integers(1, 4),
    pauses=st.lists(st.floats(0, 1), min_size=1, max_size=50),
)
def test_no_more_is_made_than_workers_can(workers: int, prefetch: int, pauses: list[float]) -> None:
    """The count never falls, and is at least that of the batches that were consumed."""
    clock = VirtualClock()
    settings = LoaderSettings(batch_size=8, item_s=0.01, workers=workers, prefetch=prefetch)
    loader = MockLoader(None, settings, clock)
    consumed = before = 0
    for batch, pause_s in zip(loader.epoch(0), pauses, strict=False):
        consumed += batch.samples
        for sleep_s in (0.0, pause_s):
            clock.sleep(sleep_s)
            samples = loader.read_so_far().samples
            assert max(before, consumed) <= samples <= consumed + 8 * workers * prefetch
            assert samples <= max(1, workers) * clock.now_s() / 0.01 + 1e-6
            before = samples


@pytest.mark.parametrize("workers", [0, 3])
def test_counts_go_on_from_epoch_to_epoch(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """After whole epochs, every sample of them is counted once."""
    monkeypatch.setattr(null, "SAMPLES", 25)
    clock = VirtualClock()
    loader = MockLoader(None, LoaderSettings(batch_size=10, item_s=0.01, workers=workers), clock)
    for epochs in (1, 2, 3):
        assert sum(batch.samples for batch in loader.epoch(epochs)) == 25
        assert loader.read_so_far().samples == 25 * epochs


@pytest.mark.parametrize("kind", [MockLoader, NullLoader])
def test_an_epoch_ends(monkeypatch: pytest.MonkeyPatch, kind: type[Loader]) -> None:
    """The last batch of an epoch has the remaining samples."""
    monkeypatch.setattr(null, "SAMPLES", 25)
    loader = kind(None, LoaderSettings(batch_size=10), VirtualClock(500.0))
    for number in range(2):
        assert [batch.samples for batch in loader.epoch(number)] == [10, 10, 5]
    loader.close()


def test_null_costs_nothing_and_mock_says_that_it_is_emulated() -> None:
    """All batches of null are one object; mock names the time of an item in its notes."""
    clock = VirtualClock(500.0)
    batches = NullLoader(None, LoaderSettings(batch_size=32), clock).epoch(0)
    first, second = next(batches), next(batches)
    assert first is second
    assert (first.samples, len(first.labels), len(first.images)) == (32, 32, 32)
    assert clock.now_s() == 500.0
    assert times(1, clock=clock, batch_size=10, item_s=0.1, workers=2) == pytest.approx([501.0])
    loader = MockLoader(None, LoaderSettings(item_s=0.0025), clock)
    assert loader.notes == ("emulated: each item takes 2.5 ms",)
    assert (loader.framework, loader.reads) == ("none", None)
