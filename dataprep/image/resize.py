"""PURE. Turn, scale and crop pixels with integer arithmetic.

All filters are antialiased:

- ``bicubic``, the default, and ``bilinear``: a convolution whose kernel grows with the reduction.
  ``cykooz-resizer`` computes it with vector instructions. This library has no wheel for Linux on
  ARM. There, matrix products in NumPy compute the same pixels, a little more slowly.
- ``area``: the mean of the source pixels that a target pixel covers.
- ``lanczos``: the filter of Pillow, with 3 lobes.

Before ``bicubic`` or ``bilinear``, libjpeg's inverse DCT may reduce a JPEG to 1/2, 1/4 or 1/8. The
other filters get the image at full size.

RGB pixels are arrays of shape (height, width, 3). The decoder and the resizer are fastest with four
bytes per pixel: blue, green, red, and an unused byte. Therefore the decoder returns a view of
memory in this form. Only the strides of the view are unusual. ``bgrx`` returns the memory behind
such a view without a copy.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from dataprep.image.output_size import Geometry, Pixels
from dataprep.image.policy import Filter

try:
    import cykooz_resizer
except ImportError:
    cykooz_resizer = None

REDUCIBLE = frozenset({"bilinear", "bicubic"})
"""The filters whose source may be an image that the decoder has already reduced."""

_BAND_ROWS = 16  # target rows that are computed in one matrix product
_MAX_WEIGHT_BITS = 21
_WEIGHT_LIMIT = 2**15  # weights are signed 16-bit integers
# A resizer has a buffer and a lock. Therefore each thread takes a resizer that is not in use.
_idle_resizers: list[Any] = []


def turn(pixels: Pixels, orientation: int) -> Pixels:
    """Turn pixels as an Exif orientation describes (Exif 2.32, table of 4.6.4 A).

    ``orientation`` is from 1 to 8. The result is a view of ``pixels``.
    """
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels


def fit(pixels: Pixels, geometry: Geometry, filter: Filter = "bicubic") -> Pixels:
    """Scale pixels to the size in ``geometry``, then cut the crop out of the centre."""
    height, width, channels = pixels.shape
    scaled_size = (geometry.width, geometry.height)
    if (width, height) != scaled_size:
        if channels == 4:
            # Multiply colours by alpha, so that transparent pixels add no colour to neighbours.
            premultiplied = _converted(pixels, "RGBA", "RGBa")
            scaled = _scale(premultiplied, geometry.width, geometry.height, filter)
            pixels = _converted(scaled, "RGBa", "RGBA")
        else:
            pixels = _scale(pixels, geometry.width, geometry.height, filter)
    if scaled_size == (geometry.crop_width, geometry.crop_height):
        return pixels
    left = (geometry.width - geometry.crop_width) // 2
    top = (geometry.height - geometry.crop_height) // 2
    return pixels[top : top + geometry.crop_height, left : left + geometry.crop_width]


def bgrx(pixels: Pixels) -> Pixels:
    """Convert RGB pixels to blue, green, red, and an unused byte.

    Returns:
        uint8 of shape (height, width, 4). If ``pixels`` is a view of memory in this form, the
        result is this memory. Otherwise, it is a copy.
    """
    height, width, _ = pixels.shape
    row_stride, pixel_stride, channel_stride = pixels.strides
    if pixel_stride == 4 and channel_stride == -1:
        memory = pixels.base
        shape = (height, width, 4)
        strides = (row_stride, 4, 1)
        if isinstance(memory, np.ndarray) and memory.shape == shape and memory.strides == strides:
            return memory
        blue = pixels[:, :, 2:]
        return np.lib.stride_tricks.as_strided(blue, shape, strides)
    copy: Pixels = np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2BGRA))
    return copy


def _scale(pixels: Pixels, width: int, height: int, filter: Filter) -> Pixels:
    """Scale pixels with a filter. All channels are scaled independently."""
    if filter == "area":
        return _area_average(pixels, width, height)
    if filter == "lanczos":
        return _lanczos(pixels, width, height)
    if cykooz_resizer is None:
        return _convolve_by_numpy(pixels, width, height, filter)
    return _convolve_by_cykooz(pixels, width, height, filter)


def _convolve_by_cykooz(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
    """Scale pixels with cykooz-resizer. RGB pixels are scaled in memory with four bytes each."""
    is_rgb = pixels.shape[2] == 3
    source = np.ascontiguousarray(bgrx(pixels) if is_rgb else pixels)
    target = np.empty((height, width, source.shape[2]), np.uint8)
    try:
        resizer = _idle_resizers.pop()
    except IndexError:
        resizer = cykooz_resizer.Resizer()
    resizer.resize_pil(_shared_image(source), _shared_image(target), _cykooz_options(filter))
    _idle_resizers.append(resizer)
    return target[:, :, 2::-1] if is_rgb else target


def _shared_image(pixels: Pixels) -> Image.Image:
    """A Pillow image that shares the memory of ``pixels``, which have 1 or 4 channels.

    Four channels get the mode CMYK, because cykooz-resizer then scales each channel independently.
    """
    mode = "L" if pixels.shape[2] == 1 else "CMYK"
    size = pixels.shape[1], pixels.shape[0]
    return Image.frombuffer(mode, size, pixels, "raw", mode, 0, 1)


@lru_cache(maxsize=2)
def _cykooz_options(filter: str) -> Any:
    """The options of cykooz-resizer for a filter."""
    cykooz_name, _, _ = _KERNELS[filter]
    kernel = cykooz_resizer.FilterType[cykooz_name]
    algorithm = cykooz_resizer.ResizeAlg.convolution(kernel)
    return cykooz_resizer.ResizeOptions(resize_alg=algorithm, use_alpha=False)


def _convolve_by_numpy(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
    """Scale the height, and then the width, with the weights and the rounding of cykooz-resizer.

    To scale the width, the image is transposed, and its rows are scaled again.
    """
    channels = pixels.shape[2]
    if channels == 3:
        packed: Pixels = np.asarray(cv2.cvtColor(bgrx(pixels), cv2.COLOR_BGRA2RGB))
    else:
        packed = np.ascontiguousarray(pixels)
    scaled_height: Any = cv2.transpose(_scale_rows(packed, height, filter))
    columns = scaled_height.reshape(-1, height, channels)
    scaled: Any = cv2.transpose(_scale_rows(columns, width, filter))
    return np.asarray(scaled).reshape(height, width, channels)


def _scale_rows(pixels: Pixels, height: int, filter: str) -> Pixels:
    """Scale the first axis to ``height`` with matrix products, a few rows at a time.

    All weights and sums are multiples of the same power of two, and fit into the mantissa of a
    float. Therefore every sum is exact, whatever the order of the additions.
    """
    rows = pixels.reshape(len(pixels), -1)
    scaled: Pixels = np.empty((height, rows.shape[1]), np.uint8)
    half_step, bands = _weights(len(rows), height, filter)
    for target_rows, source_rows, weights in bands:
        sums: Any = np.matmul(weights, rows[source_rows].astype(weights.dtype))
        # OpenCV rounds halves to the nearest even number. With the added half step, it rounds up.
        cv2.addWeighted(sums, 1, sums, 0, half_step, scaled[target_rows], dtype=cv2.CV_8U)
    return scaled.reshape(height, *pixels.shape[1:])


@lru_cache(maxsize=1024)
def _weights(
    source_height: int, target_height: int, filter: str
) -> tuple[float, list[tuple[slice, slice, NDArray[np.floating]]]]:
    """The weights that scale the rows of an image, in bands of target rows.

    The weights are computed as in fast_image_resize 5 (convolution/mod.rs and
    convolution/optimisations.rs). The weights of a target row add up to 1. They are then rounded to
    signed 16-bit integers.

    Returns:
        Half the rounding step of the sums, and a list of bands. A band consists of its target rows,
        the source rows that it needs, and the weights, of shape (target rows, source rows).
    """
    _, kernel, support = _KERNELS[filter]
    scale = source_height / target_height
    stretch = max(scale, 1.0)
    centers = (np.arange(target_height) + 0.5) * scale
    first = np.maximum(np.floor(centers - support * stretch), 0).astype(np.int64)
    stop = np.minimum(np.ceil(centers + support * stretch), source_height).astype(np.int64)
    # Column i has the source rows that contribute to target row i, and their weights.
    source_indices = first + np.arange((stop - first).max())[:, np.newaxis]
    distances = np.abs((source_indices - (centers - 0.5)) * (1.0 / stretch))
    weights = kernel(distances) * (source_indices < stop)
    weights /= np.add.reduce(weights, axis=0)  # adds one row after the other, as Rust does
    bits = _weight_bits(float(weights.max()))
    integers = np.trunc(weights * 2**bits + np.copysign(0.5, weights))
    fits_float32 = bits < 16 and 255 * np.abs(integers).sum(axis=0).max() < 2**24
    float_type = np.float32 if fits_float32 else np.float64
    bands = []
    for start in range(0, target_height, _BAND_ROWS):
        target_rows = slice(start, min(start + _BAND_ROWS, target_height))
        source_rows = slice(int(first[target_rows].min()), int(stop[target_rows].max()))
        shape = (target_rows.stop - start, source_rows.stop - source_rows.start)
        band = np.zeros(shape, float_type)
        for target_row in range(start, target_rows.stop):
            count = stop[target_row] - first[target_row]
            begin = first[target_row] - source_rows.start
            row_weights = integers[:count, target_row] / 2**bits
            band[target_row - start, begin : begin + count] = row_weights
        bands.append((target_rows, source_rows, band))
    return 0.5 / 2**bits, bands


def _weight_bits(max_weight: float) -> int:
    """The largest number of fractional bits, up to 21, with which all weights fit into 16 bits."""
    bits = 0
    while bits < _MAX_WEIGHT_BITS and max_weight * 2 ** (bits + 1) + 0.5 < _WEIGHT_LIMIT:
        bits += 1
    return bits


def _triangle(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kernel of bilinear interpolation."""
    return np.maximum(1.0 - distance, 0.0)


