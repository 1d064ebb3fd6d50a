"""JPEGs decoded by libjpeg-turbo, and what its warnings mean."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import simplejpeg

from dataprep.errors import CorruptImage
from dataprep.image import harmless, padded
from dataprep.image.notes import Note
from dataprep.image.pixels import Pixels

# Of the file, or of its pixels before an end marker.
_ENDS_EARLY = "remature end of"
# What TurboJPEG says instead of why libjpeg could not read the header.
_UNREAD = "Could not determine subsampling level"
# Each of a file's flaws costs it a few more decodes.
_MOST_FLAWS = 8
_FILLED = 128  # what libjpeg puts where it has no data
_LEAST_SHARE = 0.01


class Decoded(NamedTuple):
    """Pixels, and what had to be put up with to get them."""

    pixels: Pixels
    notes: tuple[Note, ...]


def decode(
    data: bytes, colorspace: str, least: tuple[int, int] = (0, 0), *, keep_truncated: bool = False
) -> Decoded:
    """Pixels at the smallest size that is not below ``least``; 0 x 0 stands for the whole size.

    Args:
        data: a JPEG.
        colorspace: ``RGB``, ``GRAY``, or ``CMYK`` for what is stored as that or YCCK.
        least: width and height in pixels.
        keep_truncated: whether a JPEG that ends early is decoded as far as it goes; libjpeg
            fills the rest with grey.

    Raises:
        CorruptImage: it is broken, or ends early.
    """
    notes: tuple[Note, ...] = ()
    for _ in range(_MOST_FLAWS + 1):
        try:
            return Decoded(_libjpeg(data, colorspace, least, strict=True), notes)
        except ValueError as error:
            warning = str(error)
        mended = harmless.without(data, warning, partial(_warning, colorspace, least))
        if mended is None:
            break
        data = mended
        if not harmless.is_of_the_profile(warning):
            notes = ("recovered",)
    if keep_truncated and _ENDS_EARLY in warning:
        return Decoded(_kept(data, colorspace, least), (*notes, "truncated_kept"))
    if _UNREAD in warning:
        raise CorruptImage("corrupt JPEG: libjpeg cannot read its header")
    kind = "truncated" if "Premature end of JPEG" in warning else "corrupt"
    raise CorruptImage(f"{kind} JPEG: {warning}")


def _kept(data: bytes, colorspace: str, least: tuple[int, int]) -> Pixels:
    try:
        pixels = _libjpeg(data, colorspace, least, strict=False)
    except ValueError as error:
        raise CorruptImage(f"corrupt JPEG: {error}") from None
    if (pixels != _FILLED).any(axis=2).mean() < _LEAST_SHARE:
        raise CorruptImage("truncated JPEG: hardly a pixel of it decodes")
    return pixels


def _warning(colorspace: str, least: tuple[int, int], data: bytes) -> str:
    try:
        _libjpeg(data, colorspace, least, strict=True)
    except ValueError as error:
        return str(error)
    return ""


def _libjpeg(data: bytes, colorspace: str, least: tuple[int, int], *, strict: bool) -> Pixels:
    min_width, min_height = least
    stored = "BGRX" if colorspace == "RGB" else colorspace
    pixels: Pixels = simplejpeg.decode_jpeg(
        data, stored, min_height=min_height, min_width=min_width, strict=strict
    )
    return padded.rgb(pixels) if colorspace == "RGB" else pixels
