"""Pixels turned, scaled and cropped, in whole numbers only.

The filters, all of them antialiased:

``bicubic``, the default, and ``bilinear``: convolution with a kernel as wide as the reduction, by
the vector instructions of ``cykooz-resizer``. Where that has no wheel (Linux on ARM) NumPy's
products of matrices give the same pixels, a little slower.
``area``: the mean of the area that a pixel covers.
``lanczos``: Pillow's, with 3 lobes.

Where a JPEG shrinks, the first two get what libjpeg's inverse DCT has scaled by 1/2, 1/4 or 1/8
already; the others get the full image.

RGB pixels are ordinary arrays of shape (height, width, 3). Codec and resampler work fastest on four
bytes a pixel: blue, green, red, and one that means nothing. So the array that the decoder gives is
a view of such memory; only its strides differ, and ``bgrx`` gives the memory back without a copy.
"""

from __future__ import annotations

from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, _imaging

from dataprep.image.geometry import Geometry, Pixels
from dataprep.image.policy import Filter

try:
    import cykooz_resizer
    from cykooz_resizer.rust_lib import PilImageWrapper, RustResizer
except ImportError:
    cykooz_resizer = None

REDUCIBLE = frozenset({"bilinear", "bicubic"})
"""Filters that may be given an image that a decoder has scaled down already."""
_BAND = 16  # target rows
_MOST_BITS = 21
# Each has a buffer and a lock: one for each thread that resizes at the same time.
_idle: list[Any] = []


def turn(pixels: Pixels, orientation: int) -> Pixels:
    """Pixels as displayed, by the Exif orientation (Exif 2.32, table of 4.6.4 A)."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def fit(pixels: Pixels, geometry: Geometry, filter: Filter = "bicubic") -> Pixels:
    """Scale to the geometry's size, then cut out its crop."""
    height, width, channels = pixels.shape
    if (width, height) != geometry[:2]:
        # A transparent pixel has no colour to give to its neighbours.
        premultiplied = _as_mode(pixels, "RGBA", "RGBa") if channels == 4 else pixels
        pixels = _scale(premultiplied, geometry.width, geometry.height, filter)
        if channels == 4:
            pixels = _as_mode(pixels, "RGBa", "RGBA")
    if geometry[:2] == geometry[2:]:
        return pixels
    left = (geometry.width - geometry.crop_width) // 2
    top = (geometry.height - geometry.crop_height) // 2
    return pixels[top : top + geometry.crop_height, left : left + geometry.crop_width]


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


def _scale(pixels: Pixels, width: int, height: int, filter: Filter) -> Pixels:
    if filter == "area":
        return _area_average(pixels, width, height)
    if filter == "lanczos":
        return _lanczos(pixels, width, height)
    convolve = _by_numpy if cykooz_resizer is None else _by_cykooz
    return convolve(pixels, width, height, filter)


def _memory(pixels: Pixels) -> Any:
    """An array as cykooz-resizer expects an image of Pillow's, without a copy.

    It asks for no more than these attributes; ``Image.frombuffer`` would run 30 Python functions.
    As CMYK, the four bytes of a pixel mean nothing to each other.
    """
    mode = "L" if pixels.shape[2] == 1 else "CMYK"
    size = pixels.shape[1], pixels.shape[0]
    capsule = partial(getattr, _imaging.map_buffer(pixels, size, "raw", 0, (mode, 0, 1)), "ptr")
    return PilImageWrapper(SimpleNamespace(mode=mode, size=size, load=capsule, getim=capsule))


