"""PURE. Decode stored images to RGB pixels, for readers of a data set."""

from __future__ import annotations

import contextlib

import numpy as np
import simplejpeg

from dataprep.image.containers import decode_by_pillow
from dataprep.image.jpeg import SOI
from dataprep.image.output_size import Pixels
from dataprep.image.policy import ImagePolicy

# The default policy puts transparent images on a white background, and takes the first frame.
_POLICY = ImagePolicy()


def decode_rgb(data: bytes | bytearray | memoryview) -> Pixels:
    """Decode an image to RGB pixels, without scaling or turning it.

    The Exif orientation is ignored. Damage is also ignored if libjpeg only warns about it.
    Transparent pixels are on a white background. Of several frames, the first is decoded.

    Returns:
        uint8 of shape (height, width, 3). The channel of a greyscale image is repeated.

    Raises:
        ImageError: the data is not an image, or cannot be decoded.
    """
    if bytes(data[:2]) == SOI:
        # If simplejpeg fails, Pillow tries to decode the JPEG below, and its error is reported.
        with contextlib.suppress(ValueError, KeyError):
            height, width, colorspace, _ = simplejpeg.decode_jpeg_header(data, strict=False)
            if colorspace not in ("CMYK", "YCCK") and width * height <= _POLICY.max_pixels:
                pixels: Pixels = simplejpeg.decode_jpeg(data, "RGB", strict=False)
                return pixels
    pixels = decode_by_pillow(bytes(data), _POLICY).pixels
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels
