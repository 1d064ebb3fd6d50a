"""Requests until time or number is up."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest

from iobench.clock import SystemClock, VirtualClock
from iobench.errors import TrialFailed
from iobench.probes.object_store.clients import RequestFailed, Timing
from iobench.probes.object_store.figures import Attempts, metrics, require_success
from iobench.probes.object_store.probe import Bounds, attempt

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


def test_rates_count_what_succeeded() -> None:
    """Rates are bytes and requests over the whole time; errors stand apart."""
    timings = [Timing(0.5, 1_000_000, 0.2)] * 30
    attempts = Attempts(timings, Counter({"503": 2, "403": 1}), {}, 30_000_000, 5.0, 15.0)
    found = metrics(attempts, retries=4, cpu_s=2.5, notes=("a note",))
    assert (found["mb_per_s"], found["requests_per_s"]) == (3.0, 3.0)
    assert (found["requests"], found["bytes"], found["seconds"]) == (30, 30_000_000, 10.0)
    assert (found["errors"], found["retries"]) == ({"403": 1, "503": 2}, 4)
    assert (found["cpu_cores"], found["notes"]) == (0.25, ["a note"])
    assert (found["first_byte_s_p50"], found["total_s_p50"]) == (0.2, 0.5)
    assert found["body_s_p50"] == pytest.approx(0.3)
    assert "first_byte_s_p99" not in found  # 30 requests do not carry it
    json.dumps(found, allow_nan=False)


def test_writes_have_no_first_byte() -> None:
    """A PUT has a total time only."""
    attempts = Attempts([Timing(0.5, 10)] * 20, Counter(), {}, 200, 0.0, 1.0)
    found = metrics(attempts, retries=None, cpu_s=0.0)
    assert found["total_s_p50"] == 0.5
    assert not [name for name in found if name.startswith(("first_byte_s", "body_s"))]
    assert found["retries"] is None


def test_no_time_is_no_rate() -> None:
    """A clock that stood still gives 0, not an error."""
    attempts = Attempts([Timing(0.0, 10)], Counter(), {}, 10, 1.0, 1.0)
    assert metrics(attempts, retries=0, cpu_s=0.1)["mb_per_s"] == 0.0


def test_one_success_is_enough() -> None:
    """A trial with some failures has figures."""
    require_success(Attempts([Timing(1.0, 1)], Counter({"503": 99})), "s3://bucket")


def test_only_failures_fail_with_the_most_frequent_reason() -> None:
    """The reason says how often and what the store said."""
    reasons = {"503": "503 SlowDown: wait", "timeout": "late"}
    attempts = Attempts([], Counter({"timeout": 1, "503": 9}), reasons)
    said = (
        "every request failed, 9 of 10 with 503 SlowDown: wait: the store refuses requests for now"
    )
    with pytest.raises(TrialFailed, match=said):
        require_success(attempts, "s3://bucket")


def test_refusals_say_what_to_check() -> None:
    """A bucket without permission names credentials and policy."""
    attempts = Attempts([], Counter({"403": 20}), {"403": "403 AccessDenied: no"})
    with pytest.raises(TrialFailed, match=r"403 AccessDenied: no\): check the credentials"):
        require_success(attempts, "s3://bucket")
