"""PURE. How the rate of a training loop grows with the number of its devices."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iobench.analysis.loops import Loop
from iobench.analysis.repeats import Repeats, estimate_as_dict, rate_of
from iobench.results.statistics import Estimate, estimate
from iobench.results.trial import Params


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """A loop with one input on one number of devices.

    Attributes:
        params: the parameters of the loop.
        devices: the number of devices.
        samples_per_s: the rate of all devices together; None if it was not measured.
        efficiency: the rate per device / the rate per device of the row with the fewest devices.
            Both rates are from the same repeat. None for the fewest devices, and if no repeat has
            both rates.
    """

    params: Params
    devices: int
    samples_per_s: Estimate | None
    efficiency: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``result.json`` stores it."""
        return {
            "model": self.params.get("model"),
            "loader": self.params.get("loader"),
            "input": self.params.get("input"),
            "devices": self.devices,
            "samples_per_s": estimate_as_dict(self.samples_per_s),
            "efficiency": estimate_as_dict(self.efficiency),
        }


def device_scaling(loops: Sequence[Loop]) -> list[ScalingRow]:
    """Return rows for loops that were measured with several numbers of devices.

    There is a row for each input and number of devices.
    """
    rows: list[ScalingRow] = []
    for by_devices in _trials_by_devices(loops):
        if len(by_devices) > 1:
            rows += _rows_of(by_devices)
    return rows


def _trials_by_devices(loops: Sequence[Loop]) -> list[dict[int, Repeats]]:
    """Return the trials of loops that differ only in their devices, by number of devices.

    Each mapping is for one input of these loops.
    """
    groups: dict[str, dict[int, Repeats]] = {}
    for loop in loops:
        for source, trials in loop.inputs.items():
            params = {**trials[0].params, "input": source}
            for name in ("devices", "group"):
                params.pop(name, None)
            key = json.dumps(params, sort_keys=True)
            groups.setdefault(key, {})[loop.devices] = trials
    return list(groups.values())


def _rows_of(by_devices: Mapping[int, Repeats]) -> Iterator[ScalingRow]:
    """Yield a row for each number of devices, the smallest number first."""
    fewest = min(by_devices)
    for devices in sorted(by_devices):
        trials = by_devices[devices]
        efficiency = None
        if devices != fewest:
            efficiency = _scaling_efficiency(trials, devices, by_devices[fewest], fewest)
        yield ScalingRow(trials[0].params, devices, rate_of(trials), efficiency)


def _scaling_efficiency(
    trials: Repeats, devices: int, base: Repeats, base_devices: int
) -> Estimate | None:
    """Return the rate per device in ``trials`` / the rate per device in ``base``.

    Both rates are from the same repeat. None if no repeat has both rates.

    Args:
        trials: the trials on ``devices`` devices.
        devices: their number of devices.
        base: the trials on the fewest devices.
        base_devices: the fewest devices.
    """
    base_rates = {trial.repeat: trial.metrics.get("samples_per_s") for trial in base}
    ratios = []
    for trial in trials:
        rate = trial.metrics.get("samples_per_s")
        base_rate = base_rates.get(trial.repeat)
        if rate and base_rate:
            ratios.append((rate / devices) / (base_rate / base_devices))
    return estimate(ratios) if ratios else None
