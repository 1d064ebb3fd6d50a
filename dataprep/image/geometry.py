"""Sizes, in whole numbers only, so that they are the same on every processor."""

from __future__ import annotations

from typing import NamedTuple

from dataprep.image.policy import ImagePolicy


class Geometry(NamedTuple):
    """The size to scale to, then the size to cut out of its centre; pixels."""

    width: int
    height: int
    crop_width: int
    crop_height: int


def scaled(side: int, numerator: int, denominator: int) -> int:
    """``side * numerator / denominator``, halves rounded up, at least 1."""
    return max(1, (2 * side * numerator + denominator) // (2 * denominator))


def plan_geometry(width: int, height: int, policy: ImagePolicy) -> Geometry:
    """What an image of ``width`` x ``height`` (as displayed) is scaled and cropped to."""
    box_width, box_height = policy.box
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
    new_width = scaled(width, numerator, denominator)
    new_height = scaled(height, numerator, denominator)
    if policy.mode == "crop":
        return Geometry(
            new_width, new_height, min(new_width, box_width), min(new_height, box_height)
        )
    return Geometry(new_width, new_height, new_width, new_height)


def falls_short(geometry: Geometry, policy: ImagePolicy) -> bool:
    """Whether the result is smaller than asked because images are not upscaled."""
    box_width, box_height = policy.box
    match policy.mode:
        case "none":
            return False
        case "short":
            return min(geometry.width, geometry.height) < box_width
        case "long":
            return max(geometry.width, geometry.height) < box_width
        case _:
            return geometry.crop_width < box_width or geometry.crop_height < box_height


def dct_size(width: int, height: int, least_width: int, least_height: int) -> tuple[int, int]:
    """What to ask an inverse DCT for: a power-of-two fraction, not below the least size.

    0 x 0 stands for the whole size.
    """
    fraction = 1
    while (
        fraction < 8
        and width >= 2 * fraction * least_width
        and height >= 2 * fraction * least_height
    ):
        fraction *= 2
    return (0, 0) if fraction == 1 else (-(-width // fraction), -(-height // fraction))
