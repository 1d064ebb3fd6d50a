"""Sizes, in whole numbers only, so that they are the same on every processor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ImageTooLarge, ImageTooSmall
from dataprep.image.policy import DEFAULT_MAX_PIXELS, ImagePolicy, Notes

Pixels = NDArray[np.uint8]
"""Pixels, uint8, of shape (height, width, channels): 1 (grey), 3 (RGB) or 4 (RGBA)."""

_LARGEST_SIDE = {"jpeg": 65_500, "png": 2**31 - 1, "webp": 16_383}


class Geometry(NamedTuple):
    """The size to scale to, then the size to cut out of its centre; pixels."""

    width: int
    height: int
    crop_width: int
    crop_height: int


class Source(NamedTuple):
    """What a file's header says of an image, and how the policy will change it.

    Sizes are in pixels, before the image is turned. ``orientation`` is Exif's. ``applied`` is the
    orientation by which the image is turned, 1 for none. ``geometry`` is how it is scaled and
    cropped after that. ``profile`` is its ICC profile; None if the pixels were converted by it or
    it is not valid for them. ``subsampling`` is a JPEG's; empty for other files.
    """

    container: str
    width: int
    height: int
    colorspace: str
    orientation: int
    profile: bytes | None
    notes: Notes
    subsampling: str
    applied: int
    geometry: Geometry


def plan_geometry(width: int, height: int, policy: ImagePolicy) -> Geometry:
    """Compute the size that an image of ``width`` x ``height`` (as displayed) gets."""
    box_width, box_height = _box(policy)
    match policy.mode:
        case "none":
            return Geometry(width, height, width, height)
        case "exact":
            if not policy.upscale:
                box_width, box_height = min(box_width, width), min(box_height, height)
            return Geometry(box_width, box_height, box_width, box_height)
        case "short":
            numerator, denominator = box_width, min(width, height)
        case "long":
            numerator, denominator = box_width, max(width, height)
        case "crop":
            # The larger of the two scales covers the box.
            if box_width * height >= box_height * width:
                numerator, denominator = box_width, width
            else:
                numerator, denominator = box_height, height
    if numerator >= denominator and not policy.upscale:
        numerator = denominator = 1
    # Halves are rounded up.
    new_width = max(1, (2 * width * numerator + denominator) // (2 * denominator))
    new_height = max(1, (2 * height * numerator + denominator) // (2 * denominator))
    if policy.mode == "crop":
        return Geometry(
            new_width, new_height, min(new_width, box_width), min(new_height, box_height)
        )
    return Geometry(new_width, new_height, new_width, new_height)


def describe(
    policy: ImagePolicy,
    *,
    container: str,
    width: int,
    height: int,
    colorspace: str,
    orientation: int,
    profile: bytes | None,
    notes: Notes,
    subsampling: str = "",
    always_turned: bool = False,
) -> Source:
    """Compute how ``policy`` turns, scales and crops an image with this header."""
    applied = orientation if always_turned or policy.orientation == "apply" else 1
    shown = (height, width) if applied >= 5 else (width, height)
    return Source(
        container=container,
        width=width,
        height=height,
        colorspace=colorspace,
        orientation=orientation,
        profile=profile,
        notes=notes,
        subsampling=subsampling,
        applied=applied,
        geometry=plan_geometry(*shown, policy),
    )


def require_size(width: int, height: int, policy: ImagePolicy) -> None:
    """Compare a header's size with the limits.

    Raises:
        ImageTooLarge: more than ``max_pixels``.
        ImageTooSmall: a side below ``min_size``.
    """
    if width * height > policy.max_pixels:
        raise ImageTooLarge(
            f"{width} x {height} pixels are more than max_pixels allows ({policy.max_pixels:,})"
        )
    if min(width, height) < policy.min_size:
        raise ImageTooSmall(
            f"{width} x {height} pixels: its short side is below min_size ({policy.min_size:,})"
        )


def require_feasible(width: int, height: int, geometry: Geometry, policy: ImagePolicy) -> None:
    """Compare what an image of ``width`` x ``height`` becomes with what can be stored.

    Raises:
        ImageTooLarge: a side that the encoding does not have, or more pixels on the way than
            ``max_pixels`` and than readers take by default.
    """
    most = _LARGEST_SIDE[policy.encoding]
    if max(geometry.crop_width, geometry.crop_height) > most:
        raise ImageTooLarge(
            f"{geometry.crop_width} x {geometry.crop_height} pixels: {policy.encoding} holds at "
            f"most {most:,} a side"
        )
    # One side may be scaled up before the other is scaled down.
    wide, high = max(width, geometry.width), max(height, geometry.height)
    if wide * high > max(policy.max_pixels, DEFAULT_MAX_PIXELS):
        raise ImageTooLarge(
            f"{width} x {height} pixels would be scaled to {geometry.width} x {geometry.height}: "
            "more than can be stored and read again"
        )


def falls_short(geometry: Geometry, policy: ImagePolicy) -> bool:
    """Whether the result is smaller than asked because images are not upscaled."""
    width, height = _box(policy)
    if policy.mode == "long":
        return max(geometry.width, geometry.height) < width
    return geometry.crop_width < width or geometry.crop_height < height


def _box(policy: ImagePolicy) -> tuple[int, int]:
    size = policy.size or 0
    return size if isinstance(size, tuple) else (size, size)


def dct_fraction(width: int, height: int, least_width: int, least_height: int) -> int:
    """By which of 1, 2, 4 and 8 an inverse DCT divides both sides, none below the least size."""
    fraction = 1
    while (
        fraction < 8
        and width >= 2 * fraction * least_width
        and height >= 2 * fraction * least_height
    ):
        fraction *= 2
    return fraction
