"""PURE. Does a figure grow? A line through its readings, robust to a few that stand out."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

FEWEST = 8


@dataclass(frozen=True)
class Reading:
    """What one process tree held at one moment.

    Attributes:
        at_s: seconds since the beginning.
        driver_mb: resident memory of the process itself, in MB of 10^6 bytes.
        workers_mb: that of the largest of its worker processes; 0 without any.
        descriptors, threads: of the process itself.
        processes: it and all that it started.
    """

    at_s: float
    driver_mb: float
    workers_mb: float
    descriptors: int
    threads: int
    processes: int


@dataclass(frozen=True)
class Growth:
    """The line through readings: its slope, an hour, and the readings' median at both ends.

    Attributes:
        per_hour: Theil's and Sen's slope: the median of those of all pairs (Sen, 1968, "Estimates
            of the regression coefficient based on Kendall's tau").
        first, last: medians of the first and of the last quarter.
    """

    per_hour: float
    first: float
    last: float


def growth(at_s: Sequence[float], values: Sequence[float], most: int = 400) -> Growth:
    """The slope of ``values`` over ``at_s``, of at most ``most`` of them, evenly taken.

    Raises:
        ValueError: fewer than eight readings say nothing.
    """
    if len(values) < FEWEST:
        raise ValueError(f"{len(values)} readings are too few for a slope")
    step = max(1, len(values) // most)
    points = list(zip(at_s, values, strict=True))[::step]
    slopes = [
        (later - earlier) / (then - now)
        for (now, earlier), (then, later) in itertools.combinations(points, 2)
        if then > now
    ]
    quarter = len(values) // 4
    return Growth(
        median(slopes) * 3600.0, float(median(values[:quarter])), float(median(values[-quarter:]))
    )
