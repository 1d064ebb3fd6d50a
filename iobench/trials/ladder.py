"""PURE. The counterfactual ladder: one loop, run again with one more real stage each time.

The cost of a stage is the difference between its rung and the one above it, in seconds for a
sample. The form with three rungs (device-resident, warm cache, cold) is that of Mohan et al.,
"Analyzing and mitigating data stalls in DNN training", VLDB 2021. Wall times of whole loops are
subtracted. Work that overlaps with other work therefore shows only as far as it makes the loop
longer.

Where whole epochs were measured, their rates include the starts of epochs, in which the loader
fills its buffers and the device has no batch. The rung ``start`` shows them, so that the rungs
still add up. It is the rung above it, plus the time that the first loop with a loader spent in
starts, if the samples of that loop come from memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iobench.results.statistics import Estimate, estimate

Seconds = Mapping[int, float]
"""Seconds for a sample by the number of the repeat."""

RUNGS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "cold", "store")
"""Inputs of a training loop, from the device to the farthest location."""

START = "start"
"""The rung of the starts of epochs. It is computed: no loop runs with this input."""

WORDS: Mapping[str, str] = {
    "synthetic": "device-resident",
    "copy": "+ copy to the device",
    START: "+ start of each epoch",
    "collate": "+ collate and inter-process",
    "augment": "+ augment",
    "decode": "+ decode",
    "warm": "+ read, page cache warm",
    "cold": "+ read, cold",
    "store": "+ object store instead of the local read",
}
"""The stage that each rung adds, in words."""

HOST_RUNGS = ("copy", "collate", "augment", "decode")
"""Rungs whose data are in host memory: neither on the device nor read from storage."""

HELD_RUNGS = frozenset({"collate", "augment", "decode"})
"""The host rungs whose samples are read before the loop begins."""

THREE = ("synthetic", "warm", "cold", "store")
"""The rungs of a pipeline of a framework, whose stages cannot be run separately."""

_WITHOUT_LOADER = ("synthetic", "copy")
_FROM_MEMORY = ("collate", "augment", "decode", "warm")
_ORDER = ("synthetic", "copy", START, "collate", "augment", "decode", "warm", "cold", "store")
_FARTHEST_FIRST = ("store", "cold", "warm")


def _possible_above() -> dict[str, Sequence[str]]:
    """Return the rungs that each rung may be compared with, the preferred one first."""
    candidates: dict[str, Sequence[str]] = {}
    for index, rung in enumerate(_ORDER):
        candidates[rung] = _ORDER[:index][::-1]
    # The store replaces the local read, so it is compared with the last rung that does not read.
    candidates["store"] = ("decode", "warm", "augment", "collate", START, "copy", "synthetic")
    return candidates


_POSSIBLE_ABOVE: Mapping[str, Sequence[str]] = _possible_above()


@dataclass(frozen=True, slots=True)
class Rung:
    """One loop on the ladder. Differences and shares are calculated within repeats.

    Attributes:
        rung: its input, or ``START``.
        seconds: the seconds for a sample.
        above: the rung that it is compared with; None for the first.
        within: rungs between the two that were not measured; this rung includes their cost.
        part: the seconds for a sample that it adds to ``above``; negative if it takes less.
        share: the same as a share of the time of the farthest rung.
    """

    rung: str
    seconds: Estimate
    above: str | None = None
    within: tuple[str, ...] = ()
    part: Estimate | None = None
    share: Estimate | None = None

    @property
    def differs_from_zero(self) -> bool:
        """Whether its part differs from zero: several repeats, and an interval without 0."""
        part = self.part
        return part is not None and part.repeats > 1 and (part.low > 0 or part.high < 0)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs that were measured.

    Attributes:
        rungs: the rungs in order; each names the one above it.
        path: the rungs from the first to the farthest, each the one above the next. Their
            differences add up to ``stall`` in every repeat.
        stall: seconds for a sample from the first rung to the farthest; None if either is missing.
        stall_share: the same as a share of the farthest.
    """

    rungs: tuple[Rung, ...]
    path: tuple[str, ...]
    stall: Estimate | None = None
    stall_share: Estimate | None = None


