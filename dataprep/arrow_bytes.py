"""Bytes for Arrow to read, in memory of its own.

Arrow's threads let go of what they read after the call has returned. Where that is a Python
object they need the interpreter for it, and one that is about to end is aborted by that
(https://github.com/apache/arrow/issues/33975, 34314).
"""

from __future__ import annotations

import errno
import os

import pyarrow as pa

from dataprep.parquet_bounds import require_rows


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


def require_enough(error: Exception) -> None:
    """That it was not for lack of memory or threads, of which Arrow tells as of a broken file.

    Raises:
        MemoryError, RuntimeError: it was; with the words of Python for it.
    """
    if isinstance(error, MemoryError):
        raise error
    if os.strerror(errno.EAGAIN) in str(error):
        raise RuntimeError("can't start new thread") from error
