"""PURE. How a training loop scales: the same loop on different numbers of devices.

The efficiency of N devices is their rate over N times the rate of one, by the fewest devices that
were measured: ``rate(N) / N ÷ rate(N0) / N0``. Ratios are taken within repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from iobench.stats import estimate
from iobench.trial import Trial

_OTHERWISE = ("devices", "group")


def scaling(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """A row for each number of devices of each loop and input that has several numbers."""
    loops: dict[str, dict[int, dict[int, float]]] = {}
    named: dict[str, Mapping[str, Any]] = {}
    for trial in trials:
        rate = trial.metrics.get("samples_per_s")
        if trial.kind != "train" or trial.status != "done" or not rate:
            continue
        same = {key: value for key, value in trial.params.items() if key not in _OTHERWISE}
        key = repr(sorted(same.items(), key=lambda item: item[0]))
        count = int(trial.metrics.get("devices", 1))
        loops.setdefault(key, {}).setdefault(count, {})[trial.repeat] = rate
        named[key] = trial.params
    rows = []
    for key, by_count in loops.items():
        if len(by_count) > 1:
            rows += [{**_named(named[key]), **row} for row in _rows(by_count)]
    return rows


def _named(params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: params.get(key) for key in ("model", "loader", "input")}


def _rows(by_count: Mapping[int, Mapping[int, float]]) -> list[dict[str, Any]]:
    fewest = min(by_count)
    base, rows = by_count[fewest], []
    for count in sorted(by_count):
        rates = by_count[count]
        both = sorted({*rates} & {*base})
        ratios = [rates[repeat] / count / (base[repeat] / fewest) for repeat in both]
        efficiency = asdict(estimate(ratios)) if ratios and count != fewest else None
        found = asdict(estimate([*rates.values()]))
        rows.append({"devices": count, "samples_per_s": found, "efficiency": efficiency})
    return rows
