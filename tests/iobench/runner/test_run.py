"""Whole runs: single trials may fail in any way, and the rest and the report are still made."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import ConfigError
from dataprep.stores import StoreOptions, open_store
from iobench.analysis.analyse import summarised
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import trials
from iobench.errors import NothingRan, ResultError, RunConflict
from iobench.probes.object_store.objects import OVERLOADED
from iobench.results.result import Result
from iobench.results.trial import Trial, TrialSpec
from iobench.runner import run
from iobench.runner.progress import Lines
from iobench.runner.run_folder import read
from iobench.servers.fault_proxy import FaultProxy, Match, Rule, Status
from iobench.servers.memory_s3 import MemoryS3
from iobench.servers.moto_server import MotoServer, signed_in
from tests.iobench.small_runs import Configs, ThirdParty, loaders

pytestmark = pytest.mark.slow

NULL = loaders("null")


def measured(
    values: Mapping[str, Any], folder: Path, stream: io.StringIO | None = None, **options: Any
) -> run.Run:
    """Run a config in this process, with each trial in a process of its own."""
    display = Lines(stream or io.StringIO())
    return run.run(BenchConfig.model_validate(values), folder, display, **options)


def warm_disk(folder: Path, **changes: Any) -> dict[str, Any]:
    """Return settings of the disk probe with one point for each operation, on 1 MiB in memory."""
    return {
        "targets": [{"label": "here", "path": str(folder)}],
        "file_bytes": 2**20,
        "patterns": "sequential",
        "cache": "warm",
        "block_bytes": 2**16,
        "parallelism": 1,
        "at_block_bytes": 2**16,
        "at_parallelism": 1,
        "seconds": 0.05,
        **changes,
    }


SMALL_OBJECTS: dict[str, Any] = {
    "clients": "boto3",
    "operations": "get",
    "object_bytes": 1000,
    "connections": 1,
    "at_object_bytes": 1000,
    "at_connections": 1,
    "max_requests": 4,
    "pool_bytes": 4000,
}


def by_loader(trials: Any) -> dict[str, Trial]:
    """Return the trials by the name of their loader."""
    return {trial.params["loader"]: trial for trial in trials}


def _codes(result: Result) -> set[str]:
    """Return the codes of a result's findings."""
    return {finding.code for finding in result.findings}


class Swapping(Lines):
    """Progress that calls a function after the first repeat."""

    def __init__(self, stream: io.StringIO, between: Callable[[], None]) -> None:
        super().__init__(stream)
        self.between = between

    def end(self, trial: Trial) -> None:
        super().end(trial)
        if trial.repeat == 0:
            self.between()


class Mixed:
    """One run with trials that end in every possible way."""

    def __init__(self, folder: Path, values: Mapping[str, Any]) -> None:
        stream = io.StringIO()
        self.run = measured(values, folder, stream)
        self.output = stream.getvalue()
        self.trials = by_loader(self.run.result.trials)
        self.page = (folder / "report.html").read_text()


@pytest.fixture(scope="module")
def mixed(
    third_party: ThirdParty, tmp_path_factory: pytest.TempPathFactory, small_data: dict[str, Any]
) -> Mixed:
    """Return a run of good loaders and of others that raise, die, yield nothing or hang."""
    names = ("odd-raising", "odd-steady", "odd-killed", "odd-empty", "odd-missing", "odd-hanging")
    grids = loaders(*names, "raw", "null", "mock", "torch-folder")
    values = {"name": "mixed", "repeats": 1, "data": small_data, "loaders": grids}
    folder = tmp_path_factory.mktemp("mixed") / "run"
    return Mixed(folder, {**values, "trial_timeout_s": 8})


