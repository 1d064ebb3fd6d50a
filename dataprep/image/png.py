"""What a PNG's bytes say that Pillow does not. Chunks after ISO/IEC 15948, 5.3 and 11.2.2."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_FIRST_CHUNK = 8
_AROUND = 12  # length, type and checksum
_GREY_ALPHA = 4
_TEXTS = (b"tEXt", b"zTXt", b"iTXt")


def depth(data: bytes) -> int:
    """Bits a sample; 0 where the header is cut."""
    return data[24] if len(data) > 24 else 0


def is_grey_alpha(data: bytes) -> bool:
    """Whether it is grey with an alpha channel, which Pillow opens as RGBA at 16 bits."""
    return data[25:26] == bytes([_GREY_ALPHA])


def is_sound(data: bytes) -> bool:
    """Whether each chunk has its checksum, down to the last; Pillow reads over those of pixels."""
    view = memoryview(data)
    for at, end in _chunks(data):
        if zlib.crc32(view[at + 4 : end - 4]).to_bytes(4, "big") != data[end - 4 : end]:
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return True
    return False


def without_texts(data: bytes) -> bytes:
    """The same PNG without its texts, of which Pillow inflates no more than 1 MB each."""
    parts, kept = [], 0
    for at, end in _chunks(data):
        if data[at + 4 : at + 8] in _TEXTS:
            parts.append(data[kept:at])
            kept = end
    return b"".join([*parts, data[kept:]])


def _chunks(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each whole chunk begins and ends."""
    at = _FIRST_CHUNK
    while at + _AROUND <= len(data):
        end = at + _AROUND + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            return
        yield at, end
        at = end
