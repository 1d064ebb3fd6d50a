"""PURE. Which object size and how many streams reach 95 % of the peak.

Sizes were swept at one number of connections, and connections at one size. Each question is
answered within its own sweep: the best rate over sizes at 8 connections may be half of what 64
reach, and still says from which size on objects are large enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from iobench.stats import median

_ENOUGH = 0.95
_RISING = "95 % of the peak not reached within the sweep, still rising"


class Point(NamedTuple):
    """The rate at one object size and number of connections."""

    object_bytes: int
    connections: int
    mb_per_s: float


@dataclass(frozen=True, slots=True)
class Peak:
    """The best rate, where it was, and what is enough for 95 % of it.

    ``object_bytes_95`` is the smallest size that reaches 95 % of the best rate of its sweep, at
    ``at_connections``; ``connections_95`` the fewest connections that do, at
    ``at_object_bytes``. Each is None where only the last point of the sweep does, so that the
    rate may still be rising, or where nothing was swept. ``said`` puts both in words.
    """

    peak_mb_per_s: float
    object_bytes: int
    connections: int
    object_bytes_95: int | None
    at_connections: int
    connections_95: int | None
    at_object_bytes: int
    said: str


def find_peak(points: Sequence[Point]) -> Peak:
    """The answer for one store, client and operation. Points that repeat count by their median.

    Raises:
        ValueError: no points.
    """
    if not points:
        raise ValueError("no points")
    rates = _medians(points)
    best = max(rates, key=lambda place: (rates[place], -place[0], -place[1]))
    at_connections = _most_swept([(streams, size) for size, streams in rates], best[1])
    at_size = _most_swept(list(rates), best[0])
    sizes = {size: rate for (size, streams), rate in rates.items() if streams == at_connections}
    streams = {streams: rate for (size, streams), rate in rates.items() if size == at_size}
    enough_bytes, enough_streams = _enough(sizes), _enough(streams)
    said = (
        f"over {_streams(at_connections)}: {_size_said(sizes, enough_bytes)}; "
        f"objects of {_megabytes(at_size)}: {_streams_said(streams, enough_streams)}"
    )
    return Peak(rates[best], *best, enough_bytes, at_connections, enough_streams, at_size, said)


def _medians(points: Sequence[Point]) -> dict[tuple[int, int], float]:
    repeats = defaultdict(list)
    for point in points:
        repeats[point.object_bytes, point.connections].append(point.mb_per_s)
    return {place: median(found) for place, found in sorted(repeats.items())}


def _most_swept(pairs: Sequence[tuple[int, int]], preferred: int) -> int:
    """The first member that comes with most second ones; ``preferred`` among equals."""
    count: dict[int, int] = defaultdict(int)
    for fixed, _ in pairs:
        count[fixed] += 1
    return max(count, key=lambda fixed: (count[fixed], fixed == preferred, -fixed))


def _enough(sweep: dict[int, float]) -> int | None:
    """Where 95 % of the sweep's best is reached first, unless only at its end."""
    ordered = sorted(sweep)
    wanted = _ENOUGH * max(sweep.values())
    first = next(place for place in ordered if sweep[place] >= wanted)
    return None if first == ordered[-1] else first


def _size_said(sweep: dict[int, float], enough: int | None) -> str:
    if len(sweep) == 1:
        return "no sizes were swept"
    if enough is None:
        return f"{_RISING} at {_megabytes(max(sweep))}"
    return f"objects of {_megabytes(enough)} reach 95 % of the peak"


def _streams_said(sweep: dict[int, float], enough: int | None) -> str:
    if len(sweep) == 1:
        return "no connections were swept"
    if enough is None:
        return f"{_RISING} with {_streams(max(sweep))}"
    return f"{_streams(enough)} reach{'es' if enough == 1 else ''} 95 % of the peak"


def _streams(count: int) -> str:
    return "1 connection" if count == 1 else f"{count} connections"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:g} MB" if size >= 10**6 else f"{size / 1e3:g} kB"
