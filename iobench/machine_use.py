"""PURE. What the whole machine did while a trial's steps counted, as means of its series."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iobench.process_use import Spans, mean_over
from iobench.samplers.recorder import Columns

# A metric, the columns whose sum it is the mean of, and what it is divided by.
_MEANS: tuple[tuple[str, tuple[str, ...], float], ...] = (
    ("cpu_busy_share", ("cpu.user_share", "cpu.system_share", "cpu.steal_share"), 1.0),
    ("cpu_iowait_share", ("cpu.iowait_share",), 1.0),
    ("disk_read_mb_per_s", ("disk.read_bytes_per_s",), 1e6),
    ("network_received_mb_per_s", ("network.received_bytes_per_s",), 1e6),
)
_GPU = re.compile(r"gpu\.\d+_utilisation_share")


def machine_use(
    columns: Columns, begin_s: float, end_s: float, pauses: Spans = ()
) -> dict[str, float]:
    """``cpu_busy_share`` and ``cpu_iowait_share`` (0 to 1, of all processors),
    ``disk_read_mb_per_s``, ``network_received_mb_per_s`` and ``gpu_utilisation_share`` (the mean
    of all GPUs, as NVML has it), as far as they were read.

    ``columns`` are readings whose ``time_s`` counts from where ``begin_s`` and ``end_s`` do. Means
    are over whole intervals between readings within the steps, and in none of ``pauses``; what was
    not read often enough for that is left out.
    """
    times = [float("nan") if time_s is None else time_s for time_s in columns.get("time_s", ())]
    found = {}
    for metric, names, unit in _MEANS:
        mean = mean_over(columns, names, times, begin_s, end_s, pauses)
        if mean is not None:
            found[metric] = mean / unit
    gpus = _gpus(columns, times, begin_s, end_s, pauses)
    return {**found, "gpu_utilisation_share": sum(gpus) / len(gpus)} if gpus else found


def _gpus(
    columns: Columns, times: Sequence[float], begin_s: float, end_s: float, pauses: Spans
) -> list[float]:
    means = (
        mean_over(columns, (name,), times, begin_s, end_s, pauses)
        for name in columns
        if _GPU.fullmatch(name)
    )
    return [mean for mean in means if mean is not None]
