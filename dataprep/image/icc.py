"""PURE. Read ICC colour profiles, compare them with sRGB, and apply them with LittleCMS.

The fields of the header follow ICC.1:2022, 7.2. Colours are converted with the relative
colorimetric intent and black point compensation, which are the defaults of photo editors.
"""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

from dataprep.image.policy import Note

_MAX_BYTES = 255 * 65_519  # the size of the largest profile that fits into a JPEG
_HEADER_BYTES = 132
_MODES = {b"GRAY": "L", b"RGB ": "RGB", b"CMYK": "CMYK"}
_FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION | ImageCms.Flags.NOCACHE
# Profiles of sRGB differ by up to this many levels, because their tables and primaries are rounded.
_TOLERANCE = 2
_LEVELS = np.rint(np.linspace(0, 255, 9)).astype(np.uint8)
# All combinations of 9 levels of red, green and blue, as an image of 27 x 27 pixels.
_COLOUR_GRID = np.stack(np.meshgrid(_LEVELS, _LEVELS, _LEVELS), axis=-1).reshape(27, 27, 3)


def describes(profile: bytes, colorspace: str, channels: int) -> bool:
    """Whether a profile is usable and describes the colour space of an image.

    An RGB profile is also valid for a greyscale image.

    Args:
        profile: the ICC profile.
        colorspace: the colour space of a JPEG, or the Pillow mode of another image.
        channels: the number of channels of the image.
    """
    mode = _mode(profile)
    is_cmyk = colorspace in ("CMYK", "YCCK")
    is_grey = channels == 1 or colorspace in ("LA", "La")
    if is_cmyk != (mode == "CMYK"):
        return False
    if mode == "L" and not is_grey:
        return False
    return is_srgb(profile) is not None


def embeddable(profile: bytes, channels: int) -> bool:
    """Whether the profile can be embedded in a file with this number of channels.

    An alpha channel counts too.
    """
    return _mode(profile) == ("L" if channels == 1 else "RGB")


@lru_cache(maxsize=64)
def is_srgb(profile: bytes) -> bool | None:
    """Whether the profile is effectively sRGB.

    A grid of 9 x 9 x 9 colours is converted from the profile to sRGB. The profile counts as sRGB if
    no colour changes by more than 2 of 255 levels. For a greyscale profile, the grid is converted
    to grey first.

    Returns:
        True or False; None if LittleCMS cannot use the profile.
    """
    mode = _mode(profile)
    if not mode:
        return None
    before = Image.fromarray(_COLOUR_GRID).convert(mode)
    try:
        after = _converted(before, profile).convert("RGB")
    except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
        return None
    differences = np.asarray(after).astype(int) - np.asarray(before.convert("RGB"))
    return mode != "CMYK" and int(np.abs(differences).max()) <= _TOLERANCE


def to_srgb(image: Image.Image, profile: bytes) -> tuple[Image.Image, Note | None]:
    """Convert an image to sRGB, as its profile describes its colours.

    A greyscale image stays greyscale, also if its profile is an RGB profile. CMYK becomes RGB. The
    alpha channel does not change. If the profile is broken or does not fit the image, the image is
    returned unchanged.

    Args:
        image: an image of the mode L, LA, RGB, RGBA or CMYK.
        profile: its ICC profile.

    Returns:
        The image and a note. The note is None if the image was already in sRGB.
    """
    if not describes(profile, image.mode, len(image.getbands())):
        return image, "icc_broken"
    if is_srgb(profile):
        return image, None
    return _converted(image, profile), "icc_converted"


def _converted(image: Image.Image, profile: bytes) -> Image.Image:
    """Convert the colours of an image to sRGB. The alpha channel is set aside and put back."""
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
    """The Pillow mode of the colours that a profile describes; empty if it cannot be used."""
    if not _HEADER_BYTES <= len(profile) <= _MAX_BYTES or profile[36:40] != b"acsp":
        return ""
    return _MODES.get(profile[16:20], "")


@lru_cache(maxsize=8)
def _transform(profile: bytes) -> ImageCms.ImageCmsTransform:
    """The conversion from a profile to sRGB. Threads can share it, because it caches no pixels."""
    mode = _mode(profile)
    flags = _FLAGS
    if mode == "L":
        flags |= ImageCms.Flags.NOOPTIMIZE
    return ImageCms.buildTransform(
        ImageCms.ImageCmsProfile(io.BytesIO(profile)),
        ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")),
        mode,
        "RGB",
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        flags,
    )
