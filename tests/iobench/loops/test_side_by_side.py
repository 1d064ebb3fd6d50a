"""Loops of several processes at once, as figures of all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.errors import TrialFailed
from iobench.loops.drive import LoopTimes
from iobench.loops.side_by_side import side_by_side

pytestmark = pytest.mark.slow


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
    found = side_by_side([times(0, 1, [0.5] * 8), times(0, 1, [1.0] * 4)])
    assert found.samples_per_s == pytest.approx((20.0, 10.0))
    assert found.whole.samples_per_s == pytest.approx(30.0)
    assert found.evenness == pytest.approx(0.5)
    assert len(found.whole.wait_s) == 12


def test_what_one_did_alone_does_not_count() -> None:
    """The first was faster until the second came, and after it had gone."""
    alone = times(0, 0, [0.1] * 10 + [1.0] * 4 + [0.1] * 10)
    beside = times(0.5, 0.5, [1.0] * 4)
    found = side_by_side([alone, beside])
    assert found.samples_per_s == pytest.approx((10.0, 10.0))
    assert found.whole.begun_s == 1.0
    assert found.whole.seconds == pytest.approx(4.0)


def test_bursts_count_with_the_waits_between_them() -> None:
    """Workers hand their batches over together: the short steps alone would be a rate of 2,000."""
    bursts = [0.995, 0.005] * 5
    found = side_by_side([times(0, 0, bursts), times(0.5, 0, bursts)])
    assert found.samples_per_s == pytest.approx((20.0, 20.0), rel=0.12)


def test_the_first_batch_is_the_last_ones() -> None:
    """From when the first of them asked."""
    found = side_by_side([times(0, 1, [1.0] * 20), times(2, 4, [1.0] * 20)])
    assert found.whole.time_to_first_batch_s == 4.0
    assert found.whole.asked_s == 0


def test_processes_that_were_not_at_it_together_say_nothing() -> None:
    """One had ended before the other counted, or was there for a small part."""
    for begun_s in (5, 0.8):
        with pytest.raises(TrialFailed, match="give more seconds"):
            side_by_side([times(0, 0, [0.1] * 10), times(begun_s, 0, [0.1] * 10)])


@given(
    begun=st.lists(st.floats(0, 2), min_size=1, max_size=5),
    step_s=st.floats(0.01, 0.5),
)
def test_steady_processes_keep_their_rates(begun: list[float], step_s: float) -> None:
    """Whenever each began, as long as they overlap."""
    count = round(8 / step_s)
    found = side_by_side([times(each, 0.0, [step_s] * count) for each in begun])
    assert found.samples_per_s == pytest.approx([10 / step_s] * len(begun))
    assert found.whole.samples_per_s == pytest.approx(10 * len(begun) / step_s, rel=0.02)
    assert found.evenness == pytest.approx(1)
