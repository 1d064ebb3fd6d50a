"""Bytes for Arrow to read, in memory of its own.

Arrow's threads let go of what they read after the call has returned. Where that is a Python
object they need the interpreter for it, and one that is about to end is aborted by that
(https://github.com/apache/arrow/issues/33975, 34314).
"""

from __future__ import annotations

import pyarrow as pa


def readable(data: bytes | bytearray) -> pa.BufferReader:
    """A copy of ``data`` as a file that Arrow reads without Python."""
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)
