"""Tests of dataprep.arrow_bytes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.arrow_bytes import readable


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
