"""PURE. Decoded images as bytes: the form of samples in data called ``pixels``.

An image is its height and width as two little-endian uint32, then height x width x 3 bytes: RGB,
row by row.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dataprep.errors import CorruptImage
from dataprep.formats import Buffer
from dataprep.image.output_size import Pixels
from dataprep.reading.augment import Augmentation, Box, scaled_crop

_HEAD = struct.Struct("<II")
CHANNELS = 3


def packed(pixels: Pixels) -> bytes:
    """Convert pixels, uint8 (height, width, 3), to bytes."""
    height, width, _ = pixels.shape
    return _HEAD.pack(height, width) + pixels.tobytes()


def unpacked(data: Buffer) -> Pixels:
    """Return the pixels in ``data`` as a view; nothing is copied.

    Raises:
        CorruptImage: the bytes have another form.
    """
    view = memoryview(data).cast("B")
    if len(view) >= _HEAD.size:
        height, width = _HEAD.unpack_from(view)
        if height * width and len(view) == _HEAD.size + height * width * CHANNELS:
            flat = np.frombuffer(view, np.uint8, offset=_HEAD.size)
            return flat.reshape(height, width, CHANNELS)
    raise CorruptImage(
        f"{len(view):,} bytes are not a decoded image: read them as an encoded image"
    )


@dataclass(frozen=True)
class PixelAugmentation(Augmentation):
    """The augmentation of images that are stored as pixels, without decoding."""

    def part(self, data: Buffer, choose: Callable[[int, int], Box]) -> Pixels:
        """Return a scaled crop of an image.

        Args:
            data: the image as bytes, in the form of this module.
            choose: returns the crop for the width and the height of the image.

        Raises:
            CorruptImage: the bytes have another form.
        """
        pixels = unpacked(data)
        height, width, _ = pixels.shape
        return scaled_crop(pixels, choose(width, height), self.size)
