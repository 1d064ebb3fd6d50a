"""The pass mark and the other rules of MLPerf Storage apply to its own workloads only."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.results.trial import Trial
from tests.iobench.analysis.made import analysed, loop

KEEPS_ALL = {"objects": 1_000, "mean_object_bytes": 150e6, "steps": 500}
MEMORY = {"environment": {"memory_bytes": 30 * 10**9}}


def emulated(
    preset: str, au: float, *, batch_size: int = 400, model: str = "resnet50", **how: Any
) -> list[Trial]:
    """Return a loop on an emulated device that keeps all rules of MLPerf Storage, with this AU."""
    metrics = {**KEEPS_ALL, "au_mlperf": au, **how.pop("metrics", {})}
    settings: dict[str, Any] = {"preset": preset, "batch_size": batch_size, "model": model, **how}
    return loop("cold", 1000, metrics=metrics, **settings)


def requirements(*parts: list[Trial], **how: Any) -> dict[str, bool | None]:
    """Return for each rule whether the first loop meets it; None if that is unknown."""
    (mark,) = analysed(*parts, **{**MEMORY, **how}).summary["mlperf_storage"]
    return {requirement["rule"]: requirement["is_met"] for requirement in mark["requirements"]}


@pytest.mark.parametrize("preset", ["V100", "A100", "H100", "V100-mxnet-64", None])
def test_no_other_loop_has_a_pass_mark(preset: str | None) -> None:
    """A tuned step, a user's rate and a real device are no workloads of MLPerf Storage."""
    how: dict[str, Any] = {"preset": preset} if preset else {}
    assert analysed(loop("cold", 1000, **how)).summary["mlperf_storage"] == []


def test_a_loop_may_keep_all_rules() -> None:
    """A loop with six repeats keeps all rules: one run to warm up, and five runs that count."""
    (mark,) = analysed(emulated("H100-mlperf", 0.95), **MEMORY).summary["mlperf_storage"]
    assert (mark["device"], mark["model"], mark["is_met"]) == ("H100-mlperf", "ResNet-50", True)
    rules = " ".join(requirement["rule"] for requirement in mark["requirements"])
    assert "at least 90 %" in rules
    assert "batches of 400 samples" in rules
    assert "5 times the memory" in rules
    assert "500 steps" in rules
    assert "a run to warm up, then 5 runs that count" in rules


@pytest.mark.parametrize(
    ("preset", "model", "batch_size", "au", "is_met"),
    [
        ("H100-mlperf", "resnet50", 400, 0.89, False),
        ("H100-mlperf", "resnet50", 400, 0.90, True),
        ("B200-mlperf", "retinanet", 24, 0.86, True),
        ("B200-mlperf", "retinanet", 24, 0.84, False),
    ],
)
def test_the_mark_is_that_of_the_workload(
    preset: str, model: str, batch_size: int, au: float, is_met: bool
) -> None:
    """The mark is 90 % for ResNet-50 and 85 % for RetinaNet."""
    trials = emulated(preset, au, model=model, batch_size=batch_size)
    (mark,) = analysed(trials, **MEMORY).summary["mlperf_storage"]
    assert mark["requirements"][0]["is_met"] is is_met
    assert mark["is_met"] is is_met


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        ({"batch_size": 64}, "batches of 400 samples"),
        ({"metrics": {"objects": 999}}, "data of at least 5 times the memory of the hosts"),
        ({"metrics": {"steps": 499}}, "at least 500 steps in an epoch"),
        ({"epochs": 2}, "at least 500 steps in an epoch"),
        ({"repeats": 5}, "a run to warm up, then 5 runs that count"),
    ],
)
def test_each_rule_that_is_not_kept_is_named(how: dict[str, Any], rule: str) -> None:
    """Only the broken rule is reported, whatever the AU is."""
    rules_met = requirements(emulated("H100-mlperf", 0.95, **how))
    assert rules_met.pop(rule) is False
    assert all(rules_met.values())


def test_the_worst_run_that_counts_decides() -> None:
    """The first of six runs is to warm up; each of the others must reach the mark."""
    trials = emulated("H100-mlperf", 0.95)
    trials[0].metrics["au_mlperf"] = 0.1  # type: ignore[index]
    (mark,) = analysed(trials, **MEMORY).summary["mlperf_storage"]
    assert mark["is_met"] is True
    trials[3].metrics["au_mlperf"] = 0.5  # type: ignore[index]
    (mark,) = analysed(trials, **MEMORY).summary["mlperf_storage"]
    assert mark["requirements"][0]["measured"] == "50.0 % in the worst run"
    assert mark["is_met"] is False


def test_a_rule_about_unknown_memory_is_not_judged() -> None:
    """A rule about memory is neither kept nor broken if the run did not record the memory."""
    rules_met = requirements(emulated("H100-mlperf", 0.95), environment={})
    assert rules_met["data of at least 5 times the memory of the hosts"] is None
