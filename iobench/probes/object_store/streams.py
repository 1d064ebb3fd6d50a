"""Requests on many threads at once, until time or number is up."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from iobench.clock import Clock
from iobench.probes.object_store.clients import RequestFailed, Timing

_PROGRESS_S = 0.2
_HOPELESS = 20

Request = Callable[[int, int], Timing]
"""``request(stream, turn)``: the ``turn``-th of that stream, both from 0."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Each stream starts at least one request, and no other after either limit."""

    connections: int
    seconds: float
    max_requests: int


@dataclass(slots=True)
class Attempts:
    """What became of all requests. ``seconds`` from the first start to the last end."""

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
        """Requests that ended, one way or the other."""
        return len(self.timings) + self.errors.total()


def attempt(
    request: Request,
    bounds: Bounds,
    clock: Clock,
    progress: Callable[[float, str], None] = lambda done, unit: None,
) -> Attempts:
    """Send requests on ``bounds.connections`` threads.

    A request that fails is counted, and its stream goes on; where nothing but failures came in
    so far, it ends after 20 of them or one a stream, whichever is more.

    Raises:
        Exception: whatever ``request`` raises beside ``RequestFailed``.
    """
    run = _Run(request, bounds, clock)
    with ThreadPoolExecutor(bounds.connections) as pool:
        streams = [pool.submit(run.stream, number) for number in range(bounds.connections)]
        running = set(streams)
        while running:
            running = wait(running, timeout=_PROGRESS_S).not_done
            progress(run.attempts.bytes, "bytes")
        for stream in streams:
            stream.result()
    return run.attempts


class _Run:
    """What the threads share."""

    def __init__(self, request: Request, bounds: Bounds, clock: Clock) -> None:
        self.attempts = Attempts()
        self._request = request
        self._bounds = bounds
        self._clock = clock
        self._lock = threading.Lock()
        self._started = 0
        self._deadline_s = clock.now_s() + bounds.seconds

    def stream(self, stream: int) -> None:
        for turn in itertools.count():
            if not self._may_start(turn):
                return
            start_s = self._clock.now_s()
            try:
                outcome: Timing | RequestFailed = self._request(stream, turn)
            except RequestFailed as error:
                outcome = error
            self._note(outcome, start_s, self._clock.now_s())

    def _may_start(self, turn: int) -> bool:
        with self._lock:
            if turn:
                failed = self.attempts.errors.total()
                hopeless = failed >= max(_HOPELESS, self._bounds.connections)
                if (
                    self._started >= self._bounds.max_requests
                    or self._clock.now_s() >= self._deadline_s
                    or (hopeless and not self.attempts.timings)
                ):
                    return False
            self._started += 1
            return True

    def _note(self, outcome: Timing | RequestFailed, start_s: float, end_s: float) -> None:
        found = self.attempts
        with self._lock:
            found.first_start_s = min(found.first_start_s, start_s)
            found.last_end_s = max(found.last_end_s, end_s)
            if isinstance(outcome, Timing):
                found.timings.append(outcome)
                found.bytes += outcome.bytes
            else:
                found.errors[outcome.status] += 1
                found.reasons.setdefault(outcome.status, str(outcome))
