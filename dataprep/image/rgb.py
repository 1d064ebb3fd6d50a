"""PURE. Decode an image to RGB pixels, as readers of a data set need it."""

from __future__ import annotations

import contextlib

import numpy as np
import simplejpeg

from dataprep.image.containers import open_image
from dataprep.image.output_size import Pixels
from dataprep.image.policy import ImagePolicy

_POLICY = ImagePolicy()  # puts transparent images on white, and takes the first frame


def decode_whole(data: bytes | bytearray | memoryview) -> Pixels:
    """Decode all pixels of an image at its own size.

    The Exif orientation is ignored. Damage for which libjpeg only gives a warning is ignored too.

    Returns:
        uint8 of shape (height, width, 3). The channel of a greyscale image is repeated.

    Raises:
        ImageError: the data is no image, or cannot be decoded.
    """
    if bytes(data[:2]) == b"\xff\xd8":
        with contextlib.suppress(ValueError, KeyError):  # a broken JPEG: Pillow tells what is wrong
            height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
            if colorspace not in ("CMYK", "YCCK") and width * height <= _POLICY.max_pixels:
                pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False)
                return pixels
    pixels = open_image(bytes(data), _POLICY).pixels
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
