"""Several loops as one: epochs, ranks, processes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.schema import typed
from iobench.errors import TrialFailed
from iobench.loops.aggregate import (
    epochs_as_one,
    processes_as_one,
    rank_metrics,
    ranks_as_one,
)
from iobench.loops.drive import LoopTimes, drive
from tests.iobench.loops.fakes import SAMPLES, STEP_S, WAIT_S, SlowConsumer, looped, warm


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


def test_steps_that_count_are_added_up() -> None:
    """The first batch is that of the first epoch."""
    whole = epochs_as_one([epoch(0.0), epoch(100.0, steps=4, begun_s=9.0)])
    assert (whole.samples, whole.taken, whole.seconds, whole.left_out) == (60, 80, 6.0, 2)
    assert (whole.time_to_first_batch_s, whole.asked_s, whole.begun_s) == (2.0, 0.0, 3.0)
    assert len(whole.step_s) == len(whole.wait_s) == len(whole.compute_s) == 6
    assert whole.samples_per_s == 10


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0.1, 10)), min_size=1, max_size=5))
def test_the_share_of_computing_lies_within_those_of_the_epochs(
    given_: list[tuple[int, float]],
) -> None:
    """Weighted by their time; rates too."""
    times = [epoch(100.0 * n, steps, step_s) for n, (steps, step_s) in enumerate(given_)]
    whole = epochs_as_one(times)
    assert whole.au_mlperf == pytest.approx(0.5)
    rates = [one.samples_per_s for one in times]
    assert min(rates) - 1e-9 <= whole.samples_per_s <= max(rates) + 1e-9
    assert sum(whole.step_s) == pytest.approx(whole.seconds)


# Asked at 100 and 101; steps that count begin at 110 and 111; three of 4 s each, in step.
EVEN = LoopTimes(
    time_to_first_batch_s=2.0,
    au_mlperf=0.75,
    samples=30,
    taken=40,
    seconds=12.0,
    left_out=1,
    wait_s=(1.0, 1.0, 1.0),
    step_s=(4.0, 4.0, 4.0),
    compute_s=(3.0, 3.0, 3.0),
    asked_s=100.0,
    begun_s=10.0,
    running_s=12.0,
)
SLOW = replace(
    EVEN, wait_s=(1.0, 3.0, 2.0), compute_s=(3.0, 1.0, 2.0), asked_s=101.0, au_mlperf=0.5
)


def test_ranks_are_one_loop_that_waits_for_the_slowest() -> None:
    """From the first that begins to the last that ends; a step waits and computes as the last."""
    whole = ranks_as_one([EVEN, SLOW])
    assert (whole.samples, whole.taken, whole.seconds) == (60, 80, 13.0)
    assert (whole.asked_s, whole.begun_s, whole.time_to_first_batch_s) == (100.0, 10.0, 3.0)
    assert whole.step_s == (5.0, 4.0, 4.0)
    assert whole.wait_s == (1.0, 3.0, 2.0)
    assert whole.compute_s == (3.0, 1.0, 2.0)
    assert whole.au_mlperf == pytest.approx(6 / 13)


def test_a_wait_is_no_longer_than_its_step() -> None:
    """A rank that is ahead waits in the time of the step before, which costs nobody anything."""
    ahead = replace(EVEN, wait_s=(6.0, 1.0, 1.0))
    assert ranks_as_one([ahead, EVEN]).wait_s == (4.0, 1.0, 1.0)


def test_steps_that_do_not_count_are_in_au_mlperf() -> None:
    """As of one device: all but the first are, with the mean of what ranks computed."""
    more = replace(EVEN, running_s=20.0, running_compute_s=(6.0, 2.0), left_out=3)
    less = replace(more, running_compute_s=(4.0, 3.0))
    assert ranks_as_one([more, less]).au_mlperf == pytest.approx((9 + 5 + 2.5) / 20)


def test_one_rank_is_the_loop_itself() -> None:
    """Whatever it did, up to the last bits of a sum; as JSON has kept it, too."""
    loader, clock = looped(8)
    clock.sleep(1000)
    alone = drive(
        lambda: loader.epoch(0), warm(SlowConsumer, clock), clock, leave_out=2, max_steps=8
    )
    again = typed(LoopTimes, json.loads(json.dumps(asdict(alone))))
    assert again == alone
    for name, value in asdict(ranks_as_one([again])).items():
        assert value == pytest.approx(getattr(alone, name)), name
    assert alone.samples == 6 * SAMPLES
    assert alone.seconds == pytest.approx(6 * (STEP_S + WAIT_S))


def test_each_rank_has_its_means() -> None:
    """By rank and of its own time; and what the slowest one's waits beyond the average cost."""
    metrics = rank_metrics([EVEN, SLOW], ranks_as_one([EVEN, SLOW]))
    assert metrics.pop("rank_uneven_share") == pytest.approx((0 + 1 + 0.5) / 13)
    assert metrics == {
        "rank_wait_s": [1.0, 2.0],
        "rank_wait_share": [0.25, 0.5],
        "rank_step_s": [4.0, 4.0],
        "rank_compute_s": [3.0, 2.0],
        "rank_au_mlperf": [0.75, 0.5],
    }
    assert rank_metrics([EVEN, EVEN], ranks_as_one([EVEN, EVEN]))["rank_uneven_share"] == 0


