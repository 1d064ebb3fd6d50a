"""Contests over S3: our contenders do the whole work."""

from __future__ import annotations

import pytest

from dataprep.sample import draw_tree
from iobench.s3_server import MotoServer
from iobench.sidebyside import object_store
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a limited store sets are gone after the test."""
    for name, value in MotoServer.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Sixty drawn images."""
    root = tmp_path_factory.mktemp("bench")
    photos = draw_tree(tmp_path_factory.mktemp("photos") / "drawn", images=60, classes=3).root
    return Workplace(root, photos, 60)


def test_contests(place: Workplace) -> None:
    """Each has its goal beside a contender that is in it, and ours comes first."""
    found = {contest.name: contest for contest in object_store.contests(place)}
    assert list(found) == ["overlap", "overlap-slow", "read-s3", "small-objects"]
    for contest in found.values():
        names = [contender.name for contender in contest.contenders]
        assert [goal.beside in names[1:] for goal in contest.goals] == [True]


def test_overlap(place: Workplace) -> None:
    """Both sides make the same images; the slower of the two alone is the one that counts."""
    source = str(place.repeated())
    ours = object_store.to_store(str(place.root), source, 10**6, 1.0)
    alone = object_store.slower_alone(str(place.root), source, 10**6, 1.0)
    assert ours.amount == alone.amount == 60
    parts = (alone.others["encoding_alone_s"], alone.others["uploading_alone_s"])
    assert alone.seconds == max(parts)
    assert min(parts) > 0
    assert "store_cpu_share" in ours.others


def test_read(place: Workplace) -> None:
    """Every shard is read, from the first byte to the last."""
    folder = place.sharded(60)
    size = sum(path.stat().st_size for path in (folder / "tfrecord").iterdir())
    assert object_store.read(str(folder)).amount == size / 1e6


def test_small_objects(place: Workplace) -> None:
    """Every object becomes a sample, with and without latency."""
    source = str(place.repeated())
    for latency_s in (0.0, 0.001):
        assert object_store.from_store(source, latency_s).amount == 60
