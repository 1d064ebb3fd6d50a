"""PURE. The resources that a trial's processes and the machine used during its counted steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from iobench.machine.sampling import Columns, Samples
from iobench.trial import Outcome

Spans = Sequence[tuple[float, float]]

_MEMORY = {"PSS": "tree.pss_bytes", "RSS": "tree.rss_bytes"}
# A metric is the mean of the sum of these columns, divided by the last number.
_MEANS: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("cores_busy", ("tree.user_cores", "tree.system_cores"), 1.0),
    ("worker_cores_busy", ("tree.worker_cores",), 1.0),
    ("cpu_busy_share", ("cpu.user_share", "cpu.system_share", "cpu.steal_share"), 1.0),
    ("cpu_iowait_share", ("cpu.iowait_share",), 1.0),
    ("disk_read_mb_per_s", ("disk.read_bytes_per_s",), 1e6),
    ("network_received_mb_per_s", ("network.received_bytes_per_s",), 1e6),
)
_MOST_PAUSED = 0.05
"""Largest share of an interval between readings that may be a pause.

Epochs of small data end several times between two readings.
"""
_GPU = re.compile(r"gpu\.\d+_utilisation_share")


def sampled(outcome: Outcome, samples: Samples, begun_s: float) -> Outcome:
    """Add samples to an outcome, timed from its ``origin_s``, or from ``begun_s`` without one.

    All times are of the machine's monotonic clock. The outcome has an ``origin_s`` afterwards.
    Readings before the origin, during opening and
    warm-up, have a negative time. A loop's metrics get ``usage`` over the steps that count.
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
) -> dict[str, Any]:
    """The resources used in the steps from ``begin_s`` to ``end_s``.

    ``columns`` are readings; their ``time_s``, ``begin_s`` and ``end_s`` count from the request
    for the first batch. The steps took ``samples`` samples. Memory is the largest PSS since then,
    or the largest RSS if PSS was never read. The other figures are means over intervals between
    readings that are within the steps and almost wholly outside ``pauses``.
    ``gpu_utilisation_share`` is the mean of all GPUs. Figures with too few readings are left out.
    """
    found = _memory(columns, end_s)
    for metric, names, unit in _MEANS:
        mean = _mean(columns, names, begin_s, end_s, pauses)
        if mean is not None:
            found[metric] = mean / unit
    counted_s = end_s - begin_s - sum(until_s - from_s for from_s, until_s in pauses)
    for prefix in ("", "worker_"):
        if samples > 0 and f"{prefix}cores_busy" in found:
            spent_s = found[f"{prefix}cores_busy"] * counted_s
            found[f"{prefix}cpu_s_per_1000_samples"] = 1000 * spent_s / samples
    gpus = [name for name in columns if _GPU.fullmatch(name)]
    total = _mean(columns, gpus, begin_s, end_s, pauses) if gpus else None
    return found if total is None else {**found, "gpu_utilisation_share": total / len(gpus)}


def _memory(columns: Columns, end_s: float) -> dict[str, Any]:
    for counted, name in _MEMORY.items():
        if name in columns:
            readings = zip(columns["time_s"], columns[name], strict=True)
            within = [size for time_s, size in readings if size and 0 <= (time_s or 0) <= end_s]
            return {"memory_bytes": int(max(within)), "memory_counted": counted} if within else {}
    return {}


def _mean(
    columns: Columns, names: Sequence[str], begin_s: float, end_s: float, pauses: Spans
) -> float | None:
    """The mean of a sum of rates, each of which is a mean since the reading before.

    None if no whole interval counts, or if a column is missing.
    """
    covered_s = total = 0.0
    times = [time_s or 0.0 for time_s in columns.get("time_s", ())]
    for place, (before_s, now_s) in enumerate(pairwise(times), start=1):
        values = [columns[name][place] for name in names if name in columns]
        known = [value for value in values if value is not None]
        is_within = begin_s <= before_s and now_s <= end_s and len(known) == len(names)
        if is_within and _paused_share(before_s, now_s, pauses) <= _MOST_PAUSED:
            covered_s += now_s - before_s
            total += sum(known) * (now_s - before_s)
    return total / covered_s if covered_s > 0 else None


def _paused_share(begin_s: float, end_s: float, pauses: Spans) -> float:
    """The share of an interval that is in pauses."""
    paused_s = sum(
        max(0.0, min(end_s, until_s) - max(begin_s, from_s)) for from_s, until_s in pauses
    )
    return paused_s / (end_s - begin_s) if end_s > begin_s else 0.0
