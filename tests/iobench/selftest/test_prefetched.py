"""With prefetch: which side is the slowest, and how long a step takes by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.selftest.cases import INPUTS, Case, Delays, Plan
from iobench.selftest.prefetched import Prefetched, expected

PLAN = Plan(batch_size=2, workers=2)
IDEAL = dict.fromkeys(INPUTS, 0.010)  # a device of 20 ms a batch, and no other work
seconds = st.floats(0, 1)


@given(st.builds(Delays, seconds, seconds, seconds, seconds), st.integers(1, 8), st.integers(1, 8))
def test_the_slowest_side_is_a_step(delays: Delays, batch_size: int, workers: int) -> None:
    """Workers share what they prepare; the training process copies and computes by itself."""
    plan = Plan(batch_size=batch_size, workers=workers)
    slowest, found_s = expected(Case(delays), plan, IDEAL, 0.020)
    sides = {
        "workers": batch_size * delays.prepare_s / workers,
        "copy and device": batch_size * delays.copy_s + 0.020,
    }
    assert found_s == pytest.approx(max(sides.values()))
    assert sides[slowest] == pytest.approx(found_s)


def test_real_work_is_part_of_either_side() -> None:
    """As the ladder found it without delays: reading is the workers', copying the process's."""
    without = {**IDEAL, "copy": 0.011, "store": 0.014}
    fetching = Case(Delays(fetch_s=0.050))
    slowest, found_s = expected(fetching, PLAN, without, 0.020)
    assert (slowest, round(found_s, 9)) == ("workers", 0.053)
    copying = Case(Delays(copy_s=0.050))
    slowest, found_s = expected(copying, PLAN, without, 0.020)
    assert (slowest, round(found_s, 9)) == ("copy and device", 0.122)


@pytest.mark.parametrize(("found_s", "ok"), [(0.091, True), (0.109, True), (0.111, False)])
def test_a_tenth_is_the_limit(found_s: float, ok: bool) -> None:
    """Of what was expected."""
    row = Prefetched("fetch", 2, "workers", 0.100, found_s)
    assert row.ok is ok
    told = row.as_dict()
    assert (told["ok"], told["slowest"]) == (ok, "workers")
    assert told["error"] == pytest.approx(found_s / 0.1 - 1)
