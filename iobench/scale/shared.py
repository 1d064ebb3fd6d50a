"""PURE. What several loader processes on one machine give together, beside one alone.

``efficiency`` is total(n) / (n * total(1)), as of any parallel program (Grama et al.,
"Introduction to Parallel Computing", 2003, chapter 5): 1 where they share nothing that matters, 1/n
where one of them has it all. Ratios are taken within repeats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from iobench.stats import ratio
from iobench.summary.points import by_point, figure, in_pairs
from iobench.trial import Params, Trial


def shared(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """An entry for each number of processes of a point that was measured with one as well."""
    groups: dict[str, dict[int, tuple[Params, Sequence[Trial]]]] = {}
    for params, repeats in by_point(trials, "loader"):
        alike = {key: value for key, value in params.items() if key != "processes"}
        count = int(params.get("processes", 1))
        key = json.dumps(alike, sort_keys=True)
        groups.setdefault(key, {})[count] = (alike, repeats)
    return [
        _entry(count, *points[count], points[1][1])
        for points in groups.values()
        if 1 in points and len(points) > 1
        for count in sorted(points)
    ]


def _entry(
    count: int, params: Params, repeats: Sequence[Trial], alone: Sequence[Trial]
) -> dict[str, Any]:
    pairs = [pair for pair in in_pairs(repeats, alone, "samples_per_s") if min(pair) > 0]
    efficiency = ratio([both for both, _ in pairs], [count * one for _, one in pairs])
    return {
        **params,
        "processes": count,
        "samples_per_s": figure(repeats, "samples_per_s"),
        "mb_per_s": figure(repeats, "mb_per_s"),
        "efficiency": asdict(efficiency) if pairs else None,
        "evenness": figure(repeats, "process_evenness"),
    }