class TestMixed:
    """A run with trials that end in every possible way."""

    def test_each_trial_has_its_own_end(self, mixed: Mixed) -> None:
        """The failure of a trial does not affect the others."""
        done = {name for name, trial in mixed.trials.items() if trial.status == "done"}
        failed = {name: t.reason for name, t in mixed.trials.items() if t.status == "failed"}
        assert done == {"odd-steady", "raw", "null", "mock"}
        assert failed == {
            "odd-raising": "ValueError: shard 7 is broken \x1b[2J\udcff",
            "odd-killed": "killed by SIGKILL (out of memory?): it printed nothing",
            "odd-empty": "the loader gave no batch",
            "odd-hanging": "not done after 8 s (trial_timeout_s): killed",
        }

    def test_trials_that_lack_something_are_skipped(self, mixed: Mixed) -> None:
        """The reason names what would bring it; a wrong form of data counts as missing."""
        skipped = {name: t.reason for name, t in mixed.trials.items() if t.status == "skipped"}
        assert skipped == {
            "odd-missing": "oddlib is not installed: pip install 'odd-loaders[oddlib]'",
            "torch-folder": "this loader reads files; these data are shards",
        }

    def test_a_failed_trial_is_exit_code_1(self, mixed: Mixed) -> None:
        """The exit code is 1 although other trials are done."""
        assert mixed.run.exit_code == 1

    def test_everything_is_saved(self, mixed: Mixed) -> None:
        """The folder has the result, its config, a row for each trial, and the report."""
        folder = mixed.run.folder
        assert read(folder) == mixed.run.result
        tables = {"trials.parquet", "series.parquet", "samples.parquet", "spans.parquet"}
        names = {path.name for path in folder.iterdir()}
        assert names == {"config.yaml", "trials.jsonl", "result.json", "report.html", *tables}
        rows = pd.read_parquet(folder / "trials.parquet")
        assert list(rows["id"]) == [trial.id for trial in mixed.run.result.trials]
        samples = [trial.metrics.get("samples") for trial in mixed.run.result.trials]
        assert [None if pd.isna(n) else n for n in rows["metrics.samples"]] == samples

    def test_the_machine_was_sampled_meanwhile(self, mixed: Mixed) -> None:
        """Each completed trial has readings on the clock of its loop."""
        done = {trial.id: trial for trial in mixed.trials.values() if trial.status == "done"}
        readings = pd.read_parquet(mixed.run.folder / "samples.parquet")
        assert set(readings["trial"]) == set(done)
        assert {"cpu.user_share", "tree.processes", "page-cache.cached_bytes"} <= set(readings)
        for name, rows in readings.groupby("trial"):
            # Sampling begins before the loop and ends after it.
            assert rows["time_s"].iloc[0] < 0 < rows["time_s"].iloc[-1]
            assert rows["time_s"].is_monotonic_increasing
            assert done[str(name)].metrics["sampling_core_share"] >= 0

    def test_the_report_lists_every_reason(self, mixed: Mixed) -> None:
        """The report has the verdict and the reason of each failure."""
        assert str(mixed.run.result.summary["verdict"]) in mixed.page
        for reason in ("oddlib is not installed", "killed by SIGKILL", "the loader gave no batch"):
            assert reason in mixed.page

    def test_the_terminal_tells_each_end(self, mixed: Mixed) -> None:
        """Each trial has a line without control characters."""
        assert mixed.output.count("/10  ") == 10
        assert "10 trials" in mixed.output
        assert "failed loader odd-empty" in mixed.output
        assert "\x1b" not in mixed.output
        assert "\x1b" not in mixed.run.counts.replace("\n", "")

    def test_the_counts_are_the_last_word(self, mixed: Mixed) -> None:
        """The counts give the number of each outcome, with reasons."""
        lines = mixed.run.counts.splitlines()
        assert lines[0] == "4 trials done"
        assert "1 failed: the loader gave no batch" in lines
        assert len(lines) == 1 + 2 + 4

    def test_read_data_have_a_label(self, mixed: Mixed) -> None:
        """A trial that read data has the label of its page cache, and one without data has none."""
        raw, null = mixed.trials["raw"], mixed.trials["null"]
        assert raw.cold is not None
        assert raw.cold.asked == "warm"
        assert raw.metrics["mb_per_s"] > 0
        assert null.cold is None
        assert "mb_per_s" not in null.metrics


class Watching(Lines):
    """Progress that counts the saved trials whenever a trial begins."""

    def __init__(self, folder: Path) -> None:
        super().__init__(io.StringIO())
        self.folder = folder
        self.saved: list[int] = []

    def begin(self, spec: TrialSpec) -> None:
        super().begin(spec)
        self.saved.append(len(read(self.folder).trials))


def test_every_trial_is_saved_when_it_ends(configs: Configs, tmp_path: Path) -> None:
    """When a trial begins, the earlier ones can be read."""
    watching = Watching(tmp_path / "run")
    config = BenchConfig.model_validate(configs.values(loaders=NULL, repeats=3))
    run.run(config, tmp_path / "run", watching)
    assert watching.saved == [0, 1, 2]


def test_sampling_can_be_left_out(configs: Configs, tmp_path: Path) -> None:
    """A run without samplers has no readings and no figures about sampling."""
    values = configs.values(loaders=NULL, sampling={"samplers": []})
    (trial,) = measured(values, tmp_path / "run").result.trials
    assert "sampling_core_share" not in trial.metrics
    assert len(pd.read_parquet(tmp_path / "run" / "samples.parquet")) == 0


def test_somebody_elses_sampler_is_read(
    third_party: ThirdParty, configs: Configs, tmp_path: Path
) -> None:
    """A sampler of a third party is found by name, and its readings and notes are kept."""
    sampling = {"samplers": ["odd-count", "odd-missing"], "per_s": 10}
    measured(configs.values(loaders=NULL, sampling=sampling), tmp_path / "run")
    readings = pd.read_parquet(tmp_path / "run" / "samples.parquet")
    assert list(readings["odd-count.count"]) == list(range(1, len(readings) + 1))
    (trial,) = read(tmp_path / "run").trials
    assert trial.metrics["sampling_notes"] == ["no such thing: buy one", "a count"]


