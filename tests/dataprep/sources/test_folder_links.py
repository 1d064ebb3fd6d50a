"""Folders that are found under several names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataprep.sources.folder_links import doubled_folders


def listed(root: Path) -> list[str]:
    """A file of every folder, links to folders followed."""
    return [f"{path.name}/1.jpg" for path in sorted(root.iterdir())]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two classes."""
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_none(root: Path) -> None:
    """Folders of their own are not worth a word, whatever the source itself is."""
    assert doubled_folders(listed(root), root) == ()
    assert doubled_folders([], root) == ()
    (root / "whole").symlink_to(".")
    assert doubled_folders(["cat/1.jpg", "dog/1.jpg"], root / "whole") == ()


def test_a_link_beside_its_folder(root: Path) -> None:
    """A folder and the links to it are named together, and only they."""
    (root / "Katze").symlink_to("cat")
    (root / "chat").symlink_to(root / "Katze")
    (note,) = doubled_folders(listed(root), root)
    assert note.startswith("1 folder found under several names")
    assert note.endswith("samples several times: 'Katze' and 'cat' and 'chat'")


def test_many(root: Path) -> None:
    """Three are named, the others counted."""
    for number in range(5):
        (root / f"a{number}").mkdir()
        (root / f"b{number}").symlink_to(f"a{number}")
    (note,) = doubled_folders(listed(root), root)
    assert note.startswith("5 folders found")
    assert note.endswith("'a2' and 'b2'; and 2 more")
