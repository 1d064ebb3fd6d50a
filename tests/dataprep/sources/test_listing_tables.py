"""Files of listings: their rows, and the names of the paths in them."""

from __future__ import annotations

import csv
import io
import os
import posixpath
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SourceError
from dataprep.formats.protocol import IndexEntry
from dataprep.formats.recordio import RecordIOFormat
from dataprep.names import escape
from dataprep.sources import open_source
from dataprep.sources.listing import LEAVES, parse, place_of, split_name
from dataprep.sources.options import ListingOptions
from tests.strategies import file_names, mutated

Rows = tuple[list[str], list[list[str]], bool]

CSV = b'path,label\ncats/1.jpg,cat\n"a,b\nc.jpg",dog\n\xff.jpg, dog \n'
LST = b"0\t3.000000\tcats/1.jpg\n7\t0\ta b.jpg\r\n\n2\t10.0\t\xff.jpg"


def rows(data: str | bytes, name: str = "x.csv", **options: Any) -> Rows:
    """What a listing says: paths, labels as texts, and whether these are numbers."""
    data = data.encode() if isinstance(data, str) else data
    return parse(data, name, ListingOptions(**options))


def parquet(**columns: Any) -> bytes:
    """A Parquet file of these columns."""
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def test_rows_are_paths_and_class_names() -> None:
    """Quotes may enclose delimiters and line ends; paths need not be UTF-8; labels are trimmed."""
    paths, labels, numeric = rows(CSV)
    assert paths == ["cats/1.jpg", "a,b\nc.jpg", "\udcff.jpg"]
    assert (labels, numeric) == ([["cat"], ["dog"], ["dog"]], False)


@pytest.mark.parametrize("path", ["path", "filename", "FILE", "Image"])
@pytest.mark.parametrize("label", ["label", "Class", "synset"])
def test_customary_columns_are_found(path: str, label: str) -> None:
    """Their names may have any case and any place, and a byte order mark before them."""
    found = rows(f"\ufeffwidth,{label},{path}\n9,cat,a.jpg\n")
    assert found[:2] == (["a.jpg"], [["cat"]])


def test_columns_are_named_or_counted() -> None:
    """Options choose columns by name, or from 0."""
    assert rows("x,y\na,1\n", path="y", label="x")[0] == ["1"]
    assert rows("x,x\na,b\n", path=1, label=0)[0] == ["b"]
    assert rows("a\tb\nc\td\n", "x.tsv", header=False)[:2] == (["a", "c"], [["b"], ["d"]])


@pytest.mark.parametrize(
    ("labels", "numeric"),
    [
        (["10", "9"], True),
        (["10.0", "9.000"], True),
        (["+10", ""], True),
        (["10", "9x"], False),
        (["001", "002"], False),
        (["1.5", "2"], False),
    ],
)
def test_a_column_of_whole_numbers_is_numeric(labels: list[str], numeric: bool) -> None:
    """One label that is no plain whole number makes names of them all."""
    text = "".join(f"a{number},{label}\n" for number, label in enumerate(labels))
    assert rows(f"path,label\n{text}")[2] is numeric


@pytest.mark.parametrize(
    ("name", "data", "options", "message"),
    [
        ("x.csv", b"", {}, "x.csv is empty"),
        ("x.csv", b"path,label\n1,2\n3\n", {}, "x.csv, row 3: 1 columns, the first row has 2"),
        ("x.csv", b'path,label\n"a,b\n', {}, "x.csv, line "),
        ("x.csv", b"name,label\na,b\n", {}, "x.csv has no column 'path': it has 'name', 'label'"),
        ("x.csv", b"path,label\na,b\n", {"label": "kind"}, "x.csv has no column 'kind'"),
        ("x.csv", b"path,label\na,b\n", {"path": 2}, "x.csv has no column 2: it has 'path'"),
        ("x.csv", b"path,label\na,b\n,c\n", {}, "x.csv: the path of sample 2 is empty"),
        ("x.csv", b"path,label\na,\xff\n", {}, "x.csv: label '\\udcff' is not UTF-8"),
        ("x.csv", "path,label\n".encode("utf-16"), {}, "x.csv is in UTF-16"),
        ("x.parquet", b"path,label\n", {}, "x.parquet cannot be read as Parquet"),
        ("x.lst", b"0\t1\ta\n\n1\tb\n", {}, "x.lst, row 2: 2 columns; a .lst has index, label"),
        ("x.lst", b"0\t1\t\n", {}, "x.lst: the path of sample 1 is empty"),
    ],
)
def test_what_is_no_table_is_refused(name: str, data: bytes, options: Any, message: str) -> None:
    """The error names the file, the row or column, and what to do."""
    with pytest.raises(SourceError) as caught:
        rows(data, name, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("column", "labels", "numeric"),
    [
        (pa.array([10, None], pa.int16()), ["10", ""], True),
        (pa.array([10.0, float("nan")]), ["10", ""], True),
        (pa.array(["cat", "dog"]).dictionary_encode(), ["cat", "dog"], False),
        (pa.array([b"cat", b"dog"]), ["cat", "dog"], False),
        (pa.array([True, False]), ["1", "0"], True),
    ],
    ids=["int", "float", "dictionary", "binary", "bool"],
)
def test_parquet_columns_of_any_kind(column: Any, labels: list[str], numeric: bool) -> None:
    """Numbers, texts and bytes of Parquet mean the same as in CSV. Nulls and NaN are no labels."""
    data = parquet(path=[b"a\xff", b"b"], label=column)
    assert rows(data, "x.pq") == (["a\udcff", "b"], [[label] for label in labels], numeric)


