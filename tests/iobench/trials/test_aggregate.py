"""Several loops are combined into one: those of epochs, of ranks and of processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.errors import TrialFailed
from iobench.trials.epoch_loop import run_epoch
from iobench.trials.loop_timings import LoopTimings, combine_epochs, window_timings
from iobench.trials.rank_timings import combine_processes, combine_ranks, rank_metrics
from iobench.trials.window_rules import FixedSteps
from tests.iobench.trials.fakes import SAMPLES, STEP_S, WAIT_S, SlowConsumer, looped, warm


def loop(
    wait_s: Sequence[float], step_s: Sequence[float], compute_s: Sequence[float], **changes: Any
) -> LoopTimings:
    """Return a loop of 10 samples a step, requested at 100 s, whose steps count from 110 s.

    The lists have the seconds of each step.
    """
    times = LoopTimings(
        requested_s=100.0,
        time_to_first_batch_s=2.0,
        begun_s=110.0,
        seconds=float(sum(step_s)),
        samples=10 * len(step_s),
        all_samples=10 * (len(step_s) + 1),
        wait_s=np.array(wait_s, float),
        step_s=np.array(step_s, float),
        compute_s=np.array(compute_s, float),
        left_out_steps=1,
        running_s=float(sum(step_s)),
        computing_s=float(sum(compute_s)),
    )
    return replace(times, **changes)


def assert_same(times: LoopTimings, other: LoopTimings) -> None:
    """Check that two loops have equal timings, up to rounding."""
    for field in fields(LoopTimings):
        expected = getattr(other, field.name)
        assert getattr(times, field.name) == pytest.approx(expected), field.name


def test_steps_that_count_are_added_up() -> None:
    """The first batch is that of the first epoch, and steps that begin epochs keep their places."""
    first = loop([2, 1], [3, 2], [1, 1], arrived_samples=20, arrived_bytes=800)
    second = loop([4], [5], [1], arrived_samples=10, arrived_bytes=400, dropped_samples=3)
    epochs = [replace(times, epoch_first_steps=(0,)) for times in (first, second)]
    total = combine_epochs(epochs)
    assert (total.samples, total.all_samples) == (30, 50)
    assert (total.dropped_samples, total.seconds) == (3, 10.0)
    assert total.wait_s.tolist() == [2, 1, 4]
    assert total.epoch_first_steps == (0, 2)
    assert total.epoch_starts_s.tolist() == [2, 4]
    assert total.later_steps.tolist() == [False, True, False]
    assert (total.arrived_samples, total.arrived_bytes) == (30, 1_200)
    assert total.balance == 30 / 33
    assert total.samples_per_s == 3
    assert total.au_mlperf == 0.3


def test_a_loop_that_does_not_count_has_no_balance() -> None:
    """Epochs have no balance, either, if one of them does not count."""
    times = loop([1], [1], [1])
    assert times.balance is None
    assert combine_epochs([times, replace(times, arrived_samples=10)]).balance is None


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.1, 10)), min_size=1, max_size=5))
def test_rates_and_shares_lie_within_those_of_the_epochs(
    drawn: list[tuple[int, float]],
) -> None:
    """Epochs are weighted by their time."""
    times = []
    for steps, step_s in drawn:
        halves_s = [step_s / 2] * steps
        times.append(loop(halves_s, [step_s] * steps, halves_s))
    total = combine_epochs(times)
    assert total.au_mlperf == pytest.approx(0.5)
    rates = [epoch.samples_per_s for epoch in times]
    assert min(rates) - 1e-9 <= total.samples_per_s <= max(rates) + 1e-9
    assert total.step_s.sum() == pytest.approx(total.seconds)


# Two ranks take three steps of 4 s each. The slow one is requested and begins a second later.
EVEN = loop([1, 1, 1], [4, 4, 4], [3, 3, 3], arrived_samples=30, arrived_bytes=900)
SLOW = loop([1, 3, 2], [4, 4, 4], [3, 1, 2], arrived_samples=28, arrived_bytes=840)
SLOW = replace(SLOW, requested_s=101.0, begun_s=111.0)


def test_ranks_are_one_loop_that_waits_for_the_slowest() -> None:
    """The loop runs from the first begin to the last end; each step takes the last rank's times."""
    total = combine_ranks([EVEN, SLOW])
    assert (total.samples, total.all_samples, total.seconds) == (60, 80, 13.0)
    assert (total.requested_s, total.begun_s) == (100.0, 110.0)
    assert total.time_to_first_batch_s == 3.0
    assert total.step_s.tolist() == [5.0, 4.0, 4.0]
    assert total.wait_s.tolist() == [1.0, 3.0, 2.0]
    assert total.compute_s.tolist() == [3.0, 1.0, 2.0]
    assert (total.arrived_samples, total.arrived_bytes) == (58, 1_740)
    assert total.balance == 58 / 60