def test_nothing_took_any_time() -> None:
    """On a clock that stood still."""
    still = replace(
        EVEN, seconds=0.0, running_s=0.0, step_s=(0.0,), wait_s=(0.0,), compute_s=(0.0,)
    )
    whole = ranks_as_one([still, still])
    assert whole.au_mlperf == 0
    assert rank_metrics([still], whole)["rank_uneven_share"] == 0


def test_ranks_that_compute_unevenly_still_compute() -> None:
    """A rank that is held up makes the other wait in its next step: that is no want of data."""
    one = replace(EVEN, wait_s=(0.0, 0.0, 0.0), compute_s=(2.0, 6.0, 4.0))
    two = replace(EVEN, wait_s=(0.01, 0.0, 0.01), compute_s=(6.0, 2.0, 4.0))
    assert ranks_as_one([one, two]).compute_s == (4.0, 4.0, 4.0)


def times(asked_s: float, begun_s: float, steps: list[float], samples: int = 10) -> LoopTimes:
    """A loop whose batches have so many samples."""
    return LoopTimes(
        time_to_first_batch_s=begun_s / 2,
        au_mlperf=0.0,
        samples=samples * len(steps),
        taken=samples * (len(steps) + 1),
        seconds=sum(steps),
        left_out=1,
        wait_s=tuple(step / 2 for step in steps),
        step_s=tuple(steps),
        compute_s=(),
        asked_s=asked_s,
        begun_s=begun_s,
    )


def test_rates_of_processes_add_up() -> None:
    """Two that take a batch of 10 in half a second and in one."""
    whole, rates = processes_as_one([times(0, 1, [0.5] * 8), times(0, 1, [1.0] * 4)])
    assert rates == pytest.approx([20.0, 10.0])
    assert whole.samples_per_s == pytest.approx(30.0)
    assert len(whole.wait_s) == 12


def test_what_one_did_alone_does_not_count() -> None:
    """The first was faster until the second came, and after it had gone."""
    alone = times(0, 0, [0.1] * 10 + [1.0] * 4 + [0.1] * 10)
    beside = times(0.5, 0.5, [1.0] * 4)
    whole, rates = processes_as_one([alone, beside])
    assert rates == pytest.approx([10.0, 10.0])
    assert (whole.begun_s, whole.asked_s, whole.time_to_first_batch_s) == (1.0, 0, 0.75)
    assert whole.seconds == pytest.approx(4.0)


def test_bursts_count_with_the_waits_between_them() -> None:
    """Workers hand their batches over together: the short steps alone would be a rate of 2,000."""
    bursts = [0.995, 0.005] * 5
    _, rates = processes_as_one([times(0, 0, bursts), times(0.5, 0, bursts)])
    assert rates == pytest.approx([20.0, 20.0], rel=0.12)


def test_processes_that_were_not_at_it_together_say_nothing() -> None:
    """One had ended before the other counted, or was there for a small part."""
    for begun_s in (5, 0.8):
        with pytest.raises(TrialFailed, match="give more seconds"):
            processes_as_one([times(0, 0, [0.1] * 10), times(begun_s, 0, [0.1] * 10)])


@given(
    begun=st.lists(st.floats(0, 2), min_size=1, max_size=5),
    step_s=st.floats(0.01, 0.5),
)
def test_steady_processes_keep_their_rates(begun: list[float], step_s: float) -> None:
    """Whenever each began, as long as they overlap."""
    count = round(8 / step_s)
    whole, rates = processes_as_one([times(each, 0.0, [step_s] * count) for each in begun])
    assert rates == pytest.approx([10 / step_s] * len(begun))
    assert whole.samples_per_s == pytest.approx(10 * len(begun) / step_s, rel=0.02)
