"""What a watched loop's figures say of the cause."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.diagnosis.watched import findings
from iobench.result import Finding
from tests.iobench.summary.made import one

STARVED: dict[str, Any] = {"wait_share": 0.4, "seconds": 100.0}


def found(**metrics: Any) -> list[Finding]:
    """Of one loop."""
    return list(findings([one("watch", {"loader": "mine"}, **{"seconds": 100.0, **metrics})]))


@pytest.mark.parametrize(
    ("metrics", "code"),
    [
        ({"cpu_busy_share": 0.93}, "waiting-preparation"),
        ({"cpu_busy_share": 0.2, "disk_read_mb_per_s": 12.0}, "waiting-workers"),
        ({"cpu_busy_share": 0.93, "loop_cpu_share": 0.8}, "waiting-preparation"),
        ({"cpu_busy_share": 0.93, "loop_cpu_share": 0.12}, "waiting-others"),
        ({"cpu_busy_share": 0.65}, "waiting"),
        ({}, "waiting"),
    ],
)
def test_a_starved_loop_is_a_problem_with_its_evidence(
    metrics: dict[str, float], code: str
) -> None:
    """Busy processors are preparation, idle ones too few workers; else nothing is claimed."""
    (finding,) = found(**STARVED, **metrics)
    assert (finding.code, finding.severity) == (code, "problem")
    assert finding.evidence.startswith("loop over mine: waits for data 40% of its time")
    assert finding.advice
    if code != "waiting-others":
        metrics = {name: value for name, value in metrics.items() if name != "loop_cpu_share"}
    for name, value in metrics.items():
        assert (f"{value:.0%}" if name.endswith("share") else "12 MB/s") in finding.evidence


def test_a_loop_that_is_fed_has_no_finding() -> None:
    """However idle or busy its processors are."""
    for busy in (0.1, 0.99):
        assert found(wait_share=0.2, cpu_busy_share=busy, time_to_first_batch_s=3.0) == []


def test_waiting_behind_a_gpu_that_computes_is_no_finding() -> None:
    """Where its idle time is known, that is what counts."""
    assert found(**STARVED, device_wait_share=0.02) == []
    (finding,) = found(**STARVED, device_wait_share=0.3)
    assert "40% of its time, its GPU idle for 30%" in finding.evidence


def test_a_late_first_batch_is_a_warning() -> None:
    """Where it is long, and long beside the loop."""
    (finding,) = found(wait_share=0.0, time_to_first_batch_s=30.0)
    assert finding.code == "late-first-batch"
    assert "30 s to the first batch, beside 100 s" in finding.evidence
    assert found(wait_share=0.0, time_to_first_batch_s=30.0, seconds=10_000.0) == []


def test_workers_that_start_anew_are_a_warning() -> None:
    """With what each start takes."""
    (finding,) = found(wait_share=0.1, epoch_start_share=0.08, epoch_start_s=2.5)
    assert finding.code == "epoch-starts"
    assert "2.5 s each" in finding.evidence


def test_outliers_are_worth_a_look() -> None:
    """Three times the median and more."""
    (finding,) = found(wait_share=0.0, step_s_p50=0.1, step_s_p99=0.5)
    assert (finding.code, finding.severity) == ("step-outliers", "info")
    assert found(wait_share=0.0, step_s_p50=0.1, step_s_p99=0.29) == []


def test_only_watched_loops_are_judged_so() -> None:
    """A trial of the bench has its own."""
    assert list(findings([one("loader", {"loader": "mine"}, **STARVED)])) == []
