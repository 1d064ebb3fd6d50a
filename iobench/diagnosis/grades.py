"""PURE. How much of a loop's time input takes, and what to make of that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iobench.diagnosis.loop import Loop
from iobench.diagnosis.rule import FINE, HIGH, Rule, percent
from iobench.diagnosis.sources import PROFILER, STALLS
from iobench.result import Finding

_EVIDENCE = (
    "stall_fraction: (T2 − T1) ÷ T2 of the same loop, over repeats; without input synthetic "
    "wait_share, the time that the loop spent in next()"
)
_SPLIT = (
    "see the causes that are named; where none is, iobench ladder CONFIG tells what each part of "
    "the way to the device adds, and training.inputs: [synthetic, warm, cold] (or store) tells "
    "reading from preparing"
)
INPUT_FINE = Rule(
    "input-fine",
    "Input takes next to nothing",
    "grade",
    "info",
    f"input takes less than {FINE:.0%} of the loop's time; what its device could take was not "
    "measured",
    _EVIDENCE,
    "nothing to gain from storage or loader; add synthetic to training.inputs to see what the "
    "device could take",
    PROFILER,
)
INPUT_MODERATE = Rule(
    "input-moderate",
    "Input takes a moderate part of the time",
    "grade",
    "warning",
    f"input takes {FINE:.0%} to {HIGH:.0%} of the loop's time",
    _EVIDENCE,
    _SPLIT,
    PROFILER,
)
INPUT_HIGH = Rule(
    "input-high",
    "Input takes a large part of the time",
    "grade",
    "problem",
    f"input takes more than {HIGH:.0%} of the loop's time",
    _EVIDENCE,
    _SPLIT,
    PROFILER,
)
SLOW_DEVICE = Rule(
    "slow-device",
    "The device is what limits: its data keep up",
    "grade",
    "info",
    f"input takes less than {FINE:.0%} of the loop's time, and the same loop on data in the "
    "device's memory was measured beside it",
    "stall_fraction, and the rates of the loop with and without input",
    "faster storage or a faster loader brings nothing here; a faster device, mixed precision "
    "(training.precision) or a larger training.batch_size may",
    STALLS,
)
RULES = (INPUT_HIGH, INPUT_MODERATE, SLOW_DEVICE, INPUT_FINE)


def findings(loops: Iterable[Loop]) -> Iterator[Finding]:
    """One of each loop whose waits are known."""
    for loop in loops:
        share = loop.stall
        if share is None:
            continue
        said = f"{loop.name}: input takes {share} of its time"
        if share.median > HIGH:
            yield INPUT_HIGH.found(said + _rates(loop), share=share.median)
        elif share.median >= FINE:
            yield INPUT_MODERATE.found(said + _rates(loop), share=share.median)
        elif loop.ceiling_known:
            yield SLOW_DEVICE.found(_limited(loop, str(share)), share=share.median)
        else:
            yield INPUT_FINE.found(said, share=share.median)


def _rates(loop: Loop) -> str:
    got, takes = loop.rate("achieved"), loop.rate("consumes")
    if got is None or takes is None:
        return ""
    return f": it gets {got:,.0f} samples/s, its device could take {takes:,.0f}"


def _limited(loop: Loop, share: str) -> str:
    said = f"{loop.name}: input takes {share} of its time{_rates(loop)}"
    compute = loop.metric("au_mlperf")
    if compute is not None:
        said += f"; the device computes {percent(min(compute, 1.0))} of the time"
    return said + (" (emulated)" if loop.group.get("emulated") else "")