@pytest.mark.parametrize(
    "path", [None, 1, ["a.jpg"], {"bytes": b"\xff", "path": "a.jpg"}], ids=repr
)
def test_parquet_columns_without_paths_are_refused(path: Any) -> None:
    """Images inside Parquet, as Hugging Face has them, are not read."""
    with pytest.raises(SourceError, match=r"x\.parquet: the path of sample 1 is empty or no text"):
        rows(parquet(path=[path], label=["x"]), "x.parquet")


def test_lines_of_lst_are_paths_and_numbers() -> None:
    """The index is not used. Bytes other than UTF-8 stay, empty lines are passed over."""
    labels = [["3.000000"], ["0"], ["10.0"]]
    assert rows(LST, "x.lst") == (["cats/1.jpg", "a b.jpg", "\udcff.jpg"], labels, True)
    assert rows("0\t3\t0.5\ta\n", "x.lst")[:2] == (["a"], [["3", "0.5"]])


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("0\t1\ta\n1\t-1\tb\n", "label -1 is no class: classes count from 0"),
        ("0\t1\ta\n1\t2.5\tb\n", "label 2.5 is no whole number"),
        ("0\t1\ta\n1\tinf\tb\n", "label inf is no whole number"),
        ("0\t1\t2\ta\n1\t1\tb\n2\t1\t2\tc\n", "1 labels, where most have 2"),
    ],
)
def test_a_label_of_lst_that_is_no_class_fails_its_row(
    tmp_path: Path, text: str, problems: str
) -> None:
    """The other rows are samples."""
    for name in "abc":
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "x.lst").write_text(text)
    listing = open_source(str(tmp_path / "x.lst"), "listing").list()
    assert [problem.reason for problem in listing.problems.values()] == [problems]
    assert listing.names[min(listing.problems)] == "b"


@pytest.mark.parametrize("options", [{}, {"labels": ("label", "label")}])
def test_a_label_that_has_to_be_a_number(tmp_path: Path, options: Any) -> None:
    """It is refused by name in a .lst, and where a row has several labels."""
    name, text = ("x.csv", "path,label\na,cat\n") if options else ("x.lst", "0\tcat\ta\n")
    (tmp_path / name).write_text(text)
    source = open_source(str(tmp_path / name), "listing", None, ListingOptions(**options))
    with pytest.raises(SourceError, match=rf"{name}: .*'cat'"):
        source.list()


@given(names=st.lists(file_names.map(os.fsdecode).filter(bool), min_size=1, max_size=8))
def test_our_own_lst_reads_as_it_was(names: list[str]) -> None:
    """Names with tabs, line ends, backslashes and any bytes come back."""
    entries = [IndexEntry(i, i, 0, 0, escape(name)) for i, name in enumerate(names)]
    assert rows(bytes(RecordIOFormat().indexes(entries)[".lst"]), "ours.lst")[0] == names


@pytest.mark.parametrize(
    ("path", "escaped", "name"),
    [
        (rb"C:\photos\a.jpg", None, r"C:\photos\a.jpg"),
        (rb"a\\b\x09.jpg", None, "a\\b\t.jpg"),
        (rb"a\\b\x09.jpg", False, r"a\\b\x09.jpg"),
        (rb"a\q\x09", True, "a\\q\t"),
    ],
)
def test_backslashes_of_others_are_only_backslashes(
    path: bytes, escaped: bool | None, name: str
) -> None:
    """Without the option, names are unescaped only if every backslash belongs to an escape."""
    assert rows(b"0\t0\t" + path + b"\n", "x.lst", escaped=escaped)[0] == [name]


