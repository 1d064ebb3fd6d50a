"""Tests of dataprep.sources.classes; class rules are tested through class folders as well."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SourceError
from dataprep.sources.classes import (
    IMAGE_EXTENSIONS,
    ClassRule,
    begins_as_image,
    classify,
    is_clutter,
    promises_image,
)
from dataprep.sources.protocol import Problem


def rule(*paths: str) -> ClassRule:
    """The rule of these paths."""
    return ClassRule(paths, "src", "--take {}".format)


def test_synsets_are_classes_at_any_depth() -> None:
    """Where a path has a folder named as a synset, that is the class."""
    found = rule("a/n01440764/x/1.jpg", "n01443537/2.jpg")
    assert found("a/n01440764/x/1.jpg") == "n01440764"
    assert found("readme.txt") == ""


def test_several_splits_are_refused_with_advice() -> None:
    """The advice is the source's own, and names the training split where there is one."""
    with pytest.raises(SourceError, match=r"--take d/train --split train"):
        rule("d/train/n01440764/1.jpg", "d/test/n01440764/2.jpg")


def test_mixed_folders_are_refused_with_advice() -> None:
    """Synsets beside other folders could both be classes; the folder of synsets is suggested."""
    with pytest.raises(SourceError, match=r"take one, as in --take d/train"):
        rule("d/train/n01440764/1.jpg", "d/pictures/2.jpg")
    with pytest.raises(SourceError, match="move one elsewhere"):
        rule("n01440764/1.jpg", "cats/2.jpg")


def test_classes_and_problems_of_every_file() -> None:
    """Each file gets its class, or the reason why it has none; what was known stays."""
    names = ["cats/1.jpg", "cats/.x", "dogs/first", "dogs/second", "texts/a.txt", "stray.jpg"]
    known = {1: Problem("skipped", "hidden")}
    asked: list[int] = []

    def is_image(row: int) -> bool:
        asked.append(row)
        return True

    classes, problems, promising = classify(names, known, lambda paths: rule(*paths), is_image)
    assert list(classes) == ["cats", "", "dogs", "dogs", "", ""]
    assert promising == {"cats", "dogs"}
    assert asked == [2]  # the first without an extension of the one class in doubt
    assert problems == {
        1: Problem("skipped", "hidden"),
        4: Problem("skipped", "its folder holds no images"),
        5: Problem("skipped", "in no class folder"),
    }
    assert known == {1: Problem("skipped", "hidden")}


@given(st.text("a.J/pgPGé ", max_size=12))
def test_suffixes_are_those_of_pathlib(name: str) -> None:
    """A name promises an image exactly if its suffix, as pathlib has it, is one of an image."""
    plain = not name.endswith(("/", "/."))  # which no file's name does
    assert not plain or bool(promises_image(name)) == (
        PurePosixPath(name).suffix.lower() in IMAGE_EXTENSIONS
    )


@pytest.mark.parametrize(
    ("name", "clutter"),
    [("a/b.jpg", False), (".a/b.jpg", True), ("a/._b.jpg", True), ("a/Thumbs.db", True)],
)
def test_clutter(name: str, clutter: bool) -> None:
    """Hidden files and what operating systems leave behind are told by their names."""
    assert bool(is_clutter(name)) is clutter


def test_images_by_their_first_bytes() -> None:
    """Common kinds of images are known by how they begin."""
    assert begins_as_image(b"\xff\xd8\xff\xe0")
    assert begins_as_image(b"\x89PNG\r\n")
    assert not begins_as_image(b"words")
