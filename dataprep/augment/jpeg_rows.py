"""JPEGs that end below the rows that are needed: a decoder passes over what stands behind."""

from __future__ import annotations

from dataprep.errors import CorruptImage
from dataprep.formats import Buffer
from dataprep.image.jpeg import segments

# ITU-T T.81, B.2.2: Huffman-coded, baseline, extended and progressive.
_SOF = frozenset({0xC0, 0xC1, 0xC2})


def upper_rows(data: Buffer, rows: int) -> bytearray | None:
    """A copy of a JPEG whose header says that it has so many rows, fewer than it has.

    Of these rows all pixels are as before, but for the last ones where the chroma of a row below
    is part of theirs. None for a kind of JPEG that is not known to be decoded so.
    """
    copy = bytearray(data)
    try:
        for marker, start, _ in segments(copy):
            if marker in _SOF:
                copy[start + 1 : start + 3] = rows.to_bytes(2, "big")  # behind the bits a sample
                return copy
    except CorruptImage:
        pass
    return None
