"""Batches too small for their device."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.trial import Trial
from tests.iobench.diagnosis.made_loops import GPU, by_code, trials


def sized(batch: int, rate: float, **params: Any) -> list[Trial]:
    """A loop on resident data with batches of that size."""
    told = {"group": f"batch {batch}", "batch_size": batch, **params}
    return trials("synthetic", 100 / rate, params=told)


@pytest.mark.parametrize(("rate", "fires"), [(106.0, True), (104.0, False)])
def test_a_device_whose_rate_still_grows(rate: float, fires: bool) -> None:
    """By more than 5 %, beside the same loop with a larger batch."""
    found = by_code(sized(32, 100.0), sized(64, rate))
    assert ("batch-too-small" in found) is fires
    if fires:
        assert found["batch-too-small"].evidence == (
            "batch 32: on data in its memory the device takes 100 samples/s in batches of 32, and "
            "106 in batches of 64"
        )


@pytest.mark.parametrize("differing", [{"model": "lenet"}, {"image_size": 32}])
def test_only_loops_of_the_same_work_are_compared(differing: dict[str, Any]) -> None:
    """Another network's rate says nothing."""
    assert "batch-too-small" not in by_code(sized(32, 100.0), sized(64, 500.0, **differing))


def test_a_smaller_batch_that_is_faster_is_none() -> None:
    """Then the large one is too large."""
    assert "batch-too-small" not in by_code(sized(32, 200.0), sized(64, 100.0))


@pytest.mark.parametrize(
    ("metrics", "used", "fires"), [(GPU, 0.79, True), (GPU, 0.81, False), ({}, 0.5, False)]
)
def test_a_gpu_that_waits_to_be_told(metrics: dict[str, Any], used: float, fires: bool) -> None:
    """A hint only, by NVML's utilisation on resident data."""
    found = by_code(trials("synthetic", 1.0, gpu_utilisation_share=used, **metrics))
    assert ("batch-too-small" in found) is fires
    if fires:
        assert found["batch-too-small"].severity == "info"
