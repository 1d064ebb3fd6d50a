"""JPEGs with other sampling factors than encoders here write."""

from __future__ import annotations

from dataprep.sample.drawing import Pixels
from tests import encodings as enc


def sampled(data: bytes, sampling: bytes) -> bytes:
    """A baseline JPEG whose frame says other sampling factors: one byte a component."""
    changed = bytearray(data)
    at = data.index(b"\xff\xc0") + 11
    changed[at : at + 3 * len(sampling) : 3] = sampling
    return bytes(changed)


def unusual(image: Pixels) -> bytes:
    """A sound JPEG, sampled 1x4, that TurboJPEG does not take; blocks stand in other places.

    Sides must be multiples of 32, so that there are as many groups of blocks as with 2x2.
    """
    return sampled(enc.jpeg(image, "420"), b"\x14\x11\x11")
