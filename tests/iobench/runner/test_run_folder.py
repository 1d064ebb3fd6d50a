"""The folder of a run: each file is whole or as it was before, whatever stops the run."""

from __future__ import annotations

import copy
import errno
import fcntl
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import ConfigError, SchemaTooNew, StoreError
from iobench.analysis.analyse import summarised
from iobench.config.benchmark import BenchConfig, load
from iobench.errors import ResultError, RunConflict
from iobench.results.result import LOG, STEADY_STATE, HostFacts, Result, run_line, trial_line
from iobench.results.trial import Trial
from iobench.runner.run_differences import differing_keys
from iobench.runner.run_folder import (
    add_line,
    begin_log,
    default_folder,
    open_run,
    read,
    read_tables,
    redraw,
    run_lock,
    scratch_folder,
    write_results,
)
from tests.strategies import json_values

CONFIG = BenchConfig(name="small")
RUN = "20261121T120000Z-0123abcd"
SERIES = {"step_end_s": [1.0, 2.0], "wait_s": [0.5, 0.5], "compute_s": [0.25, 0.25]}


def new_run(config: BenchConfig = CONFIG) -> Result:
    """Return the result of a run without trials."""
    content = config.model_dump(mode="json")
    return Result("small", "2026-11-21T12:00:00+00:00", {}, content, run_id=RUN, rates=STEADY_STATE)


def trial(name: str = "a", **metrics: Any) -> Trial:
    """Return a completed trial of a loader."""
    params = {"loader": name, "data": "", "cache": "warm", "workers": 0, "batch_size": 1}
    metrics = {"samples_per_s": 5.0, **metrics}
    return Trial(f"loader/{name}/0", "loader", params, 0, "done", metrics)


@pytest.fixture
def opened(tmp_path: Path) -> Path:
    """Return the folder of a run without trials."""
    directory = tmp_path / "a" / "b"
    directory.mkdir(parents=True)
    assert open_run(directory, CONFIG, new_run().environment, resume=False) is None
    return directory


class TestOpen:
    """Opening the folder of a new or of a resumed run."""

    def test_a_new_run_keeps_its_config(self, opened: Path) -> None:
        """The stored file is the config as ``load`` reads it."""
        assert load(opened / "config.yaml", {}) == CONFIG

    def test_resume_gives_the_result(self, opened: Path) -> None:
        """A resumed run gets the result that was saved."""
        saved = new_run().with_trial(trial())
        begin_log(opened, saved)
        assert open_run(opened, CONFIG, new_run().environment, resume=True) == saved

    def test_rates_of_the_former_rule_are_not_continued(self, opened: Path) -> None:
        """A run of an earlier version cannot be resumed, since its rates mean something else."""
        begin_log(opened, replace(new_run().with_trial(trial()), rates=""))
        with pytest.raises(RunConflict, match="rates of an earlier version"):
            open_run(opened, CONFIG, new_run().environment, resume=True)

    def test_a_damaged_result_is_refused_before_anything_is_measured(self, opened: Path) -> None:
        """A damaged trial is an error at once, since the summary would fail hours later."""
        saved = new_run().with_trial(replace(trial(), params={**trial().params, "workers": [[]]}))
        begin_log(opened, saved)
        with pytest.raises(ResultError, match=re.escape(str(opened))):
            open_run(opened, CONFIG, new_run().environment, resume=True)

    def test_a_damaged_environment_is_no_crash(self, opened: Path) -> None:
        """A damaged environment is an error that names the folder."""
        begin_log(opened, replace(new_run(), environment={"targets": ["x"]}))
        with pytest.raises(ResultError, match=re.escape(str(opened))):
            open_run(opened, CONFIG, {"targets": {}}, resume=True)

    def test_conflicts_name_what_differs(self, opened: Path) -> None:
        """The error has the dotted keys that differ, with and without ``--resume``."""
        begin_log(opened, new_run())
        other = load(None, {"repeats": 2, "data.images": 50})
        for resume in (True, False):
            with pytest.raises(RunConflict, match=r"data\.images, name, repeats differ"):
                open_run(opened, other, new_run().environment, resume=resume)

    def test_a_run_is_continued_on_as_many_hosts(self, opened: Path) -> None:
        """A run is resumed on the same number of hosts only."""
        begin_log(opened, replace(new_run(), hosts=[HostFacts(0), HostFacts(1), HostFacts(2)]))
        with pytest.raises(RunConflict, match="holds a run on 3 hosts, but this run is on 1"):
            open_run(opened, CONFIG, new_run().environment, resume=True)
        assert open_run(opened, CONFIG, new_run().environment, resume=True, hosts=3) is not None

    def test_a_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        """A folder that cannot be made is a wrong request."""
        (tmp_path / "file").touch()
        with pytest.raises(ConfigError, match="cannot write in"):
            run_lock(tmp_path / "file" / "run").__enter__()


