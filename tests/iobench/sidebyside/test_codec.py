"""Tests of iobench.sidebyside.codec."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.sidebyside import codec
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


def test_every_way_is_taken_with_every_photograph(few: Path) -> None:
    """One image each, in some time."""
    measured = codec.in_turns(str(few))
    assert [*measured] == [*codec.WAYS]
    assert all(one.amount == 6 and one.seconds > 0 for one in measured.values())


def test_the_contest_is_of_these_ways(tmp_path: Path, few: Path) -> None:
    """Ours first, and its goals beside some of them."""
    (contest,) = codec.contests(Workplace(tmp_path, few, 6))
    assert contest.together
    assert [one.name for one in contest.contenders] == [*codec.WAYS]
    assert {one.run for one in contest.contenders} == {f"{codec.__name__}:in_turns"}
    assert {goal.beside for goal in contest.goals} <= {*codec.WAYS}