def _catmull_rom(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic with a = -0.5 (IEEE Transactions on Acoustics 29, 1981)."""
    x = distance
    near = (1.5 * x - 2.5) * x * x + 1.0
    far = (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


# For each filter: its name in cykooz-resizer, its kernel, and the radius of the kernel in pixels.
_KERNELS = {
    "bilinear": ("bilinear", _triangle, 1.0),
    "bicubic": ("catmull_rom", _catmull_rom, 2.0),
}


def _lanczos(pixels: Pixels, width: int, height: int) -> Pixels:
    """Scale with Pillow's Lanczos filter, whose kernel grows with the reduction.

    Pillow rounds the weights to 22 bits. All other steps are integer arithmetic.
    """
    # Four channels get the mode CMYK, because Pillow then scales each channel independently.
    image = _image(pixels, {1: "L", 3: "RGB", 4: "CMYK"}[pixels.shape[2]])
    scaled = image.resize((width, height), Image.Resampling.LANCZOS)
    return np.asarray(scaled).reshape(height, width, -1)


def _converted(pixels: Pixels, mode: str, new_mode: str) -> Pixels:
    return np.asarray(_image(pixels, mode).convert(new_mode))


def _image(pixels: Pixels, mode: str) -> Image.Image:
    """Copy pixels into a Pillow image."""
    size = pixels.shape[1], pixels.shape[0]
    return Image.frombytes(mode, size, np.ascontiguousarray(pixels).tobytes())


def _area_average(pixels: Pixels, width: int, height: int) -> Pixels:
    """Compute the mean of the source pixels that each target pixel covers. Halves are rounded up.

    A source pixel that is partly covered counts by the share that is covered. The result is exact,
    because all sums are fractions with the denominator (source width x source height).
    """
    area = pixels.shape[0] * pixels.shape[1]
    row_sums = _area_sums(pixels, height)
    column_sums = _area_sums(np.ascontiguousarray(row_sums.swapaxes(0, 1)), width)
    sums = column_sums.swapaxes(0, 1)
    means: NDArray[np.int64] = (2 * sums + area) // (2 * area)
    return means.astype(np.uint8)


def _area_sums(values: NDArray[np.integer], target: int) -> NDArray[np.int64]:
    """The sums over ``target`` equal intervals of the first axis, multiplied by ``target``."""
    size = len(values)
    sums = np.empty((target, *values.shape[1:]), np.int64)
    for interval in range(target):
        # Where the interval begins and ends, in rows multiplied by ``target``.
        begin = interval * size
        end = (interval + 1) * size
        first_row = begin // target
        stop_row = -(-end // target)  # rounded up
        covered = values[first_row:stop_row]
        first_values = covered[0].astype(np.int64)
        last_values = covered[-1].astype(np.int64)
        sums[interval] = target * covered.sum(axis=0, dtype=np.int64)
        # Subtract the shares of the first and the last row that are outside of the interval.
        sums[interval] -= (begin - first_row * target) * first_values
        sums[interval] -= (stop_row * target - end) * last_values
    return sums
