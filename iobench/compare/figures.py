"""PURE. Which figures of a point are compared, and which way is better.

One rate a kind, and the latency beside it that a rate does not show; then what it took: memory,
processor time, and of access modes the first epoch, the later ones, disk and requests. What
follows from the rate (``iops`` at one block size, ``mb_per_s`` of the same samples) is not compared
again: it would count one change twice. So would the parts of a first batch, which explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from iobench.ladder import HOST_RUNGS
from iobench.report.model.numbers import is_number
from iobench.trial import Metrics, Params
from iobench.words import number_words

Unit = Literal["", "s", "bytes"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric with its words. ``unit`` is empty where the name says it.

    One that is ``beside`` the others is compared where both runs tell it: earlier versions did not,
    nor do trials that were too short for it.
    """

    metric: str
    name: str
    higher_is_better: bool
    unit: Unit = ""
    beside: bool = False

    def say(self, value: float) -> str:
        """For a terminal: ``24,757``, ``12.3 ms``, ``412 MB``."""
        if self.unit == "bytes":
            return f"{number_words(value / 1e6)} MB"
        return _seconds(value) if self.unit == "s" else number_words(value)


def _taken(metric: str, name: str, unit: Unit = "") -> Figure:
    """What less is better of, and not every run tells."""
    return Figure(metric, name, higher_is_better=False, unit=unit, beside=True)


SAMPLES = Figure("samples_per_s", "samples/s", higher_is_better=True)
MB = Figure("mb_per_s", "MB/s", higher_is_better=True)
FIRST_BATCH = Figure("time_to_first_batch_s", "time to first batch", False, "s")
FIRST_BYTE = Figure("first_byte_s_p50", "first byte, p50", False, "s")
LATENCY = Figure("latency_s_p99", "latency, p99", False, "s")
MEMORY = _taken("memory_bytes", "memory", "bytes")
CPU = _taken("cpu_s_per_1000_samples", "CPU s/1,000 samples")
WORKER_CPU = _taken("worker_cpu_s_per_1000_samples", "worker CPU s/1,000")
CPU_OF_GB = _taken("cpu_s_per_gb", "CPU s/GB")
ACCESS = (
    _taken("first_epoch_s", "first epoch", "s"),
    Figure("steady_samples_per_s", "steady samples/s", higher_is_better=True, beside=True),
    _taken("memory_needed_bytes", "memory needed", "bytes"),
    _taken("disk_needed_bytes", "disk needed", "bytes"),
    _taken("store_read_bytes", "from the store", "bytes"),
    _taken("store_requests", "GETs"),
)
WAITING = _taken("wait_share", "share of waiting")

OF_KINDS: dict[str, tuple[Figure, ...]] = {
    "disk": (MB, LATENCY),
    "layout": (SAMPLES,),
    "object": (MB, FIRST_BYTE, CPU_OF_GB),
    "loader": (SAMPLES, FIRST_BATCH, MEMORY, CPU, *ACCESS),
    "train": (SAMPLES, FIRST_BATCH, MEMORY, WORKER_CPU, *ACCESS),
}

_PARTS = ("listing", "worker_start", "fetch", "decode", "rest")


def figures_of(kind: str, params: Params, metrics: Sequence[Metrics]) -> tuple[Figure, ...]:
    """Those of a point. A kind that is not known here, as a watched loop, has one rate, its first
    batch and its waiting."""
    if kind == "train" and params.get("input") in ("synthetic", *HOST_RUNGS):
        return (SAMPLES,)  # its first batch lies in memory already: no figure of storage
    if kind in OF_KINDS:
        return OF_KINDS[kind]
    told = {metric for each in metrics for metric in each}
    rates = [figure for figure in (SAMPLES, MB) if figure.metric in told]
    others = [figure for figure in (FIRST_BATCH, WAITING) if figure.metric in told]
    return (*rates[:1], *others)


def first_batch_words(base: Sequence[Metrics], new: Sequence[Metrics]) -> str:
    """``fetch 12.0 ms -> 95.3 ms, decode ...``: medians of the parts of a first batch.

    Only of parts that every repeat of both runs tells; empty where there is none.
    """
    said = []
    for part in _PARTS:
        key = f"first_batch_{part}_s"
        sides = [[metrics.get(key) for metrics in side] for side in (base, new)]
        if all(side and all(is_number(value) for value in side) for side in sides):
            before, after = (median(map(float, filter(is_number, side))) for side in sides)
            if max(before, after) > 0:
                words = part.replace("_", " ")
                said.append(f"{words} {_seconds(before)} -> {_seconds(after)}")
    return ", ".join(said)


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{number_words(value)} s"
    if value >= 1e-3:
        return f"{number_words(value * 1e3)} ms"
    return f"{number_words(value * 1e6)} µs"
