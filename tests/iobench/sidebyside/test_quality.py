"""Tests of iobench.sidebyside.quality."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import simplejpeg

from iobench.sidebyside import quality
from iobench.sidebyside.quality import Pixels, alias, opencv, ours
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow


def test_the_default_keeps_more_than_an_area_average(few: Path) -> None:
    """On drawn images too: nearer to Lanczos, which is nearest to itself, and less aliasing."""
    default, area = ours(str(few), "bicubic").others, opencv(str(few), "INTER_AREA").others
    lanczos = ours(str(few), "lanczos").others
    assert area["psnr_dB"] < default["psnr_dB"] < lanczos["psnr_dB"]
    assert area["ssim"] < default["ssim"] < lanczos["ssim"] <= 1
    assert default["alias"] < area["alias"]


def test_aliasing() -> None:
    """Every other pixel, chosen without a filter, aliases far more than their mean."""

    def nearest(data: bytes, size: int) -> Pixels:
        return resized(data, size, cv2.INTER_NEAREST)

    def mean(data: bytes, size: int) -> Pixels:
        return resized(data, size, cv2.INTER_AREA)

    def resized(data: bytes, size: int, how: int) -> Pixels:
        plate = simplejpeg.decode_jpeg(data, "GRAY")[:, :, 0]
        return np.asarray(cv2.resize(plate, (size, size), interpolation=how), np.uint8)

    assert alias(nearest) > 2 * alias(mean)


def test_the_contest_runs_once(tmp_path: Path, few: Path) -> None:
    """Nothing in it is random; the default comes first."""
    (contest,) = quality.contests(Workplace(tmp_path, few, 6))
    assert contest.repeats == 1
    assert contest.contenders[0].arguments["filter"] == "bicubic"
