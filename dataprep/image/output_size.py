"""PURE. The limits of image sizes, and the sizes of converted images.

The arithmetic uses integers only, so that the sizes are the same on every processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ImageTooLarge, ImageTooSmall

if TYPE_CHECKING:
    from dataprep.image.policy import ImagePolicy, Notes

Pixels = NDArray[np.uint8]
"""uint8 of shape (height, width, channels) with 1 (grey), 3 (RGB) or 4 (RGBA) channels."""

MAX_SIDE = 16_384
"""The maximum side in pixels that ``ImagePolicy.size`` may ask for."""

_MAX_SIDES = {"jpeg": 65_500, "png": 2**31 - 1, "webp": 16_383}
"""The maximum side in pixels that libjpeg, libpng and libwebp can write, by encoding. An image with
``mode="none"`` can be larger than ``MAX_SIDE``."""

# As many RGB pixels as fit into 256 MiB. Pillow warns about images with more pixels, and refuses
# images with more than twice as many.
DEFAULT_MAX_PIXELS = 89_478_485
PILLOW_HARD_LIMIT = 2 * DEFAULT_MAX_PIXELS


class Geometry(NamedTuple):
    """How an image is scaled and cropped. All sizes are in pixels.

    Attributes:
        width, height: the size to which the image is scaled.
        crop_width, crop_height: the size of the area that is then cut out of the centre.
    """

    width: int
    height: int
    crop_width: int
    crop_height: int


class SourceImage(NamedTuple):
    """The properties of a source image, and how the policy turns, scales and crops it.

    Attributes:
        container: the format of the file, such as ``JPEG``.
        width, height: the size in pixels, before the image is turned.
        colorspace: the colour space of a JPEG, or the Pillow mode of another image.
        orientation: the orientation in the Exif data, 1 to 8.
        profile: the ICC profile that still applies to the pixels. It is None if the file has no
            profile, if the pixels were already converted to sRGB, or if the profile does not fit.
        notes: remarks that the manifest counts under ``warnings``.
        subsampling: the subsampling of a JPEG, such as ``420``; empty for other files.
        applied_orientation: the orientation by which the image is turned; 1 if it is not turned.
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
    applied_orientation: int
    geometry: Geometry


def plan_geometry(width: int, height: int, policy: ImagePolicy) -> Geometry:
    """Compute how the policy scales and crops an image.

    ``width`` and ``height`` are the size in pixels after the image was turned.
    """
    target_width, target_height = _target_size(policy)
    match policy.mode:
        case "none":
            return Geometry(width, height, width, height)
        case "exact":
            if not policy.upscale:
                target_width, target_height = min(target_width, width), min(target_height, height)
            return Geometry(target_width, target_height, target_width, target_height)
        # In the other modes, both sides are scaled by numerator / denominator.
        case "short":
            numerator, denominator = target_width, min(width, height)
        case "long":
            numerator, denominator = target_width, max(width, height)
        case "crop":
            # The larger of the two scales, because the image must cover the target.
            if target_width * height >= target_height * width:
                numerator, denominator = target_width, width
            else:
                numerator, denominator = target_height, height
    if numerator >= denominator and not policy.upscale:
        numerator = denominator = 1
    # Halves are rounded up.
    new_width = max(1, (2 * width * numerator + denominator) // (2 * denominator))
    new_height = max(1, (2 * height * numerator + denominator) // (2 * denominator))
    if policy.mode == "crop":
        return Geometry(
            new_width, new_height, min(new_width, target_width), min(new_height, target_height)
        )
    return Geometry(new_width, new_height, new_width, new_height)


def describe_source(
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
) -> SourceImage:
    """Describe a source image, and compute how ``policy`` turns, scales and crops it.

    If ``always_turned`` is true, the decoder turns the image even if the policy ignores the
    orientation. The other parameters are the attributes of ``SourceImage``.
    """
    applied_orientation = orientation if always_turned or policy.orientation == "apply" else 1
    turned_size = (height, width) if applied_orientation >= 5 else (width, height)
    return SourceImage(
        container=container,
        width=width,
        height=height,
        colorspace=colorspace,
        orientation=orientation,
        profile=profile,
        notes=notes,
        subsampling=subsampling,
        applied_orientation=applied_orientation,
        geometry=plan_geometry(turned_size[0], turned_size[1], policy),
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
            f"{width} x {height} pixels: the short side is below min_size ({policy.min_size:,})"
        )


def require_feasible(width: int, height: int, geometry: Geometry, policy: ImagePolicy) -> None:
    """Raise an error if an image of ``width`` x ``height`` cannot be scaled and stored.

    Raises:
        ImageTooLarge: a side is larger than the encoding allows; or the image has more pixels at
            some step of scaling than both ``max_pixels`` and the default limit of readers.
    """
    max_side = _MAX_SIDES[policy.encoding]
    if max(geometry.crop_width, geometry.crop_height) > max_side:
        raise ImageTooLarge(
            f"{geometry.crop_width} x {geometry.crop_height} pixels: {policy.encoding} allows at "
            f"most {max_side:,} pixels per side"
        )
    # One side may be scaled up before the other side is scaled down. The image between the two
    # steps is then larger than the source and the result.
    max_width = max(width, geometry.width)
    max_height = max(height, geometry.height)
    if max_width * max_height > max(policy.max_pixels, DEFAULT_MAX_PIXELS):
        raise ImageTooLarge(
            f"{width} x {height} pixels would be scaled to {geometry.width} x {geometry.height}: "
            "more than can be stored and read again"
        )


def is_below_size(geometry: Geometry, policy: ImagePolicy) -> bool:
    """Whether the converted image is smaller than the policy's size, because upscaling is off."""
    width, height = _target_size(policy)
    if policy.mode == "long":
        return max(geometry.width, geometry.height) < width
    return geometry.crop_width < width or geometry.crop_height < height


def _target_size(policy: ImagePolicy) -> tuple[int, int]:
    """The width and height that the policy asks for; 0 and 0 if it keeps the size."""
    size = policy.size or 0
    return size if isinstance(size, tuple) else (size, size)


def dct_divisor(width: int, height: int, min_width: int, min_height: int) -> int:
    """The number by which an inverse DCT can divide both sides of an image: 1, 2, 4 or 8.

    It is the largest of these numbers with which the image does not fall below the minimum size. It
    is 1 if the image itself is smaller.
    """
    for divisor in (8, 4, 2):
        if width >= divisor * min_width and height >= divisor * min_height:
            return divisor
    return 1
