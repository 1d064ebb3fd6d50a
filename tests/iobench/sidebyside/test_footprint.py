"""Tests of iobench.sidebyside.footprint."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.sources import Located
from iobench.sidebyside import footprint
from iobench.sidebyside.workplace import Workplace, photographs

pytestmark = pytest.mark.slow


def test_workers(tmp_path: Path) -> None:
    """A job over drawn images runs, and its workers' memory is seen."""
    measured = footprint.workers(str(tmp_path), 6000)
    assert measured.amount == 6000
    assert measured.others["worker_peak_MB"] > 20
    assert measured.others["last_third_to_middle_third"] > 0
    assert not [*tmp_path.iterdir()]


def test_plan(few: Path) -> None:
    """Everything listed is planned."""
    measured = footprint.plan(str(few), 3000)
    assert measured.amount == 3000
    assert measured.others["shards"] > 1


def test_driver(few: Path) -> None:
    """Every sample is handed out once."""
    assert footprint.driver(str(few), 20_000).amount == 20_000


def test_listed(few: Path) -> None:
    """Each entry is one of the photographs, of the size that the listing says."""
    files = photographs(few)
    source = footprint.Listed(files, 2500)
    listing = source.list()
    assert len(listing) == len(set(listing.names)) == 2500
    assert list(listing.names) == sorted(listing.names)
    assert len(set(listing.classes)) > 800
    for row in (0, 7, 2499):
        item = listing.located(row)
        assert len(source.read(Located(item.name, item.bytes))) == item.bytes


def test_thirds() -> None:
    """A leak shows; a rise in the beginning, which every program has, does not."""
    assert footprint.thirds([1, 5, 9, 10, 10, 10, 10, 10, 10])["last_third_to_middle_third"] == 1
    rising = [*range(100, 130)]
    assert footprint.thirds(rising)["last_third_to_middle_third"] == pytest.approx(124.5 / 114.5)


def test_contests(tmp_path: Path, few: Path) -> None:
    """Every goal is an upper bound of ours alone."""
    contests = [*footprint.contests(Workplace(tmp_path, few, 6))]
    assert {goal.bound for one in contests for goal in one.goals} == {"at most"}
    assert [len(one.contenders) for one in contests] == [1, 1, 1]
