"""Annotations as a table."""

from __future__ import annotations

import pytest

from dataprep.boxes.annotations import SCHEMA, of_xml, without_extension


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("a/b.1.JPEG", "a/b.1"),
        ("a.b/c", "a.b/c"),
        ("a/.hidden", "a/.hidden"),
        ("x.xml", "x"),
        ("", ""),
    ],
)
def test_extensions(path: str, stem: str) -> None:
    """The last one goes, of the name alone."""
    assert without_extension(path) == stem


def test_no_files() -> None:
    """An empty table has the same columns."""
    assert of_xml([]).equals(SCHEMA.empty_table())


def test_a_file_without_boxes() -> None:
    """It is a row of empty lists."""
    (row,) = of_xml([("a.xml", b"<annotation/>")]).to_pylist()
    assert (row["key"], row["xmin"], row["name"], row["problem"]) == (b"a", [], [], None)
