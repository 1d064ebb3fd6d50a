"""PURE. Which figures of a point are compared, and which way is better.

One rate a kind, and the latency beside it that a rate does not show. What follows from the rate
(``iops`` at one block size, ``mb_per_s`` of the same samples) is not compared again: it would
count one change twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iobench.ladder import HOST_RUNGS
from iobench.trial import Metrics, Params
from iobench.words import number_words


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric with its words. Those that end in ``_s`` but are no rate are seconds."""

    metric: str
    name: str
    higher_is_better: bool

    @property
    def is_rate(self) -> bool:
        """Whether its name is its unit."""
        return self.higher_is_better

    def say(self, value: float) -> str:
        """For a terminal: ``24,757``, ``12.3 ms``."""
        if self.is_rate:
            return number_words(value)
        if value >= 1:
            return f"{number_words(value)} s"
        if value >= 1e-3:
            return f"{number_words(value * 1e3)} ms"
        return f"{number_words(value * 1e6)} µs"


SAMPLES = Figure("samples_per_s", "samples/s", higher_is_better=True)
MB = Figure("mb_per_s", "MB/s", higher_is_better=True)
FIRST_BATCH = Figure("time_to_first_batch_s", "time to first batch", higher_is_better=False)
FIRST_BYTE = Figure("first_byte_s_p50", "first byte, p50", higher_is_better=False)
LATENCY = Figure("latency_s_p99", "latency, p99", higher_is_better=False)

OF_KINDS: dict[str, tuple[Figure, ...]] = {
    "disk": (MB, LATENCY),
    "layout": (SAMPLES,),
    "object": (MB, FIRST_BYTE),
    "loader": (SAMPLES, FIRST_BATCH),
    "train": (SAMPLES, FIRST_BATCH),
}


def figures_of(kind: str, params: Params, metrics: Sequence[Metrics]) -> tuple[Figure, ...]:
    """Those of a point. A kind that is not known here has one rate, and its first batch."""
    if kind == "train" and params.get("input") in ("synthetic", *HOST_RUNGS):
        return (SAMPLES,)  # its first batch lies in memory already: no figure of storage
    if kind in OF_KINDS:
        return OF_KINDS[kind]
    told = {metric for each in metrics for metric in each}
    rates = [figure for figure in (SAMPLES, MB) if figure.metric in told]
    return (*rates[:1], *([FIRST_BATCH] if FIRST_BATCH.metric in told else []))
