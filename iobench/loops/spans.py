"""PURE. What a trial keeps for a trace: its epochs, the batches of its workers, steps of its ranks.

Moments are on the loop's clock, and spans count from an origin, like ``time_s`` of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iobench.loaders.protocol import WorkerBatch
from iobench.loops.drive import EpochTimes
from iobench.loops.times import LoopTimes
from iobench.trial import Span

MOST_SPANS = 20_000
"""Spans of each sort that a trial keeps: the last ones. Processes have equal parts of them."""


def epoch_spans(epochs: Sequence[EpochTimes], origin_s: float) -> list[Span]:
    """Every epoch that was read, also in part, with the time to its first batch."""
    numbered = list(enumerate(epochs))[-MOST_SPANS:]
    return [
        Span(
            "epochs",
            f"epoch {number}",
            epoch.whole.start.time_s - origin_s,
            epoch.whole.seconds,
            epoch.time_to_first_batch_s,
        )
        for number, epoch in numbered
    ]


def worker_spans(batches: Sequence[WorkerBatch], origin_s: float) -> list[Span]:
    """The batches that the workers of a loop in one process made."""
    return _of_workers(batches, "worker", origin_s, MOST_SPANS)


def last_batches(batches: Sequence[WorkerBatch], processes: int) -> Sequence[WorkerBatch]:
    """The batches that one of several processes keeps."""
    return batches[-_most(processes) :]


def process_spans(batches: Sequence[Sequence[WorkerBatch]], origin_s: float) -> list[Span]:
    """The batches that the workers of several processes made; each process is called a rank."""
    most = _most(len(batches))
    return [
        span
        for rank, of_rank in enumerate(batches)
        for span in _of_workers(of_rank, f"rank {rank} worker", origin_s, most)
    ]


def rank_spans(ranks: Sequence[Sequence[LoopTimes]], origin_s: float) -> list[Span]:
    """The steps of each rank that count, with its wait in each; ``ranks`` are their epochs."""
    spans: list[Span] = []
    for rank, epochs in enumerate(ranks):
        own: list[Span] = []
        for epoch in epochs:
            ends_s = epoch.begun_s + np.cumsum(epoch.step_s) - origin_s
            steps = zip(ends_s.tolist(), epoch.step_s.tolist(), epoch.wait_s.tolist(), strict=True)
            for end_s, step_s, wait_s in steps:
                own.append(Span(f"rank {rank}", "step", end_s - step_s, step_s, wait_s))
        spans += own[-_most(len(ranks)) :]
    return spans


def _of_workers(
    batches: Sequence[WorkerBatch], workers: str, origin_s: float, most: int
) -> list[Span]:
    return [
        Span(
            f"{workers} {batch.worker}",
            "batch",
            batch.begin_s - origin_s,
            batch.end_s - batch.begin_s,
        )
        for batch in batches[-most:]
    ]


def _most(processes: int) -> int:
    return max(1, MOST_SPANS // processes)
