"""Tests of dataprep.cache_folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from dataprep.cache_folder import CacheFolder, default_folder


def test_a_file_is_kept_whole(tmp_path: Path) -> None:
    """The folder is made, the file replaced, and nothing else left there."""
    cache = CacheFolder(str(tmp_path / "deep" / "cache"))
    for data in (b"first", b"second"):
        cache.keep("name", lambda file, data=data: file.write(data))  # type: ignore[misc]
    assert (cache.path / "name").read_bytes() == b"second"
    assert [path.name for path in cache.path.iterdir()] == ["name"]


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    """What stood there before stays, and no part of the new one does."""
    cache = CacheFolder(str(tmp_path))
    cache.keep("name", lambda file: file.write(b"before"))

    def full(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError("no space")

    cache.keep("name", full)
    assert (tmp_path / "name").read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    """Where no folder can be made, nothing is kept and nothing raised."""
    (tmp_path / "file").write_bytes(b"")
    CacheFolder(str(tmp_path / "file")).keep("name", lambda file: file.write(b"x"))


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder follows the XDG specification, which ignores relative paths."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert default_folder() == Path("/somewhere/dataprep")
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert default_folder() == tmp_path / ".cache" / "dataprep"


def test_what_a_killed_process_wrote_halfway_is_removed(tmp_path: Path) -> None:
    """After a day; another process may be writing what is newer."""
    for name in ("old.partial", "new.partial", "kept"):
        (tmp_path / name).write_bytes(b"x")
    for name in ("old.partial", "kept"):
        os.utime(tmp_path / name, (0, 0))
    CacheFolder(str(tmp_path)).keep("another", lambda file: file.write(b"y"))
    assert {path.name for path in tmp_path.iterdir()} == {"new.partial", "kept", "another"}
