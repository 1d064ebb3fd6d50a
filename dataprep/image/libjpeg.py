"""JPEGs decoded by libjpeg-turbo, and what its warnings mean."""

from __future__ import annotations

from typing import NamedTuple

import simplejpeg

from dataprep.errors import CorruptImage
from dataprep.image import jpeg
from dataprep.image.notes import Note
from dataprep.image.pixels import Pixels

# What libjpeg warns of although every pixel was decoded: bytes it had to skip, and header
# fields that decoders ignore. Any other warning means that pixels were lost.
_HARMLESS = ("extraneous bytes before marker", "Invalid SOS parameters", "Unknown Adobe color")
# Of the file, or of its pixels before an end marker.
_ENDS_EARLY = "remature end of"
# Of the profile's segments, not of the picture.
_BAD_PROFILE = "bad ICC marker"
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
    try:
        return Decoded(_libjpeg(data, colorspace, least, strict=True), ())
    except ValueError as error:
        complaint = str(error)
    if _BAD_PROFILE in complaint:
        header = jpeg.read_header(data)
        if header.icc_chunks:
            whole = jpeg.without_profile(data, header)
            return decode(whole, colorspace, least, keep_truncated=keep_truncated)
    if any(harmless in complaint for harmless in _HARMLESS):
        try:
            return Decoded(_libjpeg(data, colorspace, least, strict=False), ("recovered",))
        except ValueError as error:
            complaint = str(error)
    if keep_truncated and _ENDS_EARLY in complaint:
        return _kept(data, colorspace, least)
    kind = "truncated" if "Premature end of JPEG" in complaint else "corrupt"
    raise CorruptImage(f"{kind} JPEG: {complaint}")


def _kept(data: bytes, colorspace: str, least: tuple[int, int]) -> Decoded:
    try:
        pixels = _libjpeg(data, colorspace, least, strict=False)
    except ValueError as error:
        raise CorruptImage(f"corrupt JPEG: {error}") from None
    if (pixels != _FILLED).any(axis=2).mean() < _LEAST_SHARE:
        raise CorruptImage("truncated JPEG: hardly a pixel of it decodes")
    return Decoded(pixels, ("truncated_kept",))


def _libjpeg(data: bytes, colorspace: str, least: tuple[int, int], *, strict: bool) -> Pixels:
    min_width, min_height = least
    pixels: Pixels = simplejpeg.decode_jpeg(
        data, colorspace, min_height=min_height, min_width=min_width, strict=strict
    )
    return pixels
