"""Several ranks' loops as one."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from iobench.loops.drive import LoopTimes, drive
from iobench.loops.together import rank_metrics, times_of, together
from tests.iobench.loops.fakes import SAMPLES, STEP_S, WAIT_S, SlowConsumer, looped, warm

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


def test_samples_of_all_in_the_time_of_all() -> None:
    """From the first that begins to the last that ends."""
    whole = together([EVEN, SLOW])
    assert (whole.samples, whole.taken) == (60, 80)
    assert whole.seconds == 13.0
    assert whole.samples_per_s == 60 / 13
    assert (whole.asked_s, whole.begun_s) == (100.0, 10.0)
    assert whole.time_to_first_batch_s == 3.0


def test_a_step_is_as_slow_as_its_slowest_rank() -> None:
    """It ends with the last, waits and computes as the one that waits longest."""
    whole = together([EVEN, SLOW])
    assert whole.step_s == (5.0, 4.0, 4.0)
    assert whole.wait_s == (1.0, 3.0, 2.0)
    assert whole.compute_s == (3.0, 1.0, 2.0)
    assert whole.au_mlperf == pytest.approx(6 / 13)


def test_a_wait_is_no_longer_than_its_step() -> None:
    """A rank that is ahead waits in the time of the step before, which costs nobody anything."""
    ahead = replace(EVEN, wait_s=(6.0, 1.0, 1.0))
    assert together([ahead, EVEN]).wait_s == (4.0, 1.0, 1.0)


def test_steps_that_do_not_count_are_in_au_mlperf() -> None:
    """As of one device: all but the first are, with the mean of what ranks computed."""
    more = replace(EVEN, running_s=20.0, running_compute_s=(6.0, 2.0), left_out=3)
    less = replace(more, running_compute_s=(4.0, 3.0))
    assert together([more, less]).au_mlperf == pytest.approx((9 + 5 + 2.5) / 20)


def test_one_rank_is_the_loop_itself() -> None:
    """Whatever it did, up to the last bits of a sum; as JSON has kept it, too."""
    loader, clock = looped(8)
    clock.sleep(1000)
    alone = drive(
        lambda: loader.epoch(0), warm(SlowConsumer, clock), clock, leave_out=2, max_steps=8
    )
    again = times_of(json.loads(json.dumps(asdict(alone))))
    assert again == alone
    for name, value in asdict(together([again])).items():
        assert value == pytest.approx(getattr(alone, name)), name
    assert alone.samples == 6 * SAMPLES
    assert alone.seconds == pytest.approx(6 * (STEP_S + WAIT_S))


def test_each_rank_has_its_means() -> None:
    """By rank, and of its own time."""
    metrics = rank_metrics([EVEN, SLOW], together([EVEN, SLOW]))
    assert metrics["rank_wait_s"] == [1.0, 2.0]
    assert metrics["rank_wait_share"] == [0.25, 0.5]
    assert metrics["rank_step_s"] == [4.0, 4.0]
    assert metrics["rank_compute_s"] == [3.0, 2.0]
    assert metrics["rank_au_mlperf"] == [0.75, 0.5]


def test_what_uneven_ranks_lose() -> None:
    """The slowest rank's waits beyond the average, as a share of the time; even ones lose none."""
    uneven = rank_metrics([EVEN, SLOW], together([EVEN, SLOW]))["rank_uneven_share"]
    assert uneven == pytest.approx((0 + 1 + 0.5) / 13)
    assert rank_metrics([EVEN, EVEN], together([EVEN, EVEN]))["rank_uneven_share"] == 0


def test_nothing_took_any_time() -> None:
    """On a clock that stood still."""
    still = replace(
        EVEN, seconds=0.0, running_s=0.0, step_s=(0.0,), wait_s=(0.0,), compute_s=(0.0,)
    )
    whole = together([still, still])
    assert whole.au_mlperf == 0
    assert rank_metrics([still], whole)["rank_uneven_share"] == 0


def test_a_clock_is_shared() -> None:
    """Times of a rank that began later lie later."""
    later = replace(EVEN, asked_s=EVEN.asked_s + 7)
    assert together([EVEN, later]).seconds == EVEN.seconds + 7


def test_ranks_that_compute_unevenly_still_compute() -> None:
    """A rank that is held up makes the other wait in its next step: that is no want of data."""
    one = replace(EVEN, wait_s=(0.0, 0.0, 0.0), compute_s=(2.0, 6.0, 4.0))
    two = replace(EVEN, wait_s=(0.01, 0.0, 0.01), compute_s=(6.0, 2.0, 4.0))
    assert together([one, two]).compute_s == (4.0, 4.0, 4.0)
