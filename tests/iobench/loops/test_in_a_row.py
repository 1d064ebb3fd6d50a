"""Epochs as one loop: sums, one series, pauses between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.loops.drive import LoopTimes
from iobench.loops.in_a_row import Epoch, epoch_of, in_a_row, record, records, with_epochs
from iobench.trial import Cold, Outcome


def epoch(asked_s: float, steps: int = 2, step_s: float = 1.0, begun_s: float = 3.0) -> LoopTimes:
    """Of equal steps, half of each computed; the first took as long to come as ``begun_s``."""
    return LoopTimes(
        time_to_first_batch_s=begun_s - step_s,
        au_mlperf=0.5,
        samples=10 * steps,
        taken=10 * (steps + 1),
        seconds=steps * step_s,
        left_out=1,
        wait_s=(step_s / 2,) * steps,
        step_s=(step_s,) * steps,
        compute_s=(step_s / 2,) * steps,
        asked_s=asked_s,
        begun_s=begun_s,
        running_s=steps * step_s,
    )


def test_one_epoch_is_the_loop() -> None:
    """As every loop was."""
    one = epoch(7.0)
    assert in_a_row([one]) is one
    outcome = Outcome({})
    assert with_epochs(outcome, [one]) is outcome


def test_steps_that_count_are_added_up() -> None:
    """The first batch is that of the first epoch."""
    whole = in_a_row([epoch(0.0), epoch(100.0, steps=4, begun_s=9.0)])
    assert (whole.samples, whole.taken, whole.seconds, whole.left_out) == (60, 80, 6.0, 2)
    assert (whole.time_to_first_batch_s, whole.asked_s, whole.begun_s) == (2.0, 0.0, 3.0)
    assert len(whole.step_s) == len(whole.wait_s) == len(whole.compute_s) == 6
    assert whole.samples_per_s == 10


def test_what_lies_between_is_a_pause() -> None:
    """Each step stands where it was on the clock, with its epoch."""
    times = [epoch(50.0), epoch(60.0), epoch(80.0)]
    found = with_epochs(Outcome({}, series={"wait_s": (0.5,) * 6}), times)
    assert found.series["time_s"] == (4.0, 5.0, 14.0, 15.0, 34.0, 35.0)
    assert found.series["epoch"] == (0, 0, 1, 1, 2, 2)
    assert found.series["wait_s"] == (0.5,) * 6
    assert found.counted_s == (3.0, 35.0)
    assert found.pauses == ((5.0, 13.0), (15.0, 33.0))


def test_a_record_is_of_all_of_an_epoch() -> None:
    """Its first batch included, and what the cache did for it."""
    found = record(1, epoch_of(epoch(0.0), Cold("cold", "warm", 0.4, 0.6, why="so")))
    assert found == {
        "number": 1,
        "samples": 30,
        "seconds": 5.0,
        "samples_per_s": 6.0,
        "time_to_first_batch_s": 2.0,
        "asked": "cold",
        "resident_before": 0.4,
        "physical_ratio": 0.6,
        "label": "warm",
        "why": "so",
    }
    read = Epoch(1, 0.0, 0.0, Cold("cold", "cold", amplification=1.5))
    assert record(0, read)["amplification"] == 1.5
    assert record(0, read)["samples_per_s"] == 0.0
    assert "label" not in record(0, Epoch(1, 1.0, 0.5, None))
    assert [one["number"] for one in records([read, read])] == [0, 1]


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.1, 10)), min_size=1, max_size=5))
def test_the_share_of_computing_lies_within_those_of_the_epochs(
    given_: list[tuple[int, float]],
) -> None:
    """Weighted by their time; rates too."""
    times = [epoch(100.0 * n, steps, step_s) for n, (steps, step_s) in enumerate(given_)]
    whole = in_a_row(times)
    assert whole.au_mlperf == pytest.approx(0.5)
    rates = [one.samples_per_s for one in times]
    assert min(rates) - 1e-9 <= whole.samples_per_s <= max(rates) + 1e-9
    assert sum(whole.step_s) == pytest.approx(whole.seconds)
