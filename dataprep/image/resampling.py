"""Antialiased resizing by convolution, by vector instructions where they prove themselves.

``cykooz-resizer`` brings them as a wheel for x86-64 and for macOS. Before its first use in a
process it is held against ``kernels``; where it is not installed (no wheel is published for Linux
on ARM) or gives another pixel, ``kernels`` does the work: the same bytes, twenty times slower.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from dataprep.image.kernels import convolve
from dataprep.image.padded import bgrx, rgb
from dataprep.image.pixels import Pixels

Convolve = Callable[[Pixels, int, int, str], Pixels]
_KERNELS = {"bilinear": "bilinear", "bicubic": "catmull_rom"}
_CHANNELS = (1, 3, 4)
_PROBES = ((37, 53, 23, 31), (61, 40, 16, 67))  # width and height, then the target's


def resample(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
    """Scale uint8 (height, width, 1, 3 or 4 channels) by ``bilinear`` or ``bicubic``."""
    return _proved()(pixels, width, height, filter)


class ByVectors:
    """``fast_image_resize`` through ``cykooz-resizer``; usable from any thread.

    Raises:
        ImportError: it is not installed.
    """

    def __init__(self) -> None:
        import cykooz_resizer
        from cykooz_resizer.rust_lib import PilImageWrapper, RustResizer

        self._module: Any = cykooz_resizer
        self._wrapper, self._new = PilImageWrapper, RustResizer
        # Each has a buffer and a lock: one for each thread that is at it, as many as ever were.
        self._idle: list[Any] = []
        self._options = {name: self._option(native) for name, native in _KERNELS.items()}

    def __call__(self, pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
        """As ``kernels.convolve``; RGB comes ``padded``."""
        channels = pixels.shape[2]
        source = np.ascontiguousarray(bgrx(pixels) if channels == 3 else pixels)
        target = np.empty((height, width, source.shape[2]), np.uint8)
        resizer = self._resizer()
        resizer.resize_pil(self._view(source), self._view(target), self._options[filter])
        self._idle.append(resizer)
        return rgb(target) if channels == 3 else target

    def _view(self, pixels: Pixels) -> Any:
        """Pillow's word for this memory, which it neither copies nor, as CMYK, interprets."""
        mode = "L" if pixels.shape[2] == 1 else "CMYK"
        size = pixels.shape[1], pixels.shape[0]
        return self._wrapper(Image.frombuffer(mode, size, pixels, "raw", mode, 0, 1))

    def _option(self, native: str) -> Any:
        kernel = self._module.FilterType[native]
        algorithm = self._module.ResizeAlg.convolution(kernel)
        return self._module.ResizeOptions(resize_alg=algorithm, use_alpha=False).rust_options

    def _resizer(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self._new()


@lru_cache(maxsize=1)
def _proved() -> Convolve:
    try:
        vectors = ByVectors()
    except ImportError:
        return convolve
    return proved(vectors)


def proved(fast: Convolve) -> Convolve:
    """``fast`` if it gives what ``convolve`` gives on some noise, else ``convolve``."""
    noise = np.random.default_rng(0).integers(0, 256, (61, 61, 4), dtype=np.uint8)
    for width, height, *target in _PROBES:
        for channels in _CHANNELS:
            for filter in _KERNELS:
                pixels = noise[:height, :width, :channels]
                wanted = convolve(pixels, target[0], target[1], filter)
                if not np.array_equal(fast(pixels, target[0], target[1], filter), wanted):
                    warnings.warn(
                        "cykooz-resizer gives other pixels than it should on this processor: "
                        "resizing in NumPy, with the right bytes and slowly",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                    return convolve
    return fast
