"""Tests of iobench.sidebyside.startup."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iobench.sidebyside import startup
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


def test_both_programs(tmp_path: Path, few: Path) -> None:
    """Each program's help has a contest, which starts it and takes some time."""
    for contest in startup.contests(Workplace(tmp_path, few, 6)):
        ours = contest.contenders[0]
        assert contest.goals[0].value == 0.2
        assert ours.arguments["command"] == ["-m", ours.name, "--help"]
        assert startup.helps(**ours.arguments).seconds > 0


def test_a_start_that_fails_is_no_measurement() -> None:
    """A program that ends with an error has not shown its help."""
    with pytest.raises(subprocess.CalledProcessError):
        startup.helps(["-c", "raise SystemExit(1)"])
