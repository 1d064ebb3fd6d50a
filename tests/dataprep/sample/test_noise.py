"""Tests of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from dataprep.sample.noise import TEXTURES, Field, Texture, draw_grain, draw_texture


def _slope(field: Field) -> float:
    """Exponent of the radial amplitude spectrum."""
    amplitude = np.abs(np.fft.fft2(field))
    down, across = np.meshgrid(*[np.fft.fftfreq(len(field))] * 2, indexing="ij")
    frequency = np.hypot(down, across)
    bands = np.array([0.02, 0.04, 0.08, 0.16, 0.32])
    means = [
        amplitude[(frequency > 0.7 * band) & (frequency < 1.4 * band)].mean() for band in bands
    ]
    return float(np.polyfit(np.log(bands), np.log(means), 1)[0])


@pytest.mark.parametrize("texture", TEXTURES)
def test_texture_is_standardised(texture: Texture) -> None:
    """A whole tile of texture has zero mean and unit deviation, as float32."""
    field = draw_texture(0, 512, 512, texture)
    assert field.dtype == np.float32
    assert abs(float(field.mean())) < 1e-3
    assert float(field.std()) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("texture", "slope"), [("rough", -0.85), ("soft", -1.25)])
def test_amplitude_falls_as_in_nature(texture: Texture, slope: float) -> None:
    """The amplitude of a texture falls with about the inverse of the frequency."""
    assert _slope(draw_texture(0, 512, 512, texture)) == pytest.approx(slope, abs=0.1)


def test_grain_is_white() -> None:
    """The amplitude of the grain is the same at all frequencies."""
    assert _slope(draw_grain(0, 512, 512)) == pytest.approx(0, abs=0.1)


def test_textures_have_a_direction() -> None:
    """Upright texture changes faster across than down, level texture the other way round."""
    for texture, sign in (("upright", 1), ("level", -1)):
        field = draw_texture(0, 512, 512, texture)  # type: ignore[arg-type]
        across = float(np.abs(np.diff(field, axis=1)).mean())
        down = float(np.abs(np.diff(field, axis=0)).mean())
        assert sign * (across - down) > 0.2 * min(across, down)


def test_pieces_larger_than_a_tile_wrap() -> None:
    """A piece may be larger than the tile that it is cut from."""
    field = draw_texture(0, 1300, 20, "rough")
    assert field.shape == (20, 1300)
    assert np.array_equal(field[:, :512], field[:, 512:1024])
