"""Tests of dataprep.formats.records."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, RecordError, TruncatedRecord
from dataprep.formats.records import (
    corrupt,
    index_text,
    parse_index_text,
    truncated,
)
from tests.strategies import index_pairs, mutated


def test_an_error_names_file_record_and_offset() -> None:
    """The message names the file, the record and its offset, which are attributes as well."""
    error = corrupt("train-00000-of-00001", 3, 4096, "no magic")
    assert isinstance(error, CorruptRecord)
    assert "train-00000-of-00001: record 3 at byte 4096: no magic" in str(error)
    assert (error.record, error.offset) == (3, 4096)


def test_a_truncation_is_an_end_of_file_and_survives_pickling() -> None:
    """A truncated file is an EOFError, and crosses from one process to another whole."""
    error = pickle.loads(pickle.dumps(truncated("a.rec", 1, 16, "the file ends")))
    assert isinstance(error, TruncatedRecord)
    assert isinstance(error, EOFError)
    assert (error.record, error.offset) == (1, 16)


@given(pairs=index_pairs, separator=st.sampled_from([b" ", b"\t"]))
def test_an_index_reads_as_it_was_written(pairs: list[tuple[int, int]], separator: bytes) -> None:
    """Pairs come back in order and whole, past 4 GiB too."""
    assert parse_index_text(index_text(pairs, separator), separator, "index") == pairs


@pytest.mark.parametrize(
    "line",
    [b"\n", b"7\n", b"7\t1\n", b"7  1\n", b"a 1\n", b"-7 1\n", b"7 1 \n", b"7 1_0\n", b"9" * 99],
    ids=repr,
)
def test_a_line_of_another_form_is_corrupt(line: bytes) -> None:
    """A line that is not two whole numbers is named by its number and byte."""
    with pytest.raises(CorruptRecord, match=r"a\.idx: record 1 at byte 4") as caught:
        parse_index_text(b"5 6\n" + line + b"8 9\n", b" ", "a.idx")
    assert (caught.value.record, caught.value.offset) == (1, 4)


def test_a_line_without_an_end_is_truncated() -> None:
    """A last line that may have lost digits is not taken for a number."""
    with pytest.raises(TruncatedRecord, match="record 1 at byte 4"):
        parse_index_text(b"5 6\n7 12", b" ", "a.idx")


@given(data=st.binary() | mutated(index_pairs.map(lambda pairs: index_text(pairs, b" "))))
def test_any_bytes_are_an_index_or_a_record_error(data: bytes) -> None:
    """Arbitrary bytes parse or raise a RecordError, nothing else."""
    lines, problem_at = data.count(b"\n"), None
    try:
        assert len(parse_index_text(memoryview(data), b" ", "index")) == lines
    except RecordError as error:
        problem_at = error.offset
    assert problem_at is None or data[:problem_at].endswith(b"\n") or problem_at == 0
