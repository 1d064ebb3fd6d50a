"""What measuring cost is a finding where it is too much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from iobench.diagnosis.instrumentation import findings
from tests.iobench.summary.made import one

PARAMS = {"data": "", "workers": 0, "batch_size": 1}


def codes(*costs: dict[str, Any]) -> dict[str, str]:
    """Findings by code, of trials with these costs."""
    trials = [
        one("loader", {**PARAMS, "loader": f"l{place}"}, **cost, cold=None)
        for place, cost in enumerate(costs)
    ]
    lasted = [replace(trial, seconds=10.0) for trial in trials]
    return {finding.code: finding.evidence for finding in findings(lasted)}


def test_below_one_percent_nothing_is_said() -> None:
    """Nor of runs that did not measure it."""
    assert codes({"harness_share": 0.01, "sampling_core_share": 0.0099}, {}) == {}


def test_the_worst_trial_is_named() -> None:
    """With its share."""
    found = codes({"harness_share": 0.011}, {"harness_share": 0.05}, {"harness_share": 0.02})
    assert found == {
        "instrumentation": "timing a step takes 5.0% of it in loader l1 workers=0 batch=1"
    }


def test_sampling_is_held_to_a_processors_percent() -> None:
    """Apart from the steps: another process does it."""
    assert codes({"sampling_core_share": 0.03}) == {
        "sampling": "reading the machine takes 3.0% of a processor"
    }


def test_sampling_counts_over_the_time_of_all_trials() -> None:
    """A short one in which a reading came twice is no finding."""
    long = one("loader", {**PARAMS, "loader": "long"}, sampling_core_share=0.004)
    short = one("loader", {**PARAMS, "loader": "short"}, sampling_core_share=0.02)
    trials = [replace(long, seconds=60.0), replace(short, seconds=0.5)]
    assert [finding.code for finding in findings(trials)] == []


def test_a_run_of_a_second_is_too_short_to_tell() -> None:
    """Its first reading, which opens everything, is most of it: fewer would not help."""
    short = one("watch", {"loader": "list"}, sampling_core_share=0.97)
    assert [finding.code for finding in findings([replace(short, seconds=0.1)])] == []