def test_utilisation_is_the_mean_of_the_ranks() -> None:
    """DLIO does the same; the slowest rank stands beside the mean."""
    total = combine_ranks([EVEN, SLOW])
    assert EVEN.au_mlperf == 0.75
    assert SLOW.au_mlperf == 0.5
    assert total.au_mlperf == pytest.approx(0.625)
    metrics = rank_metrics([[EVEN], [SLOW]], total)
    assert metrics["rank_au_mlperf"] == [0.75, 0.5]
    assert metrics["au_mlperf_slowest"] == 0.5


def test_a_wait_is_no_longer_than_its_step() -> None:
    """A rank that is ahead waits during the step before, which costs no time."""
    ahead = replace(EVEN, wait_s=np.array([6.0, 1.0, 1.0]))
    assert combine_ranks([ahead, EVEN]).wait_s.tolist() == [4.0, 1.0, 1.0]


def test_one_rank_is_the_loop_itself() -> None:
    """The times are the same after the rank has sent them as JSON."""
    loader, clock = looped(8)
    clock.sleep(1000)
    rule = FixedSteps(2, 6, SAMPLES)
    epoch = run_epoch(lambda: loader.epoch(0), warm(SlowConsumer, clock), clock, rule)
    assert epoch.window is not None
    alone = window_timings(epoch, epoch.window)
    again = LoopTimings.from_json(json.loads(json.dumps(alone.as_json())))
    assert_same(again, alone)
    assert_same(combine_ranks([again]), alone)
    assert alone.samples == 6 * SAMPLES
    assert alone.seconds == pytest.approx(6 * (STEP_S + WAIT_S))


def test_each_rank_has_its_means() -> None:
    """Means are over the rank's own time; the slowest rank's waits beyond the mean are a share."""
    metrics = dict(rank_metrics([[EVEN], [SLOW]], combine_ranks([EVEN, SLOW])))
    assert metrics.pop("rank_uneven_share") == pytest.approx((0 + 1 + 0.5) / 13)
    assert metrics == {
        "rank_wait_s": [1.0, 2.0],
        "rank_wait_share": [0.25, 0.5],
        "rank_step_s": [4.0, 4.0],
        "rank_compute_s": [3.0, 2.0],
        "rank_samples_per_s": [2.5, 2.5],
        "rank_au_mlperf": [0.75, 0.5],
        "au_mlperf_slowest": 0.5,
    }
    even = rank_metrics([[EVEN], [EVEN]], combine_ranks([EVEN, EVEN]))
    assert even["rank_uneven_share"] == 0


def test_nothing_took_any_time() -> None:
    """No share is divided by 0 on a clock that stood still."""
    still = loop([0], [0], [0])
    total = combine_ranks([still, still])
    assert (total.au_mlperf, total.samples_per_s) == (0, 0)
    assert rank_metrics([[still], [still]], total)["rank_uneven_share"] == 0


def test_ranks_that_compute_unevenly_still_compute() -> None:
    """A wait for a slower rank is not a wait for data."""
    first = loop([0, 0, 0], [4, 4, 4], [2, 6, 4])
    second = loop([0.01, 0, 0.01], [4, 4, 4], [6, 2, 4])
    assert combine_ranks([first, second]).compute_s.tolist() == [4.0, 4.0, 4.0]


