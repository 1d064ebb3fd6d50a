"""PURE. Workers beside processors: too few to feed the device, too many to run, or crowded out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from iobench.diagnosis.loop import BUSY, IDLE, Loop
from iobench.diagnosis.rule import FINE, Rule, Share, percent
from iobench.diagnosis.sources import CLOUD_GUIDE, TORCH_DATA
from iobench.result import Finding

CROWDED = 2.0
"""Workers for each processor, from which on they only take each other's time."""
FEW = 0.5
"""Workers for each processor, below which a loop that waits has too few."""

CROWDABLE = 0.25
"""Of the processors: a demand below it finds its time beside others, whoever is busy."""
CROWDING = 0.25
"""Of the processors: programs that keep fewer busy crowd nobody out."""

OTHERS_BUSY = Rule(
    "other-programs",
    "Other programs have the processors",
    "cause",
    "problem",
    f"preparing takes {FINE:.0%} of the time or more, {BUSY:.0%} of the processors are busy, "
    f"{CROWDING:.0%} or more of them with other programs, and what these leave is less than the "
    f"device's rate takes, {CROWDABLE:.0%} or more",
    "cpu_busy_share, cores_busy of the loop's own processes, cpu_s_per_1000_samples × the "
    "device's rate, with the device's own work where that is a processor",
    "look at what runs beside the training, and measure without it",
    CLOUD_GUIDE,
)
TOO_FEW = Rule(
    "too-few-workers",
    "Too few workers: processors could prepare more side by side",
    "cause",
    "problem",
    f"preparing takes {FINE:.0%} of the time or more, and at the rate that the device consumes it "
    f"would keep no more than {BUSY:.0%} of the processors busy; or, where that was not seen, less "
    f"than {IDLE:.0%} of them were busy, or there are fewer than {FEW:g} workers a processor",
    "preparation_stall ((T3 − T1) ÷ T2); cpu_s_per_1000_samples × the device's rate, beside the "
    "processors; cpu_busy_share; workers",
    "more training.workers (DataLoader's num_workers), and training.prefetch where batches come "
    "unevenly",
    CLOUD_GUIDE,
)
TOO_MANY = Rule(
    "too-many-workers",
    "Far more workers than processors",
    "setting",
    "warning",
    f"more than {CROWDED:g} workers a processor, of all ranks together",
    "workers × ranks, beside the processors that may be used",
    "as many training.workers as processors at most, or what iobench run "
    "configs/bench/loaders.yaml finds: more take memory, and each other's time",
    TORCH_DATA,
)
RULES = (OTHERS_BUSY, TOO_FEW, TOO_MANY)


def findings(loops: Iterable[Loop]) -> Iterator[Finding]:
    """Of each loop."""
    for loop in loops:
        share = loop.preparation
        if share is not None and share.counts:
            yield from _preparing(loop, share)
        if loop.processors and loop.workers > CROWDED * loop.processors:
            yield TOO_MANY.found(
                f"{loop.name}: {loop.workers} workers on {loop.processors:,.4g} processors"
            )


def _preparing(loop: Loop, share: Share) -> Iterator[Finding]:
    said = f"{loop.name}: preparing takes {share} of its time with {_workers(loop.workers)}"
    needed, there, busy = loop.cores_needed, loop.processors, loop.metric("cpu_busy_share")
    if needed is not None and there is not None and needed > BUSY * there:
        return
    if there is not None and (crowded := _crowded(loop, there)):
        yield OTHERS_BUSY.costing(f"{said}; {crowded}", share)
        return
    if needed is not None and there is not None:
        said += (
            f"; at the device's rate it would keep {needed:,.2g} of {there:,.4g} processors busy"
        )
    elif busy is not None:
        if busy >= IDLE:
            return
    elif there is None or loop.workers >= FEW * there:
        return
    else:
        said += f" on {there:,.4g} processors"
    if busy is not None:
        said += f"; processors were busy {percent(busy)}"
    yield TOO_FEW.costing(said, share, _advice(loop))


def _crowded(loop: Loop, there: float) -> str:
    """By whom, and out of what; empty where others leave it all that it could use."""
    wanted, busy, own = loop.cores_wanted, loop.metric("cpu_busy_share"), loop.metric("cores_busy")
    if wanted is None or busy is None or own is None or busy < BUSY:
        return ""
    others = max(0.0, busy * there - own)
    left = there - others
    if wanted < CROWDABLE * there or others < CROWDING * there or wanted <= left:
        return ""
    return (
        f"at the device's rate it would keep {wanted:,.2g} of {there:,.4g} processors busy; they "
        f"are busy {percent(busy)}, and other programs leave {left:,.2g} of them"
    )


def _advice(loop: Loop) -> str:
    """How many, if each gives what those that there are give; no more than are too many."""
    consumes, warm = loop.rate("consumes"), loop.rate("warm") or loop.rate("achieved")
    if not consumes or not warm or consumes <= warm:
        return ""
    each = max(loop.workers, 1)
    would = max(math.ceil(each * consumes / warm), loop.workers + 1)
    wanted = min(would, _most(loop)) if loop.processors else would
    first = "" if wanted == would else f" first, of {would} that"
    return (
        f"training.workers: {wanted}{first} would feed the device, if each gives what "
        f"{_workers(loop.workers) if loop.workers else 'the loop by itself'} gave "
        f"({warm:,.0f} of {consumes:,.0f} samples/s); more training.prefetch where batches come "
        "unevenly"
    )


def _most(loop: Loop) -> int:
    """Workers that are not yet too many; one a processor where it is not known what each takes."""
    each = 1.0 if loop.cores_needed is None else CROWDED
    return max(int(each * (loop.processors or 0.0)), loop.workers + 1)


def _workers(count: int) -> str:
    return f"{count} worker{'' if count == 1 else 's'}"
