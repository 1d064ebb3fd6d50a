"""PURE. Long curves with fewer points, outliers kept."""

from __future__ import annotations

from collections.abc import Sequence

Pair = tuple[float, float]


def thinned(points: Sequence[Pair], most: int) -> list[Pair]:
    """About ``most`` points at most, in order: of each group of neighbours least and greatest."""
    if len(points) <= most:
        return list(points)
    group = -(-len(points) * 2 // most)
    kept: list[Pair] = []
    for start in range(0, len(points), group):
        places = range(start, min(start + group, len(points)))
        ends = {min(places, key=lambda i: points[i][1]), max(places, key=lambda i: points[i][1])}
        kept.extend(points[place] for place in sorted(ends))
    return kept
