"""PURE. The counterfactual ladder: the cost of each stage of a training loop.

The same loop is run again and again, each time with one more stage of the real input pipeline. Each
of these loops is a *rung*. The cost of a stage is the difference between its rung and the rung
above it, in seconds per sample. Mohan et al. ("Analyzing and mitigating data stalls in DNN
training", VLDB 2021) have introduced the method, with three rungs: device-resident, warm cache and
cold. The difference is taken between the wall times of whole loops. Work that overlaps with other
work therefore costs only the time by which it makes the loop longer.

If whole epochs were measured, their rates include the starts of epochs. At the start of an epoch
the loader fills its buffers, and the device has no batch. The computed rung ``start`` has the cost
of these starts, so that the costs of all rungs still add up. Its time is the time of the rung above
it, plus the time that a loop whose samples come from memory spent in starts of epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from iobench.results.statistics import Estimate, estimate

Seconds = Mapping[int, float]
"""Seconds per sample by the number of the repeat."""

RUNGS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "cold", "store")
"""Inputs of a training loop, from the device to the farthest location."""

START = "start"
"""The rung of the starts of epochs. It is computed, since no loop can run with this input."""

STAGES: Mapping[str, str] = {
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
"""The name of the stage that each rung adds, for reports."""

HOST_RUNGS = ("copy", "collate", "augment", "decode")
"""Rungs whose samples come from host memory, not from the device and not from storage."""

PRELOADED_RUNGS = frozenset({"collate", "augment", "decode"})
"""Rungs whose samples are read into host memory before the loop begins."""

PIPELINE_RUNGS = ("synthetic", "warm", "cold", "store")
"""The rungs of a framework's own pipeline, whose stages cannot be run separately."""

_WITHOUT_LOADER = ("synthetic", "copy")
_FROM_MEMORY = ("collate", "augment", "decode", "warm")
_ORDER = ("synthetic", "copy", START, "collate", "augment", "decode", "warm", "cold", "store")
_FARTHEST_FIRST = ("store", "cold", "warm")


def _upper_candidates() -> dict[str, Sequence[str]]:
    """Return the rungs with which each rung may be compared, the preferred rung first."""
    candidates: dict[str, Sequence[str]] = {}
    for index, rung in enumerate(_ORDER):
        nearest_first = _ORDER[:index][::-1]
        candidates[rung] = nearest_first
    # The store replaces the local read, so it is compared with the last rung that does not read. A
    # pipeline of a framework has no rung ``decode``, so its store is compared with ``warm``.
    candidates["store"] = ("decode", "warm", "augment", "collate", START, "copy", "synthetic")
    return candidates


_UPPER_CANDIDATES: Mapping[str, Sequence[str]] = _upper_candidates()


@dataclass(frozen=True, slots=True)
class Rung:
    """One loop on the ladder. Costs and shares are computed in each repeat, and then estimated.

    Attributes:
        rung: the input of the loop, or ``START``.
        seconds: the seconds per sample.
        above: the rung with which it is compared; None for the first rung.
        skipped: the rungs between ``above`` and this rung that were not measured. The cost of this
            rung includes their costs.
        cost: the seconds per sample that this rung adds to ``above``. It is negative if this loop
            was faster. None for the first rung, or if no repeat has both rungs.
        share: the cost as a share of the time of the farthest rung; None in the same cases, or if
            the farthest rung has none of these repeats.
    """

    rung: str
    seconds: Estimate
    above: str | None = None
    skipped: tuple[str, ...] = ()
    cost: Estimate | None = None
    share: Estimate | None = None

    @property
    def differs_from_zero(self) -> bool:
        """Whether the cost has several repeats and an interval that does not contain 0."""
        cost = self.cost
        return cost is not None and cost.repeats > 1 and (cost.low > 0 or cost.high < 0)


@dataclass(frozen=True, slots=True)
class Ladder:
    """The rungs that were measured.

    Attributes:
        rungs: the measured rungs in order.
        path: the rungs from the first to the farthest. Each rung is the ``above`` of the next rung.
            Their costs add up to ``stall`` in every repeat.
        stall: the seconds per sample that the farthest rung takes longer than the rung
            ``synthetic``; None if ``synthetic`` was not measured, is the only rung, or has no
            repeat with the farthest rung.
        stall_share: the stall as a share of the time of the farthest rung; None in the same cases.
    """

    rungs: tuple[Rung, ...]
    path: tuple[str, ...]
    stall: Estimate | None = None
    stall_share: Estimate | None = None


