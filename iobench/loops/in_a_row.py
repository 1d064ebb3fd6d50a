"""PURE. Epochs that were driven one after the other, as one loop; and a record of each.

Each leaves out its own first steps, as a loop of one epoch does, so that what passes between two
epochs (workers that end, files that are evicted, workers that start) is in no rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Any

from iobench.loops.drive import LoopTimes
from iobench.trial import Cold, Outcome


@dataclass(frozen=True, slots=True)
class Epoch:
    """One epoch as it was driven, and what the page cache did for it; None where it read nothing.

    ``seconds`` from asking for it to the end of its last step, of which ``first_batch_s`` passed
    until its first batch; ``samples`` are all that it took.
    """

    samples: int
    seconds: float
    first_batch_s: float
    cold: Cold | None


def epoch_of(times: LoopTimes, cold: Cold | None) -> Epoch:
    """Of an epoch that was driven by itself."""
    return Epoch(times.taken, times.counted_s[1], times.time_to_first_batch_s, cold)


def record(number: int, epoch: Epoch) -> dict[str, Any]:
    """What a result keeps of an epoch, counted from 0; ``samples_per_s`` is of all of it."""
    told: dict[str, Any] = {
        "number": number,
        "samples": epoch.samples,
        "seconds": epoch.seconds,
        "samples_per_s": epoch.samples / epoch.seconds if epoch.seconds > 0 else 0.0,
        "time_to_first_batch_s": epoch.first_batch_s,
    }
    if (cold := epoch.cold) is None:
        return told
    told |= {
        "asked": cold.asked,
        "resident_before": cold.resident_before,
        "physical_ratio": cold.physical_ratio,
        "label": cold.label,
        "why": cold.why,
    }
    return told if cold.amplification is None else {**told, "amplification": cold.amplification}


def records(epochs: Sequence[Epoch]) -> list[dict[str, Any]]:
    """Of all, in their order."""
    return [record(number, epoch) for number, epoch in enumerate(epochs)]


def in_a_row(epochs: Sequence[LoopTimes]) -> LoopTimes:
    """The steps that count of all epochs as those of one loop, which begins with the first.

    The time to the first batch is that of the first epoch; ``au_mlperf`` leaves out the first step
    of each, as DLIO, which MLPerf Storage runs, does of each epoch.
    """
    first = epochs[0]
    if len(epochs) == 1:
        return first
    running_s = sum(one.running_s for one in epochs)
    computing_s = sum(one.au_mlperf * one.running_s for one in epochs)
    return LoopTimes(
        time_to_first_batch_s=first.time_to_first_batch_s,
        au_mlperf=computing_s / running_s if running_s > 0 else 0.0,
        samples=sum(one.samples for one in epochs),
        taken=sum(one.taken for one in epochs),
        seconds=sum(one.seconds for one in epochs),
        left_out=sum(one.left_out for one in epochs),
        wait_s=tuple(chain.from_iterable(one.wait_s for one in epochs)),
        step_s=tuple(chain.from_iterable(one.step_s for one in epochs)),
        compute_s=tuple(chain.from_iterable(one.compute_s for one in epochs)),
        asked_s=first.asked_s,
        begun_s=first.begun_s,
        running_s=running_s,
        running_compute_s=tuple(chain.from_iterable(one.running_compute_s for one in epochs)),
    )


def with_epochs(outcome: Outcome, epochs: Sequence[LoopTimes]) -> Outcome:
    """``outcome`` of the loop ``in_a_row``, its steps where they were on the clock.

    Of several epochs each step also has the number of its own, and what lies between them is a
    pause.
    """
    if len(epochs) == 1:
        return outcome
    origin_s = epochs[0].asked_s
    begins = [one.asked_s - origin_s + one.begun_s for one in epochs]
    ends = [begin_s + one.seconds for begin_s, one in zip(begins, epochs, strict=True)]
    series: Mapping[str, Sequence[float]] = {
        **outcome.series,
        "time_s": tuple(
            begin_s + end_s
            for begin_s, one in zip(begins, epochs, strict=True)
            for end_s in accumulate(one.step_s)
        ),
        "epoch": tuple(number for number, one in enumerate(epochs) for _ in one.step_s),
    }
    pauses = tuple(pairwise(chain.from_iterable(zip(begins, ends, strict=True))))[1::2]
    return replace(outcome, series=series, counted_s=(begins[0], ends[-1]), pauses=pauses)
