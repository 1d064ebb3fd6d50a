"""PURE. The counterfactual ladder: one loop, run again with one more real part each time.

The cost of a part is the difference between its rung and the one above it, in seconds a sample.
The form with three rungs (device-resident, warm cache, cold) is that of Mohan et al., "Analyzing
and mitigating data stalls in DNN training", VLDB 2021. Wall times of whole loops are subtracted, so
work that overlaps with other work shows only as far as it makes the loop longer.

Where whole epochs were measured, their rates include the starts of epochs, in which the loader
fills its buffers and the device has no batch. The rung ``start`` shows them, so that the rungs
still add up: it is the rung above, and the time that the first loop with a loader spent in starts,
if its samples come from memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iobench.stats import Estimate, estimate

Seconds = Mapping[int, float]
"""Seconds a sample by the number of the repeat."""

RUNGS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "cold", "store")
"""Inputs of a training loop, from the device to the farthest."""

START = "start"
"""The rung of the starts of epochs. It is computed: no loop runs with such an input."""

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

HOST_RUNGS = ("copy", "collate", "augment", "decode")
"""Rungs between data on the device and data that are read: the data are in host memory."""

HELD_RUNGS = frozenset({"collate", "augment", "decode"})
"""The host rungs whose samples are read before the loop begins."""

THREE = ("synthetic", "warm", "cold", "store")
"""The rungs of a pipeline that is a framework's own."""

_WITHOUT_LOADER = ("synthetic", "copy")
_WITH_LOADER = RUNGS[2:]
_FROM_MEMORY = ("collate", "augment", "decode", "warm")
_ORDER = (*_WITHOUT_LOADER, START, *_WITH_LOADER)
# A rung is compared with the first of these that was measured. The store replaces the local read,
# so it is compared with the last rung that does not read.
_ABOVE: Mapping[str, Sequence[str]] = {
    **{rung: _ORDER[:place][::-1] for place, rung in enumerate(_ORDER)},
    "store": ("decode", "warm", "augment", "collate", START, "copy", "synthetic"),
}
_FARTHEST = ("store", "cold", "warm")


@dataclass(frozen=True, slots=True)
class Rung:
    """One loop on the ladder. Differences and shares are calculated within repeats.

    Attributes:
        rung: its input, or ``START``.
        seconds: a sample.
        above: the rung that it is compared with; None for the first.
        within: rungs between the two that were not measured; this rung includes their cost.
        part: seconds a sample that it adds to that; negative if it takes less.
        share: of the time of the farthest rung.
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
    """Rungs that were measured, in order.

    Attributes:
        rungs: of which each names the one above it.
        path: from the first to the farthest, each the one above the next: their differences add up
            to ``stall`` in every repeat.
        stall: seconds a sample from the first rung to the farthest; None where either is missing.
        stall_share: the same as a share of the farthest.
    """

    rungs: tuple[Rung, ...]
    path: tuple[str, ...]
    stall: Estimate | None = None
    stall_share: Estimate | None = None


def first_from_memory(measured: Sequence[str]) -> str | None:
    """The rung nearest to the device that has a loader and reads from memory; None without one.

    Where samples come from a disk or a store, most of an epoch's start is the time in which they
    are fetched, so that such a rung does not tell what starts cost by themselves.
    """
    return next((rung for rung in _FROM_MEMORY if rung in measured), None)


def with_starts(seconds: Mapping[str, Seconds], starts: Seconds) -> dict[str, Seconds]:
    """Add the rung ``START`` below the last rung without a loader.

    Args:
        seconds: a sample, by rung and repeat.
        starts: seconds a sample that the rung ``first_from_memory`` spent in starts of epochs.

    Nothing is added if no start is part of a rate, or if no rung without a loader was measured.
    """
    upper = next((rung for rung in _WITHOUT_LOADER[::-1] if seconds.get(rung)), None)
    if upper is None or not any(starts.values()):
        return dict(seconds)
    repeats = sorted(set(seconds[upper]) & set(starts))
    return {**seconds, START: {n: seconds[upper][n] + starts[n] for n in repeats}}


def ladder(seconds: Mapping[str, Seconds]) -> Ladder:
    """The ladder of loops by their input; other inputs are left out."""
    known = [rung for rung in _ORDER if seconds.get(rung)]
    farthest = next((rung for rung in _FARTHEST if rung in known), known[-1] if known else None)
    if farthest is None:
        return Ladder((), ())
    path = [farthest]
    while (next_above := above(path[0], known)) is not None:
        path.insert(0, next_above)
    whole = len(path) > 1 and path[0] == "synthetic"
    return Ladder(
        tuple(_rung(rung, seconds, known, farthest) for rung in known),
        tuple(path),
        _difference(seconds, "synthetic", farthest) if whole else None,
        _difference(seconds, "synthetic", farthest, farthest) if whole else None,
    )


def above(rung: str, known: Sequence[str]) -> str | None:
    """The rung of ``known`` that a rung is compared with; None for the first."""
    return next((other for other in _ABOVE[rung] if other in known), None)


def within(rung: str, upper: str) -> tuple[str, ...]:
    """Rungs between two measured ones that were not measured; the lower one includes their cost."""
    if rung == START:
        return ()
    end = RUNGS.index("warm" if rung == "store" else rung)
    return RUNGS[RUNGS.index(upper) + 1 : end]


def _rung(rung: str, seconds: Mapping[str, Seconds], known: Sequence[str], farthest: str) -> Rung:
    upper = above(rung, known)
    own = estimate(list(seconds[rung].values()))
    if upper is None:
        return Rung(rung, own)
    measured_above = above(START, known) if upper == START else upper
    return Rung(
        rung,
        own,
        upper,
        within(rung, measured_above) if measured_above is not None else (),
        _difference(seconds, upper, rung),
        _difference(seconds, upper, rung, farthest),
    )


def _difference(
    seconds: Mapping[str, Seconds], upper: str, lower: str, whole: str | None = None
) -> Estimate | None:
    """The difference of two rungs in the repeats of both, as a share of the rung ``whole``."""
    repeats = set(seconds[upper]) & set(seconds[lower])
    parts = {n: seconds[lower][n] - seconds[upper][n] for n in sorted(repeats)}
    if whole is not None:
        total = seconds[whole]
        parts = {n: part / total[n] for n, part in parts.items() if n in total}
    return estimate(list(parts.values())) if parts else None
