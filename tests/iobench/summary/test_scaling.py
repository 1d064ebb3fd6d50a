"""Scaling efficiency over numbers of devices."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.summary.scaling import scaling
from iobench.trial import Trial


def trial(devices: int, repeat: int, rate: float, **changed: Any) -> Trial:
    """A trial of a loop; one device is no word."""
    params: dict[str, Any] = {"model": "resnet50", "loader": "x", "input": "warm"}
    params |= {"group": f"{devices} devices", **changed}
    params |= {"devices": devices} if devices > 1 else {}
    metrics = {"samples_per_s": rate, **({"devices": devices} if devices > 1 else {})}
    return Trial("t", "train", params, repeat, "done", metrics)


def test_efficiency_is_taken_within_repeats() -> None:
    """The rate of N over N times that of the fewest, with its interval."""
    trials = [trial(2, 0, 200.0), trial(2, 1, 100.0), trial(4, 0, 380.0), trial(4, 1, 180.0)]
    few, many = scaling(trials)
    assert (few["devices"], few["efficiency"]) == (2, None)
    assert many["devices"] == 4
    efficiency = many["efficiency"]
    assert efficiency["median"] == pytest.approx(0.925)
    assert (efficiency["low"], efficiency["high"]) == pytest.approx((0.9, 0.95))
    assert many["samples_per_s"]["median"] == 280.0


def test_only_the_same_loop_is_compared() -> None:
    """Other inputs and batches are other loops; a single number of devices is no comparison."""
    other = [trial(1, 0, 50.0, input="cold"), trial(2, 0, 99.0, batch_size=3)]
    assert scaling(other) == []
    assert [row["input"] for row in scaling([*other, trial(2, 0, 80.0, input="cold")])] == [
        "cold",
        "cold",
    ]
