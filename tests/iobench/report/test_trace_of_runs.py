"""The traces of a whole ladder and of a loader, which are measured in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from iobench.config.benchmark import BenchConfig
from iobench.config.plan import ladder_config
from iobench.results.result import Result
from iobench.runner.progress import Lines
from iobench.runner.run import run
from iobench.runner.run_folder import read, run_trace
from tests.iobench.report.trace_format import problems
from tests.iobench.small_runs import loaders

pytestmark = [pytest.mark.slow, pytest.mark.process]

LOOP: dict[str, Any] = {
    "consumer": "torch",
    "model": "lenet",
    "device": "cpu",
    "loader": "torch-map",
    "image_size": 32,
    "batch_size": 2,
    "workers": 1,
    "steps": 4,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, small_data: dict[str, Any]) -> Path:
    """Return the folder of a run with every rung of a loop, and with a loader of two workers."""
    pytest.importorskip("torch")
    grid = loaders("torch-iterable", batch_size=4, seconds=0.2, image_size=32)
    grid[0]["workers"] = 2
    values = {"name": "traced", "repeats": 1, "data": small_data, "training": [LOOP]}
    ladder = ladder_config(BenchConfig.model_validate({**values, "sampling": {"per_s": 10}}))
    with_loaders = BenchConfig.model_validate({**values, "loaders": grid})
    config = ladder.model_copy(update={"loaders": with_loaders.loaders})
    path = tmp_path_factory.mktemp("traced") / "run"
    run(config, path, Lines())
    return path


@pytest.fixture(scope="module")
def result(folder: Path) -> Result:
    """Return the result of the run."""
    return read(folder)


@pytest.fixture(scope="module")
def events(folder: Path) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the events of each trial by its id."""
    content = json.loads(run_trace(folder).encoded())
    assert problems(content) == []
    ids = {e["pid"]: e["args"]["id"] for e in content["traceEvents"] if e.get("cat") == "trial"}
    by_trial: dict[str, list[Mapping[str, Any]]] = {name: [] for name in ids.values()}
    for event in content["traceEvents"]:
        by_trial[ids[event["pid"]]].append(event)
    return by_trial


def slices_of(events: Sequence[Mapping[str, Any]], category: str) -> list[Mapping[str, Any]]:
    """Return the slices of a category."""
    return [event for event in events if event.get("cat") == category]


def test_every_rung_has_its_steps_and_readings(
    result: Result, events: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """All steps lie within their trial, and the waits add up to those of the result."""
    rungs = [trial for trial in result.trials if trial.kind == "train"]
    assert len(rungs) >= 6
    assert {trial.status for trial in rungs} == {"done"}, [trial.reason for trial in rungs]
    for trial in rungs:
        own = events[trial.id]
        assert len(slices_of(own, "step")) == trial.metrics["steps"]
        waits_s = sum(event["dur"] for event in slices_of(own, "wait")) / 1e6
        expected_s = trial.metrics["wait_share"] * trial.metrics["seconds"]
        assert waits_s == pytest.approx(expected_s, abs=1.3e-7 * trial.metrics["steps"])
        (trial_event,) = slices_of(own, "trial")
        for step in slices_of(own, "step"):
            assert trial_event["ts"] <= step["ts"]
            assert step["ts"] + step["dur"] <= trial_event["ts"] + trial_event["dur"]
        assert slices_of(own, "reading")


def test_batches_of_workers_cover_the_samples_that_were_read(
    result: Result, events: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """A batch ends before the loop that waits for it goes on; a loader alone has epochs."""
    warm = next(trial for trial in result.trials if trial.params.get("input") == "warm")
    batches, waits = slices_of(events[warm.id], "batch"), slices_of(events[warm.id], "wait")
    assert len(batches) >= len(waits)
    first_end = min(batch["ts"] + batch["dur"] for batch in batches)
    assert first_end <= waits[0]["ts"] + waits[0]["dur"]
    alone = next(trial for trial in result.trials if trial.kind == "loader")
    own = events[alone.id]
    threads = {event["args"]["name"] for event in own if event["name"] == "thread_name"}
    assert {"trial", "epochs", "worker 0", "worker 1"} == threads
    assert len(slices_of(own, "epoch")) >= alone.metrics["whole_epochs"]
