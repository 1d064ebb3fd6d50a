"""PURE. Workers that take memory and bring no rate."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from iobench.diagnosis.rule import Rule
from iobench.diagnosis.sources import OURS
from iobench.result import Finding
from iobench.stats import Estimate, estimate, ratio
from iobench.summary.points import by_point, in_pairs
from iobench.trial import Params, Trial
from iobench.words import params_words

WORTH = 1.02
"""Times the rate that more workers must give to have brought something."""

FOR_NOTHING = Rule(
    "workers-for-nothing",
    "More workers take memory and bring no rate",
    "measurement",
    "info",
    f"a step of workers takes more memory by its whole interval, and gives less than {WORTH:g} "
    "times the rate, by an interval that holds 1",
    "memory_bytes and samples_per_s of loaders that differ in workers alone, in pairs",
    "take the fewest workers that reach the rate: the table of the fastest settings has them",
    OURS,
)
RULES = (FOR_NOTHING,)


@dataclass(frozen=True, slots=True)
class _Step:
    """From few workers to more: how much more memory, and what the rate was multiplied by."""

    few: Params
    more: int
    memory_bytes: Estimate
    rate: Estimate

    @property
    def is_for_nothing(self) -> bool:
        """Memory beyond doubt, and no sign of a rate."""
        return self.memory_bytes.low > 0 and self.rate.low <= 1 and self.rate.median < WORTH


def findings(trials: Iterable[Trial]) -> Iterator[Finding]:
    """Loaders that more workers cost memory and brought nothing: the dearest, and how many."""
    steps = [step for step in _steps(trials) if step.is_for_nothing]
    if not steps:
        return
    dearest = max(steps, key=lambda step: step.memory_bytes.median)
    rate, memory = dearest.rate, dearest.memory_bytes
    others = f"; so it is in {len(steps) - 1} more steps of workers" if len(steps) > 1 else ""
    yield FOR_NOTHING.found(
        f"{params_words('loader', dearest.few)}: {dearest.more} workers take "
        f"{memory.median / 1e6:,.0f} MB more memory ({memory.low / 1e6:,.0f} to "
        f"{memory.high / 1e6:,.0f}) and give {rate.median:.3f} times the rate ({rate.low:.3f} to "
        f"{rate.high:.3f}){others}",
        "take the fewest workers that reach the rate: the table of the fastest settings has them",
    )


def _steps(trials: Iterable[Trial]) -> Iterator[_Step]:
    """Points that differ in workers alone, each beside the next."""
    alike: dict[str, list[tuple[Params, Sequence[Trial]]]] = {}
    for params, repeats in by_point(trials, "loader"):
        if isinstance(params.get("workers"), int):
            key = json.dumps({**params, "workers": None}, sort_keys=True)
            alike.setdefault(key, []).append((params, repeats))
    for points in alike.values():
        ordered = sorted(points, key=lambda point: int(point[0]["workers"]))
        for (few, before), (more, after) in pairwise(ordered):
            rates = in_pairs(after, before, "samples_per_s")
            sizes = in_pairs(after, before, "memory_bytes")
            if sizes and rates and all(rate > 0 for _, rate in rates) and _alike(before, after):
                yield _Step(
                    few,
                    int(more["workers"]),
                    estimate([more_bytes - few_bytes for more_bytes, few_bytes in sizes]),
                    ratio([rate for rate, _ in rates], [rate for _, rate in rates]),
                )


def _alike(*points: Sequence[Trial]) -> bool:
    """Whether the memory of all was counted in one way."""
    told = {trial.metrics.get("memory_counted") for trials in points for trial in trials}
    return len(told - {None}) == 1
