"""PURE. The sizes of converted images, in integer arithmetic: the same on every processor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ImageTooLarge, ImageTooSmall
from dataprep.image.policy import DEFAULT_MAX_PIXELS, ImagePolicy, Notes

Pixels = NDArray[np.uint8]
"""uint8 of shape (height, width, channels); the channels are 1 (grey), 3 (RGB) or 4 (RGBA)."""

_MAX_SIDES = {"jpeg": 65_500, "png": 2**31 - 1, "webp": 16_383}


class Geometry(NamedTuple):
    """How an image is scaled and cropped. All sizes are in pixels.

    Attributes:
        width, height: the size to which the image is scaled.
        crop_width, crop_height: the size that is then cut out of its centre.
    """

    width: int
    height: int
    crop_width: int
    crop_height: int


class Source(NamedTuple):
    """The properties of an image in its file, and how the policy changes it.

    Attributes:
        container: the format of the file, such as ``JPEG``.
        width, height: the size in pixels, before the image is turned.
        colorspace: the colour space of a JPEG, or the mode of an image in Pillow.
        orientation: the orientation in the Exif data, 1 to 8.
        profile: the ICC profile; None if there is none, or if the pixels were already converted by
            it, or if it does not fit them.
        notes: what the manifest counts under ``warnings``.
        subsampling: the subsampling of a JPEG, such as ``420``; empty for other files.
        applied: the orientation by which the image is turned; 1 if it is not turned.
        geometry: how the turned image is scaled and cropped.
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
    """How the policy scales and crops an image of ``width`` x ``height`` pixels, as displayed."""
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
            # The larger of the two scales, because the image must cover the box.
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
    """Describe an image, and how ``policy`` turns, scales and crops it.

    With ``always_turned``, the decoder turns the image whatever the policy says. The other
    parameters are the attributes of ``Source``.
    """
    applied = orientation if always_turned or policy.orientation == "apply" else 1
    displayed_size = (height, width) if applied >= 5 else (width, height)
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
        geometry=plan_geometry(displayed_size[0], displayed_size[1], policy),
    )


def require_size(width: int, height: int, policy: ImagePolicy) -> None:
    """Raise an error unless the size of an image is within the limits of the policy.

    Raises:
        ImageTooLarge: the image has more than ``max_pixels`` pixels.
        ImageTooSmall: a side is below ``min_size``.
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
    """Raise an error if an image of ``width`` x ``height`` cannot be scaled and stored.

    Raises:
        ImageTooLarge: a side is larger than the encoding allows, or scaling needs more pixels than
            ``max_pixels`` and than readers accept by default.
    """
    max_side = _MAX_SIDES[policy.encoding]
    if max(geometry.crop_width, geometry.crop_height) > max_side:
        raise ImageTooLarge(
            f"{geometry.crop_width} x {geometry.crop_height} pixels: {policy.encoding} holds at "
            f"most {max_side:,} a side"
        )
    # One side may be scaled up before the other side is scaled down.
    max_width = max(width, geometry.width)
    max_height = max(height, geometry.height)
    if max_width * max_height > max(policy.max_pixels, DEFAULT_MAX_PIXELS):
        raise ImageTooLarge(
            f"{width} x {height} pixels would be scaled to {geometry.width} x {geometry.height}: "
            "more than can be stored and read again"
        )


def falls_short(geometry: Geometry, policy: ImagePolicy) -> bool:
    """Whether the result is smaller than the policy's size, because images are not upscaled."""
    width, height = _box(policy)
    if policy.mode == "long":
        return max(geometry.width, geometry.height) < width
    return geometry.crop_width < width or geometry.crop_height < height


def _box(policy: ImagePolicy) -> tuple[int, int]:
    """The width and height in the policy; 0 and 0 if it keeps the size."""
    size = policy.size or 0
    return size if isinstance(size, tuple) else (size, size)


def dct_fraction(width: int, height: int, min_width: int, min_height: int) -> int:
    """By how much an inverse DCT can reduce an image that must not fall below a minimum size.

    Returns:
        1, 2, 4 or 8, by which both sides are divided.
    """
    fraction = 1
    while (
        fraction < 8 and width >= 2 * fraction * min_width and height >= 2 * fraction * min_height
    ):
        fraction *= 2
    return fraction
