"""A config into a result: whatever single trials do, the rest goes on and the report comes."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dataprep.errors import ConfigError
from iobench import run
from iobench.config import BenchConfig
from iobench.display import Lines
from iobench.errors import NothingRan, RunConflict
from iobench.rundir import read
from iobench.s3_server import MotoServer
from iobench.trial import Trial, TrialSpec
from tests.iobench.small_runs import Configs, ThirdParty, loaders

NULL = loaders("null")


def measured(
    values: Mapping[str, Any], folder: Path, stream: io.StringIO | None = None, **options: bool
) -> run.Run:
    """Run a config, in this process but for its trials."""
    display = Lines(stream or io.StringIO())
    return run.run(BenchConfig.model_validate(values), folder, display, **options)


def by_loader(trials: Any) -> dict[str, Trial]:
    """Trials by the loader that they tried."""
    return {trial.params["loader"]: trial for trial in trials}


class Mixed:
    """One run of all that may come of a trial."""

    def __init__(self, folder: Path, values: Mapping[str, Any]) -> None:
        stream = io.StringIO()
        self.run = measured(values, folder, stream)
        self.said = stream.getvalue()
        self.trials = by_loader(self.run.result.trials)
        self.page = (folder / "report.html").read_text()


@pytest.fixture(scope="module")
def mixed(
    third_party: ThirdParty, tmp_path_factory: pytest.TempPathFactory, small_data: dict[str, Any]
) -> Mixed:
    """Loaders that raise, die, yield nothing, hang, are missing; and between them, some that do."""
    names = ("odd-raising", "odd-steady", "odd-killed", "odd-empty", "odd-missing", "odd-hanging")
    grids = loaders(*names, "raw", "null", "mock", "torch-folder")
    values = {"name": "mixed", "repeats": 1, "data": small_data, "loaders": grids}
    folder = tmp_path_factory.mktemp("mixed") / "run"
    return Mixed(folder, {**values, "trial_timeout_s": 8})


class TestMixed:
    def test_each_trial_has_its_own_end(self, mixed: Mixed) -> None:
        """What one does is nothing to the others."""
        done = {name for name, trial in mixed.trials.items() if trial.status == "done"}
        failed = {name: t.reason for name, t in mixed.trials.items() if t.status == "failed"}
        assert done == {"odd-steady", "raw", "null", "mock"}
        assert failed == {
            "odd-raising": "ValueError: shard 7 is broken \x1b[2J\udcff",
            "odd-killed": "killed by SIGKILL (out of memory?): it said nothing",
            "odd-empty": "the loader gave no batch",
            "odd-hanging": "not done after 8 s (trial_timeout_s): killed",
        }

    def test_what_is_missing_is_skipped(self, mixed: Mixed) -> None:
        """With what would bring it; data of another form is missing, too."""
        skipped = {name: t.reason for name, t in mixed.trials.items() if t.status == "skipped"}
        assert skipped == {
            "odd-missing": "oddlib is not installed: pip install 'odd-loaders[oddlib]'",
            "torch-folder": "this loader reads files; these data are shards",
        }

    def test_a_failed_trial_is_exit_code_1(self, mixed: Mixed) -> None:
        """Though others are done."""
        assert mixed.run.exit_code == 1

    def test_everything_is_saved(self, mixed: Mixed) -> None:
        """The result, its config, a row a trial, and the report."""
        folder = mixed.run.folder
        assert read(folder) == mixed.run.result
        assert {path.name for path in folder.iterdir()} == {
            *("config.yaml", "result.json", "trials.parquet", "series.parquet", "report.html")
        }
        rows = pd.read_parquet(folder / "trials.parquet")
        assert list(rows["id"]) == [trial.id for trial in mixed.run.result.trials]
        samples = [trial.metrics.get("samples") for trial in mixed.run.result.trials]
        assert [None if pd.isna(n) else n for n in rows["metrics.samples"]] == samples

    def test_the_report_lists_every_reason(self, mixed: Mixed) -> None:
        """And the verdict."""
        assert str(mixed.run.result.summary["verdict"]) in mixed.page
        for reason in ("oddlib is not installed", "killed by SIGKILL", "the loader gave no batch"):
            assert reason in mixed.page

    def test_the_terminal_tells_each_end(self, mixed: Mixed) -> None:
        """A line a trial, and nothing that a terminal would obey."""
        assert mixed.said.count("/10  ") == 10
        assert "10 trials" in mixed.said
        assert "failed loader odd-empty" in mixed.said
        assert "\x1b" not in mixed.said
        assert "\x1b" not in mixed.run.counts.replace("\n", "")

    def test_the_counts_are_the_last_word(self, mixed: Mixed) -> None:
        """How many of each, with reasons."""
        lines = mixed.run.counts.splitlines()
        assert lines[0] == "4 trials done"
        assert "1 failed: the loader gave no batch" in lines
        assert len(lines) == 1 + 2 + 4

    def test_what_was_read_has_a_label(self, mixed: Mixed) -> None:
        """A trial with data says what the cache held; one without has none."""
        raw, null = mixed.trials["raw"], mixed.trials["null"]
        assert raw.cold is not None
        assert raw.cold.asked == "warm"
        assert raw.metrics["mb_per_s"] > 0
        assert null.cold is None
        assert "mb_per_s" not in null.metrics

    def test_drawing_again_gives_the_same_bytes(self, mixed: Mixed) -> None:
        """From what is saved, without measuring."""
        from iobench.rundir import redraw

        page = mixed.run.folder / "report.html"
        before = page.read_bytes()
        page.write_bytes(b"")
        assert redraw(mixed.run.folder) == page
        assert page.read_bytes() == before


class Watching(Lines):
    """Looks at what is saved whenever a trial begins."""

    def __init__(self, folder: Path) -> None:
        super().__init__(io.StringIO())
        self.folder = folder
        self.saved: list[int] = []

    def begin(self, spec: TrialSpec) -> None:
        super().begin(spec)
        self.saved.append(len(read(self.folder).trials))


def test_every_trial_is_saved_when_it_ends(configs: Configs, tmp_path: Path) -> None:
    """When the next begins, those before it can be read."""
    watching = Watching(tmp_path / "run")
    config = BenchConfig.model_validate(configs.values(loaders=NULL, repeats=3))
    run.run(config, tmp_path / "run", watching)
    assert watching.saved == [0, 1, 2]


def test_nothing_asked_is_nothing_done(configs: Configs, tmp_path: Path) -> None:
    """It is said what could be asked, and no folder is made."""
    with pytest.raises(NothingRan, match="give disk, object_store, loaders, training"):
        measured(configs.values(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_skipped_alone_is_nothing_run(
    third_party: ThirdParty, configs: Configs, tmp_path: Path
) -> None:
    """The reason is said, there is a report, and a missing framework is looked for once."""
    folder = tmp_path / "run"
    with pytest.raises(NothingRan, match="no trial could run: oddlib is not installed") as caught:
        measured(configs.values(loaders=loaders("odd-missing"), repeats=3), folder)
    assert caught.value.exit_code == 2
    assert "Nothing could be measured" in (folder / "report.html").read_text()
    trials = read(folder).trials
    assert [trial.status for trial in trials] == ["skipped"] * 3
    assert [trial.seconds > 0 for trial in trials] == [True, False, False]


def test_skipped_beside_done_is_success(
    third_party: ThirdParty, configs: Configs, tmp_path: Path
) -> None:
    """What is not there is no failure."""
    done = measured(configs.values(loaders=loaders("odd-missing", "null")), tmp_path / "run")
    assert done.exit_code == 0


class TestResume:
    @pytest.fixture
    def values(self, third_party: ThirdParty, configs: Configs) -> dict[str, Any]:
        """One loader that leaves a mark, and one that fails until it is mended."""
        for mark in ("count", "mended"):
            (third_party.folder / mark).unlink(missing_ok=True)
        return configs.values(loaders=loaders("odd-counted", "odd-flaky"))

    def test_what_is_done_is_kept_and_what_failed_is_tried_again(
        self, third_party: ThirdParty, values: dict[str, Any], tmp_path: Path
    ) -> None:
        """Nothing is measured twice, and no trace of the failure is left."""
        first = measured(values, tmp_path / "run")
        assert first.exit_code == 1
        third_party.mark("mended")
        stream = io.StringIO()
        second = measured(values, tmp_path / "run", stream, resume=True)
        assert second.exit_code == 0
        assert (third_party.folder / "count").read_text() == "x"
        assert "2 trials, 1 of them measured before" in stream.getvalue()
        assert second.result.started == first.result.started
        trials = by_loader(read(tmp_path / "run").trials)
        assert trials["odd-counted"] == by_loader(first.result.trials)["odd-counted"]
        assert {trial.status for trial in trials.values()} == {"done"}
        assert len(second.result.trials) == 2
        again = measured(values, tmp_path / "run", resume=True)
        assert again.result.trials == second.result.trials

    def test_a_run_is_not_overwritten(
        self, third_party: ThirdParty, values: dict[str, Any], configs: Configs, tmp_path: Path
    ) -> None:
        """Neither without --resume, nor by another config with it; nothing changes."""
        folder = tmp_path / "run"
        values = {**values, "loaders": NULL}
        measured(values, folder)
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        with pytest.raises(RunConflict, match="--resume goes on with it") as caught:
            measured(values, folder)
        assert caught.value.exit_code == 2
        other = {**values, "repeats": 7, "data": {**values["data"], "images": 41}}
        with pytest.raises(RunConflict, match=r"another config \(data\.images, repeats differ\)"):
            measured(other, folder, resume=True)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_failed_alone_is_a_failure(
    third_party: ThirdParty, configs: Configs, tmp_path: Path
) -> None:
    """It ran, and has no figure: that is not the same as nothing to run."""
    done = measured(configs.values(loaders=loaders("odd-raising")), tmp_path / "run")
    assert done.exit_code == 1
    assert done.result.summary["verdict"] == "Nothing could be measured."


class TestBadPlaces:
    """What trials need cannot be had; what needs nothing is measured all the same."""

    def test_a_folder_that_may_not_be_written(self, configs: Configs) -> None:
        """It is there, and refuses: the request is wrong, nothing is measured."""
        with pytest.raises(ConfigError, match="cannot write in /proc/self") as caught:
            measured(configs.values(loaders=NULL), Path("/proc/self"))
        assert caught.value.exit_code == 2

    def test_an_error_of_a_library_is_one_trials_own(
        self, configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever making the data raises, what needs none is measured."""

        def broken(self: object, name: str) -> None:
            raise LookupError(f"nobody knows {name}")

        monkeypatch.setattr("iobench.data.making.Maker.place", broken)
        done = measured(configs.values(loaders=loaders("raw", "null")), tmp_path / "run")
        assert done.exit_code == 1
        trials = by_loader(done.result.trials)
        assert trials["raw"].reason == "LookupError: nobody knows shards@disk"
        assert trials["null"].status == "done"

    def test_data_that_cannot_be_made(self, configs: Configs, tmp_path: Path) -> None:
        """Their folder is a file: each trial of them fails with the reason, once tried."""
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
        """The place is named."""
        values = configs.values(loaders=loaders("raw", "null"))
        values["data"] = {**values["data"], "shards": str(tmp_path / "nowhere")}
        done = measured(values, tmp_path / "run")
        assert done.exit_code == 1
        raw = by_loader(done.result.trials)["raw"]
        assert raw.status == "failed"
        assert "nowhere" in raw.reason

    def test_a_bucket_that_is_not_there(
        self, configs: Configs, tmp_path: Path, s3_server: MotoServer, bucket: str
    ) -> None:
        """Copies cannot go there: failed, with the bucket's name."""
        values = configs.values(loaders=loaders("raw", data=["shards@s3"]) + NULL)
        values["data"] = {
            **values["data"],
            "bucket": {
                "uri": f"s3://{bucket}-missing/x",
                "store": {"endpoint_url": s3_server.url, "max_attempts": 1},
            },
        }
        done = measured(values, tmp_path / "run")
        assert done.exit_code == 1
        trials = by_loader(done.result.trials)
        assert (trials["raw"].status, trials["null"].status) == ("failed", "done")
        assert f"{bucket}-missing" in trials["raw"].reason

    def test_an_own_server_holds_copies(self, configs: Configs, tmp_path: Path) -> None:
        """``local``: started for the run, with credentials of its own, gone with it."""
        values = configs.values(loaders=loaders("raw", data=["shards@s3", "files@s3"]))
        done = measured(values, tmp_path / "run")
        assert [trial.status for trial in done.result.trials] == ["done", "done"], done.counts
        assert {t.cold.label for t in done.result.trials if t.cold} == {"server cache unknown"}

    @pytest.mark.parametrize("name", ["config.yaml", "result.json"])
    def test_a_full_disk_under_the_run_is_said(
        self, configs: Configs, tmp_path: Path, name: str
    ) -> None:
        """The folder's disk is full: an error of one line that names the file."""
        from dataprep.errors import StoreError

        folder = tmp_path / "run"
        folder.mkdir()
        (folder / f"{name}.partial").symlink_to("/dev/full")
        with pytest.raises(StoreError, match=f"{name}.*No space left on device"):
            measured(configs.values(loaders=NULL), folder)


