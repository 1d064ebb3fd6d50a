"""Tests of dataprep.image.strips: strips give what the whole image gives, in less memory."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from dataprep.errors import UnsupportedImage
from dataprep.image import strips

RNG = np.random.default_rng(4)
SAMPLES = RNG.integers(0, 2**16, (37, 23), dtype=np.uint16)
RGBA = RNG.integers(0, 256, (37, 23, 4), dtype=np.uint8)


@pytest.fixture(autouse=True, params=[1, 50, 2**20])
def _pixels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row at a time, two rows, and all of them."""
    monkeypatch.setattr(strips, "_PIXELS", request.param)


@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 3), (3, 10**7), (0, 5), (5, 0)])
def test_strips_are_all_rows_once(height: int, width: int) -> None:
    """From the first to the last, none twice, none beyond the end."""
    rows = [row for part in strips.strips(height, width) for row in range(part.start, part.stop)]
    assert rows == list(range(height))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_pixels_come_as_numpy_has_them(mode: str) -> None:
    """The array is that of the whole image."""
    image = Image.fromarray(RGBA).convert(mode)
    assert np.array_equal(strips.as_array(image), np.asarray(image))


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_transparency_is_laid_on_a_colour(mode: str) -> None:
    """As Pillow lays the whole image on it."""
    image, colour = Image.fromarray(RGBA), (9, 200, 30, 255)
    whole = Image.alpha_composite(Image.new("RGBA", image.size, colour), image).convert(mode)
    assert np.array_equal(np.asarray(strips.flattened(image, colour, mode)), np.asarray(whole))


def test_16_bits_are_rounded() -> None:
    """Every level is the nearest of 255; a transparent one becomes alpha."""
    image = Image.fromarray(SAMPLES)
    wanted = np.floor(SAMPLES / 65_535 * 255 + 0.5).astype(np.uint8)
    assert np.array_equal(np.asarray(strips.to_8_bits(image)), wanted)
    image.info["transparency"] = int(SAMPLES[5, 5])
    levels, alpha = strips.to_8_bits(image).split()
    assert np.array_equal(np.asarray(levels), wanted)
    assert np.array_equal(np.asarray(alpha), np.where(SAMPLES[5, 5] == SAMPLES, 0, 255))


def test_more_than_16_bits_anywhere_are_refused() -> None:
    """Also in the last row alone."""
    samples = SAMPLES.astype(np.int32)
    samples[-1, -1] = 65_536
    with pytest.raises(UnsupportedImage, match="no fixed range"):
        strips.to_8_bits(Image.fromarray(samples))
