"""Tests of dataprep.sources.listing_tables."""

from __future__ import annotations

import csv
import io
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SourceError
from dataprep.sources.listed import Listed
from dataprep.sources.listing_tables import parse_parquet, parse_text_table
from dataprep.sources.options import ListingOptions
from tests.strategies import mutated

SOUND = b'path,label\ncats/1.jpg,cat\n"a,b\nc.jpg",dog\n\xff.jpg, dog \n'


def text(data: bytes, delimiter: str = ",", **options: Any) -> Listed:
    """A text table as read."""
    return parse_text_table(data, "x.csv", ListingOptions(**options), delimiter)


def parquet(**columns: Any) -> bytes:
    """A Parquet file of these columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def test_rows_are_paths_and_class_names() -> None:
    """Quotes may hold delimiters and line ends; paths need not be UTF-8; labels are trimmed."""
    found = text(SOUND)
    assert found.paths == ["cats/1.jpg", "a,b\nc.jpg", "\udcff.jpg"]
    assert (found.classes, found.numbered) == (["cat", "dog", "dog"], False)


@pytest.mark.parametrize("path", ["path", "filename", "FILE", "Image"])
@pytest.mark.parametrize("label", ["label", "Class", "synset"])
def test_customary_columns_are_found(path: str, label: str) -> None:
    """Columns are known by their usual names, in any case and place, a BOM before them or not."""
    data = f"\ufeffwidth,{label},{path}\n9,cat,a.jpg\n".encode()
    found = text(data)
    assert (found.paths, found.classes) == (["a.jpg"], ["cat"])


def test_columns_are_named_or_counted() -> None:
    """Options choose columns by name, or from 0 where no header names them."""
    assert text(b"x,y\na,1\n", path="y", label="x").paths == ["1"]
    assert text(b"x,x\na,b\n", path=1, label=0).paths == ["b"]
    found = text(b"a\tb\nc\td\n", "\t", header=False)
    assert (found.paths, found.classes) == (["a", "c"], ["b", "d"])


@pytest.mark.parametrize("labels", [["10", "9"], ["10.0", "9.000"], ["+10", "9"]])
def test_whole_numbers_are_numbered_classes(labels: list[str]) -> None:
    """A column of whole numbers has the classes of these numbers, however they are written."""
    rows = "".join(f"a{i},{label}\n" for i, label in enumerate(labels))
    found = text(f"path,label\n{rows}".encode())
    assert (found.classes, found.numbered) == (["10", "9"], True)


@pytest.mark.parametrize("labels", [["10", "9x"], ["001", "002"], ["1.5", "2"]])
def test_other_labels_are_names(labels: list[str]) -> None:
    """One label that is no plain whole number makes names of them all."""
    rows = "".join(f"a{i},{label}\n" for i, label in enumerate(labels))
    found = text(f"path,label\n{rows}".encode())
    assert (found.classes, found.numbered) == (labels, False)


def test_a_row_without_a_label_fails_alone() -> None:
    """An empty label is a problem of its row."""
    assert text(b"path,label\na,\nb,cat\n").problems == {0: "no label"}


def test_several_columns_are_values() -> None:
    """Several label columns give float32 values, the class being the first."""
    found = text(b"path,a,b\nx,3,0.5\ny,10,1e3\n", labels=("a", "b"))
    assert (found.classes, found.numbered) == (["3", "10"], True)
    assert found.values is not None
    assert np.array_equal(found.values, np.array([[3, 0.5], [10, 1000]], np.float32))


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"", {}, "x.csv is empty"),
        (b"a,b\n1,2\n3\n", {}, "x.csv: Row #3: Expected 2 columns, got 1"),
        (b'path,label\n"a,b\n', {}, "x.csv: Row #2"),
        (b"name,label\na,b\n", {}, "x.csv has no column 'path': it has 'name', 'label'"),
        (b"path,label\na,b\n", {"label": "kind"}, "x.csv has no column 'kind'"),
        (b"path,label\na,b\n", {"path": 2}, "x.csv has no column 2: it has 2"),
        (b"path,path,label\na,b,c\n", {}, "x.csv has several columns 'path'"),
        (b"path,label\na,b\n,c\n", {}, "x.csv: the path of sample 2 is empty"),
        (b"path,label\na,\xff\n", {}, "x.csv: label b'\\xff' is not UTF-8"),
        (b"path,a\nx,q\n", {"labels": ("a", "a")}, "x.csv: 'q', a label of sample 1, is no number"),
        ("path,label\n".encode("utf-16"), {}, "x.csv is in UTF-16"),
    ],
)
def test_what_is_no_table_is_refused(data: bytes, options: Any, message: str) -> None:
    """The error names the file, the row or column, and what to do."""
    with pytest.raises(SourceError) as caught:
        text(data, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("column", "classes", "numbered"),
    [
        (pa.array([10, 9], pa.int16()), ["10", "9"], True),
        (pa.array([10.0, 9.0]), ["10", "9"], True),
        (pa.array(["cat", "dog"]).dictionary_encode(), ["cat", "dog"], False),
        (pa.array([b"cat", b"dog"]), ["cat", "dog"], False),
        (pa.array([True, False]), ["1", "0"], True),
    ],
    ids=["int", "float", "dictionary", "binary", "bool"],
)
def test_parquet_columns_of_any_kind(column: Any, classes: list[str], numbered: bool) -> None:
    """Numbers, texts and bytes of Parquet mean what they mean in CSV; so do bytes of a path."""
    found = parse_parquet(parquet(path=[b"a\xff", b"b"], label=column), "x", ListingOptions())
    assert (found.paths, found.classes) == (["a\udcff", "b"], classes)
    assert found.numbered is numbered


def test_parquet_nulls_are_no_labels_and_no_paths() -> None:
    """A null label fails its row, a null path the listing."""
    sound = parquet(path=["a", "b"], label=["x", None])
    assert parse_parquet(sound, "x", ListingOptions()).problems == {1: "no label"}
    with pytest.raises(SourceError, match="the path of sample 1 is empty"):
        parse_parquet(parquet(path=[None], label=["x"]), "x", ListingOptions())


def test_a_nan_of_parquet_is_no_label() -> None:
    """It fails its row, and the others stay numbers."""
    data = parquet(path=["a", "b", "c"], label=[10.0, float("nan"), 9.0])
    found = parse_parquet(data, "x", ListingOptions())
    assert (found.classes, found.numbered) == (["10", "", "9"], True)
    assert found.problems == {1: "no label"}


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_row_that_lacks_one_of_several_labels_fails_alone(missing: float | None) -> None:
    """Whether the first or another is missing, in Parquet and in CSV."""
    options = ListingOptions(labels=("a", "b"))
    data = parquet(path=["x", "y", "z"], a=[missing, 1.0, 2.0], b=[0.5, missing, 0.5])
    for found in (
        parse_parquet(data, "x", options),
        text(b"path,a,b\nx,,0.5\ny,1,\nz,2,0.5\n", labels=("a", "b")),
    ):
        assert (found.classes, found.problems) == (["", "", "2"], {0: "no label", 1: "no label"})


def test_parquet_columns_of_one_name_are_counted() -> None:
    """By name they are refused, by number each is itself."""
    sink = io.BytesIO()
    columns = [pa.array(["x"]), pa.array([7]), pa.array(["a"]), pa.array([8]), pa.array([9])]
    pq.write_table(pa.table(columns, names=["s", "label", "path", "label", "label"]), sink)
    with pytest.raises(SourceError, match=r"^x has several columns 'label': count them from 0"):
        parse_parquet(sink.getvalue(), "x", ListingOptions())
    for position, label in ((1, "7"), (3, "8"), (4, "9")):
        options = ListingOptions(label=position)
        assert parse_parquet(sink.getvalue(), "x", options).classes == [label]
    options = ListingOptions(labels=(4, 1), path=2)
    found = parse_parquet(sink.getvalue(), "x", options)
    assert found.values is not None
    assert (found.paths, found.values.tolist()) == (["a"], [[9, 7]])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"image": [{"bytes": b"\xff", "path": "a.jpg"}], "label": [1]},
            "x: column 'image' holds struct<bytes: binary, path: string>, no paths: images inside "
            "Parquet are not read: write them to files and list those",
        ),
        ({"path": [1], "label": [1]}, "x: column 'path' holds int64, no paths: name the column of"),
        ({"path": [["a.jpg"]], "label": [1]}, "x: column 'path' holds list<"),
        ({"path": ["a.jpg"], "label": [[1, 2]]}, "x: column 'label' holds list<"),
        ({"path": ["a.jpg"], "label": [{"id": 1}]}, "x: column 'label' holds struct<id: int64>: a"),
    ],
)
def test_parquet_columns_that_hold_no_paths_and_labels(columns: Any, message: str) -> None:
    """The error names the column and what it holds."""
    with pytest.raises(SourceError) as caught:
        parse_parquet(parquet(**columns), "x", ListingOptions())
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.binary(1),
        pa.string_view(),
    ],
    ids=str,
)
def test_parquet_paths_of_any_kind_of_text(kind: pa.DataType) -> None:
    """Texts and bytes, long ones and those of one size; dictionaries of them."""
    paths = pa.array([b"a", b"b"], pa.binary()).cast(kind)
    for column in (paths, paths.dictionary_encode() if kind != pa.string_view() else paths):
        found = parse_parquet(parquet(path=column, label=[0, 1]), "x", ListingOptions())
        assert found.paths == ["a", "b"]


def test_what_is_no_parquet_is_refused() -> None:
    """Any other file is an error that names it."""
    with pytest.raises(SourceError, match=r"x\.parquet cannot be read as Parquet"):
        parse_parquet(b"path,label\n", "x.parquet", ListingOptions())


@given(
    rows=st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name),
            st.from_regex(r"[a-z][a-z ,\"\n]{0,6}[a-z]", fullmatch=True),
        ),
        min_size=1,
        max_size=6,
    ),
    delimiter=st.sampled_from([",", "\t", ";"]),
)
def test_what_pythons_writer_writes_is_read(rows: list[tuple[bytes, str]], delimiter: str) -> None:
    """Any path and label that Python's csv module quotes comes back."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["path", "label"])
    writer.writerows([(os.fsdecode(path), label) for path, label in rows])
    found = text(os.fsencode(sink.getvalue()), delimiter)
    assert found.paths == [os.fsdecode(path) for path, _ in rows]
    assert found.classes == [label for _, label in rows]


