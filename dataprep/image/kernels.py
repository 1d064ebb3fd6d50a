"""Antialiased resizing by convolution, defined in whole numbers.

A target pixel is a weighted sum over the source pixels that its kernel covers, first down, then
across; the kernel is as wide as the reduction. Weights are IEEE doubles made by additions,
multiplications and divisions alone, normalised to 1 and rounded to as many bits as 16 hold; sums
are whole numbers, halves are rounded up after either pass. The arithmetic is that of the Rust
crate ``fast_image_resize`` (6.0, after Pillow-SIMD), whose vector instructions ``resampling`` uses:
what it gives on any processor is what this gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.image.pixels import Pixels

_WEIGHT_BITS = 15  # and a sign
_SUM_BITS = 22  # of 32: a sign, 8 bits of a pixel, 1 for kernels whose weights exceed 1
_A = -0.5


def _bilinear(distance: float) -> float:
    return 1.0 - distance if distance < 1.0 else 0.0


def _bicubic(distance: float) -> float:
    """Keys' kernel with a = -0.5, also known as Catmull and Rom's."""
    if distance < 1.0:
        return ((_A + 2.0) * distance - (_A + 3.0)) * distance * distance + 1.0
    if distance < 2.0:
        return (((distance - 5.0) * distance + 8.0) * distance - 4.0) * _A
    return 0.0


class _Kernel(NamedTuple):
    weight: Callable[[float], float]
    radius: float


_KERNELS = {"bilinear": _Kernel(_bilinear, 1.0), "bicubic": _Kernel(_bicubic, 2.0)}


class Weights(NamedTuple):
    """Of each target pixel along one axis: the first source pixel, and weights from there on.

    ``values`` is int32 (target, taps), zero beyond a kernel's end; ``bits`` are their fraction.
    """

    first: NDArray[np.int64]
    values: NDArray[np.int32]
    bits: int


@lru_cache(maxsize=64)
def weights(source: int, target: int, filter: str) -> Weights:
    """The weights by which ``source`` pixels become ``target``; ``bilinear`` or ``bicubic``."""
    kernel = _KERNELS[filter]
    scale = source / target
    reach = max(scale, 1.0)
    radius, narrow = kernel.radius * reach, 1.0 / reach
    rows: list[tuple[int, list[float]]] = []
    for pixel in range(target):
        centre = (pixel + 0.5) * scale
        start = int(max(math.floor(centre - radius), 0.0))
        stop = int(min(math.ceil(centre + radius), float(source)))
        middle = centre - 0.5
        row = [kernel.weight(abs((x - middle) * narrow)) for x in range(start, stop)]
        rows.append(_normalised(start, row))
    bits = _bits(max(max(row) for _, row in rows))
    taps = max(len(row) for _, row in rows)
    values = np.zeros((target, taps), np.int32)
    for pixel, (_, row) in enumerate(rows):
        values[pixel, : len(row)] = [_rounded(value * 2.0**bits) for value in row]
    return Weights(np.array([start for start, _ in rows]), values, bits)


def convolve(pixels: Pixels, width: int, height: int, filter: str) -> Pixels:
    """Scale uint8 (height, width, channels) by ``bilinear`` or ``bicubic``."""
    if pixels.shape[0] != height:
        pixels = _pass(pixels, weights(pixels.shape[0], height, filter))
    if pixels.shape[1] != width:
        across = weights(pixels.shape[1], width, filter)
        pixels = _pass(pixels.swapaxes(0, 1), across).swapaxes(0, 1)
    return np.ascontiguousarray(pixels)


def _pass(pixels: Pixels, along: Weights) -> Pixels:
    """Weighted sums over the first axis."""
    last = len(pixels) - 1
    total = np.full((len(along.first), *pixels.shape[1:]), 1 << (along.bits - 1), np.int32)
    for tap, values in enumerate(along.values.T):
        rows = np.minimum(along.first + tap, last)  # beyond the kernel the weight is 0
        total += pixels[rows] * values[:, np.newaxis, np.newaxis]
    mean: Pixels = np.clip(total >> along.bits, 0, 255).astype(np.uint8)
    return mean


def _normalised(start: int, row: list[float]) -> tuple[int, list[float]]:
    """Without zeros at either end, summing to 1."""
    total = 0.0
    for value in row:
        total += value
    while row[0] == 0.0:
        start, row = start + 1, row[1:]
    while row[-1] == 0.0:
        row = row[:-1]
    return start, [value / total for value in row]


def _bits(largest: float) -> int:
    for bits in range(_SUM_BITS):
        if _rounded(largest * 2.0 ** (bits + 1)) >= 1 << _WEIGHT_BITS:
            return bits
    return _SUM_BITS - 1


def _rounded(value: float) -> int:
    """To the nearest, halves away from zero."""
    return math.floor(value + 0.5) if value >= 0 else -math.floor(0.5 - value)
