"""Pictures with the statistics of photographs, drawn from random numbers alone.

A scene is a backdrop, "dead leaves" (shapes that hide one another, with sizes after a power law:
Lee, Mumford and Huang, "Occlusion models for natural images", IJCV 2001), a subject, and light,
texture and grain, nearly alike in the three channels.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from dataprep.sample.noise import TEXTURES, Texture, draw_grain, draw_texture

Pixels = NDArray[np.uint8]
Colour = tuple[int, int, int]
Outline = Literal["blob", "ellipse", "polygon", "star"]
Pattern = Literal["plain", "spots", "stripes"]

_SUBPIXEL_BITS = 4
_OUTLINES: tuple[Outline, ...] = ("blob", "ellipse", "polygon", "star")
_PATTERNS: tuple[Pattern, ...] = ("plain", "spots", "stripes")
# Brick, earth, sand, grass, leaves, water and sky.
_SURROUNDING_HUES = (0.03, 0.08, 0.12, 0.22, 0.3, 0.52, 0.59)


@dataclass(frozen=True, slots=True)
class Style:
    """What the images of one class share."""

    subject: tuple[Colour, ...]
    surroundings: tuple[Colour, ...]
    outline: Outline
    pattern: Pattern
    texture: Texture


def draw_style(rng: np.random.Generator | int, hue: float | None = None) -> Style:
    """Draw the colours, outlines and textures of a class.

    ``hue`` of its subjects runs round the colour circle from 0 to 1, drawn where None.
    """
    rng = np.random.default_rng(rng)
    hue = rng.random() if hue is None else hue
    around = rng.permutation(_SURROUNDING_HUES)[:3]
    return Style(
        subject=tuple(_colour(rng, hue, 0.04, (0.35, 0.8), (0.4, 0.95)) for _ in range(4)),
        surroundings=tuple(
            _colour(rng, around[number % 3], 0.03, (0.08, 0.55), (0.15, 0.9)) for number in range(9)
        ),
        outline=_OUTLINES[rng.integers(len(_OUTLINES))],
        pattern=_PATTERNS[rng.integers(len(_PATTERNS))],
        texture=TEXTURES[rng.integers(len(TEXTURES))],
    )


def draw_image(
    rng: np.random.Generator | int,
    width: int,
    height: int,
    style: Style | None = None,
    *,
    detail: float | None = None,
) -> Pixels:
    """Draw one RGB scene, uint8 of shape (height, width, 3).

    ``detail`` is how busy it is, from 0 (a clear sky) to 1 (foliage), drawn where None.
    """
    rng = np.random.default_rng(rng)
    style = draw_style(rng) if style is None else style
    detail = rng.beta(1.7, 1.25) if detail is None else detail
    canvas = _backdrop(rng, width, height, style, detail)
    _scatter(canvas, rng, style, detail)
    if rng.random() > 0.25 + 0.6 * detail:
        canvas = _defocus(canvas, rng.uniform(2.0, 8.0))
    _subject(canvas, rng, style, detail)
    return _develop(canvas, rng, style, detail)


def _colour(
    rng: np.random.Generator,
    hue: float,
    spread: float,
    saturation: tuple[float, float],
    value: tuple[float, float],
) -> Colour:
    shade = colorsys.hsv_to_rgb(
        (hue + rng.normal(0, spread)) % 1.0, rng.uniform(*saturation), rng.uniform(*value)
    )
    red, green, blue = (round(255 * part) for part in shade)
    return red, green, blue


def _backdrop(
    rng: np.random.Generator, width: int, height: int, style: Style, detail: float
) -> Pixels:
    """RGB and, as a fourth channel, how strongly the place is textured."""
    ends = np.empty((2, 4), np.float64)
    ends[:, :3] = rng.permutation(np.array(style.surroundings))[:2]
    ends[0, :3] = 0.45 * ends[0, :3] + 130
    ends[:, 3] = rng.uniform(0, 120, 2) * detail
    share = np.linspace(0, 1, height)[:, None]
    column = ends[0] * (1 - share) + ends[1] * share
    canvas = np.repeat(column.astype(np.uint8)[:, None, :], width, axis=1)
    horizon = rng.uniform(0.3, 0.7)
    for _ in range(int(rng.integers(4))):
        _ridge(canvas, rng, horizon, (*_pick(rng, style), 255 * detail * rng.random()))
        horizon += rng.uniform(0.1, 0.25)
    return canvas


def _pick(rng: np.random.Generator, style: Style) -> Colour:
    return style.surroundings[rng.integers(len(style.surroundings))]


def _ridge(
    canvas: Pixels, rng: np.random.Generator, horizon: float, paint: Sequence[float]
) -> None:
    """Fill the ground below a fractal line, or below a straight one as of a floor or of the sea."""
    height, width = canvas.shape[:2]
    line = np.zeros(2)
    rough = rng.choice((0.0, 0.12, 0.3))
    while len(line) < 64:
        middles = (line[:-1] + line[1:]) / 2 + rng.normal(0, rough, len(line) - 1)
        woven = np.empty(len(line) + len(middles))
        woven[::2], woven[1::2] = line, middles
        line, rough = woven, rough * 0.5
    across = np.linspace(-0.05, 1.05, len(line))
    ground = np.stack([across, horizon + line], axis=-1)
    corners = np.array([(1.05, 1.5), (-0.05, 1.5)])
    _leaf(canvas, np.concatenate([ground, corners]) * (width, height), paint)


def _scatter(canvas: Pixels, rng: np.random.Generator, style: Style, detail: float) -> None:
    height, width = canvas.shape[:2]
    count = round(8 + 380 * detail**1.4)
    reach = math.sqrt(width * height)
    # Density of radii falls with the third power, so that every scale hides as much.
    smallest = 0.05 * (1 - detail) + 0.016
    radii = reach * np.minimum(smallest / np.sqrt(rng.random(count) + 1e-9), 0.3)
    # In clumps, as things grow and are put.
    clumps = rng.random((8, 3)) * (1, 0.8, 1) + (0, 0.2, 0)
    clump = rng.integers(len(clumps), size=count)
    centres = clumps[clump, :2] + rng.normal(0, 0.16, (count, 2))
    outlines = _outlines(rng, count, _OUTLINES[rng.integers(len(_OUTLINES))])
    colours = np.array(style.surroundings + style.subject[:1])
    palette = colours[rng.integers(len(colours), size=(len(clumps), 2))]
    picked = palette[clump, rng.integers(2, size=count)] * rng.uniform(0.45, 1.25, (count, 1))
    textured = rng.uniform(0.1, 1.0, count) * 255 * detail
    for centre, radius, outline, colour, amount in zip(
        centres * (width, height), radii, outlines, picked, textured, strict=True
    ):
        if radius > 0.04 * reach:
            shadow = centre + radius * (outline + 0.06)
            _leaf(canvas, shadow, (*(0.45 * colour), amount))
        _leaf(canvas, centre + radius * outline, (*colour, amount))
    for _ in range(round(12 * detail * rng.random())):
        _twig(canvas, rng, style)


def _outlines(rng: np.random.Generator, count: int, kind: Outline) -> NDArray[np.float64]:
    """``count`` closed curves of mean radius about 1, of shape (count, points, 2)."""
    points = {"blob": 20, "ellipse": 20, "polygon": 5, "star": 12}[kind]
    angle = np.linspace(0, 2 * math.pi, points, endpoint=False)[None, :]
    radius = np.ones((count, points))
    if kind == "blob":
        for wave in range(2, 6):
            phase = rng.uniform(0, 2 * math.pi, (count, 1))
            radius += rng.normal(0, 0.35 / wave, (count, 1)) * np.cos(wave * angle + phase)
    elif kind == "star":
        radius[:, ::2] = rng.uniform(0.35, 0.6, (count, 1))
    else:
        angle = angle + rng.uniform(-0.5, 0.5, (count, points)) * (kind == "polygon")
    squeeze = rng.uniform(0.4, 1.0, (count, 1))
    turn = rng.uniform(0, 2 * math.pi, (count, 1))
    along, across = radius * np.cos(angle), squeeze * radius * np.sin(angle)
    return np.stack(
        [
            along * np.cos(turn) - across * np.sin(turn),
            along * np.sin(turn) + across * np.cos(turn),
        ],
        axis=-1,
    )


def _leaf(canvas: Pixels, points: NDArray[np.float64], paint: Sequence[float]) -> None:
    fixed = np.round(points * (1 << _SUBPIXEL_BITS)).astype(np.int32)
    cv2.fillPoly(canvas, [fixed], _paint(paint), lineType=cv2.LINE_AA, shift=_SUBPIXEL_BITS)


def _paint(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(min(max(float(value), 0.0), 255.0) for value in values)


def _twig(canvas: Pixels, rng: np.random.Generator, style: Style) -> None:
    height, width = canvas.shape[:2]
    heading = rng.uniform(0, 2 * math.pi) + np.cumsum(rng.normal(0, 0.12, 24))
    steps = np.stack([np.cos(heading), np.sin(heading)], axis=-1) * rng.uniform(0.01, 0.05)
    bends = np.cumsum(steps, axis=0) + rng.random(2)
    path = np.round(bends * (width, height) * (1 << _SUBPIXEL_BITS)).astype(np.int32)
    cv2.polylines(
        canvas,
        [path],
        False,
        _paint([0.6 * part for part in _pick(rng, style)] + [120.0]),
        thickness=1 + int(rng.integers(1 + min(width, height) // 60)),
        lineType=cv2.LINE_AA,
        shift=_SUBPIXEL_BITS,
    )


def _defocus(canvas: Pixels, shrink: float) -> Pixels:
    height, width = canvas.shape[:2]
    small = (max(1, round(width / shrink)), max(1, round(height / shrink)))
    near = cv2.resize(canvas, small, interpolation=cv2.INTER_AREA)
    far = cv2.resize(cv2.GaussianBlur(near, (3, 3), 0), (width, height))
    blurred = np.asarray(far, np.uint8)
    blurred[..., 3] //= 4
    return blurred


def _subject(canvas: Pixels, rng: np.random.Generator, style: Style, detail: float) -> None:
    """A body of a few rounded parts with the pattern of the class."""
    height, width = canvas.shape[:2]
    parts = int(rng.integers(1, 4))
    size = rng.uniform(0.16, 0.34) * math.sqrt(width * height)
    middle = np.array([width, height]) * rng.uniform(0.35, 0.65, 2)
    light = rng.uniform(0.12, 0.22) * np.array([rng.choice((-1, 1)), -1])
    for number, outline in enumerate(_outlines(rng, parts, style.outline)):
        radius = size * (1.0 if number == 0 else rng.uniform(0.35, 0.6))
        centre = middle + (number > 0) * size * rng.normal(0, 0.8, 2)
        colour = np.array(style.subject[number % len(style.subject)], np.float64)
        for step in np.linspace(0, 1, 9):
            shade = colour * (0.45 + 0.65 * step)
            place = centre + radius * (outline * (1 - 0.75 * step) + light * step)
            _leaf(canvas, place, (*shade, 40 + 200 * detail))
        _marks(canvas, rng, style, centre, radius, outline)


def _marks(
    canvas: Pixels,
    rng: np.random.Generator,
    style: Style,
    centre: NDArray[np.float64],
    radius: float,
    outline: NDArray[np.float64],
) -> None:
    if style.pattern == "plain":
        return
    count = 14 if style.pattern == "spots" else 7
    marks = _outlines(rng, count, "ellipse")
    inside = outline[rng.integers(len(outline), size=count)] * rng.uniform(0.1, 0.6, (count, 1))
    if style.pattern == "stripes":
        marks = marks * (0.06, 0.3)
        inside = inside * (1.0, 0.25)
    else:
        marks = marks * rng.uniform(0.06, 0.14, (count, 1, 1))
    shade = style.subject[-1]
    for mark, place in zip(marks, inside, strict=True):
        _leaf(canvas, centre + radius * (place + mark), (*(0.5 * part for part in shade), 90))


def _develop(canvas: Pixels, rng: np.random.Generator, style: Style, detail: float) -> Pixels:
    """Light, texture and the grain of the sensor, as a gain on each channel."""
    height, width = canvas.shape[:2]
    coarse = rng.normal(rng.uniform(0.85, 1.2), 0.13, (4, 4)).astype(np.float32)
    light = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    amount = canvas[..., 3] * np.float32(0.22 / 255)
    texture = amount * draw_texture(rng, width, height, style.texture)
    texture += amount * draw_texture(rng, width, height, "rough")
    grain = np.float32(0.012 + 0.125 * detail) * draw_grain(rng, width, height)
    gain = light * (1 + texture) + grain
    tint = draw_texture(rng, width, height, "soft") * np.float32(0.03)
    gains = cv2.merge([gain + tint, gain, gain - tint])
    return np.asarray(cv2.multiply(canvas[..., :3], gains, dtype=cv2.CV_8U), np.uint8)