class TestLog:
    """Each trial is logged at once, so that it survives what kills the run."""

    def test_a_stopped_run_is_what_was_logged(self, opened: Path) -> None:
        """The log has trials, steps and readings; resuming drops those that are repeated."""
        readings: dict[str, list[float | None]] = {"time_s": [0, 0.5], "cpu.x": [None, math.nan]}
        begin_log(opened, new_run())
        add_line(opened, trial_line(trial("a"), SERIES, readings))
        add_line(opened, trial_line(trial("b"), SERIES, {}))
        assert read(opened) == replace(new_run(), trials=(trial("a"), trial("b")))
        series, samples = read_tables(opened)
        assert list(series["trial"]) == ["loader/a/0"] * 2 + ["loader/b/0"] * 2
        assert list(series["step"]) == [0, 1, 0, 1]
        assert list(series["wait_s"]) == [0.5] * 4
        assert list(samples["time_s"]) == [0.0, 0.5]
        begin_log(opened, new_run().with_trial(trial("b")))
        assert read(opened).trials == (trial("b"),)
        assert list(read_tables(opened)[0]["step"]) == [0, 1]

    def test_a_finished_run_goes_on(self, opened: Path) -> None:
        """A finished run is resumed with its tables, also one of a version without a log."""
        begin_log(opened, new_run())
        add_line(opened, trial_line(trial(), SERIES, {"time_s": [0.5]}))
        write_results(opened, new_run().with_trial(trial()))
        tables = read_tables(opened)
        (opened / LOG).unlink()
        begin_log(opened, read(opened))
        assert not (opened / "result.json").exists()
        for before, after in zip(tables, read_tables(opened), strict=True):
            pd.testing.assert_frame_equal(before, after)

    def test_a_trial_counts_as_it_came_out_last(self, opened: Path) -> None:
        """A trial that failed and was then done counts as done."""
        begin_log(opened, new_run())
        for status in ("failed", "done"):
            add_line(opened, trial_line(replace(trial(), status=status), SERIES, {}))
        assert [trial.status for trial in read(opened).trials] == ["done"]
        assert len(read_tables(opened)[0]) == 2

    def test_half_a_line_is_not_there(self, opened: Path) -> None:
        """A line that a kill cut off is ignored, and a resumed run writes after the whole lines."""
        begin_log(opened, new_run())
        add_line(opened, trial_line(trial("first"), SERIES, {}))
        add_line(opened, trial_line(trial("half"), SERIES, {})[:-20])
        assert [trial.id for trial in read(opened).trials] == ["loader/first/0"]
        begin_log(opened, read(opened))
        add_line(opened, trial_line(trial("next"), SERIES, {}))
        assert [trial.id for trial in read(opened).trials][1:] == ["loader/next/0"]

    def test_the_run_itself_may_change(self, opened: Path) -> None:
        """The log may hold facts about the data that are found while the run lasts."""
        begin_log(opened, new_run())
        add_line(opened, trial_line(trial(), {}, {}))
        changed = replace(new_run(), references={"fingerprints": {"shards@disk": "x"}})
        add_line(opened, run_line(changed))
        assert read(opened) == changed.with_trial(trial())

    @pytest.mark.parametrize("log", [b"", b"{}\n", b"[]\n", b"half\n", b'{"trial": 1}\n'])
    def test_no_log(self, opened: Path, log: bytes) -> None:
        """The error names a file that is not a log."""
        (opened / LOG).write_bytes(log)
        with pytest.raises(ResultError, match=r"trials\.jsonl: not the (log|result) of a run"):
            read(opened)

    def test_a_full_disk(self, opened: Path) -> None:
        """The error says which file could not be written."""
        (opened / LOG).symlink_to("/dev/full")
        with pytest.raises(StoreError, match=r"trials\.jsonl: No space left on device"):
            add_line(opened, trial_line(trial(), SERIES, {}))

    @pytest.mark.parametrize(
        "name", ["result.json", "series.parquet", "samples.parquet", "spans.parquet"]
    )
    def test_files_are_whole_or_as_they_were(self, opened: Path, name: str) -> None:
        """A full disk leaves what was saved before, and the error says which file failed."""
        begin_log(opened, new_run())
        add_line(opened, trial_line(trial(), SERIES, {"time_s": [0.0]}))
        write_results(opened, new_run().with_trial(trial()))
        before = (opened / name).read_bytes()
        (opened / f"{name}.partial").symlink_to("/dev/full")
        with pytest.raises(StoreError, match=f"{name}: No space left on device"):
            write_results(opened, new_run())
        assert (opened / name).read_bytes() == before


