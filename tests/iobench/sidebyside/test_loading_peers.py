"""Tests of iobench.sidebyside.loading_peers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from iobench.sidebyside import loading_peers
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Where 160 images of the six are. Read only."""
    return Workplace(tmp_path_factory.mktemp("peers"), few, 160)


@pytest.mark.parametrize("normalise", [False, True], ids=["pixels", "normalised"])
class TestFolder:
    def test_whole_epochs_are_loaded(self, normalise: bool, place: Workplace) -> None:
        """All but the first batch of what two epochs have."""
        pytest.importorskip("torch")
        measured = loading_peers.folder(str(place.repeated()), normalise, images=200)
        assert 2 * 160 - 64 <= measured.amount < 2 * 160

    def test_samples(self, normalise: bool, place: Workplace) -> None:
        """A crop of 224 pixels and the number of the folder; another each time."""
        torch = pytest.importorskip("torch")
        files = loading_peers.Folder(str(place.repeated()), normalise)
        assert len(files) == 160
        (image, label), (other, same) = files[0], files[0]
        assert image.shape == (3, 224, 224)
        assert image.dtype == (torch.float32 if normalise else torch.uint8)
        assert (label, same) == (0, 0)
        assert files[159][1] == 1
        assert not torch.equal(image, other)


@pytest.mark.frameworks
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("normalise", [False, True], ids=["pixels", "normalised"])
@pytest.mark.parametrize(("contender", "needs"), [("tf_data", "tensorflow"), ("mxnet", "mxnet")])
def test_frameworks(contender: str, needs: str, normalise: bool, place: Workplace) -> None:
    """They load whole epochs of the same data set."""
    if find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    shards = str(place.sharded(160))
    measured = getattr(loading_peers, contender)(shards, normalise, images=200)
    assert 2 * 160 - 64 <= measured.amount < 2 * 160
