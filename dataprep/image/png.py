"""What a PNG's bytes say that Pillow does not. Chunks after ISO/IEC 15948, 5.3 and 11.2.2."""

from __future__ import annotations

import zlib

_FIRST_CHUNK = 8
_AROUND = 12  # length, type and checksum
_GREY_ALPHA = 4


def depth(data: bytes) -> int:
    """Bits a sample; 0 where the header is cut."""
    return data[24] if len(data) > 24 else 0


def is_grey_alpha(data: bytes) -> bool:
    """Whether it is grey with an alpha channel, which Pillow opens as RGBA at 16 bits."""
    return data[25:26] == bytes([_GREY_ALPHA])


def is_sound(data: bytes) -> bool:
    """Whether each chunk has its checksum, down to the last; Pillow reads over those of pixels."""
    at, view = _FIRST_CHUNK, memoryview(data)
    while at + _AROUND <= len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        if zlib.crc32(view[at + 4 : end]).to_bytes(4, "big") != data[end : end + 4]:
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return True
        at = end + 4
    return False
