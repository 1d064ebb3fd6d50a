"""Requests until time or number is up."""

from __future__ import annotations

import threading

import pytest

from iobench.clock import SystemClock, VirtualClock
from iobench.probes.object_store.clients import RequestFailed, Timing
from iobench.probes.object_store.streams import Bounds, attempt

pytestmark = pytest.mark.slow

HOUR = 3600.0


class Scripted:
    """A request that takes a second on a virtual clock, and fails where it is told to."""

    def __init__(self, clock: VirtualClock, failing: range | list[int] = range(0)) -> None:
        self.clock = clock
        self.failing = failing

    def __call__(self, stream: int, turn: int) -> Timing:
        self.clock.sleep(1.0)
        if turn in self.failing:
            raise RequestFailed("503", f"503 SlowDown in turn {turn}")
        return Timing(1.0, 100, 0.25)


def test_no_request_starts_after_the_time_is_up() -> None:
    """Time is counted from the first start to the last end, past the limit."""
    clock = VirtualClock(50.0)
    found = attempt(Scripted(clock), Bounds(1, 3.5, 1000), clock)
    assert (found.count, found.bytes, found.seconds) == (4, 400, 4.0)


def test_no_more_requests_than_allowed() -> None:
    """The number of requests is a limit of its own."""
    clock = VirtualClock()
    assert attempt(Scripted(clock), Bounds(1, HOUR, 7), clock).count == 7


def test_every_stream_starts_one_request() -> None:
    """Each connection is used, at the same time, even where fewer requests are allowed."""
    together = threading.Barrier(4, timeout=60)

    def request(stream: int, turn: int) -> Timing:
        together.wait()
        return Timing(1.0, stream)

    found = attempt(request, Bounds(4, HOUR, 1), SystemClock())
    assert sorted(timing.bytes for timing in found.timings) == [0, 1, 2, 3]


def test_a_failed_request_counts_by_status_and_its_stream_goes_on() -> None:
    """Failures bring no bytes, and end nothing."""
    clock = VirtualClock()
    found = attempt(Scripted(clock, [1, 3]), Bounds(1, HOUR, 6), clock)
    assert (dict(found.errors), len(found.timings), found.bytes) == ({"503": 2}, 4, 400)
    assert found.reasons == {"503": "503 SlowDown in turn 1"}


def test_nothing_but_failures_end_early() -> None:
    """A store that refuses everything is not asked a thousand times."""
    clock = VirtualClock()
    found = attempt(Scripted(clock, range(1000)), Bounds(1, HOUR, 1000), clock)
    assert dict(found.errors) == {"503": 20}


def test_failures_after_a_success_do_not_end_it() -> None:
    """A store that has answered once may recover."""
    clock = VirtualClock()
    found = attempt(Scripted(clock, range(1, 90)), Bounds(1, HOUR, 100), clock)
    assert (found.errors.total(), len(found.timings)) == (89, 11)


def test_a_defect_is_not_a_failed_request() -> None:
    """What is no failure of a request is raised."""

    def request(stream: int, turn: int) -> Timing:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        attempt(request, Bounds(2, HOUR, 10), VirtualClock())


def test_progress_ends_with_all_bytes() -> None:
    """The last report has everything."""
    clock, told = VirtualClock(), list[tuple[float, str]]()
    attempt(Scripted(clock), Bounds(1, HOUR, 3), clock, lambda *done: told.append(done))
    assert told[-1] == (300, "bytes")
