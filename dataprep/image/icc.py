"""Colour profiles: read, compared with sRGB, applied by LittleCMS.

The header's fields after ICC.1:2022, 7.2. Conversion is by relative colorimetric intent with
black point compensation, as photo editors do by default.
"""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

from dataprep.image.policy import Note

_MOST_BYTES = 255 * 65_519  # the most that fits into a JPEG
_HEADER_BYTES = 132
_MODES = {b"GRAY": "L", b"RGB ": "RGB", b"CMYK": "CMYK"}
_FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION | ImageCms.Flags.NOCACHE
# Profiles that all mean sRGB differ by this much: tables of 1,024 points, rounded primaries.
_SAME = 2
_STEPS = np.rint(np.linspace(0, 255, 9)).astype(np.uint8)
_GRID = np.stack(np.meshgrid(_STEPS, _STEPS, _STEPS), axis=-1).reshape(27, 27, 3)


def describes(profile: bytes, colorspace: str, channels: int) -> bool:
    """Whether it is sound and of an image's colour space: four inks, grey, or else RGB.

    One of RGB describes grey too. ``colorspace`` is a JPEG's or Pillow's mode.
    """
    mode = _mode(profile)
    inks, grey = colorspace in ("CMYK", "YCCK"), channels == 1 or colorspace in ("LA", "La")
    fits = inks == (mode == "CMYK") and (grey or mode != "L")
    return fits and is_srgb(profile) is not None


def embeddable(profile: bytes, channels: int) -> bool:
    """Whether the profile can describe a file of so many channels, alpha among them."""
    return _mode(profile) == ("L" if channels == 1 else "RGB")


@lru_cache(maxsize=64)
def is_srgb(profile: bytes) -> bool | None:
    """Whether the profile moves no colour of a 9 x 9 x 9 grid, or none of their greys.

    None where LittleCMS cannot use it.
    """
    mode = _mode(profile)
    if not mode:
        return None
    before = Image.fromarray(_GRID).convert(mode)
    try:
        after = _converted(before, profile).convert("RGB")
    except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
        return None
    moved = np.asarray(after).astype(int) - np.asarray(before.convert("RGB"))
    return mode != "CMYK" and int(np.abs(moved).max()) <= _SAME


def to_srgb(image: Image.Image, profile: bytes) -> tuple[Image.Image, Note | None]:
    """L, LA, RGB, RGBA or CMYK by ``profile`` as the same in sRGB, CMYK as RGB.

    Grey stays grey, also where the profile is one of RGB; alpha stays as it is. A profile that is
    broken, or of another colour space than the image's, leaves the image as it was.
    """
    if not describes(profile, image.mode, len(image.getbands())):
        return image, "icc_broken"
    if is_srgb(profile):
        return image, None
    return _converted(image, profile), "icc_converted"


def _converted(image: Image.Image, profile: bytes) -> Image.Image:
    mode = image.mode
    if mode in ("LA", "RGBA"):
        converted = _converted(image.convert(mode.removesuffix("A")), profile)
        converted.putalpha(image.getchannel("A"))
        return converted
    if mode == "L" and _mode(profile) == "RGB":
        image = image.convert("RGB")
    converted = _transform(profile).apply(image)
    return converted.convert("L") if mode == "L" else converted


def _mode(profile: bytes) -> str:
    """Pillow's mode for what the profile describes; empty where it is no usable profile."""
    is_profile = _HEADER_BYTES <= len(profile) <= _MOST_BYTES and profile[36:40] == b"acsp"
    return _MODES.get(profile[16:20], "") if is_profile else ""


@lru_cache(maxsize=8)
def _transform(profile: bytes) -> ImageCms.ImageCmsTransform:
    """To RGB in sRGB. Threads may share it: it has no cache of its last pixel."""
    mode = _mode(profile)
    return ImageCms.buildTransform(
        ImageCms.ImageCmsProfile(io.BytesIO(profile)),
        ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        _FLAGS | (ImageCms.Flags.NOOPTIMIZE if mode == "L" else 0),
    )
