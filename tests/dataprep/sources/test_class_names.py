"""Files name classes, and addresses name files."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

import pytest

from dataprep.errors import ConfigError, SourceError, SourceNotFound
from dataprep.labels import Label
from dataprep.sources.class_names import label_space_of, read_class_names
from dataprep.sources.files import split_uri


def test_lines_are_classes_in_their_order(tmp_path: Path) -> None:
    """A line is a name. After a WordNet id, the rest of the line is its text.

    Empty lines end the file. A byte order mark is no part of the first name.
    """
    data = b"zebra crossing\nn01440764 tench, Tinca tinca\r\nant\n\n"
    for content in (data, BOM_UTF8 + data):
        (tmp_path / "x").write_bytes(content)
        assert read_class_names(str(tmp_path / "x")).labels == (
            Label(0, "zebra crossing", "zebra crossing"),
            Label(1, "n01440764", "tench, Tinca tinca"),
            Label(2, "ant", "ant"),
        )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\nb\na\n", "x, line 3: the class 'a' is empty or repeats an earlier line"),
        (b"a\n\nb\n", "x, line 2: the class '' is empty"),
        (b"a\n\xff\n", "x is not text in UTF-8"),
    ],
)
def test_what_names_no_classes_is_refused(data: bytes, message: str, tmp_path: Path) -> None:
    """The error names the line."""
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(SourceError, match=message):
        read_class_names(str(tmp_path / "x"))


def test_a_name_that_cannot_be_encoded_is_refused() -> None:
    """A text of JSON, such as a schema of Hugging Face, can have half of a surrogate pair."""
    with pytest.raises(SourceError, match=r"x, name 2: '\\ud800' is not valid Unicode"):
        label_space_of(["a", "\ud800"], "x", "name")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A missing file, and one that is no labels.json, are named."""
    with pytest.raises(SourceNotFound, match=r"none\.txt"):
        read_class_names(str(tmp_path / "none.txt"))
    (tmp_path / "labels.json").write_text("{}")
    with pytest.raises(SourceError, match=r"labels\.json"):
        read_class_names(str(tmp_path / "labels.json"))


@pytest.mark.parametrize("uri", ["s3://", "s3://bucket", "s3:///key"])
def test_a_uri_without_a_file_is_refused(uri: str) -> None:
    """The error shows the expected form."""
    with pytest.raises(ConfigError, match="s3://FOLDER/FILE"):
        split_uri(uri)


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("a.csv", (".", "a.csv")),
        ("/a.csv", ("/", "a.csv")),
        ("x/a.csv", ("x", "a.csv")),
        ("s3://b/x/a.csv", ("s3://b/x", "a.csv")),
        ("s3://b/a.csv", ("s3://b", "a.csv")),
    ],
)
def test_a_file_has_a_folder_and_a_name(uri: str, parts: tuple[str, str]) -> None:
    """Paths and URIs are split alike."""
    assert split_uri(uri) == parts
