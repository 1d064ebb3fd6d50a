"""Remove from a JPEG what libjpeg warns of although every pixel decodes.

libjpeg reports its first warning only, so that a harmless one hides those that follow. It reports
the next one when it decodes the bytes without it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from dataprep.image import jpeg

_STRAY = re.compile(r"(\d+) extraneous bytes before marker 0x([0-9a-f]{2})")
_SCAN_PARAMETERS = "Invalid SOS parameters"
_ADOBE_TRANSFORM = "Unknown Adobe color"
_PROFILE = "bad ICC marker"
_SEQUENTIAL = b"\x00\x3f\x00"  # T.81, table B.3: all 64 coefficients at once, in full
_TRANSFORMS = {3: 1, 4: 2}  # what libjpeg takes for an unknown one: YCbCr, YCCK


def is_of_the_profile(warning: str) -> bool:
    """Whether a warning is of the ICC profile, which says nothing of the pixels."""
    return _PROFILE in warning


def without(data: bytes, warning: str, warned: Callable[[bytes], str]) -> bytes | None:
    """The same JPEG without what ``warning`` is about.

    Args:
        data: a JPEG.
        warning: what libjpeg says of it.
        warned: what libjpeg says of other bytes.

    Returns:
        None where pixels were lost, or the place cannot be found.

    Raises:
        CorruptImage: its header ends early.
    """
    mended: bytes | None = data
    if is_of_the_profile(warning):
        mended = jpeg.without_profile(data, jpeg.read_header(data))
    elif _SCAN_PARAMETERS in warning:
        mended = _with_sequential_scans(data)
    elif _ADOBE_TRANSFORM in warning:
        mended = _with_known_transform(data)
    elif stray := _STRAY.search(warning):
        mended = _with_bare_header(data)
        if mended == data:
            marker = bytes([0xFF, int(stray[2], 16)])
            mended = _without_stray(data, int(stray[1]), marker, warned)
    return None if mended == data else mended


def without_short_profile(data: bytes) -> bytes:
    """The same JPEG without parts of a profile that lack their number, at which Pillow gives up.

    Raises:
        CorruptImage: its header ends early.
    """
    parts, at = [], 0
    for marker, start, end in jpeg.segments(data):
        if jpeg.is_short_profile(data, marker, start, end):
            parts.append(data[at : start - 4])
            at = end
    return b"".join([*parts, data[at:]]) if parts else data


def _with_sequential_scans(data: bytes) -> bytes:
    mended = bytearray(data)
    *_, first = jpeg.segments(data)
    marker = bytes([0xFF, jpeg.SOS])
    at = data.find(marker, first.start - 4)
    while 0 <= at < len(data) - 4:
        end = at + 8 + 2 * data[at + 4]  # marker, length, count, two bytes a component, three more
        if end == at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") <= len(data):
            mended[end - 3 : end] = _SEQUENTIAL
        at = data.find(marker, at + 2)
    return bytes(mended)


def _with_known_transform(data: bytes) -> bytes:
    mended = bytearray(data)
    transform = _TRANSFORMS.get(jpeg.read_header(data).channels, 0)
    for marker, start, end in jpeg.segments(data):
        if marker == jpeg.APP14 and data.startswith(jpeg.ADOBE, start) and end - start >= 12:
            mended[start + jpeg.ADOBE_TRANSFORM] = transform
    return bytes(mended)


def _with_bare_header(data: bytes) -> bytes:
    """Without what stands between the segments before the first scan."""
    found = list(jpeg.segments(data))
    parts = [data[start - 4 : end] for _, start, end in found]
    return b"".join([jpeg.SOI, *parts, data[found[-1].end :]])


def _without_stray(
    data: bytes, count: int, marker: bytes, warned: Callable[[bytes], str]
) -> bytes | None:
    """Without ``count`` bytes before the marker at which libjpeg has skipped as many.

    Which of the marker's places it is: cut before it and ended, the file has the same warning;
    cut before an earlier one, it has none or another.
    """
    *_, scan = jpeg.segments(data)
    places = [at.start() for at in re.compile(re.escape(marker)).finditer(data, scan.end)]
    found = bisect_left(
        places, True, key=lambda at: bool(_STRAY.search(warned(data[:at] + jpeg.EOI)))
    )
    if found == len(places):
        return None
    return data[: places[found] - count] + data[places[found] :]
