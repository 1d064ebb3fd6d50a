"""PURE. Combine the timings of loops that ran at the same time, as ranks or independently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from iobench.errors import TrialFailed
from iobench.trials.loop_timings import LoopTimings, Seconds, combine_epochs, sum_if_all_known

_EQUAL_WAITS_SHARE = 0.01
"""If the waits of ranks differ by less than this share of the step, they count as equal."""
_MIN_COMMON_SHARE = 0.5
"""All processes must have run together for this share of the time of the longest loop."""
_MIN_STEP_S = 1e-12
"""Shorter steps count as this long, which prevents divisions by 0. No clock resolves it."""


def combine_ranks(ranks: Sequence[LoopTimings]) -> LoopTimings:
    """Combine the timings of ranks that took the same steps and waited for each other in each step.

    DistributedDataParallel averages gradients in each backward pass (Li et al., "PyTorch
    Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020). So no rank ends a
    step before the last rank has got its batch. Therefore:

    - A step ends when the last rank ends it.
    - The wait of a step is the wait of the rank that waited longest for its batch.
    - The computing time of a step is the computing time of the same rank. This rank computes last,
      and so it does not wait for the gradients of other ranks. The computing times of the other
      ranks include such a wait. If all ranks waited equally long for their batches, the mean of
      their computing times is taken.

    ``au_mlperf`` is the mean over ranks, as in DLIO, the program of MLPerf Storage. Samples are the
    samples of all ranks. Times begin with the first rank and end with the last rank. All ranks use
    the same clock.
    """
    requested_s = min(rank.requested_s for rank in ranks)
    begun_s = min(rank.begun_s for rank in ranks)
    ended_s = max(rank.ended_s for rank in ranks)
    first_batch_s = max(rank.requested_s + rank.time_to_first_batch_s for rank in ranks)
    running_s = fmean(rank.running_s for rank in ranks)
    step_ends_s = np.max([rank.begun_s + np.cumsum(rank.step_s) for rank in ranks], axis=0)
    step_s = np.diff(step_ends_s, prepend=begun_s)
    waits_s = np.array([rank.wait_s for rank in ranks])
    computes_s = np.array([rank.compute_s for rank in ranks])
    waits_are_equal = np.ptp(waits_s, axis=0) < _EQUAL_WAITS_SHARE * step_s
    last_rank = waits_s.argmax(axis=0)[None]
    compute_of_last_rank_s = np.take_along_axis(computes_s, last_rank, axis=0)[0]
    return LoopTimings(
        requested_s=requested_s,
        time_to_first_batch_s=first_batch_s - requested_s,
        begun_s=begun_s,
        seconds=ended_s - begun_s,
        samples=sum(rank.samples for rank in ranks),
        all_samples=sum(rank.all_samples for rank in ranks),
        # A rank may be ahead of the others by a part of a step, and wait in the step before. A wait
        # is therefore at most as long as the step.
        wait_s=np.minimum(waits_s.max(axis=0), step_s),
        step_s=step_s,
        compute_s=np.where(waits_are_equal, computes_s.mean(axis=0), compute_of_last_rank_s),
        dropped_samples=sum(rank.dropped_samples for rank in ranks),
        left_out_steps=ranks[0].left_out_steps,
        epoch_first_steps=ranks[0].epoch_first_steps,
        running_s=running_s,
        computing_s=running_s * fmean(rank.au_mlperf for rank in ranks),
        arrived_samples=sum_if_all_known([rank.arrived_samples for rank in ranks]),
        arrived_bytes=sum_if_all_known([rank.arrived_bytes for rank in ranks]),
    )


def rank_metrics(
    epochs_of_ranks: Sequence[Sequence[LoopTimings]], combined: LoopTimings
) -> dict[str, Any]:
    """Figures of each rank over the steps that count, and how much the ranks differ.

    ``rank_uneven_share`` is the share of the time that would be saved if all ranks waited equally
    long. In each step this is the wait of the slowest rank minus the mean wait of all ranks.
    ``au_mlperf_slowest`` is the lowest utilisation of a rank.

    Args:
        epochs_of_ranks: for each rank, its epochs.
        combined: all ranks and epochs as one loop.
    """
    ranks = [combine_epochs(epochs) for epochs in epochs_of_ranks]
    mean_waits_s = np.mean([rank.wait_s for rank in ranks], axis=0)
    uneven_s = float(np.maximum(0.0, combined.wait_s - mean_waits_s).sum())
    utilisations = [rank.au_mlperf for rank in ranks]
    return {
        "rank_wait_s": [float(rank.wait_s.mean()) for rank in ranks],
        "rank_wait_share": [_share(float(rank.wait_s.sum()), rank.seconds) for rank in ranks],
        "rank_step_s": [float(rank.step_s.mean()) for rank in ranks],
        "rank_compute_s": [float(rank.compute_s.mean()) for rank in ranks],
        "rank_samples_per_s": [rank.samples_per_s for rank in ranks],
        "rank_au_mlperf": utilisations,
        "au_mlperf_slowest": min(utilisations),
        "rank_uneven_share": _share(uneven_s, combined.seconds),
    }


@dataclass(frozen=True, slots=True)
class _CommonSteps:
    """The steps of one process in the time in which all processes ran.

    Attributes:
        samples_per_s: the rate of the process in this time.
        wait_s: the waits of the steps of which at least half is in this time.
        step_s: the lengths of these steps.
    """

    samples_per_s: float
    wait_s: Seconds
    step_s: Seconds


def combine_processes(
    processes: Sequence[Sequence[LoopTimings]],
) -> tuple[LoopTimings, list[float]]:
    """Combine independent processes. Returns one loop, and the samples/s of each process.

    Only the time counts in which the steps of all processes counted. Before and after this time,
    the processes that still ran shared the machine with fewer others. A step that is partly in this
    time counts in part. If only whole steps counted, most of them would be short steps, because
    batches come in bursts. The rate is the sum of the rates of all processes.

    Args:
        processes: for each process, the epochs that count.

    Raises:
        TrialFailed: the processes did not run at the same time for long enough.
    """
    start_s = max(epochs[0].begun_s for epochs in processes)
    end_s = min(epochs[-1].ended_s for epochs in processes)
    seconds = end_s - start_s
    longest_s = max(epochs[-1].ended_s - epochs[0].begun_s for epochs in processes)
    if seconds < _MIN_COMMON_SHARE * longest_s:
        raise TrialFailed(
            "the processes ran together for less than half of their time: set more seconds "
            "(cold: use more images), or a smaller batch_size"
        )
    common_steps = [_common_steps(epochs, start_s, end_s) for epochs in processes]
    rates = [steps.samples_per_s for steps in common_steps]
    first_epochs = [epochs[0] for epochs in processes]
    requested_s = min(epoch.requested_s for epoch in first_epochs)
    first_batch_s = max(epoch.requested_s + epoch.time_to_first_batch_s for epoch in first_epochs)
    loops = [combine_epochs(epochs) for epochs in processes]
    combined = LoopTimings(
        requested_s=requested_s,
        time_to_first_batch_s=first_batch_s - requested_s,
        begun_s=start_s,
        seconds=seconds,
        samples=round(sum(rates) * seconds),
        all_samples=sum(loop.all_samples for loop in loops),
        wait_s=np.concatenate([steps.wait_s for steps in common_steps]),
        step_s=np.concatenate([steps.step_s for steps in common_steps]),
        compute_s=np.empty(0),
        left_out_steps=max(epoch.left_out_steps for epoch in first_epochs),
    )
    balances = [loop.balance for loop in loops if loop.balance is not None]
    if len(balances) < len(loops):
        return combined, rates
    # Each process counts arriving samples over all of its own steps. The balance in the common time
    # is assumed to be the same.
    counted_samples = sum(loop.arrived_samples or 0 for loop in loops)
    counted_bytes = sum(loop.arrived_bytes or 0 for loop in loops)
    sample_bytes = counted_bytes / counted_samples if counted_samples else 0.0
    arrived_samples = round(fmean(balances) * combined.samples)
    combined = replace(
        combined,
        arrived_samples=arrived_samples,
        arrived_bytes=round(arrived_samples * sample_bytes),
    )
    return combined, rates


def _common_steps(epochs: Sequence[LoopTimings], start_s: float, end_s: float) -> _CommonSteps:
    """The steps of a process from ``start_s`` to ``end_s``."""
    begins_s = np.concatenate(
        [epoch.begun_s + np.cumsum(epoch.step_s) - epoch.step_s for epoch in epochs]
    )
    step_s = np.concatenate([epoch.step_s for epoch in epochs])
    wait_s = np.concatenate([epoch.wait_s for epoch in epochs])
    ends_s = begins_s + step_s
    inside_s = np.minimum(ends_s, end_s) - np.maximum(begins_s, start_s)
    inside_share = np.clip(inside_s / np.maximum(step_s, _MIN_STEP_S), 0.0, 1.0)
    mean_step_samples = sum(epoch.samples for epoch in epochs) / len(step_s)
    samples = float(inside_share.sum()) * mean_step_samples
    is_mostly_inside = inside_share >= 0.5
    return _CommonSteps(
        samples / (end_s - start_s), wait_s[is_mostly_inside], step_s[is_mostly_inside]
    )


def _share(part: float, total: float) -> float:
    return part / total if total > 0 else 0.0
