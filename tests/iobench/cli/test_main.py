"""The command line of iobench: exit codes, one-line errors, and interrupted runs."""

from __future__ import annotations

import importlib.util
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner, Result

from dataprep._version import __version__
from iobench import demo
from iobench.analysis.gain_words import result_lines
from iobench.cli.main import app
from iobench.machine.storage import describe_target
from iobench.results.numbers import rough_duration_range
from iobench.runner import progress
from iobench.runner.run_folder import read
from iobench.trials.ladder import RUNGS
from tests.commandline import Finished, Running, files, iobench, wait_until
from tests.iobench.small_runs import Configs, ThirdParty, loaders

pytestmark = pytest.mark.slow

NULL = loaders("null")


def invoked(*arguments: str | Path) -> Result:
    """Run a command of iobench in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, which is the current folder during the test."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


class TestTargets:
    """``iobench targets``."""

    def test_each_path_is_shown_with_its_evidence(self, tmp_path: Path) -> None:
        """Each path has a line with its evidence below it, also if it does not exist yet."""
        done = invoked("targets", tmp_path / "later", "/proc")
        assert done.exit_code == 0, done.output
        lines = done.stdout.splitlines()
        first = describe_target(tmp_path)
        assert lines[0] == f"{tmp_path / 'later'}: {first['name']}"
        assert lines[1] == "    no such file or directory; this is the storage on which it would be"
        assert lines[2].startswith(f"    {first['file_system']}")
        assert sum("no such file" in line for line in lines) == 1
        assert "/proc: unknown" in lines
        assert all(line.startswith(("    ", "/")) for line in lines)

    def test_without_a_path_all_that_may_hold_data(self) -> None:
        """The list has the root, but no file system of the kernel."""
        done = invoked("targets", "--json")
        content = json.loads(done.stdout)["targets"]
        assert "/" in content
        assert not {"/proc", "/sys"} & set(content)
        expected = {"is_there": True, **describe_target(Path("/"))}
        assert content["/"] == {**expected, **room(content["/"])}

    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        """The storage on which the path would be is described; the path is marked as missing."""
        named = str(tmp_path / "later")
        content = json.loads(invoked("targets", named, "--json").stdout)["targets"]
        assert content[named]["is_there"] is False
        assert content[named]["kind"] == describe_target(tmp_path)["kind"]

    def test_names_that_are_no_text(self, tmp_path: Path) -> None:
        """Control characters in names are escaped."""
        done = iobench("targets", tmp_path / "a\x1b[2J")
        assert done.code == 0
        assert done.out.startswith(f"{tmp_path}/a\\x1b[2J: ")


def room(target: dict[str, Any]) -> dict[str, int]:
    """Return the sizes of a target, which may change between two descriptions."""
    return {key: target[key] for key in ("total_bytes", "free_bytes") if key in target}


class TestRun:
    """``iobench run``."""

    def test_it_says_the_verdict_and_where_the_report_is(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """The output is the verdict and the report's path; trials and counts are on stderr."""
        folder = tmp_path / "run"
        done = invoked("run", configs.write(loaders=NULL), "--output", folder)
        assert done.exit_code == 0, done.output
        verdict, report = done.stdout.splitlines()
        assert verdict.startswith("The run has no training loop")
        assert report == str(folder / "report.html")
        assert done.stderr.splitlines()[-1] == "1 trial done"

    def test_its_folder_has_a_name_and_a_time(self, configs: Configs, here: Path) -> None:
        """The default folder is below ``reports/`` and has the run's name and the time."""
        config = configs.write(name="my run/../x", loaders=NULL)
        assert invoked("run", config).exit_code == 0
        (folder,) = (here / "reports").iterdir()
        assert folder.name.startswith("my-run-..-x-20")

    @pytest.mark.parametrize(
        ("names", "code"),
        [
            (("null", "odd-missing"), 0),
            (("null", "odd-raising"), 1),
            (("odd-missing",), 2),
            (("odd-raising",), 1),
        ],
    )
    def test_exit_codes(
        self,
        third_party: ThirdParty,
        configs: Configs,
        tmp_path: Path,
        names: tuple[str, ...],
        code: int,
    ) -> None:
        """The code is 1 if a trial failed, 2 if all were skipped, and otherwise 0."""
        config = configs.write(loaders=loaders(*names))
        done = invoked("run", config, "--output", tmp_path / "run")
        assert done.exit_code == code, done.output
        assert (tmp_path / "run" / "report.html").exists()
        assert ("no trial could run" in done.stderr) == (code == 2)

    @pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is not None, reason="TensorFlow is installed"
    )
    def test_a_missing_framework_is_skipped_with_its_extra(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """Trials without their framework are skipped with the extra's name; the exit code is 0."""
        config = configs.write(loaders=loaders("tf-data", "null"))
        done = invoked("run", config, "--output", tmp_path / "run")
        assert done.exit_code == 0, done.output
        assert "1 skipped: " in done.stderr
        assert "dataprep-iobench[tensorflow]" in done.stderr
        assert "dataprep-iobench[tensorflow]" in (tmp_path / "run" / "report.html").read_text()

    def test_dry_run_lists_the_trials_and_touches_nothing(
        self, configs: Configs, here: Path
    ) -> None:
        """Sums come first, then a line for each kind, or for each trial with ``--verbose``."""
        config = configs.write(loaders=loaders("null", "mock"), repeats=2)
        done = invoked("run", config, "--dry-run", "--output", "out")
        assert done.exit_code == 0
        sums, kind, more = done.stdout.splitlines()
        assert sums.startswith("small: 4 trials to come, about 2.2 s (at most 40 min), no requests")
        assert kind.split()[:6] == ["loader", "4", "2.2", "s", "null,", "mock;"]
        assert more == "Add --verbose for a line for each trial."
        verbose = invoked("run", config, "--dry-run", "--verbose").stdout.splitlines()
        assert verbose[0] == sums
        assert [line.rpartition(" #")[2] for line in verbose[1:]] == list("1122")
        assert all(line.split()[:2] == ["0.6", "s"] for line in verbose[1:])
        assert done.stderr == ""
        assert files(here) == set()


class TestCost:
    """Runs whose requests to Amazon S3 may cost more than the limit."""

    @pytest.fixture
    def dear(self, configs: Configs, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a config with 100,000 PUTs for half a dollar; the machine has no credentials."""
        for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, "/nowhere")
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        store = {
            "targets": [{"label": "s3", "uri": "s3://bucket/x"}],
            "clients": "boto3",
            "operations": "put",
            "object_bytes": 1000,
            "at_object_bytes": 1000,
            "connections": 64,
            "at_connections": 64,
            "seconds": 3600,
            "max_requests": 100_000,
        }
        return configs.write(object_store=store, cost_limit_usd=0.1)

    def test_a_dry_run_says_what_it_costs(self, dear: Path) -> None:
        """The cost is shown whatever the limit is."""
        done = invoked("run", dear, "--dry-run")
        assert done.exit_code == 0
        assert "requests to S3 for $0.50 at most" in done.stdout
        assert "s3://bucket/x: at most 100,001 PUT" in done.stdout
        assert "(example prices" in done.stdout

    def test_without_a_terminal_it_is_refused(self, dear: Path, here: Path) -> None:
        """The exit code is 2, the message says how to allow the cost, and nothing is written."""
        done = invoked("run", dear)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert "requests to S3 for $0.50 at most; cost_limit_usd is 0.1" in line
        assert "--yes" in line
        assert files(here) == set()

    @pytest.mark.parametrize(("answer", "begun"), [("n", False), ("y", True)])
    def test_is_on_a_terminal_a_person_decides(
        self, dear: Path, here: Path, monkeypatch: pytest.MonkeyPatch, answer: str, begun: bool
    ) -> None:
        """A user is asked once; the run ends here because it has no credentials."""
        monkeypatch.setattr("iobench.cli.commands.run._is_on_a_terminal", lambda: True)
        done = CliRunner().invoke(app, ["run", str(dear)], input=f"{answer}\n")
        assert done.exit_code == 2
        assert "Start? [y/N]" in done.output
        assert ("no AWS credentials" in done.output) == begun
        assert ("nothing was measured" in done.output) != begun
        assert bool(files(here)) == begun

    @pytest.mark.parametrize("more", [("--yes",), ("--set", "cost_limit_usd=1")])
    def test_leave_may_be_given_beforehand(
        self, dear: Path, here: Path, more: tuple[str, ...]
    ) -> None:
        """An option or a higher limit allows the cost."""
        assert "no AWS credentials" in invoked("run", dear, *more).stderr


class TestLadder:
    """``iobench ladder``."""

    LOOP: ClassVar[dict[str, Any]] = {
        "group": "g",
        "model": "lenet",
        "image_size": 32,
        "batch_size": 4,
        "workers": 0,
        "loader": "torch-map",
        "device": "cpu",
        "threads": 1,
        "steps": 8,
        "inputs": "warm",
    }

    def test_every_rung_is_climbed(self, configs: Configs, tmp_path: Path) -> None:
        """A ladder has a table, a verdict and a report, and runs no other part of the config."""
        pytest.importorskip("torch")
        folder = tmp_path / "run"
        config = configs.write(training=[self.LOOP], loaders=NULL)
        done = invoked("ladder", config, "--output", folder)
        assert done.exit_code == 0, done.output
        result = read(folder)
        inputs = [trial.params["input"] for trial in result.trials]
        assert inputs == ["synthetic", "copy", "collate", "augment", "decode", "warm", "cold"]
        assert {trial.status for trial in result.trials} == {"done"}
        assert all(trial.metrics["steps"] >= 7 for trial in result.trials)
        name, head, *rows = done.stdout.splitlines()
        assert (name, head.split()[0]) == ("g", "rung")
        second_words = [row.split()[1] for row in rows[1:8]]
        assert second_words == ["batch", "start", "collate", "augment", "decode", "read,", "read,"]
        assert rows[8].startswith("not measured: store")
        assert rows[9:-1] == result_lines(result.summary)
        assert rows[-1] == str(folder / "report.html")
        assert "Ladder: g" in (folder / "report.html").read_text()
        again = invoked("ladder", config, "--output", folder, "--resume", "--json")
        content = json.loads(again.stdout)
        assert content["ladder"] == json.loads(json.dumps(result.summary["ladder"]))
        assert content["verdict"] == result.summary["verdict"]

    def test_a_dry_run(self, configs: Configs) -> None:
        """The output is one object with one trial for each rung."""
        config = configs.write(training=[{**self.LOOP, "inputs": ["cold", "store"]}])
        done = invoked("ladder", config, "--dry-run", "--json")
        content = json.loads(done.stdout)
        assert sorted(trial["params"]["input"] for trial in content["trials"]) == sorted(RUNGS)

    def test_no_loop_is_refused(self, configs: Configs) -> None:
        """A config without training loops is refused."""
        done = invoked("ladder", configs.write(loaders=NULL))
        assert done.exit_code == 2
        assert "a ladder is of training loops" in done.stderr

    def test_the_config_that_is_run(self, configs: Configs) -> None:
        """``--print-config`` prints YAML that ``iobench run`` accepts."""
        done = invoked("ladder", configs.write(training=[self.LOOP]), "--print-config")
        assert "name: small-ladder" in done.stdout
        assert "- collate" in done.stdout


class TestDryRun:
    """``iobench run --dry-run``."""

    def test_json(self, configs: Configs, here: Path) -> None:
        """The output is one object with the trials and their number."""
        done = invoked("run", configs.write(loaders=NULL, repeats=2), "--dry-run", "--json")
        content = json.loads(done.stdout)
        assert [trial["repeat"] for trial in content["trials"]] == [0, 1]
        assert content["total"]["trials"] == 2
        assert files(here) == set()

    def test_the_forecast_of_a_run_that_goes_on(self, configs: Configs, tmp_path: Path) -> None:
        """Finished trials are not to come, and ``--like`` takes times from another run."""
        config, folder = configs.write(loaders=NULL, repeats=2), tmp_path / "run"
        assert invoked("run", config, "--output", folder).exit_code == 0
        left = invoked("run", config, "--dry-run", "--resume", "--output", folder)
        assert "0 trials to come, 2 measured before" in left.stdout
        again = invoked("run", config, "--dry-run", "--like", folder)
        took = [trial.seconds for trial in read(folder).trials]
        range_s = rough_duration_range(2 * min(took), 2 * max(took))
        assert f"2 trials to come, about {range_s} (at most 20 min)" in again.stdout

    @pytest.mark.parametrize("more", [("--verbose",), ("--like", "somewhere")])
    def test_its_options_need_it(self, configs: Configs, more: tuple[str, ...]) -> None:
        """Options of a dry run are refused without ``--dry-run``, not ignored."""
        done = invoked("run", configs.write(loaders=NULL), *more)
        assert done.exit_code == 2
        assert "go with --dry-run" in done.stderr

    def test_no_run_to_be_like(self, configs: Configs, tmp_path: Path) -> None:
        """The error names a folder without a run."""
        config = configs.write(loaders=NULL)
        done = invoked("run", config, "--dry-run", "--like", tmp_path / "none")
        assert done.exit_code == 2
        assert "no run in" in done.stderr


class TestRefusals:
    """Wrong requests end with exit code 2 and one line, and write nothing."""

    def refused(self, *arguments: str | Path) -> str:
        """Run a command that is refused, and return its line on stderr."""
        done = invoked("run", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        return line

    def test_wrong_keys(self, configs: Configs, here: Path) -> None:
        """The error names the nearest known key."""
        config = configs.write(loaders=[{"loader": "raw", "wrokers": 2}], repaets=2)
        line = self.refused(config)
        assert line.startswith(f"iobench: {config}: ")
        assert "did you mean loaders.workers?" in line
        assert "did you mean repeats?" in line
        assert files(here) == set()

    def test_no_config(self, here: Path) -> None:
        """The message names the missing file and says how to get the examples."""
        assert self.refused("configs/nowhere.yaml") == (
            "iobench: cannot read config file configs/nowhere.yaml: No such file or directory: "
            "dataprep init copies the example configs here"
        )

    def test_nothing_to_do(self, configs: Configs, here: Path) -> None:
        """A config without trials is refused, and nothing is written."""
        assert "has no trials" in self.refused(configs.write())
        assert files(here) == set()

    def test_resume_without_a_folder(self, configs: Configs, here: Path) -> None:
        """``--resume`` needs the folder of the run."""
        assert "--resume needs --output" in self.refused(configs.write(loaders=NULL), "--resume")

    def test_a_file_in_the_way(self, configs: Configs, tmp_path: Path) -> None:
        """A run whose folder cannot be made is refused."""
        (tmp_path / "run").touch()
        config = configs.write(loaders=NULL)
        assert "cannot write in" in self.refused(config, "--output", tmp_path / "run")

    def test_a_folder_of_something_else(self, configs: Configs, tmp_path: Path) -> None:
        """A file that is not the result of a run is not overwritten."""
        (tmp_path / "result.json").write_text("{}")
        config = configs.write(loaders=NULL)
        assert "not the result of a run" in self.refused(config, "--output", tmp_path)
        assert (tmp_path / "result.json").read_text() == "{}"


class TestReport:
    """``iobench report``."""

    @pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
    def test_no_run_no_report(self, tmp_path: Path, content: bytes | None) -> None:
        """A folder without a run is refused with exit code 2 and stays as it was."""
        if content is not None:
            (tmp_path / "result.json").write_bytes(content)
        before = files(tmp_path)
        done = invoked("report", tmp_path)
        assert done.exit_code == 2
        assert str(tmp_path) in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert files(tmp_path) == before


def test_version_and_help() -> None:
    """``--version`` names version and codecs, and ``--help`` lists the commands."""
    assert invoked("--version").stdout.startswith(f"iobench {__version__}\ncodecs: ")
    output = invoked("--help").stdout
    for name in ("run", "report", "compare", "export", "schema", "selftest"):
        assert name in output


class TestSelftest:
    """``iobench selftest``: its output and exit code, with replaced measurements."""

    @pytest.fixture(autouse=True)
    def measured(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Return the replaced checks and, after a run, its number of rounds."""
        from iobench import selftest

        actual: dict[str, Any] = {"checks": [selftest.Check("good", 1.0, 1.0, 0.1, "s")]}

        def injected(note: Any, plan: Any, clock: Any) -> selftest.Injected:
            actual["rounds"] = plan.rounds
            return selftest.Injected(not_run=[selftest.NotRun("delays", "made up")])

        monkeypatch.setattr(selftest, "checks", lambda: iter(actual["checks"]))
        monkeypatch.setattr(selftest, "injected", injected)
        return actual

    def test_as_text_and_as_json(self, measured: dict[str, Any]) -> None:
        """Text and JSON have the same figures, and JSON is one object on stdout."""
        plain, as_json = invoked("selftest"), invoked("selftest", "--json")
        assert (plain.exit_code, as_json.exit_code) == (0, 0)
        (check,) = measured["checks"]
        assert plain.stdout.splitlines() == [str(check), "not run: delays: made up"]
        check_json = {"name": "good", "expected": 1.0, "found": 1.0}
        check_json |= {"limit": 0.1, "unit": "s", "ok": True}
        assert json.loads(as_json.stdout) == {
            "checks": [check_json],
            "rungs_s": {},
            "ladder": [],
            "prefetch": [],
            "others_busy_share": None,
            "not_run": [{"name": "delays", "why": "made up"}],
            "ok": True,
        }

    def test_a_wrong_figure_is_exit_code_1(self, measured: dict[str, Any]) -> None:
        """The exit code is 1 as text and as JSON."""
        measured["checks"].append(replace(measured["checks"][0], found=2.0))
        assert invoked("selftest").exit_code == 1
        as_json = invoked("selftest", "--json")
        assert (as_json.exit_code, json.loads(as_json.stdout)["ok"]) == (1, False)

    def test_rounds_are_passed_on(self, measured: dict[str, Any]) -> None:
        """The default is three rounds, and a single round is refused."""
        invoked("selftest")
        assert measured["rounds"] == 3
        invoked("selftest", "--rounds", "5")
        assert measured["rounds"] == 5
        assert invoked("selftest", "--rounds", "1").exit_code == 2


class Stopped:
    """Runs whose first loader leaves a mark and whose second waits until the test lets it go on."""

    def __init__(self, third_party: ThirdParty, configs: Configs) -> None:
        self.third_party = third_party
        self.folder = configs.folder / "run"
        self.config = configs.write(loaders=loaders("odd-counted", "odd-gated"))
        self.arguments = ("run", self.config, "--output", self.folder)

    def by(self, number: signal.Signals) -> Finished:
        """Return how the run ends that gets this signal during its second trial."""
        with Running(*self.arguments, program="iobench") as running:
            wait_until(lambda: self.third_party.has("reached") or running.ended, "the second")
            running.send(number)
            return running.finish()

    def resumed(self) -> Finished:
        """Let the second loader go on, and resume the run."""
        self.third_party.mark("open")
        return iobench(*self.arguments, "--resume")

    @property
    def counted(self) -> int:
        """Return the number of times that the first loader was tried."""
        return len((self.third_party.folder / "count").read_text())

    def statuses(self) -> list[tuple[Any, str]]:
        """Return the loader and the status of each trial in the result."""
        return [(trial.params["loader"], trial.status) for trial in read(self.folder).trials]


@pytest.fixture
def stopped(third_party: ThirdParty, configs: Configs) -> Iterator[Stopped]:
    """Yield a run without marks of an earlier test, whose waiting loader is released at the end."""
    for mark in third_party.folder.iterdir():
        mark.unlink()
    yield Stopped(third_party, configs)
    third_party.mark("open")


BOTH = [("odd-counted", "done"), ("odd-gated", "done")]


class TestStopped:
    """Runs that a signal ends."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_with_a_report(self, stopped: Stopped, number: signal.Signals) -> None:
        """The exit code is 130, results so far are reported, and ``--resume`` measures the rest."""
        done = stopped.by(number)
        assert done.code == 130, done.err
        assert done.complaints == [
            "iobench: interrupted: results so far are saved, continue with --resume"
        ]
        assert "odd-counted" in (stopped.folder / "report.html").read_text()
        assert read(stopped.folder).summary["verdict"].startswith("The fastest loader is odd-c")
        assert stopped.statuses() == BOTH[:1]
        again = stopped.resumed()
        assert again.code == 0, again.err
        assert stopped.statuses() == BOTH
        assert stopped.counted == 1

    def test_kill_9_keeps_what_was_measured(self, stopped: Stopped) -> None:
        """A killed run can be reported and resumed."""
        assert stopped.by(signal.SIGKILL).code == -signal.SIGKILL
        assert stopped.statuses() == BOTH[:1]
        drawn = invoked("report", stopped.folder)
        assert drawn.exit_code == 0, drawn.output
        assert "odd-counted" in (stopped.folder / "report.html").read_text()
        again = stopped.resumed()
        assert again.code == 0, again.err
        assert stopped.statuses() == BOTH
        assert stopped.counted == 1
        assert not [name for name in files(stopped.folder) if name.endswith(".partial")]


def test_an_interrupt_before_the_first_trial_ends(
    third_party: ThirdParty, configs: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run without any trial has a report, too."""

    class Impatient(progress.Lines):
        def begin(self, spec: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(progress, "choose", Impatient)
    done = invoked("run", configs.write(loaders=NULL), "--output", tmp_path / "run")
    assert done.exit_code == 130
    assert "Nothing could be measured" in (tmp_path / "run" / "report.html").read_text()
    assert read(tmp_path / "run").trials == ()


def test_the_demo_keeps_a_folder_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo says what to do instead of replacing the folder."""
    monkeypatch.chdir(tmp_path)
    Path("demo").mkdir()
    assert demo.main() == 2
    assert "demo/ already exists: remove it" in capsys.readouterr().out
    assert Path("demo").is_dir()
