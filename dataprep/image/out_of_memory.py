"""Whether a codec failed for lack of memory, of which most tell as of a broken file.

Where a process may have so much address space and no more (``ulimit -v``, which batch systems set
for a job), an allocation fails and the codec with it. That is no fault of the image, which must not
be recorded as one.
"""

from __future__ import annotations

import math
import re
import resource
import struct

import numpy as np

# Of libjpeg-turbo, Pillow, libavif, OpenCV, and libwebp's two numbers. Errors tell a few bytes of a
# file as well, or a word of it: none so much as this.
_SAID = re.compile(
    r"Insufficient memory \(case \d+\)|out of memory when (read|writ)ing|: Out of memory$"
    r"|Failed to allocate \d+ bytes|^encoding error [12]$"
)
_BEFORE_AN_ABORT = re.compile(
    r"memory allocation of \d+ bytes failed|'std::bad_alloc'"
)  # Rust, C++
# libwebp and dav1d say no more than that it did not work. They take some ten bytes a pixel, in each
# of a few threads.
_BYTES_PER_PIXEL = 32
_BYTES_BESIDE = 2**26
_AVIF_EXTENT = re.compile(rb"ispe\0\0\0\0(.{8})", re.DOTALL)  # ISO/IEC 23008-12, 6.5.3
_AVIF_HEADER_BYTES = 2**16
_LIMITS = (resource.RLIMIT_AS, resource.RLIMIT_DATA)


def raise_if_cause(error: Exception, data: bytes, max_pixels: int) -> None:
    """Raise MemoryError if ``error`` likely says that memory was short.

    Args:
        error: what was raised while an image was decoded or encoded.
        data: the image's bytes.
        max_pixels: most that its policy allows.
    """
    if not isinstance(error, MemoryError) and _is_cause(error, data, max_pixels):
        raise MemoryError(f"too little memory for an image: {error}") from error


def aborted(said: str) -> bool:
    """PURE. Whether a process that aborted after these words lacked memory."""
    return bool(_BEFORE_AN_ABORT.search(said))


def _is_cause(error: Exception, data: bytes, max_pixels: int) -> bool:
    if not _is_limited():  # a damaged size is refused with the same words
        return False
    if _SAID.search(str(error)):
        return True
    pixels = silent_pixels(data)
    return 0 < pixels <= max_pixels and not _is_room(_BYTES_BESIDE + _BYTES_PER_PIXEL * pixels)


def silent_pixels(data: bytes) -> int:
    """PURE. Pixels of a WebP or AVIF by its header, whose codecs do not say what failed; else 0.

    After RFC 9649, 2.5 to 2.7, and RFC 6386, 9.1.
    """
    if data[4:8] == b"ftyp":
        extents = _AVIF_EXTENT.findall(data[:_AVIF_HEADER_BYTES])
        return max((math.prod(struct.unpack(">II", extent)) for extent in extents), default=0)
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP" or len(data) < 30:
        return 0
    kind = data[12:16]
    if kind == b"VP8X":
        return (1 + _little(data[24:27])) * (1 + _little(data[27:30]))
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return (1 + (bits & 0x3FFF)) * (1 + (bits >> 14 & 0x3FFF))
    return (_little(data[26:28]) & 0x3FFF) * (_little(data[28:30]) & 0x3FFF)


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _is_limited() -> bool:
    return any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in _LIMITS)


def _is_room(size: int) -> bool:
    """Whether this process may allocate so many bytes more."""
    try:
        np.empty(size, np.uint8)
    except MemoryError:
        return False
    return True
