"""Tests of sizes and JPEG settings."""

from __future__ import annotations

import numpy as np
import pytest
import simplejpeg

from dataprep.sample.drawing import draw_image
from dataprep.sample.shots import (
    GREY_SHARE,
    SUBSAMPLING_SHARES,
    Shot,
    Subsampling,
    draw_shot,
    encode_shot,
)


@pytest.fixture(scope="module")
def shots() -> list[Shot]:
    """Draw 5,000 shots."""
    return [draw_shot(seed) for seed in range(5000)]


def test_sizes_are_distributed_as_in_imagenet(shots: list[Shot]) -> None:
    """Mean and median size and the shares of small, large and upright images are ImageNet's."""
    width = np.array([shot.width for shot in shots])
    height = np.array([shot.height for shot in shots])
    short = np.minimum(width, height)
    assert (np.median(width), np.median(height)) == (500, 375)
    assert width.mean() == pytest.approx(468, rel=0.02)
    assert height.mean() == pytest.approx(401, rel=0.02)
    assert (short < 256).mean() == pytest.approx(0.097, abs=0.02)
    assert (short >= 512).mean() == pytest.approx(0.052, abs=0.015)
    assert (height > width).mean() == pytest.approx(0.255, abs=0.03)


def test_settings_follow_their_shares(shots: list[Shot]) -> None:
    """Subsamplings and greyscale come in their shares, qualities between 75 and 97."""
    for subsampling, share in SUBSAMPLING_SHARES.items():
        drawn = np.mean([shot.subsampling == subsampling for shot in shots])
        assert drawn == pytest.approx(share, abs=0.02)
    assert np.mean([shot.grey for shot in shots]) == pytest.approx(GREY_SHARE, abs=0.008)
    qualities = {shot.quality for shot in shots}
    assert len(qualities) > 3
    assert all(75 <= quality <= 97 for quality in qualities)


@pytest.mark.parametrize("subsampling", ["420", "444", "422"])
def test_encoding_keeps_size_and_subsampling(subsampling: Subsampling) -> None:
    """The JPEG has the size and the subsampling of its shot."""
    shot = Shot(width=50, height=30, quality=80, subsampling=subsampling, grey=False)
    header = simplejpeg.decode_jpeg_header(encode_shot(draw_image(0, 50, 30), shot))
    assert header == (30, 50, "YCbCr", subsampling)


def test_grey_shots_have_one_channel() -> None:
    """A greyscale shot becomes a JPEG of one component."""
    shot = Shot(width=50, height=30, quality=80, subsampling="420", grey=True)
    header = simplejpeg.decode_jpeg_header(encode_shot(draw_image(0, 50, 30), shot))
    assert header[2] == "Gray"
