"""Sending requests until the time or the number of requests is used up."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest

from iobench.clock import SystemClock, VirtualClock
from iobench.errors import TrialFailed
from iobench.probes.object_store.clients import RequestFailed, Timing
from iobench.probes.object_store.probe import Attempts, metrics, require_success, send_requests
from iobench.probes.settings import ObjectTrial

pytestmark = pytest.mark.slow

HOUR = 3600.0


class Scripted:
    """A request that takes a second on a virtual clock, and fails in given turns."""

    def __init__(self, clock: VirtualClock, failing: range | list[int] = range(0)) -> None:
        self.clock = clock
        self.failing = failing

    def __call__(self, stream: int, turn: int) -> Timing:
        self.clock.sleep(1.0)
        if turn in self.failing:
            raise RequestFailed("503", f"503 SlowDown in turn {turn}")
        return Timing(1.0, 100, 0.25)


def limits(connections: int, seconds: float, max_requests: int) -> ObjectTrial:
    """Return a trial with these limits."""
    return ObjectTrial("s3", "boto3", "get", 100, connections, seconds, max_requests, 100)


def attempted(limit: ObjectTrial, failing: range | list[int] = range(0)) -> Attempts:
    """Send scripted requests."""
    clock = VirtualClock(50.0)
    return send_requests(Scripted(clock, failing), limit, clock)


def test_no_request_starts_after_the_time_or_the_number_is_up() -> None:
    """A request that has started is finished, and its time counts."""
    attempts = attempted(limits(1, 3.5, 1000))
    assert (len(attempts.timings), attempts.bytes, attempts.seconds) == (4, 400, 4.0)
    assert len(attempted(limits(1, HOUR, 7)).timings) == 7


def test_every_stream_starts_one_request() -> None:
    """Each connection is used in parallel, even if fewer requests are allowed."""
    together = threading.Barrier(4, timeout=60)

    def request(stream: int, turn: int) -> Timing:
        together.wait()
        return Timing(1.0, stream)

    attempts = send_requests(request, limits(4, HOUR, 1), SystemClock())
    assert sorted(timing.bytes for timing in attempts.timings) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("failing", "requests", "failed", "done"),
    [
        ([1, 3], 6, 2, 4),
        # Requests to a store that refuses all of them end after twenty failures.
        (range(1000), 1000, 20, 0),
        # A store that has answered once may recover.
        (range(1, 90), 100, 89, 11),
    ],
)
def test_a_failed_request_counts_by_status_and_its_stream_goes_on(
    failing: range | list[int], requests: int, failed: int, done: int
) -> None:
    """Failures add no bytes, and after a success they do not end the trial."""
    attempts = attempted(limits(1, HOUR, requests), failing)
    assert (dict(attempts.errors), len(attempts.timings)) == ({"503": failed}, done)
    assert attempts.bytes == 100 * done
    assert attempts.reasons == {"503": f"503 SlowDown in turn {failing[0]}"}


def test_a_defect_is_not_a_failed_request() -> None:
    """Any other exception is raised."""

    def request(stream: int, turn: int) -> Timing:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        send_requests(request, limits(2, HOUR, 10), VirtualClock())


def test_progress_ends_with_all_bytes() -> None:
    """The last report has all bytes."""
    clock, reported = VirtualClock(), list[tuple[float, str]]()
    send_requests(Scripted(clock), limits(1, HOUR, 3), clock, lambda *done: reported.append(done))
    assert reported[-1] == (300, "bytes")


def test_rates_count_what_succeeded() -> None:
    """Rates are bytes and requests per time; errors are counted separately."""
    timings = [Timing(0.5, 1_000_000, 0.2)] * 30
    attempts = Attempts(timings, Counter({"503": 2, "403": 1}), {}, 30_000_000, 5.0, 15.0)
    rates = metrics(attempts, retries=4, cpu_s=2.5, notes=("a note",))
    assert (rates["mb_per_s"], rates["requests_per_s"]) == (3.0, 3.0)
    assert (rates["requests"], rates["bytes"], rates["seconds"]) == (30, 30_000_000, 10.0)
    assert (rates["errors"], rates["retries"]) == ({"403": 1, "503": 2}, 4)
    assert (rates["cpu_cores"], rates["notes"]) == (0.25, ["a note"])
    assert (rates["first_byte_s_p50"], rates["total_s_p50"]) == (0.2, 0.5)
    assert rates["body_s_p50"] == pytest.approx(0.3)
    assert "first_byte_s_p99" not in rates  # 30 requests are too few for p99.
    json.dumps(rates, allow_nan=False)
    written = Attempts([Timing(0.5, 10)] * 20, Counter(), {}, 200, 1.0, 1.0)
    rates = metrics(written, retries=None, cpu_s=0.0)
    assert not [name for name in rates if name.startswith(("first_byte_s", "body_s"))]
    assert (rates["total_s_p50"], rates["retries"], rates["mb_per_s"]) == (0.5, None, 0.0)


@pytest.mark.parametrize(
    ("errors", "reasons", "message"),
    [
        (
            {"timeout": 1, "503": 9},
            {"503": "503 SlowDown: wait", "timeout": "late"},
            "every request failed, 9 of 10 with 503 SlowDown: wait: the store refuses requests",
        ),
        (
            {"403": 20},
            {"403": "403 AccessDenied: no"},
            r"refused \(403 AccessDenied: no\): check the credentials",
        ),
    ],
)
def test_only_failures_fail_with_the_most_frequent_reason(
    errors: dict[str, int], reasons: dict[str, str], message: str
) -> None:
    """The message says how often and what to do; with one success there is no failure."""
    with pytest.raises(TrialFailed, match=message):
        require_success(Attempts([], Counter(errors), reasons), "s3://bucket")
    require_success(Attempts([Timing(1.0, 1)], Counter(errors), reasons), "s3://bucket")
