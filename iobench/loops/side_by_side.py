"""PURE. Loops of several processes that ran at once and did not wait for each other.

Only the time counts in which the steps of every one of them counted: before it and after it some
had the machine for themselves. A process' rate there is that of its steps that began and ended in
it; the rate of the whole is their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from iobench.errors import TrialFailed
from iobench.loops.drive import LoopTimes


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
        TrialFailed: some process took no whole step while all others were at it.
    """
    start_s = max(one.asked_s + one.begun_s for one in ranks)
    end_s = min(one.asked_s + one.begun_s + one.seconds for one in ranks)
    steps = [_within(one, start_s, end_s) for one in ranks]
    rates = tuple(_rate(one, taken) for one, taken in zip(ranks, steps, strict=True))
    asked_s = min(one.asked_s for one in ranks)
    seconds = end_s - start_s
    first_s = max(one.asked_s + one.time_to_first_batch_s for one in ranks) - asked_s
    pairs = list(zip(ranks, steps, strict=True))
    whole = LoopTimes(
        time_to_first_batch_s=first_s,
        au_mlperf=0.0,
        samples=round(sum(rates) * seconds),
        taken=sum(one.taken for one in ranks),
        seconds=seconds,
        left_out=max(one.left_out for one in ranks),
        wait_s=tuple(one.wait_s[step] for one, taken in pairs for step in taken),
        step_s=tuple(one.step_s[step] for one, taken in pairs for step in taken),
        compute_s=(),
        asked_s=asked_s,
        begun_s=start_s - asked_s,
    )
    return SideBySide(whole, rates)


def _within(one: LoopTimes, start_s: float, end_s: float) -> range:
    """Steps that began and ended between the two.

    Raises:
        TrialFailed: there is none.
    """
    begun_s = one.asked_s + one.begun_s
    ends = [begun_s + end for end in accumulate(one.step_s)]
    # Sums of floats may miss the window's own edges by their last bits.
    slack_s = 1e-9 * max(1.0, abs(end_s))
    inside = [
        number
        for number, step_end_s in enumerate(ends)
        if step_end_s <= end_s + slack_s and step_end_s - one.step_s[number] >= start_s - slack_s
    ]
    if not inside:
        raise TrialFailed(
            "the processes were not at it at the same time for a whole batch of each: give more "
            "seconds (cold: more images), or a smaller batch_size"
        )
    return range(inside[0], inside[-1] + 1)


def _rate(one: LoopTimes, steps: range) -> float:
    """Samples/s of some steps; batches have as many samples as they have on average."""
    seconds = sum(one.step_s[step] for step in steps)
    a_step = one.samples / len(one.step_s)
    return len(steps) * a_step / seconds if seconds > 0 else 0.0
