"""PURE. Combine the timings of loops that ran at the same time: ranks, or independent processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from iobench.errors import TrialFailed
from iobench.loops.times import LoopTimes, epochs_as_one

_ALIKE = 0.01
"""Share of a step: if waits differ by less, they do not show which rank came last."""
_TOGETHER = 0.5
"""Share of the longest loop's time in which all processes must have run."""
_SHORTEST_S = 1e-12
"""Below the resolution of any clock; prevents divisions by 0."""


def ranks_as_one(ranks: Sequence[LoopTimes]) -> LoopTimes:
    """Combine the timings of ranks that took the same steps and waited for each other in each.

    DistributedDataParallel averages gradients in each backward pass (Li et al., "PyTorch
    Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020), so that no rank
    ends a step before the last one has its batch. Therefore:

    - A step ends when its last rank ends it.
    - Its wait is that of the rank that waits longest. Its computing time is that of the same rank:
      this rank comes last and waits for no other in its backward pass, while the computing time of
      the others includes the wait for its gradients. If all ranks wait equally long, the computing
      time is their mean.

    ``au_mlperf`` is the mean over ranks, as DLIO, the program of MLPerf Storage, has it. Samples
    are those of all ranks. Times begin with the first rank and end with the last. All ranks use the
    same clock.
    """
    requested_s = min(rank.requested_s for rank in ranks)
    begun_s = min(rank.begun_s for rank in ranks)
    ended_s = max(rank.ended_s for rank in ranks)
    running_s = fmean(rank.running_s for rank in ranks)
    ends = np.max([rank.begun_s + np.cumsum(rank.step_s) for rank in ranks], axis=0)
    steps = np.diff(ends, prepend=begun_s)
    waits = np.array([rank.wait_s for rank in ranks])
    computes = np.array([rank.compute_s for rank in ranks])
    alike = np.ptp(waits, axis=0) < _ALIKE * steps
    last = np.take_along_axis(computes, waits.argmax(axis=0)[None], axis=0)[0]
    arrived = [rank.arrived_samples for rank in ranks]
    arrived_bytes = [rank.arrived_bytes for rank in ranks]
    return LoopTimes(
        requested_s=requested_s,
        time_to_first_batch_s=max(rank.requested_s + rank.time_to_first_batch_s for rank in ranks)
        - requested_s,
        begun_s=begun_s,
        seconds=ended_s - begun_s,
        samples=sum(rank.samples for rank in ranks),
        taken=sum(rank.taken for rank in ranks),
        # A rank may be ahead by a part of a step: its wait then costs no time.
        wait_s=np.minimum(waits.max(axis=0), steps),
        step_s=steps,
        compute_s=np.where(alike, computes.mean(axis=0), last),
        dropped=sum(rank.dropped for rank in ranks),
        left_out=ranks[0].left_out,
        starts=ranks[0].starts,
        running_s=running_s,
        computing_s=running_s * fmean(rank.au_mlperf for rank in ranks),
        arrived_samples=None if None in arrived else sum(filter(None, arrived)),
        arrived_bytes=None if None in arrived_bytes else sum(filter(None, arrived_bytes)),
    )


def rank_metrics(
    epochs_of_ranks: Sequence[Sequence[LoopTimes]], whole: LoopTimes
) -> dict[str, Any]:
    """Means and shares for each rank, over the steps that count; and how uneven the ranks are.

    Args:
        epochs_of_ranks: for each rank, its epochs.
        whole: all ranks and epochs as one loop.

    ``rank_uneven_share``: in each step, the wait of the slowest rank minus the mean wait of all
    ranks; as a share of the time. Ranks that wait equally long would save this time.
    ``au_mlperf_slowest`` is the utilisation of the rank with the lowest one.
    """
    ranks = [epochs_as_one(epochs) for epochs in epochs_of_ranks]
    means = np.mean([rank.wait_s for rank in ranks], axis=0)
    beyond_s = float(np.maximum(0.0, whole.wait_s - means).sum())
    utilisations = [rank.au_mlperf for rank in ranks]
    return {
        "rank_wait_s": [float(rank.wait_s.mean()) for rank in ranks],
        "rank_wait_share": [_share(float(rank.wait_s.sum()), rank.seconds) for rank in ranks],
        "rank_step_s": [float(rank.step_s.mean()) for rank in ranks],
        "rank_compute_s": [float(rank.compute_s.mean()) for rank in ranks],
        "rank_samples_per_s": [rank.samples_per_s for rank in ranks],
        "rank_au_mlperf": utilisations,
        "au_mlperf_slowest": min(utilisations),
        "rank_uneven_share": _share(beyond_s, whole.seconds),
    }


