"""One image in, one JPEG out, and what was done to it.

JPEGs are decoded by libjpeg-turbo, at the smallest of 1, 1/2, 1/4 and 1/8 of their size that is
not below the target: its inverse DCT makes these by vector instructions (other eighths take it
longer than the whole size, and blur). ``resize`` does the rest. Every step is integer
arithmetic: the same bytes on every processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import simplejpeg

from dataprep.errors import CorruptImage, ImageTooLarge
from dataprep.image import jpeg
from dataprep.image.geometry import Geometry, dct_size, falls_short, plan_geometry
from dataprep.image.pixels import Pixels, open_image, too_large
from dataprep.image.policy import ImagePolicy
from dataprep.image.resize import fit, turn

Action = Literal["passthrough", "retagged", "reencoded"]

# What libjpeg warns of although every pixel was decoded: bytes it had to skip, and header
# fields that decoders ignore. Any other warning means that pixels were lost.
_HARMLESS = ("extraneous bytes before marker", "Invalid SOS parameters", "Unknown Adobe color")


@dataclass(frozen=True, slots=True)
class Converted:
    """A stored image and its story.

    ``encoding`` is what ``data`` is: ``JPEG``, ``PNG`` or ``WEBP``. ``width``, ``height``,
    ``channels`` and ``colorspace`` (``RGB`` or ``Grayscale``) describe ``data``; the ``source_``
    fields the image as it was stored. ``action`` is ``passthrough``
    (byte for byte), ``retagged`` (only the orientation tag was set to 1) or ``reencoded``.
    ``orientation_applied`` is the orientation by which the pixels were turned, 1 for none, and
    ``geometry`` how the turned image was then scaled and cropped: what boxes must follow.
    ``notes`` are the kinds that the manifest counts under ``warnings``.
    """

    data: bytes
    width: int
    height: int
    channels: int
    colorspace: str
    action: Action
    container: str
    source_width: int
    source_height: int
    source_colorspace: str
    exif_orientation: int
    geometry: Geometry
    orientation_applied: int = 1
    encoding: str = "JPEG"
    notes: tuple[str, ...] = ()


def convert(data: bytes, policy: ImagePolicy | None = None) -> Converted:
    """Convert one encoded image to a JPEG by ``policy`` (its defaults if none is given).

    Args:
        data: the file's bytes; the content decides the codec.
        policy: size, quality, limits.

    Raises:
        ImageError: empty, unknown, broken, unsupported or too large; never anything else.
    """
    policy = policy or ImagePolicy()
    if not data:
        raise CorruptImage("empty file (0 bytes)")
    if len(data) > policy.max_source_bytes:
        raise ImageTooLarge(
            f"{len(data):,} bytes are more than max_source_bytes allows "
            f"({policy.max_source_bytes:,})"
        )
    if data.startswith(jpeg.SOI):
        header = jpeg.read_header(data)
        if header.width * header.height > policy.max_pixels:
            raise too_large(header.width, header.height, policy.max_pixels)
        if header.channels != 4:
            return _from_jpeg(data, header, policy)
        # Pillow, which converts the colours, keeps silent about pixels that were lost.
        recovered = _decode(data, "CMYK", 0, 0)[1]
        return _from_pillow(data, policy, notes=["recovered"] if recovered else [])
    return _from_pillow(data, policy, notes=[])


def check(data: bytes) -> tuple[int, int, int]:
    """Decode a stored JPEG in full; its width, height and channels.

    Raises:
        ImageError: it is no JPEG, or not all of its pixels can be decoded.
    """
    if not data.startswith(jpeg.SOI):
        raise CorruptImage(f"not a JPEG: begins with {data[:4]!r}")
    header = jpeg.read_header(data)
    pixels, _ = _decode(data, _colors(header), 0, 0)
    height, width, channels = pixels.shape
    return width, height, channels


def _from_jpeg(data: bytes, header: jpeg.JpegHeader, policy: ImagePolicy) -> Converted:
    orientation = header.orientation if policy.orientation == "apply" else 1
    turned = orientation >= 5
    shown = (header.height, header.width) if turned else (header.width, header.height)
    geometry = plan_geometry(*shown, policy)
    notes = _orientation_notes(header.orientation, policy)
    if falls_short(geometry, policy):
        notes.append("smaller_than_target")

    untouched = orientation == 1 and geometry == (*shown, *shown)
    if untouched:
        recovered = _checked(data, header, policy)
        retagged = any(tag.value != 1 for tag in header.orientations)
        stored = jpeg.reset_orientation(data, header) if retagged else data
        action: Action = "retagged" if retagged else "passthrough"
        if retagged:
            notes.append("orientation_reset")
    else:
        least = (geometry.height, geometry.width) if turned else (geometry.width, geometry.height)
        scaled = dct_size(header.width, header.height, *least)
        pixels, recovered = _decode(data, _colors(header), *scaled)
        stored = _encode(fit(turn(pixels, orientation), geometry), policy)
        action = "reencoded"
        if header.has_icc:
            notes.append("icc_dropped")
    if recovered:
        notes.append("recovered")
    if header.channels == 1:
        notes.append("greyscale_kept")
    return Converted(
        data=stored,
        width=geometry.crop_width,
        height=geometry.crop_height,
        channels=header.channels,
        colorspace="Grayscale" if header.channels == 1 else "RGB",
        action=action,
        container="JPEG",
        source_width=header.width,
        source_height=header.height,
        source_colorspace=header.colorspace,
        exif_orientation=header.orientation,
        geometry=geometry,
        orientation_applied=orientation,
        notes=tuple(notes),
    )


def _from_pillow(data: bytes, policy: ImagePolicy, *, notes: list[str]) -> Converted:
    opened = open_image(data, policy.max_pixels)
    orientation = opened.orientation if policy.orientation == "apply" else 1
    pixels = turn(opened.pixels, orientation)
    height, width, channels = pixels.shape
    geometry = plan_geometry(width, height, policy)
    notes = [*notes, *opened.notes, *_orientation_notes(opened.orientation, policy)]
    if falls_short(geometry, policy):
        notes.append("smaller_than_target")
    if channels == 1:
        notes.append("greyscale_kept")
    source_height, source_width = opened.pixels.shape[:2]
    return Converted(
        data=_encode(fit(pixels, geometry), policy),
        width=geometry.crop_width,
        height=geometry.crop_height,
        channels=channels,
        colorspace="Grayscale" if channels == 1 else "RGB",
        action="reencoded",
        container=opened.container,
        source_width=source_width,
        source_height=source_height,
        source_colorspace=opened.mode,
        exif_orientation=opened.orientation,
        geometry=geometry,
        orientation_applied=orientation,
        notes=tuple(notes),
    )


def _orientation_notes(orientation: int, policy: ImagePolicy) -> list[str]:
    if orientation == 1:
        return []
    return ["orientation_applied" if policy.orientation == "apply" else "orientation_ignored"]


def _checked(data: bytes, header: jpeg.JpegHeader, policy: ImagePolicy) -> bool:
    """Make sure that a file which is stored as it is can be decoded; whether libjpeg complained.

    All of the entropy-coded data is read; the colours, which cannot fail, are left out.
    """
    if policy.check == "decode":
        return _decode(data, "GRAY", 0, 0)[1]
    if not jpeg.ends(data, header):
        raise CorruptImage("truncated JPEG: it has no end-of-image marker")
    return False


def _colors(header: jpeg.JpegHeader) -> str:
    return "GRAY" if header.channels == 1 else "RGB"


def _decode(data: bytes, colorspace: str, min_width: int, min_height: int) -> tuple[Pixels, bool]:
    """Pixels at the smallest size not below the minimum, and whether libjpeg complained."""
    try:
        return _libjpeg(data, colorspace, min_width, min_height, strict=True), False
    except ValueError as error:
        complaint = str(error)
    if any(harmless in complaint for harmless in _HARMLESS):
        try:
            return _libjpeg(data, colorspace, min_width, min_height, strict=False), True
        except ValueError as error:
            complaint = str(error)
    kind = "truncated" if "Premature end of JPEG" in complaint else "corrupt"
    raise CorruptImage(f"{kind} JPEG: {complaint}")


def _libjpeg(
    data: bytes, colorspace: str, min_width: int, min_height: int, *, strict: bool
) -> Pixels:
    pixels: Pixels = simplejpeg.decode_jpeg(
        data, colorspace, min_height=min_height, min_width=min_width, strict=strict
    )
    return pixels


def _encode(pixels: Pixels, policy: ImagePolicy) -> bytes:
    grey = pixels.shape[2] == 1
    encoded: bytes = simplejpeg.encode_jpeg(
        np.ascontiguousarray(pixels),
        quality=policy.quality,
        colorspace="GRAY" if grey else "RGB",
        colorsubsampling="Gray" if grey else policy.subsampling,
        fastdct=False,
    )
    return encoded
