"""Tests of iobench.sidebyside.workplace."""

from __future__ import annotations

from pathlib import Path

import pytest

import dataprep
from iobench.sidebyside.workplace import Workplace, photographs

pytestmark = pytest.mark.slow


def test_photographs_repeat_until_there_are_enough(tmp_path: Path, few: Path) -> None:
    """Under names of their own, in their classes, without their bytes being copied."""
    place = Workplace(tmp_path, few, 14)
    repeated = photographs(place.repeated())
    assert len(repeated) == 14
    assert {path.parent.name for path in repeated} == {
        path.parent.name for path in photographs(few)
    }
    assert len({path.stat().st_ino for path in repeated}) == 6
    assert photographs(place.repeated()) == repeated


def test_a_data_set_of_them(tmp_path: Path, few: Path) -> None:
    """In both formats, made once."""
    place = Workplace(tmp_path, few, 6)
    output = place.sharded(8, size=64)
    with dataprep.open(str(output)) as dataset:
        assert len(dataset) == 8
    before = sorted((path.name, path.stat().st_mtime_ns) for path in output.iterdir())
    assert place.sharded(8, size=64) == output
    assert sorted((path.name, path.stat().st_mtime_ns) for path in output.iterdir()) == before


def test_an_empty_folder(tmp_path: Path) -> None:
    """It is said."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="no files in"):
        Workplace(tmp_path, tmp_path / "empty", 3).repeated()


def test_small_files(tmp_path: Path, few: Path) -> None:
    """A file an image of the data set, byte for byte, in folders of their classes; made once."""
    place = Workplace(tmp_path, few, 6)
    folder = place.small_files(8, size=64)
    with dataprep.open(str(place.sharded(8, size=64))) as dataset:
        wanted = sorted((f"{sample.label:05}", bytes(sample.image)) for sample in dataset)
    files = photographs(folder)
    assert sorted((path.parent.name, path.read_bytes()) for path in files) == wanted
    assert place.small_files(8, size=64) == folder
