"""Tests of iobench.sidebyside.loading."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from iobench.sidebyside import loading
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shards(few: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """160 small images as a data set. Read only."""
    place = Workplace(tmp_path_factory.mktemp("loading"), few, 160)
    return str(place.sharded(160, size=64))


@pytest.mark.parametrize("normalise", [False, True], ids=["pixels", "normalised"])
@pytest.mark.parametrize("contender", ["ours", "by_workers", "by_sample"])
def test_whole_epochs_are_loaded(contender: str, normalise: bool, shards: str) -> None:
    """All but the first batch of what two epochs have."""
    pytest.importorskip("torch")
    measured = getattr(loading, contender)(shards, normalise, images=200)
    assert 2 * 160 - 64 <= measured.amount < 2 * 160
    assert measured.seconds > 0


@pytest.mark.parametrize("normalise", [False, True], ids=["pixels", "normalised"])
def test_what_batches_hold(normalise: bool, shards: str) -> None:
    """What the notes of the contest say of them."""
    torch = pytest.importorskip("torch")
    images, labels = next(iter(loading._batches(shards, normalise)))
    assert images.shape == (64, 3, 224, 224)
    assert images.dtype == (torch.float32 if normalise else torch.uint8)
    assert labels.shape == (64,)


def test_contests_name_functions_that_exist(tmp_path: Path, few: Path) -> None:
    """And their goals contenders of theirs."""
    for contest in loading.contests(Workplace(tmp_path, few, 6)):
        for one in contest.contenders:
            module, _, name = one.run.partition(":")
            assert callable(getattr(import_module(module), name))
            assert Path(one.arguments["place"]).is_dir()
        names = {one.name for one in contest.contenders}
        assert {goal.beside for goal in contest.goals} <= names
