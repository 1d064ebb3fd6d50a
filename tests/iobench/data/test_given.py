"""Tests of iobench.data.given."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from iobench.data.given import expanded, local_folders, require_given
from iobench.data.settings import DataSettings


def test_a_home_is_followed_in_paths_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address on a store has no home."""
    monkeypatch.setenv("HOME", "/home/me")
    assert expanded("~/shards") == "/home/me/shards"
    assert expanded("s3://bucket/~") == "s3://bucket/~"


def test_nothing_given_is_nothing_wrong() -> None:
    """It is drawn."""
    require_given(DataSettings())


@pytest.mark.parametrize("place", ["missing", ".", "file"])
def test_shards_that_are_no_data_set(tmp_path: Path, place: str) -> None:
    """Neither a place that is not there, nor a folder or a file of something else."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data\.shards: no complete split 'train'"):
        require_given(DataSettings(shards=str(tmp_path / place)))


@pytest.mark.parametrize("place", ["missing", "file"])
def test_a_source_that_is_no_folder(tmp_path: Path, place: str) -> None:
    """On S3 it is for the first trial to find out."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data\.source: no folder"):
        require_given(DataSettings(source=str(tmp_path / place)))
    require_given(DataSettings(source=str(tmp_path)))
    require_given(DataSettings(source="s3://bucket/photos"))


def test_folders_of_what_is_on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are none; the home is followed, as everywhere."""
    monkeypatch.setenv("HOME", "/home/me")
    given = DataSettings(folder="~/made", shards="file:///data/shards", source="s3://bucket/p")
    assert local_folders(given) == {
        "data": Path("/home/me/made"),
        "shards": Path("/data/shards"),
    }
    assert set(local_folders(DataSettings(source="photos"))) == {"data", "source"}
