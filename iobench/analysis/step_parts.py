"""PURE. The parts of a training step: how its time is divided, and which part costs most.

The parts are the rungs on the path of the loop's ladder, from the device to the farthest location
(``iobench.trials.ladder``).
"""

from __future__ import annotations

from dataclasses import dataclass

from iobench.analysis.loops import Loop
from iobench.results.statistics import Estimate
from iobench.trials.ladder import PIPELINE_RUNGS, START, Rung

_NAMES_OF_SINGLE_STAGES = {"warm": "read", "cold": "storage"}
"""The names of parts with a single stage, by rung. Other parts are called like their rungs."""
_NAMES_OF_SEVERAL_STAGES = {"warm": "prepare", "cold": "input", "store": "input"}
"""The names of parts that include stages which were not measured separately, by rung."""


def costliest_rung(loop: Loop) -> tuple[str, Estimate] | None:
    """Return the rung that costs most, with its cost as a share of the time of the farthest rung.

    None if the path has none of the rungs ``copy``, ``collate``, ``augment`` and ``decode``, if no
    cost is above zero beyond doubt, or if the costliest rung includes stages that were not measured
    separately.
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
    """A part of a step.

    Attributes:
        name: the name of the part, such as ``device``, ``decode`` or ``storage``.
        seconds: its seconds per sample.
        share: its share of the step, from 0 to 1.
    """

    name: str
    seconds: float
    share: float


def step_parts(loop: Loop) -> list[Part]:
    """Return the parts of a step in the order of the ladder's path, which begins with the device.

    Their times add up to the time of the farthest rung. For this, no part ends later than that
    rung, and a rung that was faster than the rungs above it gets 0 seconds. Empty if the rate of
    the device was not measured.
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

    A rung that reads may include stages which were not measured separately. Then the part has a
    name for all of them: ``prepare`` from memory, ``input`` from storage. All other parts have the
    name of the rung's own stage.

    Args:
        loop: the loop.
        name: the name of the rung.
    """
    included: tuple[str, ...] = ()
    for rung in loop.ladder.rungs:
        if rung.rung == name:
            included = rung.skipped
    # A cold read takes the place of the warm read, so that it does not include that stage.
    if not included or set(included) == {"warm"}:
        return _NAMES_OF_SINGLE_STAGES.get(name, name)
    return _NAMES_OF_SEVERAL_STAGES.get(name, name)
