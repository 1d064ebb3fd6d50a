"""Tests of iobench.sidebyside.records."""

from __future__ import annotations

from pathlib import Path

import pytest

from iobench.sidebyside import passes, record_peers, records
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow

OURS = (
    *("write_tfrecord", "read_tfrecord", "write_recordio", "write_indexed"),
    *("read_recordio", "read_indexed"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, few: Path) -> Workplace:
    """Where six images are shards in both formats."""
    found = Workplace(tmp_path_factory.mktemp("records"), few, 6)
    found.sharded(6)
    return found


@pytest.mark.parametrize("contender", OURS)
def test_every_contender_takes_every_record(
    contender: str, place: Workplace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The MB of all payloads, as often as there are passes, in some time; nothing is left over."""
    monkeypatch.setattr(passes, "RAM", tmp_path)
    shards = str(place.sharded(6))
    measured = getattr(records, contender)(shards)
    framing = passes.TFRECORDS if "tfrecord" in contender else passes.RECORDIO
    size = sum(map(len, framing.payloads(shards)))
    assert measured.amount == pytest.approx(passes.PASSES * size / 1e6)
    assert measured.seconds > 0
    assert not list(tmp_path.iterdir())


def test_contests_name_functions_that_exist(place: Workplace) -> None:
    """Ours here, the others beside; goals name contenders of theirs."""
    modules = {records.__name__: records, record_peers.__name__: record_peers}
    for contest in records.contests(place):
        ours, *others = contest.contenders
        assert ours.run.startswith(f"{records.__name__}:")
        assert all(one.run.startswith(f"{record_peers.__name__}:") for one in others)
        for one in contest.contenders:
            module, _, name = one.run.partition(":")
            assert callable(getattr(modules[module], name))
            assert bool(one.needs) == (one is not ours)
        assert {goal.beside for goal in contest.goals} <= {one.name for one in others}
    names = [contest.name for contest in records.contests(place)]
    assert len(set(names)) == len(names) == 7