def processes_as_one(processes: Sequence[Sequence[LoopTimes]]) -> tuple[LoopTimes, list[float]]:
    """Combine independent processes; return them as one loop, and the samples/s of each process.

    Args:
        processes: for each process, the epochs that count.

    Only the time counts in which the steps of all processes counted, since before and after it
    some had the machine for themselves. A step that is partly in this time counts in part: whole
    steps alone would mostly be short ones, since batches come in bursts. The rate is the sum of
    the rates of all processes.

    Raises:
        TrialFailed: they did not run at the same time for long enough.
    """
    start_s = max(epochs[0].begun_s for epochs in processes)
    end_s = min(epochs[-1].ended_s for epochs in processes)
    seconds = end_s - start_s
    longest_s = max(epochs[-1].ended_s - epochs[0].begun_s for epochs in processes)
    if seconds < _TOGETHER * longest_s:
        raise TrialFailed(
            "the processes ran together for less than half of their time: give more seconds "
            "(cold: more images), or a smaller batch_size"
        )
    rates, waits, steps = [], [], []
    for epochs in processes:
        begins_s = np.concatenate([e.begun_s + np.cumsum(e.step_s) - e.step_s for e in epochs])
        step_s = np.concatenate([epoch.step_s for epoch in epochs])
        wait_s = np.concatenate([epoch.wait_s for epoch in epochs])
        ends_s = begins_s + step_s
        inside_s = np.minimum(ends_s, end_s) - np.maximum(begins_s, start_s)
        shares = np.clip(inside_s / np.maximum(step_s, _SHORTEST_S), 0.0, 1.0)
        batch = sum(epoch.samples for epoch in epochs) / len(step_s)  # on average
        rates.append(float(shares.sum()) * batch / seconds)
        mostly = shares >= 0.5
        waits.append(wait_s[mostly])
        steps.append(step_s[mostly])
    first = [epochs[0] for epochs in processes]
    requested_s = min(epoch.requested_s for epoch in first)
    joined = [epochs_as_one(epochs) for epochs in processes]
    whole = LoopTimes(
        requested_s=requested_s,
        time_to_first_batch_s=max(e.requested_s + e.time_to_first_batch_s for e in first)
        - requested_s,
        begun_s=start_s,
        seconds=seconds,
        samples=round(sum(rates) * seconds),
        taken=sum(process.taken for process in joined),
        wait_s=np.concatenate(waits),
        step_s=np.concatenate(steps),
        compute_s=np.empty(0),
        left_out=max(epoch.left_out for epoch in first),
    )
    balances = [process.balance for process in joined if process.balance is not None]
    if len(balances) < len(joined):
        return whole, rates
    # Each process counts over its own steps; over the common time they have the same balance.
    samples = sum(process.arrived_samples or 0 for process in joined)
    size = sum(process.arrived_bytes or 0 for process in joined)
    arrived_samples = round(fmean(balances) * whole.samples)
    bytes_per_sample = size / samples if samples else 0.0
    whole = replace(
        whole,
        arrived_samples=arrived_samples,
        arrived_bytes=round(arrived_samples * bytes_per_sample),
    )
    return whole, rates


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
