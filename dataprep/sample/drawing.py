"""Draw pictures with the statistics of photographs from random numbers.

A scene is "dead leaves": shapes that cover one another, with sizes after a power law (Lee, Mumford
and Huang, "Occlusion models for natural images", IJCV 2001). Light, texture and grain are added,
nearly alike in the three channels. The amplitude of the texture falls as 1/f (Field, "Relations
between the statistics of natural images and the response properties of cortical cells", JOSA A
1987). Sizes and JPEG settings are distributed as in 1,000 training images of ILSVRC2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Random = np.random.Generator | int | tuple[int, ...]
"""A source of random numbers, or a seed of one."""

_Floats = NDArray[np.float32]
_TILE = 512
_CORNERS = 16
# Brick, earth, sand, grass, leaves, water and sky.
_SURROUNDING_HUES = (0.03, 0.08, 0.12, 0.22, 0.3, 0.52, 0.59)
# Quantiles at equal steps from 0 to 1. Flickr's medium size has a long side of 500.
_LONG_SIDES = (75, 220, 310, 350, 400, 450, *[500] * 30, 510, 540, 600, 640, 750, 1632)
_ASPECTS = (0.292, 0.62, *[0.667] * 6, 0.7, *[0.75] * 9, 0.83, 0.93, 1.0)
_QUALITIES = (75, 80, 85, 90, 93, *[96] * 10)
_SUBSAMPLINGS = ("444", "420", "420", "420")
_PORTRAIT_SHARE = 0.255


class Style(NamedTuple):
    """What the images of one class share.

    Attributes:
        subject: float32 (3,), RGB from 0 to 255.
        surroundings: float32 (9, 3).
        roughness: 0 for shapes that are ellipses, larger for ragged ones.
    """

    subject: _Floats
    surroundings: _Floats
    roughness: float


def draw_style(random: Random, hue: float) -> Style:
    """Draw a style with a subject of this hue, 0 to 1."""
    rng = np.random.default_rng(random)
    hues = [*(rng.choice(_SURROUNDING_HUES, 9) + rng.normal(0, 0.03, 9)) % 1, hue]
    saturations, values = [*rng.uniform(0.08, 0.55, 9), 0.7], [*rng.uniform(0.15, 0.9, 9), 0.8]
    hsv = np.stack([np.multiply(hues, 360), saturations, values], axis=-1).astype(np.float32)
    colours = np.asarray(cv2.cvtColor(hsv[None], cv2.COLOR_HSV2RGB)[0] * 255, np.float32)
    return Style(colours[-1], colours[:-1], rng.uniform(0, 0.3))


def draw_photo(random: Random, style: Style | None = None) -> bytes:
    """Draw a JPEG with a size and settings as in ImageNet."""
    rng = np.random.default_rng(random)
    long = _quantile(rng, _LONG_SIDES)
    width, height = round(long), max(1, round(long * _quantile(rng, _ASPECTS)))
    if rng.random() < _PORTRAIT_SHARE:
        width, height = height, width
    image = draw_image(rng, width, height, style)
    quality, subsampling = int(rng.choice(_QUALITIES)), str(rng.choice(_SUBSAMPLINGS))
    return bytes(simplejpeg.encode_jpeg(image, quality, "RGB", subsampling, fastdct=False))


def draw_image(
    random: Random,
    width: int,
    height: int,
    style: Style | None = None,
    *,
    detail: float | None = None,
) -> Pixels:
    """Draw one RGB scene, uint8 (height, width, 3).

    ``detail`` is how busy it is, from 0 (a clear sky) to 1 (foliage); drawn where it is None.
    """
    rng = np.random.default_rng(random)
    style = style or draw_style(rng, rng.random())
    detail = rng.beta(1.7, 1.25) if detail is None else detail
    size, reach = np.array([width, height]), np.sqrt(width * height)
    canvas = np.full((height, width, 3), style.surroundings[0], np.uint8)
    count = round(8 + 200 * detail**1.4)
    colours = rng.choice(style.surroundings, count) * rng.uniform(0.45, 1.25, (count, 1))
    # The density of radii falls with the third power, so that every scale covers as much.
    smallest = 0.016 + 0.05 * (1 - detail)
    radii = reach * np.minimum(smallest / np.sqrt(rng.random(count) + 1e-9), 0.3)
    centres = rng.normal(0.5, 0.35, (count, 1, 2)) * size
    leaves = centres + radii[:, None, None] * _outlines(rng, count, style.roughness)
    for leaf, colour in zip(leaves, colours, strict=True):
        _fill(canvas, leaf, colour)
    centre = rng.uniform(0.35, 0.65, 2) * size
    outline = rng.uniform(0.16, 0.34) * reach * _outlines(rng, 1, style.roughness)[0]
    for step in np.linspace(0, 1, 9):  # darker at its edge, as a round body
        _fill(canvas, centre + outline * (1 - 0.75 * step), style.subject * (0.45 + 0.65 * step))
    return _developed(canvas, rng, detail)


def _outlines(rng: np.random.Generator, count: int, roughness: float) -> NDArray[np.float64]:
    """Draw closed curves of mean radius about 1, of shape (count, corners, 2)."""
    angle = np.linspace(0, 2 * np.pi, _CORNERS, endpoint=False)
    radius = 1 + rng.normal(0, roughness, (count, _CORNERS))
    curve = radius * np.cos(angle) + 1j * rng.uniform(0.4, 1, (count, 1)) * radius * np.sin(angle)
    turned = curve * np.exp(1j * rng.uniform(0, 2 * np.pi, (count, 1)))
    return np.stack([turned.real, turned.imag], axis=-1)


def _fill(canvas: Pixels, corners: NDArray[np.float64], colour: NDArray[np.floating]) -> None:
    sixteenths = np.round(corners * 16).astype(np.int32)
    paint = np.clip(colour, 0, 255).tolist()
    cv2.fillPoly(canvas, [sixteenths], paint, lineType=cv2.LINE_AA, shift=4)


def _developed(canvas: Pixels, rng: np.random.Generator, detail: float) -> Pixels:
    """Add light, texture and the grain of the sensor, as a gain on each channel."""
    height, width = canvas.shape[:2]
    coarse = rng.normal(rng.uniform(0.85, 1.2), 0.13, (4, 4)).astype(np.float32)
    light = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    texture, grain, tint = (_noise(rng, width, height, power) for power in (0.85, 0.0, 1.25))
    gain = light * (1 + np.float32(0.1 * detail) * texture)
    gain += np.float32(0.01 + 0.125 * detail) * grain
    gains = cv2.merge([gain + 0.03 * tint, gain, gain - 0.03 * tint])
    return np.asarray(cv2.multiply(canvas, gains, dtype=cv2.CV_8U), np.uint8)


def _noise(rng: np.random.Generator, width: int, height: int, power: float) -> _Floats:
    """Cut float32 (height, width) of zero mean and unit deviation from a periodic tile."""
    top, left = rng.integers(_TILE, size=2)
    rows = _tile(power).take(np.arange(top, top + height), axis=0, mode="wrap")
    return rows.take(np.arange(left, left + width), axis=1, mode="wrap")


@cache
def _tile(power: float) -> _Floats:
    """Make noise whose amplitude falls with this power of the frequency."""
    white = np.random.default_rng(round(100 * power)).standard_normal((_TILE, _TILE))
    frequency = np.hypot(np.fft.fftfreq(_TILE)[:, None], np.fft.rfftfreq(_TILE))
    frequency[0, 0] = np.inf
    field = np.fft.irfft2(np.fft.rfft2(white) / frequency**power)
    return np.asarray(field / field.std(), np.float32)


def _quantile(rng: np.random.Generator, quantiles: Sequence[float]) -> float:
    return float(np.interp(rng.random(), np.linspace(0, 1, len(quantiles)), quantiles))