def _by_cykooz(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
    rgb = pixels.shape[2] == 3
    source = np.ascontiguousarray(bgrx(pixels) if rgb else pixels)
    target = np.empty((height, width, source.shape[2]), np.uint8)
    try:
        worker = _idle.pop()
    except IndexError:
        worker = RustResizer()
    worker.resize_pil(_memory(source), _memory(target), _cykooz_options(filter))
    _idle.append(worker)
    return target[:, :, 2::-1] if rgb else target


@lru_cache(maxsize=2)
def _cykooz_options(filter: str) -> Any:
    kernel = cykooz_resizer.FilterType[_KERNELS[filter][0]]
    algorithm = cykooz_resizer.ResizeAlg.convolution(kernel)
    return cykooz_resizer.ResizeOptions(resize_alg=algorithm, use_alpha=False).rust_options


def _by_numpy(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
    """Scale down, then across: the weights, the order and the rounding of cykooz-resizer.

    Across is down of the transposed image.
    """
    channels = pixels.shape[2]
    if channels == 3:
        packed: Pixels = np.asarray(cv2.cvtColor(bgrx(pixels), cv2.COLOR_BGRA2RGB))
    else:
        packed = np.ascontiguousarray(pixels)
    down: Any = cv2.transpose(_down(packed, height, filter))
    across: Any = cv2.transpose(_down(down.reshape(-1, height, channels), width, filter))
    return np.asarray(across).reshape(height, width, channels)


def _down(pixels: Pixels, height: int, filter: str) -> Pixels:
    """Scale along the first axis, a few rows at a time, by products of matrices.

    Weights and sums are whole multiples of a power of two that fit the type's mantissa, so that
    every sum is exact, whatever its order.
    """
    rows = pixels.reshape(len(pixels), -1)
    scaled: Pixels = np.empty((height, rows.shape[1]), np.uint8)
    above_half, bands = _weights(len(rows), height, filter)
    for at, source, weights in bands:
        sums: Any = np.matmul(weights, rows[source].astype(weights.dtype))
        # OpenCV rounds to the nearest number, and halves up because of what is added.
        cv2.addWeighted(sums, 1, sums, 0, above_half, scaled[at], dtype=cv2.CV_8U)
    return scaled.reshape(height, *pixels.shape[1:])


@lru_cache(maxsize=1024)
def _weights(
    source: int, target: int, filter: str
) -> tuple[float, list[tuple[slice, slice, NDArray[np.floating]]]]:
    """Bands of target rows, the source rows of each, and the weights of these.

    As fast_image_resize 5 has them (convolution/mod.rs, convolution/optimisations.rs): those of a
    row add up to 1, and are then rounded to 16 bits with a sign. The number is less than the least
    difference of two sums.
    """
    _, kernel, support = _KERNELS[filter]
    scale = source / target
    stretch = max(scale, 1.0)
    centers = (np.arange(target) + 0.5) * scale
    first = np.maximum(np.floor(centers - support * stretch), 0).astype(np.int64)
    last = np.minimum(np.ceil(centers + support * stretch), source).astype(np.int64)
    taps = first + np.arange((last - first).max())[:, np.newaxis]
    weights = kernel(np.abs((taps - (centers - 0.5)) * (1.0 / stretch))) * (taps < last)
    weights /= np.add.reduce(weights, axis=0)  # one after the other
    bits = next(n for n in range(_MOST_BITS + 1) if weights.max() * 2 ** (n + 1) + 0.5 >= 2**15)
    whole = np.trunc(weights * 2**bits + np.copysign(0.5, weights))
    exact = bits < 16 and 255 * np.abs(whole).sum(axis=0).max() < 2**24
    kind = np.float32 if exact else np.float64
    bands = []
    for start in range(0, target, _BAND):
        at = slice(start, min(start + _BAND, target))
        rows = slice(int(first[at].min()), int(last[at].max()))
        band = np.zeros((at.stop - start, rows.stop - rows.start), kind)
        for row, column in enumerate(range(at.start, at.stop)):
            used = slice(first[column] - rows.start, last[column] - rows.start)
            band[row, used] = whole[: last[column] - first[column], column] / 2**bits
        bands.append((at, rows, band))
    return 0.5 / 2**bits, bands


def _triangle(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(1.0 - distance, 0.0)


def _catmull_rom(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic with a = -0.5 (IEEE Transactions on Acoustics 29, 1981)."""
    x = distance
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


# The name in cykooz-resizer, the kernel, and how far it reaches.
_KERNELS = {
    "bilinear": ("bilinear", _triangle, 1.0),
    "bicubic": ("catmull_rom", _catmull_rom, 2.0),
}


def _lanczos(pixels: Pixels, width: int, height: int) -> Pixels:
    """Pillow's, with 3 lobes, as wide as the reduction.

    The weights are rounded to 22 bits, and the rest is whole numbers.
    """
    # Four channels that mean nothing to each other are CMYK to Pillow.
    image = _image(pixels, {1: "L", 3: "RGB", 4: "CMYK"}[pixels.shape[2]])
    scaled = image.resize((width, height), Image.Resampling.LANCZOS)
    return np.asarray(scaled).reshape(height, width, -1)


def _as_mode(pixels: Pixels, mode: str, wanted: str) -> Pixels:
    return np.asarray(_image(pixels, mode).convert(wanted))


def _image(pixels: Pixels, mode: str) -> Image.Image:
    size = pixels.shape[1], pixels.shape[0]
    return Image.frombytes(mode, size, np.ascontiguousarray(pixels).tobytes())


def _area_average(pixels: Pixels, width: int, height: int) -> Pixels:
    """The mean of the area that a target pixel covers, edges by their share, halves rounded up.

    Exact: sums of areas are fractions with the denominator (source width x source height).
    """
    area = pixels.shape[0] * pixels.shape[1]
    down = _area_sums(pixels, height)
    across = _area_sums(np.ascontiguousarray(down.swapaxes(0, 1)), width)
    mean: NDArray[np.int64] = (2 * across.swapaxes(0, 1) + area) // (2 * area)
    return mean.astype(np.uint8)


def _area_sums(values: NDArray[np.integer], target: int) -> NDArray[np.int64]:
    """Integrals over ``target`` equal parts of the first axis, times ``target``."""
    size = len(values)
    sums = np.empty((target, *values.shape[1:]), np.int64)
    for part in range(target):
        start, stop = part * size, (part + 1) * size
        first, last = start // target, -(-stop // target)
        covered = values[first:last]
        outside = covered[[0, -1]].astype(np.int64)
        sums[part] = target * covered.sum(axis=0, dtype=np.int64)
        sums[part] -= (start - first * target) * outside[0] + (last * target - stop) * outside[1]
    return sums
