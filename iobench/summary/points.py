"""PURE. Repeats of one point, brought together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from iobench.stats import estimate
from iobench.trial import Params, Trial


def by_point(trials: Iterable[Trial], kind: str) -> list[tuple[Params, list[Trial]]]:
    """Trials of ``kind`` that are done, by their params, in the order of the first of each."""
    points: dict[str, tuple[Params, list[Trial]]] = {}
    for trial in trials:
        if trial.kind == kind and trial.status == "done":
            key = json.dumps(trial.params, sort_keys=True)
            points.setdefault(key, (trial.params, []))[1].append(trial)
    return list(points.values())


def figure(trials: Sequence[Trial], metric: str) -> dict[str, Any] | None:
    """Median and interval of a metric over repeats; None where no repeat has it."""
    values = [trial.metrics[metric] for trial in trials if trial.metrics.get(metric) is not None]
    return asdict(estimate(values)) if values else None


def cold_label(trials: Sequence[Trial]) -> str:
    """What all repeats can be called: ``cold`` only if each was proved so."""
    labels = [trial.cold.label for trial in trials if trial.cold is not None]
    if not labels:
        return ""
    return labels[0] if len(set(labels)) == 1 else "warm"


def in_pairs(
    trials: Sequence[Trial], others: Sequence[Trial], metric: str
) -> list[tuple[float, float]]:
    """The metric of two points, where both have it: of repeats that ran in the same round."""
    beside = {trial.repeat: trial.metrics.get(metric) for trial in others}
    both = ((trial.metrics.get(metric), beside.get(trial.repeat)) for trial in trials)
    return [(float(a), float(b)) for a, b in both if a is not None and b is not None]