TARGET: dict[str, Any] = {
    "file_system": "ext4",
    "kind": "nvme",
    "device": {"model": "SSD", "queue": {"read_ahead_kb": 128}},
    "total_bytes": 10,
    "free_bytes": 9,
}
HERE: dict[str, Any] = {
    "processor": "fast",
    "machine": {"vendor": "Amazon EC2", "instance_type": "m5.large"},
    "gpus": [{"name": "NVIDIA H200", "pcie.link.gen.max": "5", "pcie.link.gen.current": "5"}],
    "disks": [{"kind": "nvme", "count": 2}],
    "libraries": {"numpy": "2.4.1"},
    "targets": {"here": TARGET},
}


def changed(changes: dict[str, Any], base: Any = HERE) -> dict[str, Any]:
    """Return a copy with other values at these paths; ``...`` removes a key."""
    environment: dict[str, Any] = copy.deepcopy(base)
    for path, value in changes.items():
        *above, last = path.split("/")
        inner: Any = environment
        for key in above:
            inner = inner[int(key)] if isinstance(inner, list) else inner[key]
        if value is ...:
            del inner[last]
        else:
            inner[last] = value
    return environment


class TestAnotherMachine:
    """Resuming a run on another machine."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"targets/here/free_bytes": 1},
            {"targets/here/total_bytes": 99, "disks": []},
            {"gpus/0/pcie.link.gen.current": "1"},
            {"machine/instance_type": ...},
            {"targets/here/device": ..., "targets/here/kind": ..., "machine": ...},
            {"governor": "powersave", "stores": {"s3": {"kind": "aws-s3"}}},
        ],
        ids=["room", "other-disks", "resting-gpu", "no-answer", "older-version", "newer-version"],
    )
    def test_changing_or_missing_facts_are_no_other_machine(
        self, opened: Path, changes: dict[str, Any]
    ) -> None:
        """Changing and missing facts do not make it another machine, such as free space."""
        begin_log(opened, replace(new_run(), environment=HERE))
        assert open_run(opened, CONFIG, changed(changes), resume=True) is not None
        begin_log(opened, replace(new_run(), environment=changed(changes)))
        assert open_run(opened, CONFIG, HERE, resume=True) is not None

    @pytest.mark.parametrize(
        ("changes", "key"),
        [
            ({"processor": "slow"}, "processor"),
            ({"machine/instance_type": "m5.xlarge"}, "machine.instance_type"),
            ({"gpus": []}, "gpus"),
            ({"libraries/torch": "2.13.0"}, "libraries.torch"),
            ({"targets/here/file_system": "tmpfs"}, "targets.here.file_system"),
            ({"targets/here/kind": "ebs"}, "targets.here.kind"),
            (
                {"targets/here/device/queue/read_ahead_kb": 8192},
                "targets.here.device.queue.read_ahead_kb",
            ),
        ],
    )
    def test_figures_of_two_machines_have_no_median(
        self, opened: Path, changes: dict[str, Any], key: str
    ) -> None:
        """The run is refused on another machine, and the error names the difference."""
        begin_log(opened, replace(new_run(), environment=HERE))
        with pytest.raises(RunConflict, match=rf"\({re.escape(key)} differ\)"):
            open_run(opened, CONFIG, changed(changes), resume=True)


class TestFinish:
    """The files that are written at the end of a run."""

    def test_rows_hold_what_columns_cannot(self, opened: Path) -> None:
        """The table takes lists, mappings, odd names and mixed types."""
        result = new_run()
        first: dict[str, Any]
        first = {"notes": ["a", "b"], "errors": {"503": 2}, "emulated": True, "x": 1}
        second: dict[str, Any] = {"notes": [], "errors": {}, "device": "\udcff", "x": 2.5}
        for number, metrics in enumerate((first, second)):
            result = result.with_trial(replace(trial(**metrics), id=f"t/{number}", reason="\udcff"))
        write_results(opened, result)
        rows = pd.read_parquet(opened / "trials.parquet").set_index("id")
        assert rows.loc["t/0", "metrics.notes"] == "[a, b]"
        assert rows.loc["t/0", "metrics.errors.503"] == 2
        assert rows.loc["t/1", "metrics.device"] == "\\udcff"
        assert list(rows["metrics.x"]) == [1, 2.5]
        assert list(rows["params.loader"]) == ["a", "a"]
        assert read(opened).trials[1].reason == "\udcff"

    def test_a_run_without_a_trial_has_its_files(self, opened: Path) -> None:
        """A run without trials has empty tables and a page."""
        write_results(opened, new_run())
        for name in ("trials", "series"):
            assert len(pd.read_parquet(opened / f"{name}.parquet")) == 0
        assert b"</html>" in (opened / "report.html").read_bytes()

    def test_it_is_drawn_again_as_it_was(self, opened: Path) -> None:
        """The page is drawn from the files alone and does not change the others."""
        result = new_run().with_trial(trial("<script>"))
        begin_log(opened, new_run())
        add_line(opened, trial_line(result.trials[0], SERIES, {}))
        write_results(opened, summarised(result))
        before = {path.name: path.read_bytes() for path in opened.iterdir()}
        (opened / "report.html").unlink()
        redraw(opened)
        assert {path.name: path.read_bytes() for path in opened.iterdir()} == before

    def test_a_run_that_was_killed_has_a_verdict(self, opened: Path) -> None:
        """Drawing the page of a killed run computes its summary."""
        begin_log(opened, new_run().with_trial(trial("raw")))
        redraw(opened)
        assert "Nothing could be measured" not in (opened / "report.html").read_text()
        assert "no verdict" not in (opened / "report.html").read_text()

    def test_half_a_table(self, opened: Path) -> None:
        """A damaged table of a run without a log is an error that names the file."""
        write_results(opened, new_run())
        (opened / "series.parquet").write_bytes(b"PAR1 half")
        with pytest.raises(ResultError, match=r"series\.parquet cannot be read"):
            redraw(opened)

    def test_a_newer_result_is_named_before_a_damaged_table(self, opened: Path) -> None:
        """The error of the result says what to do; that of the table would delete a good file."""
        write_results(opened, new_run())
        content = json.loads((opened / "result.json").read_text())
        (opened / "result.json").write_text(json.dumps({**content, "schema": 99}))
        (opened / "series.parquet").write_bytes(b"PAR1 half")
        with pytest.raises(SchemaTooNew, match="schema 99"):
            redraw(opened)


@pytest.mark.parametrize("function", [read, redraw])
def test_no_run(tmp_path: Path, function: Callable[[Path], object]) -> None:
    """The error names the folder, into which nothing is written."""
    with pytest.raises(ResultError, match="no run in"):
        function(tmp_path / "nowhere")
    with pytest.raises(ResultError, match="no run in"):
        function(tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=30))
def test_default_folder_is_one_plain_name(name: str) -> None:
    """The folder has one plain name below ``reports/`` for any name of a run."""
    folder = default_folder(name)
    assert folder.parts[0] == "reports"
    assert len(folder.parts) == 2
    assert folder.name.isascii()
    assert not folder.name.startswith((".", "-"))


@given(json_values, json_values)
def test_differences_are_found(old: Any, new: Any) -> None:
    """Equal settings have none, and others have at least one."""
    assert differing_keys(old, old) == []
    assert bool(differing_keys(old, new)) == (old != new)


class TestScratch:
    """A folder for what a trial leaves on a disk."""

    def test_it_is_empty_and_then_gone(self, tmp_path: Path) -> None:
        """The folder is empty at its begin even if an earlier process left one."""
        (tmp_path / ".scratch" / "download").mkdir(parents=True)
        with scratch_folder(tmp_path) as folder:
            assert folder.is_absolute()
            assert list(folder.iterdir()) == []
            (folder / "download").mkdir()
            (folder / "download" / "shard").touch()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_it_is_gone_after_a_failure_too(
        self, tmp_path: Path, error: type[BaseException]
    ) -> None:
        """The folder is removed after an error and after Ctrl-C."""

        def fail() -> None:
            with scratch_folder(tmp_path) as folder:
                (folder / "shard").touch()
                raise error

        with pytest.raises(error):
            fail()
        assert list(tmp_path.iterdir()) == []

    def test_a_run_that_was_killed_left_it_and_resume_removes_it(self, tmp_path: Path) -> None:
        """A resumed run removes the scratch folder of the killed one."""
        open_run(tmp_path, CONFIG, {}, resume=False)
        begin_log(tmp_path, new_run())
        (tmp_path / ".scratch").mkdir()
        (tmp_path / ".scratch" / "shard").touch()
        assert open_run(tmp_path, CONFIG, {}, resume=True) is not None
        assert not (tmp_path / ".scratch").exists()

    def test_a_folder_that_cannot_be_made_is_an_error(self, tmp_path: Path) -> None:
        """The error names the folder."""
        (tmp_path / ".scratch").touch()
        with pytest.raises(FileExistsError, match=r"\.scratch"):
            scratch_folder(tmp_path).__enter__()


def test_a_second_is_kept_out_until_the_first_has_ended(tmp_path: Path) -> None:
    """The error has the folder and exit code 2, and no lock file is left."""
    folder = tmp_path / "a" / "run"
    with run_lock(folder):
        with pytest.raises(RunConflict, match=r"another run uses .*/a/run:") as caught:
            run_lock(folder).__enter__()
        with run_lock(tmp_path / "a" / "other"):
            pass  # Another folder belongs to another run.
    assert caught.value.exit_code == 2
    with run_lock(folder):
        assert not list(folder.iterdir())


def test_an_error_within_lets_go(tmp_path: Path) -> None:
    """An interrupt releases the lock, so that the run can be resumed."""
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), run_lock(tmp_path):
            raise KeyboardInterrupt


def test_no_locks_there_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs work without a lock on file systems that have none."""

    def refused(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with run_lock(tmp_path), run_lock(tmp_path):
        pass
