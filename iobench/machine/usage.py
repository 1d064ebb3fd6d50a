"""PURE. The resources that a trial and the machine used during the steps that count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from iobench.machine.sampling import Samples
from iobench.results.result import Columns
from iobench.results.trial import Outcome

Spans: TypeAlias = Sequence[tuple[float, float]]
"""The begin and the end of each of several periods, in seconds."""

_MEMORY = {"PSS": "tree.pss_bytes", "RSS": "tree.rss_bytes"}
"""The columns with the memory of the processes, by the name of the measure.

PSS is preferred, since RSS counts shared pages once for each process.
"""


class _Mean(NamedTuple):
    """A metric that is the mean of a sum of columns.

    Attributes:
        metric: the name of the metric.
        columns: the columns that are added up.
        divisor: converts the mean into the unit of the metric, by division.
    """

    metric: str
    columns: tuple[str, ...]
    divisor: float = 1.0


_MEANS = (
    _Mean("cores_busy", ("tree.user_cores", "tree.system_cores")),
    _Mean("worker_cores_busy", ("tree.worker_cores",)),
    _Mean("cpu_busy_share", ("cpu.user_share", "cpu.system_share", "cpu.steal_share")),
    _Mean("cpu_iowait_share", ("cpu.iowait_share",)),
    _Mean("disk_read_mb_per_s", ("disk.read_bytes_per_s",), 1e6),
    _Mean("network_received_mb_per_s", ("network.received_bytes_per_s",), 1e6),
)
_MAX_PAUSED_SHARE = 0.05
"""The largest share of an interval between two readings that may be pauses.

Short pauses are accepted, since several epochs of small data can end between two readings. Without
this tolerance, no interval would count.
"""
_GPU = re.compile(r"gpu\.\d+_utilisation_share")


def add_samples(outcome: Outcome, samples: Samples, begun_s: float) -> Outcome:
    """Add readings, their cost and their notes to an outcome.

    The times of the readings are changed to count from ``origin_s`` of the outcome. Readings before
    this origin, while the loader is opened and warms up, have a negative time. If the trial ran a
    loop, the ``usage`` in the steps that count is added to its metrics.

    Args:
        outcome: the outcome of a trial.
        samples: the readings.
        begun_s: the origin for an outcome that has none, in seconds on the machine's monotonic
            clock.
    """
    origin_s = begun_s if outcome.origin_s is None else outcome.origin_s
    columns = dict(samples.columns)
    if columns:
        columns["time_s"] = [(time_s or 0.0) - origin_s for time_s in columns["time_s"]]
    metrics = dict(outcome.metrics)
    if outcome.counted_s is not None:
        count = outcome.metrics.get("samples", 0)
        metrics |= usage(columns, *outcome.counted_s, count, outcome.pauses)
    metrics["sampling_core_share"] = samples.core_share
    metrics["sampling_notes"] = list(samples.notes)
    return replace(outcome, metrics=metrics, samples=columns, origin_s=origin_s)


def usage(
    columns: Columns, begin_s: float, end_s: float, samples: float, pauses: Spans = ()
) -> dict[str, float | str]:
    """Return the resources that were used during some steps, by the names of their metrics.

    Memory is the largest PSS from the first request to the end of the steps, or the largest RSS if
    PSS was not read in this time. The other figures are means over the intervals between two
    readings. An interval counts if it is within the steps and at most 5 % of it are pauses.
    ``gpu_utilisation_share`` is the mean of all GPUs. Figures without enough readings are left out.

    Args:
        columns: the readings; their ``time_s`` counts from the request for the first batch.
        begin_s: the begin of the steps, in seconds after the same moment.
        end_s: the end of the steps, in seconds after the same moment.
        samples: the number of samples of the steps.
        pauses: periods between ``begin_s`` and ``end_s`` in which no step ran.
    """
    means: dict[str, float] = {}
    for metric, names, divisor in _MEANS:
        mean = _mean(columns, names, begin_s, end_s, pauses)
        if mean is not None:
            means[metric] = mean / divisor
    paused_s = sum(until_s - from_s for from_s, until_s in pauses)
    counted_s = end_s - begin_s - paused_s
    for prefix in ("", "worker_"):
        if samples > 0 and f"{prefix}cores_busy" in means:
            cpu_s = means[f"{prefix}cores_busy"] * counted_s
            means[f"{prefix}cpu_s_per_1000_samples"] = 1000 * cpu_s / samples
    gpus = [name for name in columns if _GPU.fullmatch(name)]
    total = _mean(columns, gpus, begin_s, end_s, pauses) if gpus else None
    if total is not None:
        means["gpu_utilisation_share"] = total / len(gpus)
    return {**_memory(columns, end_s), **means}


def _memory(columns: Columns, end_s: float) -> dict[str, float | str]:
    """Return the largest memory from the first request to ``end_s``, and how it was counted.

    The result is empty if the memory was not read in this time.
    """
    for counted_as, column in _MEMORY.items():
        if column not in columns:
            continue
        sizes = []
        for time_s, size in zip(columns["time_s"], columns[column], strict=True):
            if size and 0 <= (time_s or 0) <= end_s:
                sizes.append(size)
        if sizes:
            return {"memory_bytes": int(max(sizes)), "memory_counted": counted_as}
    return {}


def _mean(
    columns: Columns, names: Sequence[str], begin_s: float, end_s: float, pauses: Spans
) -> float | None:
    """Return the mean of the sum of some columns, over the intervals between two readings.

    Each value of a column is the mean rate since the previous reading, so it is weighted by the
    length of this interval. If rows have been dropped (``sampling.MAX_ROWS``), the values before
    that moment cover only the end of their intervals. The result is None if no interval counts, or
    if a column is missing.
    """
    covered_s = total = 0.0
    times = [time_s or 0.0 for time_s in columns.get("time_s", ())]
    for row, (before_s, now_s) in enumerate(pairwise(times), start=1):
        values = [columns[name][row] for name in names if name in columns]
        known_values = [value for value in values if value is not None]
        is_complete = len(known_values) == len(names)
        is_within = begin_s <= before_s and now_s <= end_s and is_complete
        if is_within and _paused_share(before_s, now_s, pauses) <= _MAX_PAUSED_SHARE:
            covered_s += now_s - before_s
            total += sum(known_values) * (now_s - before_s)
    return total / covered_s if covered_s > 0 else None


def _paused_share(begin_s: float, end_s: float, pauses: Spans) -> float:
    """Return the share of an interval that is in pauses."""
    if end_s <= begin_s:
        return 0.0
    paused_s = 0.0
    for from_s, until_s in pauses:
        overlap_s = min(end_s, until_s) - max(begin_s, from_s)
        paused_s += max(0.0, overlap_s)
    return paused_s / (end_s - begin_s)
