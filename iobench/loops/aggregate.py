"""PURE. Combine the timings of several loops: epochs, ranks, or independent processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np

from iobench.errors import TrialFailed
from iobench.loops.drive import LoopTimes

_ALIKE = 0.01
"""Share of a step: if waits differ by less, they do not show which rank came last."""
_TOGETHER = 0.5
"""Share of the longest loop's time in which all processes must have run."""
_SHORTEST_S = 1e-12
"""Below the resolution of any clock; prevents divisions by 0."""


def epochs_as_one(epochs: Sequence[LoopTimes]) -> LoopTimes:
    """Combine the timings of consecutive epochs into one loop.

    Each epoch leaves out its own first steps, so that rates do not include the time between epochs
    (workers end, files are evicted, workers start). The time to the first batch is that of the
    first epoch. ``au_mlperf`` leaves out the first step of each epoch, like DLIO, the program of
    MLPerf Storage.
    """
    running_s = sum(one.running_s for one in epochs)
    computing_s = sum(one.au_mlperf * one.running_s for one in epochs)

    def joined(name: str) -> tuple[float, ...]:
        return tuple(chain.from_iterable(getattr(one, name) for one in epochs))

    return replace(
        epochs[0],
        au_mlperf=computing_s / running_s if running_s > 0 else 0.0,
        samples=sum(one.samples for one in epochs),
        taken=sum(one.taken for one in epochs),
        seconds=sum(one.seconds for one in epochs),
        left_out=sum(one.left_out for one in epochs),
        wait_s=joined("wait_s"),
        step_s=joined("step_s"),
        compute_s=joined("compute_s"),
        running_s=running_s,
        running_compute_s=joined("running_compute_s"),
    )


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

    Samples are those of all ranks. Times begin with the first rank and end with the last. All ranks
    use the same clock.
    """
    asked_s = min(one.asked_s for one in ranks)
    begun_s = min(one.begun_at_s for one in ranks)
    ended_s = max(one.ended_at_s for one in ranks)
    running_s = ended_s - min(one.ended_at_s - one.running_s for one in ranks)
    ends = np.max([one.begun_at_s + np.cumsum(one.step_s) for one in ranks], axis=0)
    steps = np.diff(ends, prepend=begun_s)
    waits = np.array([one.wait_s for one in ranks])
    computes = np.array([one.compute_s for one in ranks])
    alike = np.ptp(waits, axis=0) < _ALIKE * steps
    last = np.take_along_axis(computes, waits.argmax(axis=0)[None], axis=0)[0]
    computed = np.where(alike, computes.mean(axis=0), last)
    # Batches of steps that do not count were ready, so that no rank was late.
    ahead = np.mean([one.running_compute_s for one in ranks], axis=0)
    computing_s = float(ahead.sum() + computed.sum())
    return LoopTimes(
        time_to_first_batch_s=max(one.asked_s + one.time_to_first_batch_s for one in ranks)
        - asked_s,
        au_mlperf=computing_s / running_s if running_s > 0 else 0.0,
        samples=sum(one.samples for one in ranks),
        taken=sum(one.taken for one in ranks),
        seconds=ended_s - begun_s,
        left_out=ranks[0].left_out,
        # A rank may be ahead by a part of a step: its wait then costs no time.
        wait_s=tuple(np.minimum(waits.max(axis=0), steps).tolist()),
        step_s=tuple(steps.tolist()),
        compute_s=tuple(computed.tolist()),
        asked_s=asked_s,
        begun_s=begun_s - asked_s,
        running_s=running_s,
        running_compute_s=tuple(ahead.tolist()),
    )


def rank_metrics(ranks: Sequence[LoopTimes], whole: LoopTimes) -> dict[str, Any]:
    """Means and shares for each rank, over the steps that count; and how uneven the ranks are.

    ``rank_uneven_share``: in each step, the wait of the slowest rank minus the mean wait of all
    ranks; as a share of the time. Ranks that wait equally long would save this time.
    """
    means = np.mean([one.wait_s for one in ranks], axis=0)
    beyond_s = float(np.maximum(0.0, whole.wait_s - means).sum())
    return {
        "rank_wait_s": [fmean(one.wait_s) for one in ranks],
        "rank_wait_share": [_share(sum(one.wait_s), one.seconds) for one in ranks],
        "rank_step_s": [fmean(one.step_s) for one in ranks],
        "rank_compute_s": [fmean(one.compute_s) for one in ranks],
        "rank_au_mlperf": [one.au_mlperf for one in ranks],
        "rank_uneven_share": _share(beyond_s, whole.seconds),
    }


def processes_as_one(ranks: Sequence[LoopTimes]) -> tuple[LoopTimes, list[float]]:
    """Combine the timings of independent processes; return them and the samples/s of each process.

    Only the time counts in which the steps of all processes counted, since before and after it
    some had the machine for themselves. A step that is partly in this time counts in part: whole
    steps alone would mostly be short ones, since batches come in bursts. The rate is the sum of
    the rates of all processes.

    Raises:
        TrialFailed: they did not run at the same time for long enough.
    """
    start_s = max(one.begun_at_s for one in ranks)
    end_s = min(one.ended_at_s for one in ranks)
    seconds = end_s - start_s
    if seconds < _TOGETHER * max(one.seconds for one in ranks):
        raise TrialFailed(
            "the processes ran together for less than half of their time: give more seconds "
            "(cold: more images), or a smaller batch_size"
        )
    rates, waits, steps = [], [], []
    for one in ranks:
        step_s = np.array(one.step_s)
        ends_s = one.begun_at_s + np.cumsum(step_s)
        inside_s = np.minimum(ends_s, end_s) - np.maximum(ends_s - step_s, start_s)
        shares = np.maximum(0.0, inside_s) / np.maximum(step_s, _SHORTEST_S)
        batch = one.samples / len(one.step_s)  # on average
        rates.append(float(shares.sum()) * batch / seconds)
        mostly = shares >= 0.5
        waits += np.array(one.wait_s)[mostly].tolist()
        steps += step_s[mostly].tolist()
    asked_s = min(one.asked_s for one in ranks)
    whole = LoopTimes(
        time_to_first_batch_s=max(one.asked_s + one.time_to_first_batch_s for one in ranks)
        - asked_s,
        au_mlperf=0.0,
        samples=round(sum(rates) * seconds),
        taken=sum(one.taken for one in ranks),
        seconds=seconds,
        left_out=max(one.left_out for one in ranks),
        wait_s=tuple(waits),
        step_s=tuple(steps),
        compute_s=(),
        asked_s=asked_s,
        begun_s=start_s - asked_s,
    )
    return whole, rates


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