def first_from_memory(measured: Sequence[str]) -> str | None:
    """Return the rung nearest to the device that has a loader and reads from memory.

    Where samples come from a disk or a store, most of an epoch's start is the time in which they
    are fetched. The cost of the start itself can therefore not be taken from such a rung. None if
    no rung reads from memory.
    """
    for rung in _FROM_MEMORY:
        if rung in measured:
            return rung
    return None


def with_starts(seconds: Mapping[str, Seconds], starts: Seconds) -> dict[str, Seconds]:
    """Add the rung ``START`` below the last rung without a loader.

    Nothing is added if no start is part of a rate, or if no rung without a loader was measured.

    Args:
        seconds: seconds for a sample, by rung and repeat.
        starts: seconds for a sample that the rung ``first_from_memory`` spent in starts of epochs.
    """
    upper = [rung for rung in _WITHOUT_LOADER if seconds.get(rung)]
    if not upper or not any(starts.values()):
        return dict(seconds)
    upper_seconds = seconds[upper[-1]]
    with_start = {}
    for repeat in sorted(set(upper_seconds) & set(starts)):
        with_start[repeat] = upper_seconds[repeat] + starts[repeat]
    return {**seconds, START: with_start}


def ladder(seconds: Mapping[str, Seconds]) -> Ladder:
    """Return the ladder of loops.

    Args:
        seconds: seconds for a sample, by input and repeat; unknown inputs are left out.
    """
    measured = [rung for rung in _ORDER if seconds.get(rung)]
    if not measured:
        return Ladder((), ())
    reading = [rung for rung in _FARTHEST_FIRST if rung in measured]
    farthest = reading[0] if reading else measured[-1]
    path = [farthest]
    while (next_above := above(path[0], measured)) is not None:
        path.insert(0, next_above)
    rungs = tuple(_rung(rung, seconds, measured, farthest) for rung in measured)
    if len(path) == 1 or path[0] != "synthetic":
        return Ladder(rungs, tuple(path))
    return Ladder(
        rungs,
        tuple(path),
        stall=_difference(seconds, "synthetic", farthest),
        stall_share=_difference(seconds, "synthetic", farthest, farthest),
    )


def above(rung: str, measured: Sequence[str]) -> str | None:
    """Return the measured rung that a rung is compared with; None for the first."""
    for other in _POSSIBLE_ABOVE[rung]:
        if other in measured:
            return other
    return None


def within(rung: str, upper: str) -> tuple[str, ...]:
    """Return the rungs between two measured ones; the lower one includes their cost."""
    if rung == START:
        return ()
    end = RUNGS.index("warm" if rung == "store" else rung)
    return RUNGS[RUNGS.index(upper) + 1 : end]


def _rung(
    rung: str, seconds: Mapping[str, Seconds], measured: Sequence[str], farthest: str
) -> Rung:
    upper = above(rung, measured)
    own = estimate(list(seconds[rung].values()))
    if upper is None:
        return Rung(rung, own)
    upper_loop = above(START, measured) if upper == START else upper
    return Rung(
        rung,
        own,
        above=upper,
        within=within(rung, upper_loop) if upper_loop is not None else (),
        part=_difference(seconds, upper, rung),
        share=_difference(seconds, upper, rung, farthest),
    )


def _difference(
    seconds: Mapping[str, Seconds], upper: str, lower: str, total: str | None = None
) -> Estimate | None:
    """Return the difference of two rungs in the repeats that both have.

    Args:
        seconds: seconds for a sample, by rung and repeat.
        upper: the rung nearer to the device.
        lower: the other rung.
        total: the rung of which the difference is a share; None for seconds.
    """
    differences = []
    for repeat in sorted(set(seconds[upper]) & set(seconds[lower])):
        difference_s = seconds[lower][repeat] - seconds[upper][repeat]
        if total is None:
            differences.append(difference_s)
        elif repeat in seconds[total]:
            differences.append(difference_s / seconds[total][repeat])
    return estimate(differences) if differences else None
