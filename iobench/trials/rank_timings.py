"""PURE. Combine the timings of loops that ran at the same time, as ranks or independently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple, TypedDict

import numpy as np

from iobench.errors import TrialFailed
from iobench.trials.loop_timings import (
    LoopTimings,
    Seconds,
    combine_epochs,
    ratio,
    sum_if_all_known,
)

_EQUAL_WAITS_SHARE = 0.01
"""Waits of ranks that differ by less than this share of the step count as equal."""
_MIN_COMMON_SHARE = 0.5
"""All processes must have run together for this share of the time of the longest loop."""
_MIN_STEP_S = 1e-12
"""Steps are taken to have at least this length, which prevents divisions by 0.

No clock can measure a shorter time.
"""


class _FirstBatch(NamedTuple):
    """The request for the first batch of loops that ran at the same time, and the wait for it.

    Attributes:
        requested_s: the moment of the first request of any loop.
        seconds: the time from this moment until every loop had its first batch.
    """

    requested_s: float
    seconds: float


def _first_batch(loops: Sequence[LoopTimings]) -> _FirstBatch:
    """The first batch of loops that ran at the same time, by the same clock."""
    requested_s = min(loop.requested_s for loop in loops)
    all_arrived_s = max(loop.requested_s + loop.time_to_first_batch_s for loop in loops)
    return _FirstBatch(requested_s, all_arrived_s - requested_s)


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
    first_batch = _first_batch(ranks)
    begun_s = min(rank.begun_s for rank in ranks)
    ended_s = max(rank.ended_s for rank in ranks)
    running_s = fmean(rank.running_s for rank in ranks)
    utilisation = fmean(rank.au_mlperf for rank in ranks)
    step_ends_s = np.max([rank.begun_s + np.cumsum(rank.step_s) for rank in ranks], axis=0)
    step_s = np.diff(step_ends_s, prepend=begun_s)
    waits_s = np.array([rank.wait_s for rank in ranks])  # (ranks, steps), as computes_s
    computes_s = np.array([rank.compute_s for rank in ranks])
    # A rank that is ahead of the others may begin to wait before the last rank has ended the
    # previous step. Its wait could then be longer than this step, so it is limited to the step.
    wait_s = np.minimum(waits_s.max(axis=0), step_s)
    waits_are_equal = np.ptp(waits_s, axis=0) < _EQUAL_WAITS_SHARE * step_s
    last_rank = waits_s.argmax(axis=0)[None]
    compute_of_last_rank_s = np.take_along_axis(computes_s, last_rank, axis=0)[0]
    compute_s = np.where(waits_are_equal, computes_s.mean(axis=0), compute_of_last_rank_s)
    return LoopTimings(
        requested_s=first_batch.requested_s,
        time_to_first_batch_s=first_batch.seconds,
        begun_s=begun_s,
        seconds=ended_s - begun_s,
        samples=sum(rank.samples for rank in ranks),
        all_samples=sum(rank.all_samples for rank in ranks),
        wait_s=wait_s,
        step_s=step_s,
        compute_s=compute_s,
        dropped_samples=sum(rank.dropped_samples for rank in ranks),
        left_out_steps=ranks[0].left_out_steps,
        epoch_first_steps=ranks[0].epoch_first_steps,
        running_s=running_s,
        # ``au_mlperf`` of the result is then the mean over ranks.
        computing_s=running_s * utilisation,
        arrived_samples=sum_if_all_known([rank.arrived_samples for rank in ranks]),
        arrived_bytes=sum_if_all_known([rank.arrived_bytes for rank in ranks]),
    )


class RankMetrics(TypedDict):
    """The metrics of ranks over the steps that count. A list has one value for each rank.

    Attributes:
        rank_wait_s: the mean wait of a step in seconds.
        rank_wait_share: the waits of all steps, as a share of the time of the rank.
        rank_step_s: the mean time of a step in seconds.
        rank_compute_s: the mean computing time of a step in seconds.
        rank_samples_per_s: the samples per second of the rank alone.
        rank_au_mlperf: the accelerator utilisation.
        au_mlperf_slowest: the lowest utilisation of a rank.
        rank_uneven_share: the share of the time that would be saved if all ranks waited equally
            long. In each step this is the wait of the slowest rank minus the mean wait of all
            ranks.
    """

    rank_wait_s: list[float]
    rank_wait_share: list[float]
    rank_step_s: list[float]
    rank_compute_s: list[float]
    rank_samples_per_s: list[float]
    rank_au_mlperf: list[float]
    au_mlperf_slowest: float
    rank_uneven_share: float


def rank_metrics(
    epochs_of_ranks: Sequence[Sequence[LoopTimings]], combined: LoopTimings
) -> RankMetrics:
    """The metrics of each rank, and how much the ranks differ.

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
        "rank_wait_share": [ratio(float(rank.wait_s.sum()), rank.seconds) for rank in ranks],
        "rank_step_s": [float(rank.step_s.mean()) for rank in ranks],
        "rank_compute_s": [float(rank.compute_s.mean()) for rank in ranks],
        "rank_samples_per_s": [rank.samples_per_s for rank in ranks],
        "rank_au_mlperf": utilisations,
        "au_mlperf_slowest": min(utilisations),
        "rank_uneven_share": ratio(uneven_s, combined.seconds),
    }


