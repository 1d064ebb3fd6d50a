"""Tests of iobench.sidebyside.whole_job."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from dataprep.sample import draw_tree
from iobench.sidebyside import whole_job
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Enough drawn images for several shards."""
    folder = tmp_path_factory.mktemp("whole")
    photos = draw_tree(folder / "photos", images=60, classes=5).root
    (folder / "work").mkdir()
    return Workplace(folder / "work", photos, 900)


def test_steady(place: Workplace) -> None:
    """Samples of the steady part only, with both rates and the memory of a worker."""
    measured = whole_job.ours_steady(str(place.repeated()), str(place.root))
    assert 0 < measured.amount < place.images
    assert measured.others["times_1_worker"] == pytest.approx(
        measured.rate / measured.others["of_1_worker_per_s"]
    )
    assert measured.others["worker_peak_MB"] > 20


def test_floor(place: Workplace) -> None:
    """Two processes and one, each with a rate."""
    measured = whole_job.floor(str(place.photos))
    assert measured.rate > 0
    assert measured.others["times_1_worker"] > 0


def test_commands(place: Workplace) -> None:
    """The whole command runs over every image and leaves nothing behind."""
    source = str(place.repeated(30))
    assert whole_job.ours_command(source, str(place.root)).amount == 30
    small = whole_job.ours_small(source, str(place.root))
    assert small.amount == 30
    conversion_s = small.others["conversion_in_one_process_s"]
    assert small.others["beyond_conversion_s"] == pytest.approx(small.seconds - conversion_s / 2)
    assert {path.name for path in place.root.iterdir()} <= {"repeated-30", "repeated-900"}


def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    """It raises with the command's last words."""
    with pytest.raises(RuntimeError, match="no such"):
        whole_job.ours_command(str(tmp_path / "none"), str(tmp_path))


def test_shard_size() -> None:
    """The default for jobs that are large enough for it."""
    assert whole_job.shard_size(10_000) == "64MiB"
    assert whole_job.shard_size(2_000) == "8MiB"


@pytest.mark.frameworks
@pytest.mark.skipif(find_spec("mxnet") is None, reason="MXNet is not installed")
def test_im2rec(place: Workplace) -> None:
    """MXNet's tool packs every image."""
    measured = whole_job.im2rec(str(place.repeated(30)), str(place.root))
    assert measured.amount == 30


@pytest.mark.frameworks
@pytest.mark.skipif(find_spec("img2dataset") is None, reason="img2dataset is not installed")
def test_img2dataset(place: Workplace) -> None:
    """img2dataset packs every image."""
    measured = whole_job.img2dataset(str(place.repeated(30)), str(place.root))
    assert measured.amount == 30
