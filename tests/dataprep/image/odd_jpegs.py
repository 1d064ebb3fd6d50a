"""JPEGs that encoders here do not write."""

from __future__ import annotations

from dataprep.drawn.drawing import Pixels
from tests import encodings as enc


def unusual(image: Pixels) -> bytes:
    """A sound JPEG, sampled 1x4, that TurboJPEG does not take; blocks stand in other places.

    Sides must be multiples of 32, so that there are as many groups of blocks as with 2x2.
    """
    changed = bytearray(enc.jpeg(image, "420"))
    at = changed.index(b"\xff\xc0") + 11
    changed[at : at + 9 : 3] = b"\x14\x11\x11"
    return bytes(changed)


def repeated(data: bytes, times: int) -> bytes:
    """A JPEG with its last scan so many times more."""
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * times + data[-2:]


def stray(data: bytes, marker: bytes) -> bytes:
    """Bytes that belong to nothing before the last marker of a kind."""
    at = data.rindex(marker)
    return data[:at] + b"\x00\x01\x02" + b"stray" * 4 + data[at:]


def odd_scan(data: bytes) -> bytes:
    """A sequential scan that says it ends with coefficient 0."""
    start = data.index(b"\xff\xda") + 2
    last = start + int.from_bytes(data[start : start + 2], "big") - 2
    return data[:last] + b"\0" + data[last + 1 :]


def without_part_of_its_profile(data: bytes) -> bytes:
    """Without the first segment of a profile of several."""
    first = data.index(b"\xff\xe2")
    length = int.from_bytes(data[first + 2 : first + 4], "big")
    return data[:first] + data[first + 2 + length :]
