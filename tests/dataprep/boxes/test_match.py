"""Annotations find their images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dataprep.boxes import BoxColumns, BoxOptions
from dataprep.boxes.annotations import of_xml
from dataprep.boxes.match import boxes_of
from dataprep.errors import ConfigError

CLASSES = {"cat": 0, "dog": 1}


def xml(*objects: str, size: tuple[int, int] = (10, 10)) -> bytes:
    """A file with a box of each class."""
    boxes = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{i}</xmin><ymin>0</ymin><xmax>9</xmax>"
        f"<ymax>9</ymax></bndbox></object>"
        for i, name in enumerate(objects)
    )
    width, height = size
    shape = f"<size><width>{width}</width><height>{height}</height></size>"
    return f"<annotation>{shape}{boxes}</annotation>".encode()


def matched(
    files: dict[str, bytes], names: list[str], own: list[int], **options: Any
) -> BoxColumns:
    """The boxes of images with these names and labels."""
    table = of_xml(list(files.items()))
    chosen = BoxOptions(source="boxes/", **options)
    return boxes_of(table, names, np.array(own, np.int32), CLASSES, chosen)


def labels_of(found: BoxColumns) -> list[list[int]]:
    """The labels of each image's boxes."""
    return [[box.label for box in found.of(row).boxes] for row in range(len(found))]


def test_by_base_name() -> None:
    """Folders and extensions do not matter; an image may have no annotation, or the other way."""
    files = {"Annotation/cat/a.1.xml": xml("cat", "dog"), "b.xml": xml(), "other.xml": xml("cat")}
    found = matched(files, ["x/c.png", "cat/b.JPEG", "dog/a.1.JPEG"], [0, 0, 1])
    assert labels_of(found) == [[], [], [0, 1]]
    assert found.of(2).boxes[1].xmin == 1
    assert (found.of(2).width, found.of(0).width) == (10, 1)


def test_by_path() -> None:
    """Images of one name in several folders are told apart by their path."""
    files = {"cat/1.xml": xml("cat"), "dog/1.xml": xml("dog", "dog")}
    found = matched(files, ["dog/1.jpg", "cat/1.jpg"], [1, 0], key="path")
    assert labels_of(found) == [[1, 1], [0]]


def test_two_images_of_one_name() -> None:
    """An annotation that could be of either is refused, with the way out."""
    with pytest.raises(ConfigError, match="several images are called '1': give boxes\\.key=path"):
        matched({"1.xml": xml("cat")}, ["dog/1.jpg", "cat/1.jpg"], [1, 0])


def test_two_annotations_of_one_name() -> None:
    """So are two of one image; those of no image here may have any name."""
    files = {"a/1.xml": xml("cat"), "b/1.xml": xml("cat"), "a/2.xml": xml(), "b/2.xml": xml()}
    with pytest.raises(ConfigError, match="several annotations are called '1'"):
        matched(files, ["1.jpg"], [0])
    assert labels_of(matched({**files, "3.xml": xml("dog")}, ["3.jpg"], [0])) == [[1]]


def test_no_annotation_is_of_any_image() -> None:
    """Names that do not meet are shown side by side."""
    with pytest.raises(
        ConfigError, match=r"no image has boxes at 'boxes/'.*'a', images such as 'b'"
    ):
        matched({"a.xml": xml("cat")}, ["x/b.jpg"], [0])


def test_an_unknown_class() -> None:
    """It is marked, and a box without a name has its image's label; or all boxes have."""
    files = {"a.xml": xml("Scottish_deerhound", "", "cat")}
    assert labels_of(matched(files, ["a.jpg"], [1])) == [[-1, 1, 0]]
    assert labels_of(matched(files, ["a.jpg"], [1], labels="image")) == [[1, 1, 1]]


def test_names_that_are_not_utf8() -> None:
    """A name is its bytes."""
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert labels_of(matched({f"{name}.xml": xml("cat")}, [f"{name}.jpg"], [0])) == [[0]]
