"""Arrow arrays made of buffers.

``pa.array`` imports pandas, where that is installed, to see whether it was given some of it: a
quarter of a second, in commands that need no pandas otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_MOST_BYTES = 2**31 - 1
"""Of text in one array. More comes in chunks, which Arrow makes itself."""


def numbers(values: NDArray[np.generic], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """``values`` without a copy, of shape (rows,); null where ``valid`` is false."""
    kind = pa.from_numpy_dtype(values.dtype)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [_bits(valid), data])


def texts(values: Sequence[str], *, null_if_empty: bool = False) -> pa.Array | pa.ChunkedArray:
    """Strings; with ``null_if_empty`` a null stands for each empty one."""
    joined = "".join(values)
    encoded = joined.encode()
    if len(encoded) > _MOST_BYTES:
        return pa.array(
            [value or None for value in values] if null_if_empty else values, pa.string()
        )
    one_byte_each = len(encoded) == len(joined)
    lengths = map(len, values) if one_byte_each else (len(value.encode()) for value in values)
    ends = np.cumsum(np.fromiter(lengths, np.int64, len(values)))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    valid = np.diff(offsets) > 0 if null_if_empty else None
    buffers = [_bits(valid), pa.py_buffer(offsets), pa.py_buffer(encoded)]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _bits(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Arrow's bitmap of values that are there; none where all are."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
