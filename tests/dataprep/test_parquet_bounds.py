"""Tests of dataprep.parquet_bounds."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataprep.arrow_bytes import readable
from dataprep.errors import SourceError
from dataprep.parquet_bounds import LONGEST_BYTES, require_texts
from dataprep.sources.listing_tables import parse_parquet
from dataprep.sources.options import ListingOptions


def parquet(paths: pa.Array, labels: pa.Array | None = None) -> bytes:
    """A table of paths and of labels, which are 0."""
    labels = pa.array([0] * len(paths)) if labels is None else labels
    buffer = io.BytesIO()
    pq.write_table(pa.table({"path": paths, "label": labels}), buffer)
    return buffer.getvalue()


def problem_of(data: bytes, texts: list[str]) -> str:
    """Why a file in memory is refused, or nothing."""
    try:
        require_texts(readable(data), len(data), texts)
    except pa.ArrowInvalid as error:
        return str(error)
    return ""


def repeated(text: str, times: int) -> pa.DictionaryArray:
    """One text many times, in the memory of one."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([text]))


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.string_view(), pa.binary(LONGEST_BYTES)],
)
def test_paths_of_any_type_may_be_long(kind: pa.DataType) -> None:
    """As long as the longest that a system has."""
    value = b"x" * LONGEST_BYTES
    assert problem_of(parquet(pa.array([value, value], kind)), ["path"]) == ""


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(LONGEST_BYTES + 1)]
)
def test_a_longer_path_is_none(kind: pa.DataType) -> None:
    """It is told by its length, not read for each row that has it."""
    data = parquet(pa.array([b"x" * (LONGEST_BYTES + 1)] * 3, kind))
    with pytest.raises(
        SourceError, match=r"^a\.parquet cannot be read as Parquet: a value .*4,097"
    ):
        parse_parquet(data, "a.parquet", ListingOptions())


@pytest.mark.parametrize("last", ["b", "x" * (LONGEST_BYTES + 1)])
def test_columns_of_one_name_are_all_looked_at(last: str) -> None:
    """They are counted from 0 where they are asked for."""
    columns = [pa.array([text]) for text in ("1.JPEG", "a", last)]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, ["path", "label", "label"]), buffer)
    problem = problem_of(buffer.getvalue(), ["label", "path"])
    assert bool(problem) == (len(last) > LONGEST_BYTES)


def test_a_longer_label_is_none() -> None:
    """A label is repeated as a path is."""
    data = parquet(pa.array(["a", "b"]), repeated("x" * 5000, 2))
    with pytest.raises(SourceError, match="'label' has 5,000 bytes"):
        parse_parquet(data, "a.parquet", ListingOptions())


def test_much_of_little_is_refused() -> None:
    """Two million paths of three thousand bytes each are a file of a few kilobytes."""
    data = parquet(repeated("x" * 3000, 2_000_000))
    assert len(data) < 2**20
    with pytest.raises(SourceError, match="stand for more than 4,"):
        parse_parquet(data, "a.parquet", ListingOptions())


def test_rows_alone_are_counted() -> None:
    """Columns of numbers are not asked for their length."""
    data = parquet(pa.array(["a"] * 1000))
    assert problem_of(data, []) == problem_of(data, ["path"]) == ""
