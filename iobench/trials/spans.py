"""PURE. The spans that a trial saves for a trace: epochs, batches of workers, and steps of ranks.

Moments are on the loop's clock. Spans count from ``origin_s``, like ``time_s`` of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iobench.loaders.protocol import WorkerBatch
from iobench.results.trial import Span
from iobench.trials.epoch_loop import EpochTimings
from iobench.trials.loop_timings import LoopTimings

MAX_SPANS = 20_000
"""The largest number of spans of each kind that a trial saves. It saves the last spans.

If a trial has several processes, this number is divided equally among them.
"""


def epoch_spans(epochs: Sequence[EpochTimings], origin_s: float) -> list[Span]:
    """A span for every epoch, also for an incomplete one, with the time to its first batch."""
    spans = []
    for number, epoch in list(enumerate(epochs))[-MAX_SPANS:]:
        spans.append(
            Span(
                "epochs",
                f"epoch {number}",
                epoch.all_steps.start.time_s - origin_s,
                epoch.all_steps.seconds,
                epoch.time_to_first_batch_s,
            )
        )
    return spans


def worker_spans(batches: Sequence[WorkerBatch], origin_s: float) -> list[Span]:
    """A span for each batch of the workers of a loop in one process."""
    return _batch_spans(batches, "worker", origin_s, MAX_SPANS)


def last_batches(batches: Sequence[WorkerBatch], processes: int) -> Sequence[WorkerBatch]:
    """The last batches of one process, at most the number that each of ``processes`` may save."""
    return batches[-_max_spans_of_process(processes) :]


def process_spans(
    batches_of_processes: Sequence[Sequence[WorkerBatch]], origin_s: float
) -> list[Span]:
    """A span for each batch of the workers of several processes. Each process is called a rank."""
    max_spans = _max_spans_of_process(len(batches_of_processes))
    spans: list[Span] = []
    for rank, batches in enumerate(batches_of_processes):
        spans += _batch_spans(batches, f"rank {rank} worker", origin_s, max_spans)
    return spans


def rank_spans(epochs_of_ranks: Sequence[Sequence[LoopTimings]], origin_s: float) -> list[Span]:
    """A span for each counted step of each rank, with its wait."""
    max_spans = _max_spans_of_process(len(epochs_of_ranks))
    spans: list[Span] = []
    for rank, epochs in enumerate(epochs_of_ranks):
        steps: list[Span] = []
        for epoch in epochs:
            ends_s = epoch.begun_s + np.cumsum(epoch.step_s) - origin_s
            columns = (ends_s.tolist(), epoch.step_s.tolist(), epoch.wait_s.tolist())
            for end_s, step_s, wait_s in zip(*columns, strict=True):
                steps.append(Span(f"rank {rank}", "step", end_s - step_s, step_s, wait_s))
        spans += steps[-max_spans:]
    return spans


def _batch_spans(
    batches: Sequence[WorkerBatch], track_prefix: str, origin_s: float, max_spans: int
) -> list[Span]:
    """A span for each of the last ``max_spans`` batches, on a track for each worker."""
    spans = []
    for batch in batches[-max_spans:]:
        track = f"{track_prefix} {batch.worker}"
        seconds = batch.end_s - batch.begin_s
        spans.append(Span(track, "batch", batch.begin_s - origin_s, seconds))
    return spans


def _max_spans_of_process(processes: int) -> int:
    return max(1, MAX_SPANS // processes)
