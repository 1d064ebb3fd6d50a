"""PURE. What a trial's processes took of memory and processors while its steps counted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from iobench.samplers.recorder import Columns

_MEMORY = {"PSS": "tree.pss_bytes", "RSS": "tree.rss_bytes"}
_CORES = ("tree.user_cores", "tree.system_cores")
_WORKER_CORES = ("tree.worker_cores",)


Spans = Sequence[tuple[float, float]]


def process_use(
    columns: Columns, begin_s: float, end_s: float, samples: float, pauses: Spans = ()
) -> dict[str, Any]:
    """Metrics of the steps from ``begin_s`` to ``end_s``, which gave so many ``samples``.

    ``columns`` are readings of sampler ``tree``, their ``time_s`` counted from where the first
    batch was asked for, as ``begin_s`` is. Memory is the largest from there on, by PSS, or by RSS
    where no PSS was ever read. Processors are means over the time between readings that lie
    within the steps, and in none of ``pauses``. What was not read often enough for that is left
    out.
    """
    times = [float("nan") if time_s is None else time_s for time_s in columns.get("time_s", ())]
    metrics = _memory(columns, times, end_s)
    cores = mean_over(columns, _CORES, times, begin_s, end_s, pauses)
    of_workers = mean_over(columns, _WORKER_CORES, times, begin_s, end_s, pauses)
    counted_s = end_s - begin_s - sum(until_s - from_s for from_s, until_s in pauses)
    for prefix, found in (("", cores), ("worker_", of_workers)):
        if found is not None:
            metrics[f"{prefix}cores_busy"] = found
            if samples > 0:
                spent_s = found * counted_s
                metrics[f"{prefix}cpu_s_per_1000_samples"] = 1000 * spent_s / samples
    return metrics


def _memory(columns: Columns, times: Sequence[float], end_s: float) -> dict[str, Any]:
    counted = next((how for how, name in _MEMORY.items() if name in columns), None)
    if counted is None:
        return {}
    within = [
        value
        for time_s, value in zip(times, columns[_MEMORY[counted]], strict=True)
        if value is not None and 0 <= time_s <= end_s
    ]
    return {"memory_bytes": int(max(within)), "memory_counted": counted} if within else {}


def mean_over(
    columns: Columns,
    names: Sequence[str],
    times: Sequence[float],
    begin_s: float,
    end_s: float,
    pauses: Spans = (),
) -> float | None:
    """The mean of the sum of rates, each of which is of the time since the reading before.

    Over whole intervals between readings from ``begin_s`` to ``end_s``, in none of ``pauses``;
    None where there is none, or where a name is no column.
    """
    covered_s = total = 0.0
    for place, (before_s, now_s) in enumerate(pairwise(times), start=1):
        values = [columns[name][place] for name in names if name in columns]
        known = [value for value in values if value is not None]
        paused = any(before_s < until_s and from_s < now_s for from_s, until_s in pauses)
        if begin_s <= before_s and now_s <= end_s and not paused and len(known) == len(names):
            covered_s += now_s - before_s
            total += sum(known) * (now_s - before_s)
    return total / covered_s if covered_s > 0 else None
