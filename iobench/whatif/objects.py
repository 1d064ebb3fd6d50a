"""PURE. How many bytes a second an object store gives, by object size and connections.

A connection takes ``t0 + B / r`` for an object of B bytes: to its first byte, then the stream.
What all connections share (the link, the server, the client's processor) takes ``q + B / L`` for
each. The longer of the two decides, which is the asymptotic bound of operational analysis (Denning
and Buzen, "The Operational Analysis of Queueing Network Models", 1978)::

    seconds between objects = max((t0 + B / r) / connections, q + B / L)

The greater of two linear forms is fitted to relative errors by turns: each point to the form that
is the greater there, then each form to its points (Magnani and Boyd, "Convex piecewise-linear
fitting", 2009), from many beginnings. Of all fits that with the least of Akaike's criterion is
taken: a limit that all share is believed where the points are told much better with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from iobench.whatif.squares import nonnegative

_TURNS = 50
_EXACT = 1e-3  # relative error below which no fit is better than another
_Terms = tuple[float, float]


class Fetched(NamedTuple):
    """What one point of a sweep gave. ``first_byte_s``: the median, where it was told."""

    object_bytes: int
    connections: int
    bytes_per_s: float
    first_byte_s: float | None = None

    @property
    def between_s(self) -> float:
        """Seconds from the end of one object to that of the next."""
        return self.object_bytes / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class FetchLaw:
    """Bytes a second by object size and connections.

    Attributes:
        first_byte_s: t0, of one connection.
        s_per_byte: 1 / r.
        request_s: q, of what all connections share; 0 where no number of requests was a limit.
        shared_s_per_byte: 1 / L; 0 where no point reached such a limit.
        error: the largest relative error at a point that it was fitted to.
    """

    first_byte_s: float
    s_per_byte: float
    request_s: float
    shared_s_per_byte: float
    error: float

    def bytes_per_s(self, object_bytes: float, connections: int) -> float:
        """Of so many connections, an object each at a time.

        Raises:
            ValueError: no bytes, or no connection.
        """
        if object_bytes <= 0 or connections < 1:
            raise ValueError("a fetch has bytes and a connection")
        return object_bytes / _between_s(
            (self.first_byte_s, self.s_per_byte),
            (self.request_s, self.shared_s_per_byte),
            object_bytes,
            connections,
        )

    @property
    def link_bytes_per_s(self) -> float | None:
        """What no number of connections exceeds; None where none was reached."""
        return 1 / self.shared_s_per_byte if self.shared_s_per_byte else None


def fit_fetch(points: Sequence[Fetched]) -> FetchLaw:
    """The law of a sweep.

    Raises:
        ValueError: no points, or one without bytes, connections or a rate.
    """
    if not points or min(min(point[:3]) for point in points) <= 0:
        raise ValueError("a law needs points with bytes, connections and a rate")
    best: tuple[float, _Terms, _Terms] | None = None
    for start in _beginnings(points):
        squares, waited, shared = _by_turns(points, start)
        criterion = _criterion(squares, len(points), sum(x > 0 for x in (*waited, *shared)))
        if best is None or criterion < best[0] - 1e-9:
            best = criterion, waited, shared
    assert best is not None  # noqa: S101  there is a beginning for any points
    _, waited, shared = best
    errors = [abs(_between_s(waited, shared, p[0], p[1]) / p.between_s - 1) for p in points]
    return FetchLaw(*waited, *shared, max(errors))


def _criterion(squares: float, points: int, terms: int) -> float:
    """Akaike's, of relative errors."""
    return points * math.log(max(squares / points, _EXACT**2)) + 2 * terms


def _between_s(waited: _Terms, shared: _Terms, object_bytes: float, connections: int) -> float:
    return max(
        (waited[0] + waited[1] * object_bytes) / connections, shared[0] + shared[1] * object_bytes
    )


def _beginnings(points: Sequence[Fetched]) -> Iterator[list[bool]]:
    """Which points may wait for their own connection: up to some connections, some bytes."""
    seen = set()
    for connections in sorted({point.connections for point in points}):
        for size in sorted({point.object_bytes for point in points}):
            for both in (True, False):
                few = [point.connections <= connections for point in points]
                small = [point.object_bytes <= size for point in points]
                chosen = [(a and b) if both else (a or b) for a, b in zip(few, small, strict=True)]
                if any(chosen) and (key := tuple(chosen)) not in seen:
                    seen.add(key)
                    yield chosen


def _by_turns(points: Sequence[Fetched], waiting: list[bool]) -> tuple[float, _Terms, _Terms]:
    """The sum of squared relative errors, and both forms; the best of all turns."""
    best: tuple[float, _Terms, _Terms] | None = None
    for _ in range(_TURNS):
        alone = [point for point, waits in zip(points, waiting, strict=True) if waits]
        together = [point for point, waits in zip(points, waiting, strict=True) if not waits]
        waited = _waited(alone)
        shared = _form([(p, 1) for p in together])
        squares = sum(
            (_between_s(waited, shared, p[0], p[1]) / p.between_s - 1) ** 2 for p in points
        )
        if best is None or squares < best[0]:
            best = squares, waited, shared
        turned = [
            (waited[0] + waited[1] * p.object_bytes) / p.connections
            >= shared[0] + shared[1] * p.object_bytes
            for p in points
        ]
        if turned == waiting or not any(turned):
            break
        waiting = turned
    assert best is not None  # noqa: S101  there is one turn at least
    return best


def _waited(points: Sequence[Fetched]) -> _Terms:
    """t0 and 1 / r. Where one size alone waits, the time to its first byte parts the two."""
    if len({point.object_bytes for point in points}) == 1:
        told = [point.first_byte_s for point in points if point.first_byte_s is not None]
        whole_s = _mean_s([(point, point.connections) for point in points])
        first_s = min(min(told, default=0.0), whole_s)
        return first_s, (whole_s - first_s) / points[0].object_bytes
    return _form([(point, point.connections) for point in points])


def _form(points: Sequence[tuple[Fetched, int]]) -> _Terms:
    """a and b of ``seconds = (a + b bytes) / streams``, neither negative."""
    if not points:
        return 0.0, 0.0
    if len({point.object_bytes for point, _ in points}) == 1:
        return 0.0, _mean_s(points) / points[0][0].object_bytes
    rows = []
    for point, streams in points:
        scale = 1 / (point.between_s * streams)
        rows.append((scale, point.object_bytes * scale))
    a, b = nonnegative(rows)
    return a, b


def _mean_s(points: Sequence[tuple[Fetched, int]]) -> float:
    times = [point.between_s * streams for point, streams in points]
    return math.exp(sum(map(math.log, times)) / len(times))
