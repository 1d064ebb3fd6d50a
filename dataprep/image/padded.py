"""RGB in memory as codec and resampler like it: blue, green, red, and a byte that means nothing.

The pixels are an ordinary (height, width, 3) array in the order RGB, of which any function may
take and give parts: only its strides differ. Where they are these, libjpeg-turbo, the resampler
and the encoder hand one another the same memory; where they are not (an image was turned, or did
not come from a JPEG), ``bgrx`` copies once.
"""

from __future__ import annotations

import cv2
import numpy as np

from dataprep.image.pixels import Pixels


def rgb(memory: Pixels) -> Pixels:
    """The colours of uint8 (height, width, 4) in the order BGRX, without a copy."""
    return memory[:, :, 2::-1]


def bgrx(pixels: Pixels) -> Pixels:
    """uint8 (height, width, 4) of RGB pixels; what the fourth byte holds means nothing."""
    row, across, between = pixels.strides
    if (across, between) == (4, -1):
        memory = pixels.base
        whole = (*pixels.shape[:2], 4), (row, 4, 1)
        if isinstance(memory, np.ndarray) and (memory.shape, memory.strides) == whole:
            return memory
        blue = pixels[:, :, 2:]
        return np.lib.stride_tricks.as_strided(blue, *whole)
    padded: Pixels = np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGRA))
    return padded
