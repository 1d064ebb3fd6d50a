"""What a TIFF's bytes say that Pillow does not. Directories after TIFF 6.0, section 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

SIGNATURES = (b"II*\0", b"MM\0*")
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
_INLINE = 4


def has_whole_directory(data: bytes) -> bool:
    """Whether the first directory and all its values lie within the file."""
    return all(0 < end <= len(data) for end in _ends(data))


def _ends(data: bytes) -> Iterator[int]:
    order: Literal["big", "little"] = "big" if data.startswith(b"MM") else "little"

    def number(offset: int, size: int) -> int:
        return int.from_bytes(data[offset : offset + size], order)

    start = number(4, 4) + 2
    stop = start + 12 * number(start - 2, 2)
    yield stop
    for entry in range(start, min(stop, len(data) - 11), 12):
        size = _SIZES.get(number(entry + 2, 2), 1) * number(entry + 4, 4)
        yield entry + 12 if size <= _INLINE else number(entry + 8, 4) + size