@dataclass(frozen=True, slots=True)
class _CommonSteps:
    """The steps of one process in the common time, in which all processes ran.

    Attributes:
        samples_per_s: the rate of the process in this time.
        wait_s: the wait of each step of which at least half is in this time; float64 (steps,).
        step_s: the length of each of these steps; float64 (steps,).
        first_epoch_steps: the number of the step among these that begins the first epoch of the
            process; empty if this step is not in the common time, or did not count.
        later_epoch_steps: the numbers of the steps among these that begin a later epoch.
    """

    samples_per_s: float
    wait_s: Seconds
    step_s: Seconds
    first_epoch_steps: Sequence[int]
    later_epoch_steps: Sequence[int]


def combine_processes(
    processes: Sequence[Sequence[LoopTimings]],
) -> tuple[LoopTimings, list[float]]:
    """Combine independent processes. Returns one loop, and the samples/s of each process.

    Only the *common time* counts, in which the steps of all processes counted. Before and after
    this time, the processes that still ran shared the machine with fewer others. A step that is
    partly in the common time counts in part. If only whole steps counted, most of them would be
    short steps, because batches come in bursts. The rate is the sum of the rates of all processes.

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
    loops = [combine_epochs(epochs) for epochs in processes]
    first_batch = _first_batch(loops)
    first_epoch_steps: list[int] = []
    later_epoch_steps: list[int] = []
    earlier_steps = 0
    for steps in common_steps:
        first_epoch_steps += [earlier_steps + step for step in steps.first_epoch_steps]
        later_epoch_steps += [earlier_steps + step for step in steps.later_epoch_steps]
        earlier_steps += len(steps.wait_s)
    combined = LoopTimings(
        requested_s=first_batch.requested_s,
        time_to_first_batch_s=first_batch.seconds,
        begun_s=start_s,
        seconds=seconds,
        samples=round(sum(rates) * seconds),
        all_samples=sum(loop.all_samples for loop in loops),
        wait_s=np.concatenate([steps.wait_s for steps in common_steps]),
        step_s=np.concatenate([steps.step_s for steps in common_steps]),
        compute_s=np.empty(0),  # Loading processes drop their batches and compute nothing.
        left_out_steps=max(loop.left_out_steps for loop in loops),
        epoch_first_steps=(*first_epoch_steps, *later_epoch_steps),
        first_epoch_starts=len(first_epoch_steps),
        processes=len(processes),
    )
    return _with_arrivals(combined, loops), rates


def _with_arrivals(combined: LoopTimings, loops: Sequence[LoopTimings]) -> LoopTimings:
    """Add estimates of the samples and bytes that arrived in the common time of all processes.

    Each process counts arrivals over all of its own steps. Its balance in the common time is
    assumed to be the same. Nothing is added if the balance of a process is unknown.

    Args:
        combined: the timings of all processes in their common time.
        loops: the timings of each process in its own time.
    """
    balances = [loop.balance for loop in loops if loop.balance is not None]
    if len(balances) < len(loops):
        return combined
    counted_samples = sum(loop.arrived_samples or 0 for loop in loops)
    counted_bytes = sum(loop.arrived_bytes or 0 for loop in loops)
    sample_bytes = ratio(counted_bytes, counted_samples)
    arrived_samples = round(fmean(balances) * combined.samples)
    return replace(
        combined,
        arrived_samples=arrived_samples,
        arrived_bytes=round(arrived_samples * sample_bytes),
    )


def _common_steps(epochs: Sequence[LoopTimings], start_s: float, end_s: float) -> _CommonSteps:
    """The steps of a process from ``start_s`` to ``end_s``."""
    step_begins_s = np.concatenate(
        [epoch.begun_s + np.cumsum(epoch.step_s) - epoch.step_s for epoch in epochs]
    )
    step_s = np.concatenate([epoch.step_s for epoch in epochs])
    wait_s = np.concatenate([epoch.wait_s for epoch in epochs])
    step_ends_s = step_begins_s + step_s
    inside_s = np.minimum(step_ends_s, end_s) - np.maximum(step_begins_s, start_s)
    inside_share = np.clip(inside_s / np.maximum(step_s, _MIN_STEP_S), 0.0, 1.0)
    mean_step_samples = sum(epoch.samples for epoch in epochs) / len(step_s)
    samples = float(inside_share.sum()) * mean_step_samples
    is_mostly_inside = inside_share >= 0.5
    # The number of each step among the steps that are mostly inside.
    numbers = (np.cumsum(is_mostly_inside) - 1).tolist()
    epoch_first_steps = combine_epochs(epochs).epoch_first_steps
    first, later = epoch_first_steps[:1], epoch_first_steps[1:]
    return _CommonSteps(
        samples_per_s=samples / (end_s - start_s),
        wait_s=wait_s[is_mostly_inside],
        step_s=step_s[is_mostly_inside],
        first_epoch_steps=[numbers[step] for step in first if is_mostly_inside[step]],
        later_epoch_steps=[numbers[step] for step in later if is_mostly_inside[step]],
    )
