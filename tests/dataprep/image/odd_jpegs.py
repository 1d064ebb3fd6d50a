"""JPEGs that the encoders of the tests do not write."""

from __future__ import annotations

from dataprep.drawn.drawing import Pixels
from tests import encodings as enc


def unusual(image: Pixels) -> bytes:
    """A valid JPEG with 1x4 sampling, which TurboJPEG refuses; its blocks are in other positions.

    Sides must be multiples of 32, so that there are as many groups of blocks as with 2x2.
    """
    changed = bytearray(enc.jpeg(image, "420"))
    at = changed.index(b"\xff\xc0") + 11
    changed[at : at + 9 : 3] = b"\x14\x11\x11"
    return bytes(changed)


def repeated(data: bytes, times: int) -> bytes:
    """A JPEG whose last scan is repeated this number of times."""
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * times + data[-2:]


def stray(data: bytes, marker: bytes) -> bytes:
    """A JPEG with stray bytes before the last marker of a kind."""
    at = data.rindex(marker)
    return data[:at] + b"\x00\x01\x02" + b"stray" * 4 + data[at:]


def odd_scan(data: bytes) -> bytes:
    """A sequential scan whose header says that it ends with coefficient 0."""
    start = data.index(b"\xff\xda") + 2
    last = start + int.from_bytes(data[start : start + 2], "big") - 2
    return data[:last] + b"\0" + data[last + 1 :]


def without_part_of_its_profile(data: bytes) -> bytes:
    """A JPEG without the first of the several segments of its profile."""
    first = data.index(b"\xff\xe2")
    length = int.from_bytes(data[first + 2 : first + 4], "big")
    return data[:first] + data[first + 2 + length :]
