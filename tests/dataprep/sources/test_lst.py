"""Tests of dataprep.sources.lst."""

from __future__ import annotations

import os
from codecs import BOM_UTF8

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SourceError
from dataprep.formats import IndexEntry
from dataprep.formats.recordio import RecordIOFormat
from dataprep.sources.lst import parse_lst
from tests.strategies import mutated

file_names = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name)
SOUND = b"0\t3.000000\tcats/1.jpg\n7\t0\ta b.jpg\r\n\n2\t10.0\t\xff.jpg"


def test_lines_are_paths_and_whole_classes() -> None:
    """Floats such as 3.000000 are the classes 3; other bytes than UTF-8 stay, empty lines go.

    So does a byte order mark.
    """
    for data in (SOUND, BOM_UTF8 + SOUND):
        found = parse_lst(data, "x.lst")
        assert found.paths == ["cats/1.jpg", "a b.jpg", "\udcff.jpg"]
        assert (found.classes, found.numbered) == (["3", "0", "10"], True)
        assert found.values is None
        assert found.problems == {}


def test_several_labels_are_values_of_which_the_first_is_the_class() -> None:
    """All labels of a line come as float32; a line with another number of them fails alone."""
    found = parse_lst(b"0\t3\t0.5\ta\n1\t4\t-1e9\tb\n2\t5\tc\n", "x.lst")
    assert found.classes == ["3", "4", ""]
    assert found.values is not None
    assert found.values.dtype == np.float32
    assert found.values[:2].tolist() == [[3.0, 0.5], [4.0, -1e9]]
    assert found.problems == {2: "1 labels, where the first row has 2"}


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        (b"-1", "label -1 is no class: classes count from 0"),
        (b"2.5", "label 2.5 is no whole number"),
        (b"inf", "label inf is no whole number"),
    ],
)
def test_a_label_that_is_no_class_fails_its_row(label: bytes, reason: str) -> None:
    """The other rows stay."""
    found = parse_lst(b"0\t1\ta\n1\t" + label + b"\tb\n", "x.lst")
    assert found.classes == ["1", ""]
    assert found.problems == {1: reason}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"0\t1\ta\n\n1\tb\n", "x.lst, line 3: 2 columns"),
        (b"0\t1\t\n", "x.lst, line 1: no path after the last tab"),
        (b"0\t1\ta\nx\t1\tb\n", "x.lst, line 2: index 'x' is no number"),
        (b"0\tcat\ta\n", "x.lst, line 1: label 'cat' is no number"),
        (b"0\tnan\ta\n", "x.lst, line 1: label 'nan' is no number"),
        (b"0\t1_0\ta\n", "x.lst, line 1: label '1_0' is no number"),
        (b"path,label\na.jpg,1\n", "x.lst, line 1: 1 columns"),
    ],
)
def test_another_line_is_refused_by_its_number(data: bytes, message: str) -> None:
    """The error tells the file, the line from 1, and what is wrong with it."""
    with pytest.raises(SourceError) as caught:
        parse_lst(data, "x.lst")
    assert str(caught.value).startswith(message)


@given(names=st.lists(file_names.map(os.fsdecode), min_size=1, max_size=8))
def test_what_this_program_writes_reads_as_it_was(names: list[str]) -> None:
    """Names with tabs, newlines, backslashes and any bytes come back from our own .lst."""
    from dataprep.names import escape

    entries = [IndexEntry(i, i, 0, 0, escape(name)) for i, name in enumerate(names)]
    found = parse_lst(RecordIOFormat().indexes(entries)[".lst"], "ours.lst")
    assert found.paths == names
    assert found.classes == [str(i) for i in range(len(names))]


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
    """Unless told, names are unescaped only where every backslash belongs to an escape."""
    assert parse_lst(b"0\t0\t" + path + b"\n", "x.lst", escaped).paths == [name]


@given(data=st.one_of(st.binary(max_size=80), mutated(st.just(SOUND))))
def test_any_bytes_are_rows_or_a_clear_error(data: bytes) -> None:
    """Nothing crashes; an error names the file and a line."""
    try:
        found = parse_lst(data, "x.lst")
    except SourceError as error:
        assert "x.lst, line " in str(error)  # noqa: PT017  any other error shall fail
    else:
        assert len(found.paths) == len(found.classes)
        assert all(found.paths)
        unclassed = {row for row, group in enumerate(found.classes) if not group}
        assert unclassed == found.problems.keys()
