"""PURE. Loops of several ranks that waited for each other in every step, as one loop.

DistributedDataParallel averages gradients in each backward pass (Li et al., "PyTorch Distributed:
Experiences on Accelerating Data Parallel Training", VLDB 2020), so that no rank ends a step
before the last one has its batch. Therefore, of the whole:

- a step ends when its last rank ends it;
- it waits as long as the rank that waits longest, and computes as long as that one does: it comes
  last and waits for nobody in its backward pass, while the computing time of others has the wait
  for its gradients in it. Where ranks wait alike it computes as long as they do on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from iobench.loops.drive import LoopTimes

_ALIKE = 0.01
"""Of a step: waits that differ by less say nothing of who came last."""


def times_of(stored: Mapping[str, Any]) -> LoopTimes:
    """A rank's times, as JSON has kept them."""
    lists = {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
    return LoopTimes(**{**stored, **lists})


def together(ranks: Sequence[LoopTimes]) -> LoopTimes:
    """The whole of loops that took as many steps each, on one clock.

    Samples are those of all ranks. Times begin with the first rank and end with the last.
    """
    asked_s = min(one.asked_s for one in ranks)
    begun_s = min(map(_begun_s, ranks))
    ended_s = max(map(_ended_s, ranks))
    first_done_s = min(_ended_s(one) - one.running_s for one in ranks)
    ends = [[_begun_s(one) + end_s for end_s in accumulate(one.step_s)] for one in ranks]
    lasts = [begun_s, *map(max, zip(*ends, strict=True))]
    steps = [after - before for before, after in pairwise(lasts)]
    waits = [max(each) for each in zip(*(one.wait_s for one in ranks), strict=True)]
    computed = tuple(_computed_s(ranks, step, lasts_s) for step, lasts_s in enumerate(steps))
    # Batches of steps that do not count lay ready: nobody came last for want of one.
    ahead = zip(*(one.running_compute_s for one in ranks), strict=True)
    before = tuple(sum(each) / len(ranks) for each in ahead)
    running_s = ended_s - first_done_s
    return LoopTimes(
        time_to_first_batch_s=max(one.asked_s + one.time_to_first_batch_s for one in ranks)
        - asked_s,
        au_mlperf=sum((*before, *computed)) / running_s if running_s > 0 else 0.0,
        samples=sum(one.samples for one in ranks),
        taken=sum(one.taken for one in ranks),
        seconds=ended_s - begun_s,
        left_out=ranks[0].left_out,
        # A rank may be ahead by the part of a step: what is waited for then costs nobody time.
        wait_s=tuple(map(min, waits, steps)),
        step_s=tuple(steps),
        compute_s=computed,
        asked_s=asked_s,
        begun_s=begun_s - asked_s,
        running_s=running_s,
        running_compute_s=before,
    )


def rank_metrics(ranks: Sequence[LoopTimes], whole: LoopTimes) -> dict[str, Any]:
    """By rank: means of the steps that count, shares of its own time; and how uneven they are.

    ``rank_uneven_share`` is the share of the time that the slowest rank of each step waits beyond
    what its ranks wait on average: what even ranks would not lose.
    """
    means = [sum(waits) / len(ranks) for waits in zip(*(one.wait_s for one in ranks), strict=True)]
    beyond = sum(
        max(0.0, longest - mean) for longest, mean in zip(whole.wait_s, means, strict=True)
    )
    return {
        "rank_wait_s": [_mean(one.wait_s) for one in ranks],
        "rank_wait_share": [_share(sum(one.wait_s), one.seconds) for one in ranks],
        "rank_step_s": [_mean(one.step_s) for one in ranks],
        "rank_compute_s": [_mean(one.compute_s) for one in ranks],
        "rank_au_mlperf": [one.au_mlperf for one in ranks],
        "rank_uneven_share": _share(beyond, whole.seconds),
    }


def _computed_s(ranks: Sequence[LoopTimes], step: int, lasts_s: float) -> float:
    waits = [one.wait_s[step] for one in ranks]
    if max(waits) - min(waits) < _ALIKE * lasts_s:
        return sum(one.compute_s[step] for one in ranks) / len(ranks)
    return ranks[waits.index(max(waits))].compute_s[step]


def _begun_s(one: LoopTimes) -> float:
    return one.asked_s + one.begun_s


def _ended_s(one: LoopTimes) -> float:
    return _begun_s(one) + one.seconds


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
