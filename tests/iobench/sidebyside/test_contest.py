"""Tests of iobench.sidebyside.contest."""

from __future__ import annotations

import pytest

from iobench.sidebyside.contest import Contender, Contest, Goal, Measured, estimates, verdicts

pytestmark = pytest.mark.slow

OURS, PEER = Contender("ours", "m:f"), Contender("peer", "m:g")


def contest(*goals: Goal) -> Contest:
    """Of two."""
    return Contest("speed", "Speed", "img", (OURS, PEER), goals)


def test_a_ratio_is_taken_within_rounds() -> None:
    """A machine that slows down for a round slows both: 2, 2 and 2.5 times."""
    rounds = {
        "ours": [Measured(100, 1), Measured(100, 10), Measured(100, 2)],
        "peer": [Measured(50, 1), Measured(50, 10), Measured(40, 2)],
    }
    (verdict,) = verdicts(contest(Goal(2.0, "peer")), rounds)
    assert verdict.measured is not None
    assert (verdict.measured.median, verdict.measured.high) == (2.0, 2.5)
    assert verdict.reached


@pytest.mark.parametrize(
    ("goal", "reached"),
    [
        (Goal(0.2, figure="seconds", bound="at most"), True),
        (Goal(0.05, figure="seconds", bound="at most"), False),
        (Goal(300, figure="peak_MB", bound="at most"), True),
        (Goal(301, figure="peak_MB"), False),
        (Goal(2, "peer", "peak_MB", "at most"), True),
        (Goal(1.4, "peer", "peak_MB", "at most"), False),
        (Goal(1, "somebody else"), None),
    ],
)
def test_goals(goal: Goal, reached: bool | None) -> None:
    """Of a figure or a ratio, from above or below; unknown where the peer did not run."""
    rounds = {
        "ours": [Measured(1, 0.1, {"peak_MB": 300})],
        "peer": [Measured(1, 0.2, {"peak_MB": 200})],
    }
    (verdict,) = verdicts(contest(goal), rounds)
    assert verdict.reached is reached


def test_a_figure_that_only_some_have() -> None:
    """It is estimated of those."""
    rounds = {"ours": [Measured(1, 1, {"psnr": 40.0})], "peer": [Measured(1, 1)]}
    assert set(estimates(rounds, "psnr")) == {"ours"}
    assert set(estimates(rounds)) == {"ours", "peer"}
