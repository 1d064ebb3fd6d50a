"""Loaders in several processes at once, from the start of the trial's process to its end."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.results.trial import TrialSpec
from iobench.trials.trial_timeout import TrialEnd, run_with_timeout
from tests.iobench.small_runs import ThirdParty

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch")

PARAMS: dict[str, Any] = {
    "loader": "odd-ranked",
    "data": "",
    "cache": "warm",
    "processes": 2,
    "batch_size": 4,
    "workers": 0,
    "prefetch": 2,
    "image_size": 32,
    "seconds": 0.3,
}


def tried(**changed: Any) -> TrialEnd:
    """Run a trial of a loader that reads nothing."""
    return run_with_timeout(
        TrialSpec("loader", {**PARAMS, **changed}),
        {},
        timeout_s=120,
        environment={},
        progress=lambda done, unit: None,
    )


def test_two_processes_are_measured_together(third_party: ThirdParty) -> None:
    """Each process has its own share of the samples, and the rate is that of both."""
    status, outcome, reason = tried(seconds=4.0)
    assert (status, reason) == ("done", "")
    assert outcome is not None
    metrics = outcome.metrics
    rates = metrics["process_samples_per_s"]
    assert len(rates) == 2
    assert metrics["samples_per_s"] * metrics["seconds"] == pytest.approx(metrics["samples"])
    assert metrics["samples"] == round(sum(rates) * metrics["seconds"])
    assert metrics["process_evenness"] == pytest.approx(min(rates) / max(rates))
    assert outcome.counted_s is not None
    assert third_party.has("rank-0")
    assert third_party.has("rank-1")


def test_a_loader_that_does_not_share_is_skipped(third_party: ThirdParty) -> None:
    """Such a loader would give every process all samples."""
    status, _, reason = tried(loader="odd-steady")
    assert status == "skipped"
    assert "does not share its samples among several processes" in reason
    assert reason.endswith("or set processes: 1")
