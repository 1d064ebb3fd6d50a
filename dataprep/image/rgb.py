"""Decode an encoded image to RGB pixels, as readers of a data set need them."""

from __future__ import annotations

import contextlib

import numpy as np
import simplejpeg

from dataprep.image.containers import open_image
from dataprep.image.geometry import Pixels
from dataprep.image.policy import ImagePolicy

_POLICY = ImagePolicy()  # alpha on a white background, the first frame


def decode_whole(data: bytes | bytearray | memoryview) -> Pixels:
    """The whole image at its own size: uint8 (height, width, 3); greyscale is repeated.

    The EXIF orientation is ignored, and so is damage that libjpeg only warns about.

    Raises:
        ImageError: the data is not an image, or cannot be decoded.
    """
    if bytes(data[:2]) == b"\xff\xd8":
        with contextlib.suppress(ValueError, KeyError):  # broken: Pillow's error says how
            height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
            if colorspace not in ("CMYK", "YCCK") and width * height <= _POLICY.max_pixels:
                pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False)
                return pixels
    pixels = open_image(bytes(data), _POLICY).pixels
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
