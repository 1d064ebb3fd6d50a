"""PURE. What a Parquet table grows to, asked before it is read.

Equal values take no room: a megabyte of file can stand for terabytes, of rows.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

_ROWS_A_BYTE, _ALWAYS_ROWS = 16, 2**17


def require_rows(source: pa.BufferReader | str, size_bytes: int) -> None:
    """That the bytes of a file can hold its rows: names of samples, or times, take more than a bit.

    Raises:
        ArrowInvalid: it does not.
    """
    metadata = pq.read_metadata(source)
    groups = range(metadata.num_row_groups)
    rows = max(metadata.num_rows, sum(metadata.row_group(group).num_rows for group in groups))
    if rows > _ALWAYS_ROWS + _ROWS_A_BYTE * size_bytes:
        raise pa.ArrowInvalid(f"it tells of {rows:,} rows in {size_bytes:,} bytes")
