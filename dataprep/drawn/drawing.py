"""Draw random images that have the statistics of photographs.

A scene is drawn with the "dead leaves" model. It consists of ellipses that cover one another, and
whose sizes follow a power law (Lee, Mumford and Huang, "Occlusion models for natural images", IJCV
2001). Uneven light and sensor noise are added. Image sizes and JPEG settings are distributed as in
1,000 training images of ILSVRC2012.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Random = np.random.Generator | int | tuple[int, ...]
"""A random number generator, or its seed."""

# Cumulative distributions: shares of the images, and the largest value in each share. Values
# between them are interpolated. Many images have a long side of 500 pixels, which is Flickr's
# medium size.
_LONG_SIDES = (0, 0.03, 0.15, 0.88, 0.98, 1), (75, 250, 500, 500, 740, 1632)
_ASPECTS = (0, 0.05, 0.1, 0.35, 0.45, 0.85, 1), (0.29, 0.62, 0.667, 0.667, 0.75, 0.75, 1)
_QUALITIES = (75, 80, 85, 90, 93, *[96] * 10)
_FULL_COLOUR_SHARE = 0.25
_PORTRAIT_SHARE = 0.255
# The minimum and the maximum of hue, saturation and value in the surroundings of a subject.
_SURROUNDINGS_HSV = (20, 0.05, 0.15), (220, 0.4, 0.9)


class Style(NamedTuple):
    """The colours that all images of a class have, as RGB values from 0 to 255.

    Attributes:
        subject: the colour of the subject, float32 of shape (3,).
        surroundings: the colours around it, float32 of shape (9, 3).
    """

    subject: NDArray[np.float32]
    surroundings: NDArray[np.float32]


def draw_style(random: Random, hue: float) -> Style:
    """Choose the colours of a class whose subject has this hue, from 0 to 1."""
    hsv = np.random.default_rng(random).uniform(*_SURROUNDINGS_HSV, (10, 3)).astype(np.float32)
    hsv[0] = 360 * hue, 0.7, 0.8
    rgb = cv2.cvtColor(hsv[np.newaxis], cv2.COLOR_HSV2RGB)[0]
    colours = np.asarray(rgb * 255, np.float32)
    return Style(colours[0], colours[1:])


def draw_photo(random: Random, style: Style | None = None) -> bytes:
    """Draw a JPEG with a random size and settings, distributed as in ImageNet."""
    rng = np.random.default_rng(random)
    width = np.interp(rng.random(), *_LONG_SIDES)
    height = width * np.interp(rng.random(), *_ASPECTS)
    if rng.random() < _PORTRAIT_SHARE:
        width, height = height, width
    image = draw_image(rng, round(width), round(height), style)
    quality = int(rng.choice(_QUALITIES))
    subsampling = "444" if rng.random() < _FULL_COLOUR_SHARE else "420"
    return bytes(simplejpeg.encode_jpeg(image, quality, "RGB", subsampling, fastdct=False))


def draw_image(
    random: Random,
    width: int,
    height: int,
    style: Style | None = None,
    *,
    detail: float | None = None,
) -> Pixels:
    """Draw one scene.

    Args:
        random: a random number generator, or its seed.
        width, height: the size in pixels.
        style: the colours; random by default.
        detail: the amount of detail, from 0 (a clear sky) to 1 (foliage); random by default.

    Returns:
        RGB pixels, uint8 of shape (height, width, 3).
    """
    rng = np.random.default_rng(random)
    style = style or draw_style(rng, rng.random())
    detail = rng.beta(1.7, 1.25) if detail is None else detail
    canvas = np.full((height, width, 3), style.surroundings[0], np.uint8)
    _draw_surroundings(rng, canvas, style, detail)
    _draw_subject(rng, canvas, style)
    return _with_light_and_noise(rng, canvas, detail)


def _draw_surroundings(
    rng: np.random.Generator, canvas: Pixels, style: Style, detail: float
) -> None:
    """Cover the canvas with ellipses of all sizes, in the colours around the subject."""
    height, width, _ = canvas.shape
    count = round(8 + 200 * detail**1.4)
    # The density of the lengths falls with their third power. So all scales cover the same area.
    min_length = 0.03 + 0.1 * (1 - detail)
    divisors = np.sqrt(1 - rng.random((count, 1)))
    lengths = np.sqrt(width * height) * np.minimum(min_length / divisors, 0.6)
    axes = lengths * rng.uniform(0.4, 1, (count, 2))
    centres = rng.normal(0.5, 0.35, (count, 2)) * (width, height)
    angles = rng.uniform(0, 180, count)
    colours = rng.choice(style.surroundings, count)
    colours = colours * rng.uniform(0.45, 1.25, (count, 1))
    ellipses = zip(centres, axes, angles, strict=True)
    for ellipse, colour in zip(ellipses, colours, strict=True):
        _fill(canvas, ellipse, colour)


def _draw_subject(rng: np.random.Generator, canvas: Pixels, style: Style) -> None:
    """Draw a large ellipse near the centre. It is darker at its edge, like a sphere."""
    height, width, _ = canvas.shape
    centre = rng.uniform(0.35, 0.65, 2) * (width, height)
    axes = np.sqrt(width * height) * rng.uniform(0.25, 0.65, 2)
    angle = rng.uniform(0, 180)
    for step in np.linspace(0, 1, 9):  # from the edge to the centre
        colour = style.subject * (0.45 + 0.65 * step)
        inner_axes = axes * (1 - 0.75 * step)
        _fill(canvas, (centre, inner_axes, angle), colour)


def _with_light_and_noise(rng: np.random.Generator, canvas: Pixels, detail: float) -> Pixels:
    """Return the image with uneven light, and with noise that grows with the detail."""
    height, width, _ = canvas.shape
    brightness = rng.uniform(0.85, 1.2)
    coarse_light = rng.normal(brightness, 0.13, (4, 4)).astype(np.float32)
    light = cv2.resize(coarse_light, (width, height), interpolation=cv2.INTER_CUBIC)
    noise = rng.standard_normal((height, width), np.float32)
    gain = light + np.float32(0.01 + 0.17 * detail) * noise
    gains = cv2.merge([gain] * 3)
    return np.asarray(cv2.multiply(canvas, gains, dtype=cv2.CV_8U), np.uint8)


def _fill(canvas: Pixels, ellipse: Any, colour: NDArray[np.floating]) -> None:
    """Fill an ellipse: its centre, its axes, and its angle in degrees."""
    cv2.ellipse(canvas, ellipse, colour.tolist(), cv2.FILLED, cv2.LINE_AA)