class TestTraining:
    def test_a_paced_loop_end_to_end(self, configs: Configs, tmp_path: Path) -> None:
        """Every input of a group is measured, its steps kept, and the verdict is of it."""
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
        (found,) = done.result.summary["training"]
        assert found["group"] == "paced & raw"
        assert found["emulated"] is True
        assert found["au_ceiling"] is not None
        assert done.result.summary["verdict"].startswith("The training loop, on an emulated device")
        series = pd.read_parquet(tmp_path / "run" / "series.parquet")
        assert set(series["trial"]) == {trial.id for trial in done.result.trials}
        assert list(series.columns) == ["trial", "step", "step_end_s", "wait_s", "compute_s"]
        assert set(series.groupby("trial").size()) == {6}
        assert "paced &amp; raw" in (tmp_path / "run" / "report.html").read_text()

    def test_too_few_images_fail_with_what_to_do(self, configs: Configs, tmp_path: Path) -> None:
        """40 images in batches of 40 have no step that counts."""
        group = {"consumer": "paced", "images_per_s": 2000, "loader": "raw", "batch_size": 40}
        done = measured(configs.values(training=[group], loaders=NULL), tmp_path / "run")
        reasons = {trial.reason for trial in done.result.trials if trial.status == "failed"}
        assert len(reasons) == 1
        assert "give more images, a smaller batch_size or" in reasons.pop()


def test_targets_are_described_where_they_are(
    configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``~`` is the home, as it is for trials; a target may be called ``data``."""
    monkeypatch.setenv("HOME", "/proc/self")
    disk = {"targets": [{"label": "home", "path": "~"}, {"label": "data", "path": "/proc"}]}
    begun = run._begun(BenchConfig.model_validate(configs.values(disk=disk)))
    systems = {name: t["file_system"] for name, t in begun.environment["targets"].items()}
    assert systems == {"home": "proc", "data": "proc"}


def test_environment_is_kept_without_names(mixed: Mixed) -> None:
    """What the figures depend on stands beside them."""
    content = json.loads((mixed.run.folder / "result.json").read_bytes())
    assert content["environment"]["targets"]["data"]["file_system"] != "unknown"
    assert content["environment"]["memory_bytes"] > 0
    assert content["config"]["name"] == "mixed"