def first_from_memory(measured: Sequence[str]) -> str | None:
    """Return the rung nearest to the device that has a loader and whose samples are in memory.

    If samples come from a disk or a store, most of the start of an epoch is the time to fetch them.
    Such a rung does not show the cost of the start itself. None if no rung reads from memory.
    """
    for rung in _FROM_MEMORY:
        if rung in measured:
            return rung
    return None


def with_starts(seconds: Mapping[str, Seconds], starts: Seconds) -> dict[str, Seconds]:
    """Add the rung ``START`` after the last rung without a loader.

    Nothing is added if no rate includes starts of epochs, or if no rung without a loader was
    measured.

    Args:
        seconds: seconds per sample, by rung and repeat.
        starts: seconds per sample that the rung ``first_from_memory`` spent in starts of epochs.
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
    """Compute the ladder of a loop.

    Args:
        seconds: seconds per sample, by input and repeat. Unknown inputs are ignored.
    """
    measured = [rung for rung in _ORDER if seconds.get(rung)]
    if not measured:
        return Ladder((), ())
    storage_rungs = [rung for rung in _FARTHEST_FIRST if rung in measured]
    farthest = storage_rungs[0] if storage_rungs else measured[-1]
    path = [farthest]
    upper = rung_above(farthest, measured)
    while upper is not None:
        path.insert(0, upper)
        upper = rung_above(upper, measured)
    rungs = tuple(_rung(rung, seconds, measured, farthest) for rung in measured)
    if len(path) == 1 or path[0] != "synthetic":
        return Ladder(rungs, tuple(path))
    return Ladder(
        rungs,
        tuple(path),
        stall=_difference(seconds, "synthetic", farthest),
        stall_share=_difference(seconds, "synthetic", farthest, share_of=farthest),
    )


def rung_above(rung: str, measured: Sequence[str]) -> str | None:
    """Return the measured rung with which a rung is compared; None for the first rung."""
    for candidate in _UPPER_CANDIDATES[rung]:
        if candidate in measured:
            return candidate
    return None


def rungs_between(rung: str, upper: str) -> tuple[str, ...]:
    """Return the rungs between ``upper`` and ``rung``, two measured rungs.

    The cost of ``rung`` includes their costs.
    """
    if rung == START:
        return ()
    end = RUNGS.index("warm" if rung == "store" else rung)
    return RUNGS[RUNGS.index(upper) + 1 : end]


def _rung(
    rung: str, seconds: Mapping[str, Seconds], measured: Sequence[str], farthest: str
) -> Rung:
    """Estimate the time and the cost of one rung.

    Args:
        rung: the rung.
        seconds: seconds per sample, by rung and repeat.
        measured: the measured rungs in order.
        farthest: the rung whose time the cost is divided by.
    """
    upper = rung_above(rung, measured)
    rung_seconds = estimate(list(seconds[rung].values()))
    if upper is None:
        return Rung(rung, rung_seconds)
    # The rung ``START`` is computed, so the last loop before it is the rung above it.
    upper_loop = rung_above(START, measured) if upper == START else upper
    return Rung(
        rung,
        rung_seconds,
        above=upper,
        skipped=rungs_between(rung, upper_loop) if upper_loop is not None else (),
        cost=_difference(seconds, upper, rung),
        share=_difference(seconds, upper, rung, share_of=farthest),
    )


def _difference(
    seconds: Mapping[str, Seconds], upper: str, lower: str, *, share_of: str | None = None
) -> Estimate | None:
    """Estimate the difference of two rungs, over the repeats that both rungs have.

    None if there is no such repeat.

    Args:
        seconds: seconds per sample, by rung and repeat.
        upper: the rung nearer to the device.
        lower: the rung farther from the device.
        share_of: the rung whose time the difference is divided by; None for a difference in
            seconds.
    """
    differences = []
    for repeat in sorted(set(seconds[upper]) & set(seconds[lower])):
        difference_s = seconds[lower][repeat] - seconds[upper][repeat]
        if share_of is None:
            differences.append(difference_s)
        elif repeat in seconds[share_of]:
            differences.append(difference_s / seconds[share_of][repeat])
    return estimate(differences) if differences else None
