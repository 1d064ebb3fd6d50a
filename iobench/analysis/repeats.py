"""PURE. Repeats of one point: medians with intervals, and ratios taken within rounds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeGuard

from iobench.stats import Estimate, estimate, median, ratio
from iobench.trial import Params, Trial

Repeats = Sequence[Trial]


def by_settings(trials: Iterable[Trial], kind: str) -> list[tuple[Params, list[Trial]]]:
    """Completed trials of ``kind``, grouped by their params, in the order of the first of each."""
    points: dict[str, tuple[Params, list[Trial]]] = {}
    for trial in trials:
        if trial.kind == kind and trial.status == "done":
            key = json.dumps(trial.params, sort_keys=True)
            points.setdefault(key, (trial.params, []))[1].append(trial)
    return list(points.values())


def metric_values(trials: Repeats, metric: str) -> list[float]:
    """The metric of every repeat that has it."""
    found = (trial.metrics.get(metric) for trial in trials)
    return [float(value) for value in found if is_number(value)]


def estimate_of(trials: Repeats, metric: str) -> Estimate | None:
    """Median and interval over repeats; None where no repeat has the metric."""
    found = metric_values(trials, metric)
    return estimate(found) if found else None


def estimate_as_dict(found: Estimate | None) -> dict[str, Any] | None:
    """An estimate as ``result.json`` stores it."""
    return None if found is None else asdict(found)


def rate_of(trials: Repeats) -> Estimate | None:
    """Samples/s; None where no repeat has a rate above 0."""
    positive = [rate for rate in metric_values(trials, "samples_per_s") if rate > 0]
    return estimate(positive) if positive else None


def epochs_of(trials: Repeats) -> int | None:
    """The whole epochs that the rate of each repeat covers, the fewest of all repeats.

    None where a rate does not cover whole epochs.
    """
    numbers = []
    for trial in trials:
        records = trial.metrics.get("epochs")
        if trial.metrics.get("rate_rule") != "epochs" or not isinstance(records, list):
            return None
        in_epoch = records[0].get("samples") if records else None
        samples = trial.metrics.get("samples")
        if not is_number(in_epoch) or not is_number(samples) or in_epoch <= 0:
            return None
        numbers.append(max(1, round(samples / in_epoch)))
    return min(numbers, default=None)


def over_epochs(trial: Trial, epochs: int) -> Trial:
    """The trial with the rate that it would have over this number of whole epochs.

    The first epoch contains the start of the workers. A rate over three epochs therefore contains a
    larger share of this start than a rate over fifteen, and the two are not comparable. A trial
    whose rate does not cover whole epochs is returned as it is.
    """
    metrics = trial.metrics
    first_epoch_s, later_rate = (
        metrics.get(name) for name in ("first_epoch_s", "steady_samples_per_s")
    )
    covered = epochs_of([trial])
    if covered is None or not is_number(first_epoch_s) or not is_number(later_rate):
        return trial
    if later_rate <= 0 or first_epoch_s <= 0:
        return trial
    in_epoch = float(metrics["samples"]) / covered
    seconds = first_epoch_s + (epochs - 1) * in_epoch / later_rate
    return replace(trial, metrics={**metrics, "samples_per_s": epochs * in_epoch / seconds})


def arrival_rate(trials: Repeats) -> Estimate | None:
    """MB/s that a disk delivered to its probe, read-ahead included; None without a rate.

    The kernel reads ahead of a buffered read. A probe that ends before it has taken these bytes
    gets less than the disk delivered.
    """
    rate = estimate_of(trials, "mb_per_s")
    ratios = [
        trial.cold.physical_ratio
        for trial in trials
        if trial.cold is not None and trial.cold.physical_ratio is not None
    ]
    if rate is None or not ratios:
        return rate
    delivered = max(1.0, median(ratios))
    return replace(
        rate, median=rate.median * delivered, low=rate.low * delivered, high=rate.high * delivered
    )


def median_of(trials: Repeats, metric: str) -> float | None:
    """The median; None where no repeat has the metric."""
    found = metric_values(trials, metric)
    return median(found) if found else None


def rate_bounds(trials: Repeats) -> tuple[float, float] | None:
    """The lowest lower and the highest upper bound of samples/s; None where repeats have none."""
    lows, highs = (metric_values(trials, f"samples_per_s_{end}") for end in ("low", "high"))
    return (min(lows), max(highs)) if lows and highs else None


def cold_label(trials: Repeats) -> str:
    """The label of all repeats: ``cold`` only if each was proved cold."""
    labels = [trial.cold.label for trial in trials if trial.cold is not None]
    if not labels:
        return ""
    return labels[0] if len(set(labels)) == 1 else "warm"


def paired_values(trials: Repeats, others: Repeats, metric: str) -> list[tuple[float, float]]:
    """The metric of two points, for repeats that ran in the same round."""
    beside = {trial.repeat: trial.metrics.get(metric) for trial in others}
    both = ((trial.metrics.get(metric), beside.get(trial.repeat)) for trial in trials)
    return [(float(a), float(b)) for a, b in both if is_number(a) and is_number(b)]


def rate_ratio(trials: Repeats, others: Repeats) -> Estimate | None:
    """The ratio of two rates within rounds; None where they share no round."""
    pairs = [pair for pair in paired_values(trials, others, "samples_per_s") if pair[1] > 0]
    return ratio([a for a, _ in pairs], [b for _, b in pairs]) if pairs else None


def usable_cpus(environment: Any) -> float | None:
    """CPUs that may be used: the lesser of affinity and control group; None where unknown."""
    told = [environment.get(key) for key in ("processors", "processor_quota")]
    return min((float(n) for n in told if is_number(n) and n > 0), default=None)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is a finite number and not a bool."""
    is_one = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_one and abs(value) < float("inf")
