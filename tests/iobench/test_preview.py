"""A run that is predicted and then run: as many trials, and bytes within what was said."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iobench import run
from iobench.config import BenchConfig
from iobench.display import Lines
from iobench.forecast import Forecast
from iobench.forecast.content import totals
from iobench.preview import preview
from iobench.result import Result
from iobench.rundir import RunDirectory, read
from iobench.trial import Trial
from tests.iobench.small_runs import Configs, loaders

pytestmark = pytest.mark.slow


class Compared:
    """A forecast and what became of it."""

    def __init__(self, values: dict[str, Any], folder: Path) -> None:
        config = BenchConfig.model_validate(values)
        self.forecast: Forecast = preview(config)
        stream = Lines(io.StringIO())
        self.result: Result = run.run(config, folder, stream, forecast=totals(self.forecast)).result
        self.trials = {trial.id: trial for trial in self.result.trials}


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, small_data: dict[str, Any]) -> Compared:
    """A little of everything that needs no framework."""
    folder = tmp_path_factory.mktemp("compared")
    disk = {
        "targets": [{"label": "here", "path": str(folder)}],
        "file_bytes": "1MiB",
        "operations": ["read", "write"],
        "cache": ["cold", "warm"],
        "block_bytes": "64KiB",
        "at_block_bytes": "64KiB",
        "parallelism": 2,
        "at_parallelism": 2,
        "seconds": 0.1,
        "layout_data": "shards@disk",
        "layouts": ["shards", "records"],
        "layout_parallelism": 2,
        "layout_cache": "cold",
    }
    store = {
        "operations": ["get", "put"],
        "clients": "boto3",
        "object_bytes": "10kB",
        "at_object_bytes": "10kB",
        "connections": 2,
        "at_connections": 2,
        "seconds": 0.2,
        "max_requests": 30,
    }
    paced = {"consumer": "paced", "images_per_s": 4000, "loader": "raw", "batch_size": 4}
    values = {
        "name": "compared",
        "repeats": 1,
        "data": small_data,
        "disk": disk,
        "object_store": store,
        "loaders": loaders("raw", "null", cache=["cold"], batch_size=4),
        "training": [{**paced, "steps": 4, "workers": 0, "prefetch": 1, "inputs": ["cold"]}],
    }
    return Compared(values, folder / "run")


def test_the_trials_are_those(compared: Compared) -> None:
    """None more, none fewer, each done within its time."""
    assert [spec.id for spec, _ in compared.forecast.trials] == list(compared.trials)
    for spec, found in compared.forecast.trials:
        assert compared.trials[spec.id].status == "done", compared.trials[spec.id].reason
        assert compared.trials[spec.id].seconds in found.seconds


def moved(trial: Trial, samples_bytes: float) -> tuple[str, float]:
    """Which bytes a trial moved, and how many."""
    if trial.kind in ("disk", "layout"):
        wrote = trial.params.get("operation") == "write"
        return ("disk_written" if wrote else "disk_read"), trial.metrics["bytes"]
    if trial.kind == "object":
        wrote = trial.params["operation"] == "put"
        return ("store_written" if wrote else "store_read"), trial.metrics["bytes"]
    return "disk_read", trial.metrics["samples"] * samples_bytes


def test_bytes_lie_within_the_bounds(compared: Compared) -> None:
    """Of every trial that no cache served."""
    checked = 0
    for spec, found in compared.forecast.trials:
        trial = compared.trials[spec.id]
        if trial.params.get("cache") == "warm":
            continue
        each = trial.metrics.get("mb_per_s", 0) * 1e6 / (trial.metrics.get("samples_per_s") or 1e9)
        where, count = moved(trial, each)
        assert count in getattr(found, where), (spec.id, count, getattr(found, where))
        checked += 1
    assert checked >= 9


def test_requests_lie_within_the_bounds(compared: Compared) -> None:
    """Those that were measured, with those that are sent before."""
    tried = [(s, f) for s, f in compared.forecast.trials if s.kind == "object"]
    assert len(tried) == 2
    for spec, found in tried:
        sent = compared.trials[spec.id].metrics["requests"]
        low, high = found.requests
        assert high is not None
        assert low.puts <= sent <= high.puts + high.gets


def test_the_forecast_is_kept_with_the_result(compared: Compared) -> None:
    """So that anybody can hold one against the other."""
    assert compared.result.forecast["trials"] == len(compared.trials)
    assert compared.result.forecast["stores"]["store/s3"]["server"] == "the run's own server"


class TestEarlier:
    def measured(self, folder: Path, values: dict[str, Any], seconds: float) -> Path:
        """A run of which the first trial is done."""
        config = BenchConfig.model_validate(values)
        begun = run._begun(config)
        directory = RunDirectory(folder)
        directory.open(config, begun.environment, resume=False)
        spec = preview(config).trials[0][0]
        done = Trial(spec.id, spec.kind, spec.params, 0, "done", {}, seconds=seconds)
        directory.begin(begun.with_trial(done))
        return folder

    def test_a_resumed_run_has_the_rest_to_come(self, configs: Configs, tmp_path: Path) -> None:
        """And knows how long that takes."""
        values = configs.values(loaders=loaders("null"), repeats=3)
        folder = self.measured(tmp_path / "run", values, 40.0)
        found = preview(BenchConfig.model_validate(values), resumed=folder)
        assert (len(found.trials), found.before) == (2, 1)
        assert found.likely_s == (80.0, 0)

    def test_another_run_tells_the_times(self, configs: Configs, tmp_path: Path) -> None:
        """All trials are to come; another machine's times are remarked."""
        values = configs.values(loaders=loaders("null"), repeats=3)
        folder = self.measured(tmp_path / "run", values, 40.0)
        config = BenchConfig.model_validate(values)
        found = preview(config, like=folder)
        assert (len(found.trials), found.before, found.likely_s) == (3, 0, (120.0, 0))
        assert found.problems == ()
        result = read(folder)
        moved = replace(result, environment={**result.environment, "processor": "another"})
        RunDirectory(folder).begin(moved)
        assert "another machine (processor differ)" in preview(config, like=folder).problems[0]

    def test_a_folder_without_a_run_begins_anew(self, configs: Configs, tmp_path: Path) -> None:
        """As --resume does."""
        config = BenchConfig.model_validate(configs.values(loaders=loaders("null")))
        assert preview(config, resumed=tmp_path / "none").before == 0
