"""PURE. Group trials by their settings, and estimate the figures of the repeats of one setting.

Trials of one kind with equal parameters are repeats of each other. The figure of a setting is the
median over its repeats, with an interval. Related settings are measured in rounds: in each round,
every setting once. ``Trial.repeat`` is the number of the round. The ratio of two settings is taken
within rounds, because the trials of a round ran shortly after each other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, TypeGuard

from iobench.results.statistics import Estimate, estimate, median, ratio
from iobench.results.trial import Params, Trial

Repeats = Sequence[Trial]
"""Trials of one kind with equal parameters."""


class EstimateEntry(TypedDict):
    """A median with its interval, as ``result.json`` stores it."""

    median: float
    low: float
    high: float
    coverage: float
    repeats: int


def by_settings(trials: Iterable[Trial], kind: str) -> list[tuple[Params, list[Trial]]]:
    """Group the completed trials of one kind by their parameters.

    Args:
        trials: trials of any kind.
        kind: the kind of the trials to group.

    Returns:
        Parameters and repeats, in the order of the first repeat of each group.
    """
    groups: dict[str, tuple[Params, list[Trial]]] = {}
    for trial in trials:
        if trial.kind == kind and trial.status == "done":
            key = json.dumps(trial.params, sort_keys=True)
            _, repeats = groups.setdefault(key, (trial.params, []))
            repeats.append(trial)
    return list(groups.values())


def data_name(params: Params) -> str:
    """Return the name of a trial's data without its location: ``shards-16MB``."""
    return str(params.get("data", "")).partition("@")[0]


def is_on_store(params: Params) -> bool:
    """Return whether a trial's data are on an object store."""
    return str(params.get("data", "")).endswith("@s3")


def is_direct(params: Params) -> bool:
    """Return whether a loader reads its data with the access mode ``direct``, the default.

    No predictions are made for the other access modes.
    """
    return str(params.get("access", "direct")) == "direct"


def metric_values(repeats: Repeats, metric: str) -> list[float]:
    """Return the metric of every repeat that has it as a finite number."""
    values = []
    for trial in repeats:
        value = trial.metrics.get(metric)
        if is_number(value):
            values.append(float(value))
    return values


def estimate_of(repeats: Repeats, metric: str) -> Estimate | None:
    """Return the median of a metric with its interval; None if no repeat has the metric."""
    values = metric_values(repeats, metric)
    return estimate(values) if values else None


def median_of(repeats: Repeats, metric: str) -> float | None:
    """Return the median of a metric; None if no repeat has the metric."""
    values = metric_values(repeats, metric)
    return median(values) if values else None


def estimate_entry(figure: Estimate) -> EstimateEntry:
    """Return an estimate as ``result.json`` stores it."""
    return EstimateEntry(
        median=figure.median,
        low=figure.low,
        high=figure.high,
        coverage=figure.coverage,
        repeats=figure.repeats,
    )


def estimate_as_dict(figure: Estimate | None) -> EstimateEntry | None:
    """Return an estimate as ``result.json`` stores it; None if there is no estimate."""
    return None if figure is None else estimate_entry(figure)


def scaled(figure: Estimate, factor: float) -> Estimate:
    """Return an estimate whose median and interval are multiplied by a factor."""
    return replace(
        figure,
        median=figure.median * factor,
        low=figure.low * factor,
        high=figure.high * factor,
    )


def rate_metric(kind: str) -> str:
    """Return the name of the metric that is the rate of a kind of trial."""
    return "mb_per_s" if kind in ("disk", "object") else "samples_per_s"


def rate_of(repeats: Repeats) -> Estimate | None:
    """Return the rate in samples/s; None if no repeat has a rate above 0."""
    rates = [rate for rate in metric_values(repeats, "samples_per_s") if rate > 0]
    return estimate(rates) if rates else None


def rate_bounds(repeats: Repeats) -> tuple[float, float] | None:
    """Return the lowest lower and the highest upper bound of the rate in samples/s.

    None if the repeats have no bounds.
    """
    lows = metric_values(repeats, "samples_per_s_low")
    highs = metric_values(repeats, "samples_per_s_high")
    if not lows or not highs:
        return None
    return min(lows), max(highs)


def rate_ratio(repeats: Repeats, base: Repeats) -> Estimate | None:
    """Return the ratio of two rates in the same rounds; None if they have no round in common."""
    pairs = [pair for pair in paired_values(repeats, base, "samples_per_s") if pair[1] > 0]
    if not pairs:
        return None
    return ratio([rate for rate, _ in pairs], [base_rate for _, base_rate in pairs])


