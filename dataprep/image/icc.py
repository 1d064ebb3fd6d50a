"""Colour profiles: read, compared with sRGB, applied by LittleCMS.

The header's fields after ICC.1:2022, 7.2. Conversion is by relative colorimetric intent with
black point compensation, as photo editors do by default.
"""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from PIL import Image, ImageCms

from dataprep.image.policy import Note

Space = Literal["GRAY", "RGB", "CMYK"]

_MOST_BYTES = 255 * 65_519  # what a JPEG can hold
_HEADER_BYTES = 132
_SPACES: dict[bytes, Space] = {b"GRAY": "GRAY", b"RGB ": "RGB", b"CMYK": "CMYK"}
_MODES: dict[Space, str] = {"GRAY": "L", "RGB": "RGB", "CMYK": "CMYK"}
_FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION | ImageCms.Flags.NOCACHE
# Profiles that all mean sRGB differ by this much: tables of 1,024 points, rounded primaries.
_SAME_COLOUR = 2


class Managed(NamedTuple):
    """An image in sRGB, and what was done to it; None where nothing could be."""

    image: Image.Image
    note: Note | None


def space(profile: bytes) -> Space | None:
    """What the profile describes; None where it is no usable profile by its header."""
    if not _HEADER_BYTES <= len(profile) <= _MOST_BYTES or profile[36:40] != b"acsp":
        return None
    return _SPACES.get(profile[16:20])


def embeddable(profile: bytes, channels: int) -> bool:
    """Whether the profile can describe an image of so many channels, alpha among them."""
    return space(profile) == ("GRAY" if channels == 1 else "RGB")


def is_sound(profile: bytes, *, thoroughly: bool = False) -> bool:
    """Whether it is a profile, by its header or by what LittleCMS makes of it."""
    if not thoroughly:
        return space(profile) is not None
    try:
        _is_srgb(profile)
    except ValueError:
        return False
    return True


def describes(profile: bytes, *, inks: bool, grey: bool, thoroughly: bool = False) -> bool:
    """Whether it is sound and of an image's colour space: four inks, grey, or else RGB.

    One of RGB describes grey too.
    """
    found = space(profile)
    fits = inks == (found == "CMYK") and (grey or found != "GRAY")
    return fits and is_sound(profile, thoroughly=thoroughly)


def is_other_than_srgb(profile: bytes) -> bool:
    """Whether colours by this profile are others than sRGB's; of a broken one they are not."""
    return is_sound(profile, thoroughly=True) and not _is_srgb(profile)


def to_srgb(image: Image.Image, profile: bytes) -> Managed:
    """L, LA, RGB, RGBA or CMYK by ``profile`` as the same in sRGB, CMYK as RGB.

    Grey stays grey, also where the profile is one of RGB; alpha stays as it is. A profile of
    another colour space than the image's is broken, and leaves the image as it was.
    """
    try:
        if _is_srgb(profile):
            return Managed(image, None)
        return Managed(_converted(image, profile), "icc_converted")
    except ValueError:
        return Managed(image, "icc_broken")


def _converted(image: Image.Image, profile: bytes) -> Image.Image:
    mode = _MODES[_space(profile)]
    if image.mode in ("LA", "RGBA"):
        converted = _converted(image.convert(image.mode.removesuffix("A")), profile)
        converted.putalpha(image.getchannel("A"))
        return converted
    if (image.mode, mode) == ("L", "RGB"):
        return _converted(image.convert("RGB"), profile).convert("L")
    if (image.mode, mode) == ("RGB", "L"):
        raise ValueError("a profile of greyscale on colours")
    if (image.mode == "CMYK") != (mode == "CMYK"):
        raise ValueError("a profile of another colour space")
    return image.point(_curve(profile)) if mode == "L" else _transform(profile).apply(image)


def _space(profile: bytes) -> Space:
    found = space(profile)
    if found is None:
        raise ValueError("no profile of grey, RGB or CMYK")
    return found


@lru_cache(maxsize=64)
def _curve(profile: bytes) -> list[int]:
    """What becomes of each of the 256 greys: in dark ones LittleCMS' fast path is off by ten."""
    ramp = Image.fromarray(np.arange(256, dtype=np.uint8)[np.newaxis])
    return list(_transform(profile).apply(ramp).convert("L").tobytes())


@lru_cache(maxsize=8)
def _transform(profile: bytes) -> ImageCms.ImageCmsTransform:
    """To RGB in sRGB. Threads may share it: it has no cache of its last pixel."""
    mode = _MODES[_space(profile)]
    try:
        return ImageCms.buildTransform(
            ImageCms.ImageCmsProfile(io.BytesIO(profile)),
            _srgb(),
            mode,
            "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            _FLAGS | (ImageCms.Flags.NOOPTIMIZE if mode == "L" else 0),
        )
    except (ImageCms.PyCMSError, OSError, TypeError) as error:
        raise ValueError(f"broken profile: {error}") from None


@lru_cache(maxsize=1)
def _srgb() -> ImageCms.ImageCmsProfile:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))


@lru_cache(maxsize=64)
def _is_srgb(profile: bytes) -> bool:
    """Whether the profile moves none of the greys, or no colour of a 9 x 9 x 9 grid."""
    if _space(profile) == "CMYK":
        _transform(profile)
        return False
    if _space(profile) == "GRAY":
        moved = np.abs(np.array(_curve(profile)) - np.arange(256))
    else:
        steps = np.rint(np.linspace(0, 255, 9)).astype(np.uint8)
        grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(27, 27, 3)
        after = np.asarray(_transform(profile).apply(Image.fromarray(grid)))
        moved = np.abs(after.astype(int) - grid)
    return int(moved.max()) <= _SAME_COLOUR