@given(data=st.one_of(st.binary(max_size=80), mutated(st.just(SOUND))))
def test_any_bytes_are_rows_or_a_clear_error(data: bytes) -> None:
    """Nothing crashes; an error names the file."""
    try:
        found = text(data)
    except SourceError as error:
        assert str(error).startswith("x.csv")  # noqa: PT017  any other error shall fail
    else:
        assert len(found.paths) == len(found.classes)


@pytest.mark.parametrize(
    ("data", "option"),
    [
        (b"path;label\na.jpg;cat\n", "--set 'listing.delimiter=\";\"'"),
        (b"path;label\na,b.jpg;cat\n", "--set 'listing.delimiter=\";\"'"),
        (b"path|label\na.jpg|cat\n", "--set 'listing.delimiter=\"|\"'"),
        (b"path\tlabel\na.jpg\tcat\n", "--set listing.format=tsv"),
    ],
)
def test_another_delimiter_is_named(data: bytes, option: str) -> None:
    """A table whose columns are separated otherwise is refused with the option that reads it."""
    with pytest.raises(SourceError) as caught:
        text(data)
    assert str(caught.value).endswith(f"its columns are separated otherwise: {option}")


@pytest.mark.parametrize("data", [b"name\na.jpg\n", b"a;b,c\na.jpg,cat\n"])
def test_no_other_delimiter_is_guessed(data: bytes) -> None:
    """Where the first line has the usual one, or none at all, no word is lost on it."""
    with pytest.raises(SourceError) as caught:
        text(data)
    assert "separated otherwise" not in str(caught.value)
