"""Noise with the spectra of natural textures.

Its amplitude falls as about 1/f (Field, "Relations between the statistics of natural images and
the response properties of cortical cells", JOSA A 1987). Pieces are cut from a few periodic
tiles, each transformed once in a process.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float32]
Texture = Literal["rough", "soft", "upright", "level"]
TEXTURES: tuple[Texture, ...] = get_args(Texture)

_TILE = 512
# Exponent of the amplitude spectrum, and how much longer the texture is down than across.
_SPECTRA: dict[Texture, tuple[float, float]] = {
    "rough": (0.85, 1.0),
    "soft": (1.25, 1.0),
    "upright": (1.0, 4.0),
    "level": (1.0, 0.25),
}


def draw_texture(
    rng: np.random.Generator | int, width: int, height: int, texture: Texture
) -> Field:
    """Cut a (height, width) float32 piece from noise of zero mean and unit deviation."""
    return _cut(_tile(*_SPECTRA[texture]), np.random.default_rng(rng), width, height)


def draw_grain(rng: np.random.Generator | int, width: int, height: int) -> Field:
    """Cut a (height, width) float32 piece from white noise of unit deviation."""
    return _cut(_tile(0.0, 1.0), np.random.default_rng(rng), width, height)


@cache
def _tile(exponent: float, stretch: float) -> Field:
    rng = np.random.default_rng((round(100 * exponent), round(100 * stretch)))
    down = np.fft.fftfreq(_TILE)[:, None] * np.sqrt(stretch)
    across = np.fft.rfftfreq(_TILE)[None, :] / np.sqrt(stretch)
    frequency = np.hypot(down, across)
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(rng.standard_normal((_TILE, _TILE)))
    field = np.fft.irfft2(spectrum / frequency**exponent, s=(_TILE, _TILE))
    return np.asarray((field - field.mean()) / field.std(), np.float32)


def _cut(tile: Field, rng: np.random.Generator, width: int, height: int) -> Field:
    top, left = rng.integers(_TILE, size=2)
    rows = tile.take(np.arange(top, top + height), axis=0, mode="wrap")
    return rows.take(np.arange(left, left + width), axis=1, mode="wrap")
