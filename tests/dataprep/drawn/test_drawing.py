"""Drawn pictures have the statistics of photographs."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from dataprep.drawn.drawing import draw_image, draw_photo, draw_style


@pytest.mark.parametrize("size", [(1, 1), (1, 40), (3000, 8), (7, 5), (333, 500)])
def test_any_size_can_be_drawn(size: tuple[int, int]) -> None:
    """An image is uint8 of the requested width and height, in three channels."""
    image = draw_image(0, *size)
    assert image.shape == (size[1], size[0], 3)
    assert image.dtype == np.uint8


def test_a_seed_determines_the_pixels() -> None:
    """The same seed gives the same image, and another seed another one."""
    assert np.array_equal(draw_image(1, 80, 60), draw_image(1, 80, 60))
    assert not np.array_equal(draw_image(1, 80, 60), draw_image(2, 80, 60))
    assert draw_photo((3, 1)) == draw_photo((3, 1)) != draw_photo((3, 2))


def test_channels_are_correlated_as_in_photographs() -> None:
    """The three channels are strongly correlated, and yet not the same."""
    correlations = []
    for seed in range(20):
        red, green, _ = draw_image(seed, 200, 150, detail=0.5).reshape(-1, 3).T
        correlations.append(float(np.asarray(np.corrcoef(red, green))[0, 1]))
    assert 0.7 < np.median(correlations) < 0.995


def test_power_falls_as_in_photographs() -> None:
    """The power spectrum falls with an exponent near the 2.5 that was measured on ImageNet."""
    slopes = []
    window = np.hanning(256)[:, None] * np.hanning(256)
    down, across = np.meshgrid(*[np.fft.fftfreq(256)] * 2, indexing="ij")
    frequency = np.hypot(down, across)
    bands = np.array([0.03, 0.04, 0.08, 0.16, 0.32])
    for seed in range(20):
        grey = draw_image(seed, 256, 256).mean(axis=-1)
        power = np.abs(np.fft.fft2((grey - grey.mean()) * window)) ** 2
        means = [
            power[(frequency > 0.7 * band) & (frequency < 1.5 * band)].mean() for band in bands
        ]
        slopes.append(np.polyfit(np.log(bands), np.log(means), 1)[0])
    assert np.mean(slopes) == pytest.approx(-2.5, abs=0.35)


def test_detail_costs_bytes() -> None:
    """More detail means more bytes for each pixel."""
    bytes_of = []
    for detail in (0.0, 0.5, 1.0):
        sizes = []
        for seed in range(5):
            sink = io.BytesIO()
            Image.fromarray(draw_image(seed, 300, 200, detail=detail)).save(sink, "JPEG")
            sizes.append(len(sink.getvalue()))
        bytes_of.append(np.mean(sizes))
    assert bytes_of[0] * 1.5 < bytes_of[1] < bytes_of[2]


def test_classes_can_be_distinguished() -> None:
    """The mean colours of one style are closer to each other than those of several styles."""
    means = np.empty((6, 8, 3))
    for group in range(6):
        style = draw_style(group, group / 6)
        for number in range(8):
            image = draw_image(100 * group + number, 64, 64, style)
            means[group, number] = image.mean((0, 1))
    hues = means - means.mean(axis=-1, keepdims=True)
    assert hues.std(axis=1).mean() < 0.8 * hues.reshape(-1, 3).std(axis=0).mean()


def test_a_style_has_the_hue_asked_for() -> None:
    """The subject of a style of hue 0 is red, and that of hue 2/3 is blue."""
    assert np.argmax(draw_style(3, hue=0.0).subject) == 0
    assert np.argmax(draw_style(3, hue=2 / 3).subject) == 2