def test_skipped_alone_is_nothing_run(
    third_party: ThirdParty, configs: Configs, tmp_path: Path
) -> None:
    """A run whose trials are all skipped has a report, and looks for a framework once."""
    folder = tmp_path / "run"
    with pytest.raises(NothingRan, match="no trial could run: oddlib is not installed") as caught:
        measured(configs.values(loaders=loaders("odd-missing"), repeats=3), folder)
    assert caught.value.exit_code == 2
    assert "Nothing could be measured" in (folder / "report.html").read_text()
    trials = read(folder).trials
    assert [trial.status for trial in trials] == ["skipped"] * 3
    assert [trial.seconds > 0 for trial in trials] == [True, False, False]


class TestResume:
    """Runs that are resumed."""

    @pytest.fixture
    def values(self, third_party: ThirdParty, configs: Configs) -> dict[str, Any]:
        """Return a config with a loader that leaves a mark, and one that must be mended."""
        for mark in ("count", "mended"):
            (third_party.folder / mark).unlink(missing_ok=True)
        return configs.values(loaders=loaders("odd-counted", "odd-flaky"))

    def test_done_trials_are_kept_and_failed_ones_repeated(
        self, third_party: ThirdParty, values: dict[str, Any], tmp_path: Path
    ) -> None:
        """No completed trial is measured twice, and a new result replaces the failure."""
        first = measured(values, tmp_path / "run")
        assert first.exit_code == 1
        third_party.mark("mended")
        stream = io.StringIO()
        second = measured(values, tmp_path / "run", stream, resume=True)
        assert second.exit_code == 0
        assert (third_party.folder / "count").read_text() == "x"
        assert "2 trials, 1 of them measured before" in stream.getvalue()
        assert "measured again: 1 failed" in stream.getvalue()
        assert second.result.started == first.result.started
        trials = by_loader(read(tmp_path / "run").trials)
        assert trials["odd-counted"] == by_loader(first.result.trials)["odd-counted"]
        assert {trial.status for trial in trials.values()} == {"done"}
        assert len(second.result.trials) == 2
        again = measured(values, tmp_path / "run", resume=True)
        assert again.result.trials == second.result.trials

    def test_skipped_trials_are_tried_again(
        self, third_party: ThirdParty, configs: Configs, tmp_path: Path
    ) -> None:
        """A skipped trial is tried again, since its framework may have been installed."""
        values = configs.values(loaders=loaders("odd-missing", "null"))
        measured(values, tmp_path / "run")
        stream = io.StringIO()
        again = measured(values, tmp_path / "run", stream, resume=True)
        assert "measured again: 1 skipped" in stream.getvalue()
        assert len(again.result.trials) == 2

    @pytest.mark.parametrize("name", ["result.json", "series.parquet", "report.html"])
    def test_stopped_while_a_file_is_written(
        self, configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """Earlier files stay whole, and the run can be resumed."""
        folder, replace = tmp_path / "run", Path.replace
        training = {"loader": "mock", "consumer": "null", "steps": 4, "inputs": ["warm"]}
        values = configs.values(loaders=NULL, training=[training], repeats=2)

        def stopped(self: Path, target: Path) -> Path:
            if Path(target).name == name:
                raise KeyboardInterrupt
            return replace(self, target)

        monkeypatch.setattr(Path, "replace", stopped)
        with pytest.raises(KeyboardInterrupt):
            measured(values, folder)
        monkeypatch.setattr(Path, "replace", replace)
        kept = read(folder).trials
        assert ("unfinished" in _codes(summarised(read(folder)))) == (len(kept) < 4)
        again = measured(values, folder, resume=True)
        assert "unfinished" not in _codes(again.result)
        assert [trial.status for trial in again.result.trials] == ["done"] * 4
        assert again.result.trials[: len(kept)] == kept
        steps = pd.read_parquet(folder / "series.parquet")
        assert steps.groupby("trial").size().nunique() == 1
        assert steps["trial"].nunique() == 2
        assert not list(folder.glob("*.partial"))

    def test_shards_that_were_made_anew_are_not_mixed_in(
        self, configs: Configs, small_data: dict[str, Any], tmp_path: Path
    ) -> None:
        """Other shards under the same name fail their trials; equal ones are accepted."""
        photos, shards = tmp_path / "photos", tmp_path / "shards"
        draw_tree(photos, images=4, classes=2)

        def make(size: int) -> None:
            shutil.rmtree(shards, ignore_errors=True)
            settings = {"source": str(photos), "output": str(shards), "image": {"size": size}}
            dataprep.shard(dataprep.ShardConfig.model_validate(settings))

        make(32)
        values = configs.values(data={"shards": str(shards)}, repeats=2, loaders=loaders("raw"))
        values["loaders"][0]["batch_size"] = 1
        other = Swapping(io.StringIO(), lambda: make(48))
        first = run.run(BenchConfig.model_validate(values), tmp_path / "run", other)
        assert [trial.status for trial in first.result.trials] == ["done", "failed"]
        assert f"shards@disk ({shards}) were made anew" in first.result.trials[1].reason
        assert measured(values, tmp_path / "run", resume=True).exit_code == 1
        make(32)
        assert measured(values, tmp_path / "run", resume=True).exit_code == 0

    def test_bounds_may_change(self, configs: Configs, tmp_path: Path) -> None:
        """The limits of time and cost may change, since they do not affect the figures."""
        values = configs.values(loaders=NULL)
        first = measured(values, tmp_path / "run")
        other_limits = {**values, "trial_timeout_s": 900.0, "cost_limit_usd": 50}
        again = measured(other_limits, tmp_path / "run", resume=True)
        assert again.result.trials == first.result.trials
        assert again.result.config["trial_timeout_s"] == 900.0
        assert "cost_limit_usd: 50.0" in (tmp_path / "run" / "config.yaml").read_text()

    def test_keys_that_were_added_since_are_no_change(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """Keys that an earlier version lacked have their default values."""
        values = configs.values(loaders=NULL)
        first = measured(values, tmp_path / "run")
        path = tmp_path / "run" / "result.json"
        content = json.loads(path.read_text())
        del content["config"]["data"]["quality"], content["config"]["prices"]
        path.write_text(json.dumps(content))
        assert measured(values, tmp_path / "run", resume=True).result.trials == first.result.trials
        content["config"]["data"]["quality"] = 80
        path.write_text(json.dumps(content))
        with pytest.raises(RunConflict, match=r"another config \(data\.quality differ\)"):
            measured(values, tmp_path / "run", resume=True)

    def test_a_run_is_not_overwritten(
        self, third_party: ThirdParty, values: dict[str, Any], configs: Configs, tmp_path: Path
    ) -> None:
        """Neither a new run nor a resumed one with another config changes the folder."""
        folder = tmp_path / "run"
        values = {**values, "loaders": NULL}
        measured(values, folder)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(RunConflict, match="continue it with --resume") as caught:
            measured(values, folder)
        assert caught.value.exit_code == 2
        other = {**values, "repeats": 7, "data": {**values["data"], "images": 41}}
        with pytest.raises(RunConflict, match=r"another config \(data\.images, repeats differ\)"):
            measured(other, folder, resume=True)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def test_a_run_at_work_is_not_gone_on_with(self, configs: Configs, tmp_path: Path) -> None:
        """A second process may not resume a run that is still going on."""
        values, folder = configs.values(loaders=NULL), tmp_path / "run"
        refused: list[str] = []

        class Second(Lines):
            def begin(self, spec: TrialSpec) -> None:
                with pytest.raises(RunConflict, match="another run uses") as caught:
                    measured(values, folder, resume=True)
                refused.append(str(caught.value))

        run.run(BenchConfig.model_validate(values), folder, Second(io.StringIO()))
        assert len(refused) == 1
        assert measured(values, folder, resume=True).exit_code == 0


def test_trials_run_in_random_order_and_are_listed_in_that_of_the_config(
    configs: Configs, tmp_path: Path
) -> None:
    """Each point is listed with its repeats; ``started_s`` and the log have the real order."""
    values = configs.values(loaders=loaders("null", "mock"), repeats=3, order_seed=3)
    done = measured(values, tmp_path / "run").result.trials
    listed = [(trial.params["loader"], trial.repeat) for trial in done]
    assert listed == [(name, repeat) for name in ("null", "mock") for repeat in range(3)]
    planned = [spec.id for spec in trials(BenchConfig.model_validate(values))]
    by_time = sorted(done, key=lambda trial: trial.started_s)
    assert [trial.id for trial in by_time] == planned
    assert planned != [trial.id for trial in sorted(done, key=lambda trial: trial.repeat)]


@pytest.mark.parametrize(("gain", "measured_counts"), [(1.0, {2, 3}), (None, {2, 3, 4})])
def test_more_workers_are_tried_while_they_are_worth_it(
    tmp_path: Path, gain: float | None, measured_counts: set[int]
) -> None:
    """Four workers are left out if three bring less over two than ``more_workers_gain``."""
    point = {"loader": "mock", "item_s": 0.002, "batch_size": 8, "seconds": 0.2}
    grid = {**point, "workers": [2, 3, 4]}
    values = {"repeats": 2, "loaders": [grid], "more_workers_gain": gain}
    done = measured(values, tmp_path / "run")
    assert done.exit_code == 0
    by_status: dict[str, set[int]] = {"done": set(), "skipped": set()}
    for trial in done.result.trials:
        by_status[trial.status].add(trial.params["workers"])
    assert by_status == {"done": measured_counts, "skipped": {2, 3, 4} - measured_counts}
    assert ("more are not tried" in done.counts) == (gain is not None)


class Beside(Lines):
    """Progress that calls a function before each trial but the first."""

    def __init__(self, stream: io.StringIO, between: Callable[[], None]) -> None:
        super().__init__(stream)
        self.between = between
        self.has_begun = False

    def begin(self, spec: TrialSpec) -> None:
        """Call the function, then begin the trial."""
        if self.has_begun:
            self.between()
        self.has_begun = True
        super().begin(spec)


class TestTwoRunsAtOnce:
    """Runs with folders of their own share a disk or a bucket, as those of two hosts do."""

    def test_on_one_disk(self, configs: Configs, tmp_path: Path) -> None:
        """The first run to end keeps the other's files, and each removes its own."""
        target = tmp_path / "disk"
        target.mkdir()
        values = configs.values(disk=warm_disk(target, operations="read"), repeats=2)
        kept: list[set[int]] = []

        def files() -> set[int]:
            return {path.stat().st_ino for path in target.rglob("*") if path.is_file()}

        def other_run() -> None:
            before = files()
            assert measured(values, tmp_path / "other").exit_code == 0
            assert files() == before
            kept.append(before)

        config = BenchConfig.model_validate(values)
        done = run.run(config, tmp_path / "run", Beside(io.StringIO(), other_run))
        assert done.exit_code == 0
        assert [len(before) for before in kept] == [1]
        assert list(target.iterdir()) == []

    def test_on_one_bucket(self, configs: Configs, tmp_path: Path) -> None:
        """The first run to end keeps the other's objects, and each removes its own."""
        objects = MemoryS3()
        with signed_in(), FaultProxy(objects.answer) as proxy:
            options = StoreOptions(endpoint_url=proxy.url)
            target = {"uri": "s3://bucket/p", "store": options.model_dump(mode="json")}
            values = configs.values(object_store={**SMALL_OBJECTS, "targets": [target]}, repeats=2)
            store = open_store("s3://bucket", options)
            store.put("p/mine", b"data")
            kept: list[set[str]] = []

            def other_run() -> None:
                before = {info.key for info in store.list()}
                assert measured(values, tmp_path / "other").exit_code == 0
                assert {info.key for info in store.list()} == before
                kept.append(before)

            config = BenchConfig.model_validate(values)
            done = run.run(config, tmp_path / "run", Beside(io.StringIO(), other_run))
            assert done.exit_code == 0, done.counts
            own = f"p/iobench-probe/{done.result.run_id}/"
            assert all(key == "p/mine" or key.startswith(own) for key in kept[0])
            assert len(kept[0]) > 2
            assert [info.key for info in store.list()] == ["p/mine"]

    def test_files_of_a_killed_run_are_removed_on_resuming(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """This holds if its first trial was killed, and its run_id stays the same."""
        target, folder = tmp_path / "disk", tmp_path / "run"
        target.mkdir()
        values = configs.values(disk=warm_disk(target, operations="read"))
        run_id = measured(values, folder).result.run_id
        (folder / "result.json").unlink()
        log = folder / "trials.jsonl"
        log.write_bytes(log.read_bytes().splitlines(keepends=True)[0])
        for name in (run_id, "20200101T000000Z-01234567"):
            (target / f".iobench-probe-{name}").mkdir()
            (target / f".iobench-probe-{name}" / "write-of-a-killed-trial").touch()
        done = measured(values, folder, resume=True)
        assert (done.exit_code, done.result.run_id) == (0, run_id)
        names = [path.name for path in target.iterdir()]
        assert names == [".iobench-probe-20200101T000000Z-01234567"]
        assert measured(values, tmp_path / "another").result.run_id != run_id

    def test_a_run_of_an_older_version_gets_a_run_id(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """A missing run_id is made when the run is resumed; an edited one is refused."""
        values, folder = configs.values(loaders=NULL), tmp_path / "run"
        measured(values, folder)
        saved = json.loads((folder / "result.json").read_text())
        (folder / "result.json").write_text(json.dumps({**saved, "run_id": "/../../home"}))
        with pytest.raises(ResultError, match="was changed by hand"):
            measured(values, folder, resume=True)
        del saved["run_id"]
        (folder / "result.json").write_text(json.dumps(saved))
        assert measured(values, folder, resume=True).result.run_id != ""


class TestBadPlaces:
    """Trials whose data or storage is not available fail, and other trials are measured."""

    def test_a_folder_that_may_not_be_written(self, configs: Configs) -> None:
        """A run whose folder refuses to be written is a wrong request."""
        with pytest.raises(ConfigError, match="cannot write in /proc/self") as caught:
            measured(configs.values(loaders=NULL), Path("/proc/self"))
        assert caught.value.exit_code == 2

    def test_an_error_of_a_library_is_one_trials_own(
        self, configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Any error of the data fails their trials, and trials without data are measured."""

        def broken(self: object, name: str) -> None:
            raise LookupError(f"nobody knows {name}")

        monkeypatch.setattr("iobench.data.making.DataMaker.location", broken)
        done = measured(configs.values(loaders=loaders("raw", "null")), tmp_path / "run")
        assert done.exit_code == 1
        trials = by_loader(done.result.trials)
        assert trials["raw"].reason == "LookupError: nobody knows shards@disk"
        assert trials["null"].status == "done"

    def test_a_process_that_cannot_be_started(
        self, configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A failed fork fails one trial; the next one is measured, and resuming does the rest."""
        popen = subprocess.Popen

        def first_fails(*settings: Any, **options: Any) -> Any:
            monkeypatch.setattr("subprocess.Popen", popen)
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        class Refusing(Lines):
            def start(self, *settings: Any) -> None:
                super().start(*settings)
                monkeypatch.setattr("subprocess.Popen", first_fails)

        values = configs.values(loaders=NULL, repeats=2)
        config = BenchConfig.model_validate(values)
        done = run.run(config, tmp_path / "run", Refusing(io.StringIO()))
        assert done.exit_code == 1
        failed, kept = done.result.trials
        assert (failed.status, kept.status) == ("failed", "done")
        assert "could not be started: Resource temporarily unavailable" in failed.reason
        assert measured(values, tmp_path / "run", resume=True).exit_code == 0

    def test_data_that_cannot_be_made(self, configs: Configs, tmp_path: Path) -> None:
        """Trials fail with the reason if the folder of their data cannot be made."""
        wall = tmp_path / "wall"
        wall.touch()
        values = configs.values(loaders=loaders("raw", "null"), repeats=2)
        values["data"] = {**values["data"], "folder": str(wall / "data")}
        done = measured(values, tmp_path / "run")
        assert done.exit_code == 1
        trials = by_loader(done.result.trials)
        assert (trials["raw"].status, trials["null"].status) == ("failed", "done")
        assert "Not a directory" in trials["raw"].reason

    def test_shards_that_are_not_there(self, configs: Configs, tmp_path: Path) -> None:
        """The run is refused with the location, unless no trial reads the shards."""
        values = configs.values(loaders=loaders("raw", "null"))
        values["data"] = {**values["data"], "shards": str(tmp_path / "nowhere")}
        with pytest.raises(ConfigError, match=r"data\.shards: .*nowhere"):
            measured(values, tmp_path / "run")
        assert not (tmp_path / "run").exists()
        assert measured({**values, "loaders": loaders("null")}, tmp_path / "run").exit_code == 0

    def test_a_store_that_answers_503(
        self, configs: Configs, bucket: str, s3_server: MotoServer, tmp_path: Path
    ) -> None:
        """Each trial on the store fails, the rest is measured, and a note says what may be left."""
        rules = [Rule(Match(), Status(503, "SlowDown", "Please reduce your request rate."))]
        stream = io.StringIO()
        with FaultProxy(s3_server.url, rules=rules) as proxy:
            target = {"uri": f"s3://{bucket}/p", "store": {"endpoint_url": proxy.url}}
            store = {**SMALL_OBJECTS, "targets": [target]}
            values = configs.values(repeats=2, object_store=store, loaders=NULL)
            done = measured(values, tmp_path / "run", stream)
        assert done.exit_code == 1
        message = f"s3://{bucket}: 503: Service Unavailable"
        reasons = {trial.reason for trial in done.result.trials if trial.status == "failed"}
        assert reasons == {f"{message}: {OVERLOADED}"}
        assert [t.status for t in done.result.trials] == ["failed", "failed", "done", "done"]
        prefix = f"s3://{bucket}/p/iobench-probe/{done.result.run_id}/"
        note = f"objects may be left below {prefix}: {message}"
        assert note in stream.getvalue().splitlines()

    def test_a_bucket_that_is_not_there(
        self, configs: Configs, tmp_path: Path, s3_server: MotoServer, bucket: str
    ) -> None:
        """Trials fail with the bucket's name if copies cannot go there."""
        values = configs.values(loaders=loaders("raw", data=["shards@s3"]) + NULL)
        store = {"endpoint_url": s3_server.url, "max_attempts": 1}
        missing = {"uri": f"s3://{bucket}-missing/x", "store": store}
        values["data"] = {**values["data"], "bucket": missing}
        done = measured(values, tmp_path / "run")
        assert done.exit_code == 1
        trials = by_loader(done.result.trials)
        assert (trials["raw"].status, trials["null"].status) == ("failed", "done")
        assert f"{bucket}-missing" in trials["raw"].reason

    def test_shards_on_a_store_are_copied_in_the_format_that_is_read(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """RecordIO is not copied if all trials read TFRecord."""
        shards = tmp_path / "shards"
        draw_tree(tmp_path / "photos", images=20, classes=2, seed=0)
        config: dict[str, Any] = {"source": str(tmp_path / "photos"), "output": str(shards)}
        config["format"] = ("tfrecord", "recordio")
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        objects = MemoryS3()
        objects.fill("bucket", shards)
        with signed_in(), FaultProxy(objects.answer) as proxy:
            values = configs.values(loaders=loaders("raw", data=["shards@disk", "files@disk"]))
            values["data"] = {
                "shards": "s3://bucket",
                "store": {"endpoint_url": proxy.url},
                "folder": str(tmp_path / "data"),
            }
            done = measured(values, tmp_path / "run")
            assert done.exit_code == 0, done.counts
            paths = "\n".join(request.path for request in proxy.requests)
        copied = [path for path in (tmp_path / "data").glob("copy-*") if path.is_dir()]
        assert len(copied) == 1
        assert (copied[0] / "tfrecord").is_dir()
        assert not (copied[0] / "recordio").exists()
        assert "/tfrecord/train-00000" in paths
        assert "/recordio/train-00000" not in paths

    def test_an_own_server_holds_copies(self, configs: Configs, tmp_path: Path) -> None:
        """A server is started for the run, with credentials of its own."""
        values = configs.values(loaders=loaders("raw", data=["shards@s3", "files@s3"]))
        done = measured(values, tmp_path / "run")
        assert [trial.status for trial in done.result.trials] == ["done", "done"], done.counts
        assert {t.cold.label for t in done.result.trials if t.cold} == {"server cache unknown"}


class TestTraining:
    """Training loops on an emulated device."""

    def test_a_paced_loop_end_to_end(self, configs: Configs, tmp_path: Path) -> None:
        """Every input is measured with its steps, and the verdict is about the loop."""
        group = {
            "group": "paced & raw",
            "consumer": "paced",
            "images_per_s": 2000,
            "loader": "raw",
            "batch_size": 4,
            "workers": 1,
            "prefetch": 1,
            "steps": 8,
        }
        done = measured(configs.values(training=[group], repeats=1), tmp_path / "run")
        assert [t.status for t in done.result.trials] == ["done"] * 3, done.counts
        (summary,) = done.result.summary["training"]
        assert summary["group"] == "paced & raw"
        assert summary["emulated"] is True
        assert summary["au_ceiling"] is not None
        assert "the emulated device can consume" in done.result.summary["verdict"]
        series = pd.read_parquet(tmp_path / "run" / "series.parquet")
        assert set(series["trial"]) == {trial.id for trial in done.result.trials}
        columns = ["trial", "step", "step_end_s", "wait_s", "compute_s", "time_s", "epoch"]
        assert list(series.columns) == columns
        # 40 images are too few for a steady state, so that at least three whole epochs count.
        steps = series.groupby("trial").size()
        resident = [t.id for t in done.result.trials if t.params["input"] == "synthetic"]
        assert [steps[trial_id] for trial_id in resident] == [8]
        epochs = series.groupby(["trial", "epoch"]).size()
        assert len(epochs) == 2 * 3
        assert set(epochs) == {10}
        assert "paced &amp; raw" in (tmp_path / "run" / "report.html").read_text()

    def test_too_few_images_fail_with_what_to_do(self, configs: Configs, tmp_path: Path) -> None:
        """The reason says how to get a full batch if there are fewer images."""
        group = {"consumer": "paced", "images_per_s": 2000, "loader": "raw", "batch_size": 64}
        done = measured(configs.values(training=[group], loaders=NULL), tmp_path / "run")
        reasons = {trial.reason for trial in done.result.trials if trial.status == "failed"}
        assert len(reasons) == 1
        assert "use more images, more shards, a smaller batch_size or" in reasons.pop()


def test_targets_are_described_where_they_are(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``~`` is the home as for trials, and a target may be called ``data``."""
    monkeypatch.setenv("HOME", "/proc/self")
    disk = {"targets": [{"label": "home", "path": "~"}, {"label": "data", "path": "/proc"}]}
    config = BenchConfig.model_validate(configs.values(disk=disk))
    begun = run.new_result(config, trials(config))
    systems = {name: t["file_system"] for name, t in begun.environment["targets"].items()}
    assert systems == {"home": "proc", "data": "proc"}


def test_a_clock_that_is_set_back_breaks_no_duration(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the clock goes back an hour at every look, durations are still right."""
    hours = iter(range(1000, 0, -1))
    monkeypatch.setattr("iobench.runner.trial_runner.time.time", lambda: next(hours) * 3600.0)
    values = configs.values(loaders=loaders("null", "mock"))
    trial, other = measured(values, tmp_path / "run").result.trials
    assert abs(other.started_s - trial.started_s) >= 3600
    assert 0 < trial.seconds < 600
    assert 0 < other.seconds < 600
    assert trial.metrics["samples_per_s"] > 0


def test_stores_are_described_as_their_endpoints_are(
    configs: Configs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stores are the run's own server, one with an endpoint, and Amazon's by default."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    options = {"endpoint_url": "http://store-of-jane:9000"}
    targets = [
        {"label": "own", "uri": "local"},
        {"label": "lab", "uri": "s3://bucket-of-jane", "store": options},
        {"label": "cloud", "uri": "s3://bucket-of-jane/prefix"},
    ]
    grid = loaders("raw", data="shards@s3")
    values = configs.values(object_store={"targets": targets}, loaders=grid)
    config = BenchConfig.model_validate(values)
    environment = run.new_result(config, trials(config)).environment["stores"]
    kinds = {label: store["kind"] for label, store in environment.items()}
    assert kinds == {
        "data": "own-server",
        "own": "own-server",
        "lab": "s3-compatible",
        "cloud": "aws-s3",
    }
    assert "jane" not in json.dumps(environment)


def test_data_that_lie_on_a_store_are_described_where_they_lie(
    configs: Configs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store of the data is described, and not the one for copies."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    values = configs.values(loaders=loaders("raw", data="shards@s3"))
    values["data"] = {"shards": "s3://bucket-of-jane/out"}
    config = BenchConfig.model_validate(values)
    environment = run.new_result(config, trials(config)).environment["stores"]
    assert environment["data"]["kind"] == "aws-s3"
    assert "jane" not in json.dumps(environment)


def test_nobody_is_named_in_a_whole_result(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a run have no credentials, users or hosts of the environment.

    The config is kept as it was given, so that the run can be repeated.
    """
    planted = {
        "USER": "jane-planted",
        "LOGNAME": "jane-planted",
        "HOSTNAME": "host-planted",
        "AWS_ACCESS_KEY_ID": "AKIAPLANTED",
        "AWS_SECRET_ACCESS_KEY": "secret-planted",
        "AWS_SESSION_TOKEN": "token-planted",
        "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/planted",
        "HTTPS_PROXY": "http://jane-planted:secret-planted@proxy-planted:1",
    }
    for name, value in planted.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "run"
    disk = warm_disk(tmp_path, operations="read")
    measured(configs.values(disk=disk, loaders=NULL), folder)
    content = json.loads((folder / "result.json").read_bytes())
    del content["config"]
    assert content["environment"]["targets"]["here"]["kind"]
    own = {str(Path.home()), socket.gethostname(), str(tmp_path)} - {"/"}
    text = json.dumps(content)
    assert [name for name in planted.values() if name in text] == []
    # Only separate words are compared: a host's name may also be a part of another word.
    assert not own & set(re.split(r"[\s\",:;()\[\]{}]+", text))
    page = (folder / "report.html").read_text()
    assert [name for name in planted.values() if name in page] == []


def test_environment_is_kept_without_names(mixed: Mixed) -> None:
    """The result has the environment on which its figures depend."""
    content = json.loads((mixed.run.folder / "result.json").read_bytes())
    assert content["environment"]["targets"]["data"]["file_system"] != "unknown"
    assert content["environment"]["memory_bytes"] > 0
    assert content["config"]["name"] == "mixed"


class TestDownloads:
    """Trials with access ``file`` remove their copy, however they end."""

    def values(self, configs: Configs, name: str = "raw", **settings: Any) -> dict[str, Any]:
        """Return a config whose loader reads a copy of data on the run's own S3 server."""
        changes = {"data": "shards@s3", "access": "file", "batch_size": 4, **settings}
        return configs.values(loaders=loaders(name, **changes))

    def test_the_copy_is_gone_when_the_trial_is_done(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """The copy is removed, and the report has the table of access modes."""
        done = measured(self.values(configs, epochs=2), tmp_path / "run")
        (trial,) = done.result.trials
        assert trial.status == "done", trial.reason
        assert trial.metrics["disk_needed_bytes"] >= trial.metrics["data_bytes"]
        assert not (tmp_path / "run" / ".scratch").exists()
        assert "Access modes" in (tmp_path / "run" / "report.html").read_text()

    @pytest.mark.parametrize(
        ("name", "message"), [("copied", "of no use"), ("copiedkilled", "killed")]
    )
    def test_the_copy_is_gone_when_the_trial_has_failed(
        self, third_party: ThirdParty, configs: Configs, tmp_path: Path, name: str, message: str
    ) -> None:
        """The copy is removed after an error and after a kill."""
        done = measured(self.values(configs, f"odd-{name}"), tmp_path / "run")
        (trial,) = done.result.trials
        assert trial.status == "failed"
        assert message in trial.reason
        copy = Path((third_party.folder / "copied").read_text())
        assert copy.parts[-2:] == (".scratch", "download")
        assert not (tmp_path / "run" / ".scratch").exists()

    def test_the_copy_is_gone_after_an_interrupt(
        self,
        configs: Configs,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Ctrl-C while the trial reads its copy ends the run and removes the copy."""

        def interrupted(self: Lines, done: float, unit: str) -> None:
            assert (tmp_path / "run" / ".scratch" / "download" / "labels.json").exists()
            raise KeyboardInterrupt

        monkeypatch.setattr(Lines, "progress", interrupted)
        with pytest.raises(KeyboardInterrupt):
            measured(self.values(configs, seconds=60), tmp_path / "run")
        assert (tmp_path / "run" / "report.html").exists()
        assert not (tmp_path / "run" / ".scratch").exists()
