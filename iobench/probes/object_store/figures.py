"""PURE. Figures of the object-store probe: of a trial's requests, and the peak of a sweep."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dataprep.counted import counted
from iobench.errors import TrialFailed
from iobench.probes.object_store.clients import RequestFailed, Timing
from iobench.stats import quantiles
from iobench.trial import Metrics

OVERLOADED = "the store refuses requests for now: try again later, or with fewer connections"
_OVERLOAD = re.compile(r"\b(?:429|500|502|503|504|SlowDown|ServiceUnavailable|InternalError)\b")
_ENOUGH = 0.95
_RISING = "95 % of the peak not reached within the sweep, still rising"


def is_overload(reason: str) -> bool:
    """Whether an error means that a store refuses requests for now, not for good."""
    return _OVERLOAD.search(reason) is not None


@dataclass(slots=True)
class Attempts:
    """The outcome of all requests. ``seconds`` from the first start to the last end."""

    timings: list[Timing] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    bytes: int = 0
    first_start_s: float = float("inf")
    last_end_s: float = float("-inf")

    @property
    def seconds(self) -> float:
        """0 where nothing ran."""
        return max(0.0, self.last_end_s - self.first_start_s)

    @property
    def count(self) -> int:
        """Requests that ended, with success or not."""
        return len(self.timings) + self.errors.total()

    def note(self, outcome: Timing | RequestFailed, start_s: float, end_s: float) -> None:
        """Add one request."""
        self.first_start_s = min(self.first_start_s, start_s)
        self.last_end_s = max(self.last_end_s, end_s)
        if isinstance(outcome, Timing):
            self.timings.append(outcome)
            self.bytes += outcome.bytes
        else:
            self.errors[outcome.status] += 1
            self.reasons.setdefault(outcome.status, str(outcome))


def metrics(
    attempts: Attempts,
    *,
    retries: int | None,
    cpu_s: float,
    refused: int | None = None,
    notes: Sequence[str] = (),
) -> Metrics:
    """Figures of a trial; only ``errors`` counts requests that failed.

    ``cpu_cores`` is how many processor cores this process kept busy: where it comes near what a
    client can use (one for pure Python), the client is the limit and not the store. ``retries``,
    and ``refused`` (answers 503 and 429, by which a store asks for fewer requests), are None where
    they cannot be seen.
    """
    done = attempts.timings
    firsts = [timing.first_byte_s for timing in done if timing.first_byte_s is not None]
    bodies = [timing.body_s for timing in done if timing.body_s is not None]
    totals = [timing.total_s for timing in done]
    found = dict(rates(attempts.bytes, len(done), attempts.seconds, cpu_s))
    for name, values in {"first_byte_s": firsts, "body_s": bodies, "total_s": totals}.items():
        found |= {f"{name}_{quantile}": value for quantile, value in quantiles(values).items()}
    errors = dict(sorted(attempts.errors.items()))
    return {**found, "errors": errors, "retries": retries, "refused": refused, "notes": [*notes]}


def rates(moved_bytes: int, requests: int, seconds: float, cpu_s: float) -> Metrics:
    """Figures that every trial has; ``cpu_s_per_gb`` are seconds for 10^9 bytes."""
    gigabytes = moved_bytes / 1e9
    return {
        "mb_per_s": moved_bytes / 1e6 / seconds if seconds > 0 else 0.0,
        "requests_per_s": requests / seconds if seconds > 0 else 0.0,
        "bytes": moved_bytes,
        "seconds": seconds,
        "requests": requests,
        "cpu_cores": cpu_s / seconds if seconds > 0 else 0.0,
        "cpu_s_per_gb": cpu_s / gigabytes if gigabytes > 0 else 0.0,
    }


def require_success(attempts: Attempts, uri: str) -> None:
    """Refuse a trial without a single request that succeeded.

    Raises:
        TrialFailed: with the most frequent error.
    """
    if attempts.timings:
        return
    status, count = attempts.errors.most_common(1)[0]
    reason = attempts.reasons[status]
    if status in ("401", "403"):
        raise TrialFailed(
            f"{uri}: permission refused ({reason}): check the credentials and the bucket's policy"
        )
    if is_overload(status):
        reason = f"{reason.rstrip('.')}: {OVERLOADED}"
    raise TrialFailed(f"{uri}: every request failed, {count} of {attempts.count} with {reason}")


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
    """The answer for one store, client and operation, of which each point is measured once.

    Raises:
        ValueError: no points.
    """
    rates = {(point.object_bytes, point.connections): point.mb_per_s for point in sorted(points)}
    best = max(rates, key=lambda place: (rates[place], -place[0], -place[1]))
    at_connections = _most_swept([(streams, size) for size, streams in rates], best[1])
    at_size = _most_swept(list(rates), best[0])
    sizes = {size: rate for (size, streams), rate in rates.items() if streams == at_connections}
    streams = {streams: rate for (size, streams), rate in rates.items() if size == at_size}
    enough_bytes, enough_streams = _enough(sizes), _enough(streams)
    size_words = _words("sizes", sizes, enough_bytes)
    stream_words = _words("connections", streams, enough_streams)
    said = f"over {_shown('connections', at_connections)}: {size_words}; "
    said += f"{_shown('sizes', at_size)}: {stream_words}"
    return Peak(rates[best], *best, enough_bytes, at_connections, enough_streams, at_size, said)


def _most_swept(pairs: Sequence[tuple[int, int]], preferred: int) -> int:
    """The first member that comes with most second ones; ``preferred`` among equals."""
    count = Counter(fixed for fixed, _ in pairs)
    return max(count, key=lambda fixed: (count[fixed], fixed == preferred, -fixed))


def _enough(sweep: dict[int, float]) -> int | None:
    """Where 95 % of the sweep's best is reached first, unless only at its end."""
    ordered = sorted(sweep)
    wanted = _ENOUGH * max(sweep.values())
    first = next(place for place in ordered if sweep[place] >= wanted)
    return None if first == ordered[-1] else first


def _words(what: str, sweep: Mapping[int, float], enough: int | None) -> str:
    if len(sweep) == 1:
        return f"no {what} were swept"
    if enough is None:
        most = _shown(what, max(sweep)).removeprefix("objects of ")
        return f"{_RISING} {'at' if what == 'sizes' else 'with'} {most}"
    verb = "reaches" if what == "connections" and enough == 1 else "reach"
    return f"{_shown(what, enough)} {verb} 95 % of the peak"


def _shown(what: str, value: int) -> str:
    if what == "connections":
        return counted(value, "connection")
    return f"objects of {value / 1e6:g} MB" if value >= 10**6 else f"objects of {value / 1e3:g} kB"
