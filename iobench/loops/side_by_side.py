"""PURE. Loops of several processes that ran at once and did not wait for each other.

Only the time counts in which the steps of every one of them counted: before it and after it some
had the machine for themselves. A step that lies in it in part counts by that part: whole ones alone
would be the short ones, since batches come in bursts. The rate of the whole is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from iobench.errors import TrialFailed
from iobench.loops.drive import LoopTimes

_TOGETHER = 0.5
"""Share of the longest loop's time in which all must have been at it."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """``whole``: all as one loop, its waits and steps those of every process. ``samples_per_s``:
    of each, by rank."""

    whole: LoopTimes
    samples_per_s: tuple[float, ...]

    @property
    def evenness(self) -> float:
        """The slowest one's rate / the fastest one's; 1 where all are alike."""
        fastest = max(self.samples_per_s)
        return min(self.samples_per_s) / fastest if fastest > 0 else 1.0


def side_by_side(ranks: Sequence[LoopTimes]) -> SideBySide:
    """The whole of loops on one clock.

    Raises:
        TrialFailed: they were not at it at the same time for long enough.
    """
    start_s = max(one.asked_s + one.begun_s for one in ranks)
    end_s = min(one.asked_s + one.begun_s + one.seconds for one in ranks)
    seconds = end_s - start_s
    if seconds < _TOGETHER * max(one.seconds for one in ranks):
        raise TrialFailed(
            "the processes were at it together for less than half of their time: give more seconds "
            "(cold: more images), or a smaller batch_size"
        )
    parts = [_parts(one, start_s, end_s) for one in ranks]
    rates = tuple(_rate(one, part, seconds) for one, part in zip(ranks, parts, strict=True))
    asked_s = min(one.asked_s for one in ranks)
    first_s = max(one.asked_s + one.time_to_first_batch_s for one in ranks) - asked_s
    mostly = [
        (one, step)
        for one, part in zip(ranks, parts, strict=True)
        for step, share in enumerate(part)
        if share >= 0.5
    ]
    whole = LoopTimes(
        time_to_first_batch_s=first_s,
        au_mlperf=0.0,
        samples=round(sum(rates) * seconds),
        taken=sum(one.taken for one in ranks),
        seconds=seconds,
        left_out=max(one.left_out for one in ranks),
        wait_s=tuple(one.wait_s[step] for one, step in mostly),
        step_s=tuple(one.step_s[step] for one, step in mostly),
        compute_s=(),
        asked_s=asked_s,
        begun_s=start_s - asked_s,
    )
    return SideBySide(whole, rates)


def _parts(one: LoopTimes, start_s: float, end_s: float) -> list[float]:
    """Which share of each step lies between the two."""
    begun_s = one.asked_s + one.begun_s
    ends = [begun_s + end for end in accumulate(one.step_s)]
    return [
        max(0.0, min(step_end_s, end_s) - max(step_end_s - step_s, start_s)) / step_s
        if step_s > 0
        else float(start_s <= step_end_s <= end_s)
        for step_end_s, step_s in zip(ends, one.step_s, strict=True)
    ]


def _rate(one: LoopTimes, parts: Sequence[float], seconds: float) -> float:
    """Samples/s; batches have as many samples as they have on average."""
    return sum(parts) * one.samples / len(one.step_s) / seconds
