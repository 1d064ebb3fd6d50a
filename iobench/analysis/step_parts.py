"""PURE. The parts of a training step: how its time is divided, and which part costs most."""

from __future__ import annotations

from dataclasses import dataclass

from iobench.analysis.loops import Loop
from iobench.results.statistics import Estimate
from iobench.trials.ladder import PIPELINE_RUNGS, START, Rung

_NAMES_OF_STAGES = {"warm": "read", "cold": "storage"}
"""The names of parts that differ from the names of their rungs."""
_NAMES_OF_SEVERAL_STAGES = {"warm": "prepare", "cold": "input", "store": "input"}
"""The names of parts that include stages which were not measured separately, by rung."""


def costliest_rung(loop: Loop) -> tuple[str, Estimate] | None:
    """Return the rung that costs most, with its share of the time.

    None if the ladder has no rung between the device and reading. None also if the costliest rung
    includes stages that were not measured separately.
    """
    path = loop.ladder.path
    if all(rung in (*PIPELINE_RUNGS, START) for rung in path):
        return None
    costliest: Rung | None = None
    largest_share = 0.0
    for rung in loop.ladder.rungs:
        if rung.rung not in path or not rung.differs_from_zero or rung.share is None:
            continue
        if rung.share.median > largest_share:
            costliest, largest_share = rung, rung.share.median
    if costliest is None or costliest.share is None or costliest.skipped:
        return None
    return costliest.rung, costliest.share


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a step: seconds a sample, and its share of the step."""

    name: str
    seconds: float
    share: float


def step_parts(loop: Loop) -> list[Part]:
    """Return the parts of a step with their times, from the device on; they add up to the step.

    The parts are the rungs of the ladder. A loop without a full ladder has the parts device,
    preparing and reading. A rung that was faster than the rung above it gets 0 seconds.
    """
    path = loop.ladder.path
    median_s = {rung.rung: rung.seconds.median for rung in loop.ladder.rungs}
    if "synthetic" not in path:
        return []
    total_s = median_s[path[-1]]
    if total_s <= 0:
        return []
    parts = []
    begin_s = 0.0
    for name in path:
        end_s = min(max(median_s[name], begin_s), total_s)
        label = "device" if name == "synthetic" else _part_name(loop, name)
        parts.append(Part(label, end_s - begin_s, (end_s - begin_s) / total_s))
        begin_s = end_s
    return parts


def _part_name(loop: Loop, name: str) -> str:
    """Return the name of the part that a rung adds.

    A rung that includes stages which were not measured separately has a name for all of them:
    ``prepare`` from memory, ``input`` from storage. Otherwise the name is that of its own stage.
    """
    included: tuple[str, ...] = ()
    for rung in loop.ladder.rungs:
        if rung.rung == name:
            included = rung.skipped
    if not included or set(included) == {"warm"}:
        return _NAMES_OF_STAGES.get(name, name)
    return _NAMES_OF_SEVERAL_STAGES.get(name, name)
