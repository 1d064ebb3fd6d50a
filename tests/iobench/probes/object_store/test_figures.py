"""From requests to metrics."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from iobench.errors import TrialFailed
from iobench.probes.object_store.clients import Timing
from iobench.probes.object_store.figures import metrics, require_success
from iobench.probes.object_store.streams import Attempts

pytestmark = pytest.mark.slow


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
