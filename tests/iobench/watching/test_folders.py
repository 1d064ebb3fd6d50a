"""A folder that no other run has."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from iobench.watching.folders import CLAIM, claimed, default_folder, released
from iobench.watching.ranks import Rank
from tests.permissions import unprivileged

ALONE = Rank()


def test_a_run_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """The next goes beside it, and the one after that too."""
    wanted = tmp_path / "mine"
    first = claimed(wanted, ALONE)
    (first / "result.json").touch()
    second = claimed(wanted, ALONE)
    third = claimed(wanted, ALONE)
    assert [path.name for path in (first, second, third)] == ["mine", "mine-2", "mine-3"]


def test_other_files_are_no_run(tmp_path: Path) -> None:
    """An experiment's own folder can be given."""
    (tmp_path / "checkpoint.pt").touch()
    assert claimed(tmp_path, ALONE) == tmp_path
    assert (tmp_path / CLAIM).exists()


def test_each_rank_has_its_own(tmp_path: Path) -> None:
    """Within one folder, whichever comes first."""
    folders = {claimed(tmp_path / "job", Rank(rank, 2, rank)) for rank in (1, 0)}
    assert folders == {tmp_path / "job" / "rank-0", tmp_path / "job" / "rank-1"}


def test_a_claim_is_given_back(tmp_path: Path) -> None:
    """Also one that is not there any more."""
    folder = claimed(tmp_path / "mine", ALONE)
    released(folder)
    released(folder)
    assert claimed(tmp_path / "mine", ALONE) == folder


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """It is named."""
    (tmp_path / "mine").touch()
    with pytest.raises(ConfigError, match="mine is a file: name another folder"):
        claimed(tmp_path / "mine", ALONE)


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """Before the training begins rather than after it."""
    tmp_path.chmod(0o500)
    with unprivileged(), pytest.raises(ConfigError, match="cannot write in"):
        claimed(tmp_path / "mine", ALONE)


def test_without_a_name_it_is_the_moment() -> None:
    """Below ``reports``, as those of other runs."""
    assert default_folder().parent == Path("reports")
    assert default_folder().name.startswith("watch-2")
