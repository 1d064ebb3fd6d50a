"""Bytes for Arrow to read, in memory of its own.

Arrow's threads let go of what they read after the call has returned. Where that is a Python
object they need the interpreter for it, and one that is about to end is aborted by that
(https://github.com/apache/arrow/issues/33975, 34314).
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_A_BYTE, _ALWAYS_ROWS = 16, 2**17


def readable(data: bytes | bytearray) -> pa.BufferReader:
    """A copy of ``data`` as a file that Arrow reads without Python."""
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)


def parquet(data: bytes | bytearray) -> pa.BufferReader:
    """``readable``, of a Parquet file that tells of no more rows than its bytes can hold.

    Raises:
        ArrowException, OSError: it is none, or ``require_rows`` refuses it.
    """
    source = readable(data)
    require_rows(source, len(data))
    return source


def require_rows(source: pa.BufferReader | str, size_bytes: int) -> None:
    """That a Parquet file fits its rows: equal values take no room, so that a small file may tell
    of more of them than fit into memory. Names of samples, or times, take more than a bit each.

    Raises:
        ArrowInvalid: it does not.
    """
    metadata = pq.read_metadata(source)
    groups = range(metadata.num_row_groups)
    rows = max(metadata.num_rows, sum(metadata.row_group(group).num_rows for group in groups))
    if rows > _ALWAYS_ROWS + _ROWS_A_BYTE * size_bytes:
        raise pa.ArrowInvalid(f"it tells of {rows:,} rows in {size_bytes:,} bytes")
