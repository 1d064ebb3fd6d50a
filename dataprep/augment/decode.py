"""An encoded image, or a part of it, as RGB pixels of one size.

JPEGs are decoded by libjpeg-turbo at the smallest of 1, 1/2, 1/4 and 1/8 of their size at which
the part is not below the target, and no further down than it reaches; PNG and WebP in full, with
white behind what is transparent; then interpolated bilinearly, as TensorFlow and MXNet do it;
torchvision filters once more before it shrinks by less than half. What libjpeg only warns of is
accepted, since a training run should not end for it. EXIF orientation is ignored, as TensorFlow's,
MXNet's and torchvision's decoders ignore it.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import simplejpeg

from dataprep.augment.crops import Box
from dataprep.augment.jpeg_rows import upper_rows
from dataprep.formats import Buffer
from dataprep.image.containers import open_image
from dataprep.image.geometry import Pixels, dct_fraction
from dataprep.image.policy import ImagePolicy

# One image, one thread: the parallelism is over images, and OpenCV's pool would fight it.
cv2.setNumThreads(1)

_SOI = b"\xff\xd8"
_CMYK = ("CMYK", "YCCK")
_ROWS_BELOW = 4  # at the decoded size: chroma is interpolated from the next row's
_WORTH_ROWS = 16  # the least that spares a row of blocks
_POLICY = ImagePolicy()  # alpha laid on white, the first frame


def decode_part(
    data: Buffer, choose: Callable[[int, int], Box], size: int, out: Pixels | None = None
) -> Pixels:
    """The part that ``choose(width, height)`` names, scaled to uint8 (size, size, 3).

    Written into ``out`` if it is given, which has to be contiguous.

    Raises:
        ImageError: no image, or one that cannot be decoded.
    """
    decoded = _decode_jpeg(data, choose, size) if bytes(data[:2]) == _SOI else None
    pixels, box = decoded or _decode_other(data, choose)
    return scaled_part(pixels, box, size, out)


def scaled_part(pixels: Pixels, box: Box, size: int, out: Pixels | None = None) -> Pixels:
    """``box`` of uint8 (height, width, 3), interpolated to (size, size, 3), in ``out`` if given."""
    part = pixels[box.top : box.top + box.height, box.left : box.left + box.width]
    scaled = cv2.resize(part, (size, size), out, interpolation=cv2.INTER_LINEAR)
    return np.asarray(scaled, np.uint8)


def decode_whole(data: Buffer) -> Pixels:
    """The whole image at its own size: uint8 (height, width, 3), greyscale repeated.

    Raises:
        ImageError: no image, or one that cannot be decoded.
    """
    if bytes(data[:2]) == _SOI:
        try:
            height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
            if colorspace not in _CMYK and width * height <= _POLICY.max_pixels:
                pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False)
                return pixels
        except (ValueError, KeyError):
            pass  # broken: Pillow's turn to say how
    return _decode_other(data, lambda width, height: Box(0, 0, width, height))[0]


def _decode_jpeg(
    data: Buffer, choose: Callable[[int, int], Box], size: int
) -> tuple[Pixels, Box] | None:
    """RGB pixels and the box within them; None where libjpeg cannot make RGB of the file."""
    try:
        height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
        if colorspace in _CMYK:
            return None
        box = choose(width, height)
        # The least size of the whole image at which the part is as large as the target.
        least_width, least_height = -(-size * width // box.width), -(-size * height // box.height)
        fraction = dct_fraction(width, height, least_width, least_height)
        rows = box.top + box.height + _ROWS_BELOW * fraction
        upper = upper_rows(data, rows) if height - rows >= _WORTH_ROWS else None
        pixels: Pixels = simplejpeg.decode_jpeg(
            data if upper is None else upper,
            "RGB",
            min_width=-(-width // fraction) if fraction > 1 else 0,
            min_height=-(-(height if upper is None else rows) // fraction) if fraction > 1 else 0,
            strict=False,
        )
    except (ValueError, KeyError):  # the latter for a header without a colour space
        return None
    return pixels, _scaled(box, width, height, fraction)


def _decode_other(data: Buffer, choose: Callable[[int, int], Box]) -> tuple[Pixels, Box]:
    pixels = open_image(bytes(data), _POLICY).pixels
    height, width, channels = pixels.shape
    if channels == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    return pixels, choose(width, height)


def _scaled(box: Box, width: int, height: int, fraction: int) -> Box:
    """``box`` of an image of ``width`` x ``height`` in the same image at a fraction of its size."""
    if fraction == 1:
        return box
    new_width, new_height = -(-width // fraction), -(-height // fraction)
    left, top = box.left * new_width // width, box.top * new_height // height
    return Box(
        left,
        top,
        max(1, min(new_width - left, round(box.width * new_width / width))),
        max(1, min(new_height - top, round(box.height * new_height / height))),
    )