def process(
    requested_s: float, begun_s: float, steps: Sequence[float], samples: int = 10, **changes: Any
) -> list[LoopTimings]:
    """Return the only epoch of a process with steps of these seconds."""
    times = LoopTimings(
        requested_s=requested_s,
        time_to_first_batch_s=begun_s / 2,
        begun_s=begun_s,
        seconds=sum(steps),
        samples=samples * len(steps),
        all_samples=samples * (len(steps) + 1),
        wait_s=np.array(steps) / 2,
        step_s=np.array(steps),
        compute_s=np.empty(0),
        left_out_steps=1,
    )
    return [replace(times, **changes)]


def test_rates_of_processes_add_up() -> None:
    """Batches of 10 in 0.5 s and in 1 s are 30 samples/s."""
    total, rates = combine_processes([process(0, 1, [0.5] * 8), process(0, 1, [1.0] * 4)])
    assert rates == pytest.approx([20.0, 10.0])
    assert total.samples_per_s == pytest.approx(30.0)
    assert len(total.wait_s) == 12
    assert total.balance is None


def test_processes_keep_their_balance() -> None:
    """Arrived samples are counted over the time that all processes have in common."""
    counts = {"arrived_samples": 44, "arrived_bytes": 44_000}
    first = process(0, 0, [1.0] * 4, **counts)
    second = process(0, 1, [1.0] * 4, **counts)
    total, _ = combine_processes([first, second])
    assert total.seconds == 3.0
    assert total.samples == 60
    assert total.balance == pytest.approx(1.1)
    assert total.arrived_bytes == 1_000 * 66


def test_only_the_time_of_both_processes_counts() -> None:
    """Only the time in which both processes measured counts."""
    alone = process(0, 0, [0.1] * 10 + [1.0] * 4 + [0.1] * 10)
    beside = process(0.5, 0.5 + 0.5, [1.0] * 4)
    total, rates = combine_processes([alone, beside])
    assert rates == pytest.approx([10.0, 10.0])
    assert (total.begun_s, total.requested_s, total.time_to_first_batch_s) == (1.0, 0, 1.0)
    assert total.seconds == pytest.approx(4.0)


def test_the_time_between_epochs_counts_for_no_process() -> None:
    """The steps of a process are placed in its epochs, which have gaps between them."""
    (first,) = process(0, 0, [1.0] * 4)
    (second,) = process(0, 6, [1.0] * 4)
    _, rates = combine_processes([[first, second], process(0, 0, [1.0] * 10)])
    assert rates == pytest.approx([8.0, 10.0])


def test_bursts_count_with_the_waits_between_them() -> None:
    """Workers hand their batches over together, so short steps alone would be too fast."""
    bursts = [0.995, 0.005] * 5
    _, rates = combine_processes([process(0, 0, bursts), process(0, 0.5, bursts)])
    assert rates == pytest.approx([20.0, 20.0], rel=0.12)


@pytest.mark.parametrize("begun_s", [5, 0.8])
def test_processes_that_ran_one_after_the_other_fail(begun_s: float) -> None:
    """The processes must measure together for most of the time."""
    with pytest.raises(TrialFailed, match="set more seconds"):
        combine_processes([process(0, 0, [0.1] * 10), process(0, begun_s, [0.1] * 10)])


@given(
    begun=st.lists(st.floats(0, 2), min_size=1, max_size=5),
    step_s=st.floats(0.01, 0.5),
)
def test_steady_processes_keep_their_rates(begun: list[float], step_s: float) -> None:
    """Rates do not depend on when each process began."""
    steps = round(8 / step_s)
    total, rates = combine_processes([process(0, begun_s, [step_s] * steps) for begun_s in begun])
    assert rates == pytest.approx([10 / step_s] * len(begun))
    assert total.samples_per_s == pytest.approx(10 * len(begun) / step_s, rel=0.02)