@given(
    table=st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=8).filter(lambda name: b"\0" not in name),
            st.from_regex(r"[a-z][a-z ,\"\n]{0,6}[a-z]", fullmatch=True),
        ),
        min_size=1,
        max_size=6,
    ),
    delimiter=st.sampled_from([",", "\t", ";"]),
)
def test_what_pythons_writer_writes_is_read(table: list[tuple[bytes, str]], delimiter: str) -> None:
    """Any path and label that Python's csv module quotes comes back."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(["path", "label"])
    writer.writerows([(os.fsdecode(path), label) for path, label in table])
    paths, labels, _ = rows(os.fsencode(sink.getvalue()), delimiter=delimiter)
    assert paths == [os.fsdecode(path) for path, _ in table]
    assert labels == [[label] for _, label in table]


@pytest.mark.parametrize(("name", "sound"), [("x.csv", CSV), ("x.lst", LST)])
@given(data=st.data())
def test_any_bytes_are_rows_or_an_error(name: str, sound: bytes, data: st.DataObject) -> None:
    """An error names the file."""
    try:
        paths, labels, _ = rows(data.draw(st.binary(max_size=80) | mutated(st.just(sound))), name)
    except SourceError as error:
        assert str(error).startswith(name)  # noqa: PT017  any other error shall fail
    else:
        assert len(paths) == len(labels)
        assert all(paths)


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        ("/data/", "cats/1.jpg", "cats/1.jpg"),
        ("/data/", "./cats//1.jpg", "cats/1.jpg"),
        ("/data/", "dogs/../cats/1.jpg", "cats/1.jpg"),
        ("/data/", "/data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "//data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "file:///data/cats/1.jpg", "cats/1.jpg"),
        ("/data/", "/database/1.jpg", "/database/1.jpg"),
        ("/data/", "/data/../other/1.jpg", "/other/1.jpg"),
        ("/data/", "s3://b/cats/1.jpg", "s3://b/cats/1.jpg"),
        ("s3://b/p/", "cats/1.jpg", "cats/1.jpg"),
        ("s3://b/p/", "s3://b/p/cats/1.jpg", "cats/1.jpg"),
        ("s3://b/p/", "s3://b/pp/1.jpg", "s3://b/pp/1.jpg"),
        ("s3://b/p/", "s3://b/p/a//../1.jpg", "a//../1.jpg"),
        ("s3://b/p/", "/data/1.jpg", "/data/1.jpg"),
        ("/data/", "s3://b/img.jpg?key=abc", "s3://b/img.jpg?key=abc"),
        ("/data/", "s3://b/me@host/1.jpg", "s3://b/me@host/1.jpg"),
        ("/", "/data/1.jpg", "data/1.jpg"),
    ],
)
def test_one_file_has_one_name(root: str, path: str, name: str) -> None:
    """Below the root it is relative to it, however it is written. Keys on S3 stay as they are."""
    assert place_of(path, root) == (name, "")


@pytest.mark.parametrize("path", ["../1.jpg", "a/../../1.jpg", "..", "../data/1.jpg"])
def test_a_relative_path_may_not_leave_the_root(path: str) -> None:
    """It fails under the name that the listing has."""
    assert place_of(path, "/data/") == (path, LEAVES)


def test_a_path_with_a_zero_byte_fails() -> None:
    """No file can have such a name."""
    assert place_of("a\0b", "/data/")[1]


@pytest.mark.parametrize(
    "address",
    [
        "s3://jo:hunter2@bucket/1.jpg",
        "s3://bucket/1.jpg?X-Amz-Signature=hunter2",
        "https://host/1.jpg?sig=hunter2",
        "gs://bucket/1.jpg",
        "s3://bucket",
        "s3:///key",
    ],
)
def test_other_addresses_are_refused_without_their_credentials(address: str) -> None:
    """Names are stored in the table of samples, so no address may have credentials."""
    with pytest.raises(SourceError, match="paths and addresses s3://BUCKET/KEY") as caught:
        place_of(address, "/data/")
    assert "hunter2" not in str(caught.value)


@given(path=st.text(st.sampled_from("ab./"), min_size=1, max_size=12))
def test_names_are_read_from_where_the_path_points(path: str) -> None:
    """A name and its root lead to the file that the path means, and never above the root."""
    name, problem = place_of(path, "/root/r/")
    meant = posixpath.normpath(posixpath.join("/root/r", path)).replace("//", "/")
    if problem:
        assert not meant.startswith("/root/r/") or path.endswith(("/", ".")) or ".." in path
        return
    root, key = split_name(name)
    assert posixpath.normpath(os.path.join(root or "/root/r", key)) == meant  # noqa: PTH118
    assert ".." not in key.split("/")
