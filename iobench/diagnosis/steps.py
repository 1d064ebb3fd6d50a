"""PURE. Steps of a loop that stand out, and a first batch that comes late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from iobench.diagnosis.loop import Loop
from iobench.diagnosis.rule import FINE, Rule
from iobench.diagnosis.sources import CLOUD_GUIDE, OURS
from iobench.result import Finding

OUTLIER = 3.0
"""Times the median step."""
LATE_S = 10.0
"""A first batch that is worth a word comes no earlier."""

STEP_OUTLIERS = Rule(
    "step-outliers",
    "Some steps take far longer than the rest",
    "setting",
    "info",
    f"the highest quantile of the step times that enough steps stand behind (p90, p95 or p99) is "
    f"more than {OUTLIER:g} times their median",
    "step_s_p50 beside step_s_p90, p95 or p99",
    "see in the charts whether waits or work stand out, and what the machine did then; waits that "
    "come with each worker's batch: more training.prefetch",
    OURS,
)
LATE_FIRST = Rule(
    "late-first-batch",
    "The first batch comes late",
    "start",
    "warning",
    f"{LATE_S:g} s or more to the first batch; of a watched loop {FINE:.0%} of its time as well",
    "time_to_first_batch_s, beside the parts that the loader tells",
    "a download, a listing of many files, or workers that import much lie before it: "
    "training.access: pipe or lazy read while the loop runs, shards list one manifest",
    CLOUD_GUIDE,
)
_QUANTILES = {"p99": "a hundred", "p95": "twenty", "p90": "ten"}


def outliers(loops: Iterable[Loop]) -> Iterator[Finding]:
    """Of each loop under its farthest input."""
    for loop in loops:
        names = ("step_s_p50", *(f"step_s_{name}" for name in _QUANTILES))
        yield from outlier(loop.name, {name: loop.metric(name) for name in names})


def outlier(named: str, metrics: Mapping[str, Any]) -> Iterator[Finding]:
    """Of one loop, by the highest quantile that it has."""
    middle = metrics.get("step_s_p50")
    for name, of in _QUANTILES.items():
        rare = metrics.get(f"step_s_{name}")
        if middle and rare:
            if rare > OUTLIER * middle:
                yield STEP_OUTLIERS.found(
                    f"{named}: one step of {of} takes {rare / middle:.1f} times the median or more"
                )
            return
