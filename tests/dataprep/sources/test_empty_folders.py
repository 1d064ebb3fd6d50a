"""Tests of dataprep.sources.empty_folders, through the folders that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores.memory import MemoryStore


def notes(root: Path, files: tuple[str, ...], folders: tuple[str, ...]) -> tuple[str, ...]:
    """What the listing of a tree with these files and folders says."""
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    for name in folders:
        (root / name).mkdir(parents=True)
    return ImageFolder(str(root)).list().notes


@pytest.mark.parametrize(
    ("files", "folders", "named"),
    [
        (("a/1.jpg", "b/1.jpg"), ("c",), "1 folder without images makes no class: 'c'"),
        (("a/1.jpg", "b/x.txt"), (), "1 folder without images makes no class: 'b'"),
        (("t/a/1.jpg", "t/c/1.jpg"), ("t/b/deep", "z"), "makes no class: 'b'"),
        (("a/1.jpg", "b/1.jpg"), ("c", "d", "e", "f"), "4 folders without images make no class"),
        (("x/n00000001/1.jpg",), ("x/n00000002", "x/docs"), "makes no class: 'n00000002'"),
        (("x/n00000001/1.jpg", "y/n00000002/1.jpg"), ("y/n00000003",), ": 'n00000003'"),
    ],
)
def test_they_are_named(
    tmp_path: Path, files: tuple[str, ...], folders: tuple[str, ...], named: str
) -> None:
    """Where classes are, an empty folder or one of other files is said."""
    (said,) = notes(tmp_path, files, folders)
    assert said.partition(" and ")[0].endswith(named) or named in said


@pytest.mark.parametrize(
    ("files", "folders"),
    [
        (("a/1.jpg", "b/1.jpg"), (".hidden", "__MACOSX")),
        (("a/1.jpg", "b/sub/1.jpg"), ("b/empty",)),
        (("n00000001/1.jpg", "n00000002/1.jpg"), ("docs",)),
    ],
    ids=["hidden", "within a class", "beside synsets"],
)
def test_nothing_is_said(tmp_path: Path, files: tuple[str, ...], folders: tuple[str, ...]) -> None:
    """Of folders that nobody would take for a class."""
    assert notes(tmp_path, files, folders) == ()


def test_in_a_store_without_folders() -> None:
    """Only what holds other files can be seen there."""
    store = MemoryStore("memory://empty-folders")
    for key in ("a/1.jpg", "b/1.jpg", "c/x.txt"):
        store.put(key, b"x")
    (said,) = ImageFolder("memory://empty-folders").list().notes
    assert said == "1 folder without images makes no class: 'c'"