def paired_values(repeats: Repeats, others: Repeats, metric: str) -> list[tuple[float, float]]:
    """Return the metric of two settings, in pairs of repeats that ran in the same round."""
    others_by_round = {trial.repeat: trial.metrics.get(metric) for trial in others}
    pairs = []
    for trial in repeats:
        value, other = trial.metrics.get(metric), others_by_round.get(trial.repeat)
        if is_number(value) and is_number(other):
            pairs.append((float(value), float(other)))
    return pairs


def stored_sample_bytes(trial: Trial) -> float | None:
    """Return the mean stored bytes of a sample, from the MB/s and samples/s of a trial.

    None if the trial lacks one of these rates.
    """
    samples_per_s = trial.metrics.get("samples_per_s")
    mb_per_s = trial.metrics.get("mb_per_s")
    if not samples_per_s or not mb_per_s:
        return None
    return float(mb_per_s) * 1e6 / float(samples_per_s)


def is_scattered(trials: Repeats, metric: str = "samples_per_s") -> bool:
    """Return whether the repeats of a metric differ a lot.

    They do if there are three or more, and the largest is more than 1.5 times the smallest.
    """
    values = metric_values(trials, metric)
    return len(values) > 2 and min(values) > 0 and max(values) > 1.5 * min(values)


def epochs_of(repeats: Repeats) -> int | None:
    """Return how many whole epochs the rates cover: the minimum over repeats.

    None if a rate does not cover whole epochs.
    """
    epoch_counts = []
    for trial in repeats:
        epochs = trial.metrics.get("epochs")
        if trial.metrics.get("rate_rule") != "epochs" or not isinstance(epochs, list):
            return None
        samples_in_epoch = epochs[0].get("samples") if epochs else None
        samples = trial.metrics.get("samples")
        if not is_number(samples_in_epoch) or not is_number(samples) or samples_in_epoch <= 0:
            return None
        epoch_counts.append(max(1, round(samples / samples_in_epoch)))
    return min(epoch_counts, default=None)


def with_rate_over_epochs(trial: Trial, epochs: int) -> Trial:
    """Return the trial with the rate that it would have over another number of whole epochs.

    The first epoch contains the start of the workers. A rate over three epochs therefore contains a
    larger share of this start than a rate over fifteen, and the two are not comparable. A trial
    whose rate does not cover whole epochs, or that lacks the rate of its later epochs, is returned
    as it is.

    Args:
        trial: the trial.
        epochs: the number of whole epochs.
    """
    metrics = trial.metrics
    first_epoch_s = metrics.get("first_epoch_s")
    later_rate = metrics.get("steady_samples_per_s")
    measured_epochs = epochs_of([trial])
    if measured_epochs is None or not is_number(first_epoch_s) or not is_number(later_rate):
        return trial
    if later_rate <= 0 or first_epoch_s <= 0:
        return trial
    samples_in_epoch = float(metrics["samples"]) / measured_epochs
    seconds = first_epoch_s + (epochs - 1) * samples_in_epoch / later_rate
    rate = epochs * samples_in_epoch / seconds
    return replace(trial, metrics={**metrics, "samples_per_s": rate})


def arrival_rate(repeats: Repeats) -> Estimate | None:
    """Return the MB/s that a disk delivered during its probe; None if no repeat has a rate.

    The kernel reads ahead. At the end of the probe, the disk has therefore delivered bytes that the
    probe has not taken. The rate of the probe is multiplied by the bytes that came from the disk as
    a multiple of the bytes that the probe read, if this is above 1.
    """
    rate = estimate_of(repeats, "mb_per_s")
    colds = [trial.cold for trial in repeats if trial.cold is not None]
    ratios = [cold.physical_ratio for cold in colds if cold.physical_ratio is not None]
    if rate is None or not ratios:
        return rate
    return scaled(rate, max(1.0, median(ratios)))


def cold_label(repeats: Repeats) -> str:
    """Return the proved state of the page cache: the label that all repeats have.

    It is ``warm`` if their labels differ, and empty if no repeat has a label.
    """
    labels = [trial.cold.label for trial in repeats if trial.cold is not None]
    if not labels:
        return ""
    return labels[0] if len(set(labels)) == 1 else "warm"


def usable_cpus(environment: Mapping[str, Any]) -> float | None:
    """Return the CPUs that the run could use: the minimum of CPU affinity and control group.

    None if neither is known.
    """
    limits = [environment.get("processors"), environment.get("processor_quota")]
    return min((float(cpus) for cpus in limits if is_number(cpus) and cpus > 0), default=None)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number and not a bool."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < math.inf
