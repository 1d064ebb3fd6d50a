"""Tests of dataprep.arrow_bytes."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.arrow_bytes import parquet, readable
from dataprep.job.split_plan import SplitPlan
from dataprep.sample_table import SampleTable
from dataprep.sources import listing, records
from dataprep.sources.options import ListingOptions
from dataprep.stored_table import StoredTable


@given(data=st.binary(max_size=99))
def test_a_copy_reads_as_the_bytes(data: bytes) -> None:
    """The same bytes, none of them those of the Python object."""
    buffer = readable(data).read_buffer()
    assert buffer.to_pybytes() == data
    held = pa.py_buffer(data)
    assert not data or not held.address <= buffer.address < held.address + len(data)


def test_the_object_itself_may_go() -> None:
    """What Arrow holds is not what Python gave: that may change, or be freed, in the meantime."""
    given_bytes = bytearray(np.arange(50, dtype=np.uint8).tobytes())
    reader = readable(given_bytes)
    given_bytes[:] = bytes(50)
    assert reader.read() == bytes(range(50))


SOURCES = sorted(Path(dataprep.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_arrow_is_given_no_python_object_to_read(path: Path) -> None:
    """Every table in memory is read through ``readable``."""
    calls = r"(?<!pd\.)(read_table|read_schema|ParquetFile|read_csv|open_csv)"
    assert not re.search(calls + r"\(\s*(io\.BytesIO|pa\.Buffer)", path.read_text())


def _file(column: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"source": column}), sink)
    return sink.getvalue()


def test_a_small_file_of_more_rows_than_it_can_hold_is_refused() -> None:
    """Equal values take no room: memory would have to hold them all."""
    data = _file(pa.repeat(pa.scalar("a" * 100), 2**20))
    assert len(data) < 2**14
    with pytest.raises(pa.ArrowInvalid, match=r"tells of 1,048,576 rows in [\d,]+ bytes"):
        parquet(data)


def test_names_that_compress_well_are_read() -> None:
    """As many rows, each of its own name."""
    names = [f"n01440764/n01440764_{number:07}.JPEG" for number in range(2**20)]
    assert pq.read_table(parquet(_file(pa.array(names)))).num_rows == 2**20


READERS: dict[str, Callable[[bytes], object]] = {
    "plan": SplitPlan.from_parquet,
    "table": lambda data: StoredTable("t", "mend it", data).frame(),
    "rows": lambda data: SampleTable(["tfrecord"]).agrees_with(data),
    "shards": lambda data: SampleTable(["tfrecord"]).differing_shards(data),
    "listing": lambda data: listing.parse(data, "x.parquet", ListingOptions()),
    "labels": lambda data: records.planned_values(data, []),
}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (pa.ArrowMemoryError("malloc of size 9 failed"), MemoryError),
        (pa.ArrowException(f"launch worker: {os.strerror(errno.EAGAIN)}"), RuntimeError),
    ],
    ids=["memory", "threads"],
)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_too_little_of_anything_is_no_damage(
    reader: Callable[[bytes], object],
    error: Exception,
    raised: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody is told to remove a sound table."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(pq, "read_metadata", refuse)
    with pytest.raises(raised):
        reader(_file(pa.array(["a"])))
