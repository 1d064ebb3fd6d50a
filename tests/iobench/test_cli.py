"""The command line: exit codes, one-line errors, and runs that are stopped in the middle."""

from __future__ import annotations

import importlib.util
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dataprep._version import __version__
from iobench import display
from iobench.cli import app
from iobench.rundir import read
from tests.commandline import Finished, Running, files, iobench, wait_until
from tests.iobench.small_runs import Configs, ThirdParty, loaders

NULL = loaders("null")


def invoked(*arguments: str | Path) -> Result:
    """A command, within this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


class TestRun:
    def test_it_says_the_verdict_and_where_the_report_is(
        self, configs: Configs, tmp_path: Path
    ) -> None:
        """On stdout these two lines alone; trials and counts on stderr."""
        folder = tmp_path / "run"
        done = invoked("run", configs.write(loaders=NULL), "--output", folder)
        assert done.exit_code == 0, done.output
        verdict, report = done.stdout.splitlines()
        assert verdict.startswith("Measured; ")
        assert report == str(folder / "report.html")
        assert done.stderr.splitlines()[-1] == "1 trial done"

    def test_its_folder_has_a_name_and_a_time(self, configs: Configs, here: Path) -> None:
        """Below reports/, unless it is told."""
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
        """0 done, skipped or not; 1 where a trial failed; 2 where all were skipped."""
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
        """What needs it is listed; the run is a success."""
        config = configs.write(loaders=loaders("tf-data", "null"))
        done = invoked("run", config, "--output", tmp_path / "run")
        assert done.exit_code == 0, done.output
        assert "1 skipped: " in done.stderr
        assert "dataprep-iobench[tensorflow]" in done.stderr
        assert "dataprep-iobench[tensorflow]" in (tmp_path / "run" / "report.html").read_text()

    def test_dry_run_lists_the_trials_and_touches_nothing(
        self, configs: Configs, here: Path
    ) -> None:
        """In their order, their number on stderr."""
        config = configs.write(loaders=loaders("null", "mock"), repeats=2)
        done = invoked("run", config, "--dry-run", "--output", "out")
        assert done.exit_code == 0
        assert [line.rpartition(" #")[2] for line in done.stdout.splitlines()] == list("1122")
        assert done.stderr == "4 trials\n"
        assert files(here) == set()

    def test_set_wins_over_the_file(self, configs: Configs) -> None:
        """Any dotted key, YAML on its right."""
        config = configs.write(loaders=NULL)
        given = ["--set", "repeats=3", "--set", "loaders=[{loader: mock, workers: [1, 2]}]"]
        done = invoked("run", config, "--dry-run", *given)
        assert done.stderr == "6 trials\n"


class TestRefusals:
    """Exit code 2, one line, nothing written."""

    def refused(self, *arguments: str | Path) -> str:
        """What it says."""
        done = invoked("run", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        return line

    def test_wrong_keys(self, configs: Configs, here: Path) -> None:
        """With the nearest known key."""
        config = configs.write(loaders=[{"loader": "raw", "wrokers": 2}], repaets=2)
        line = self.refused(config)
        assert line.startswith(f"iobench: {config}: ")
        assert "did you mean 'workers'?" in line
        assert "did you mean 'repeats'?" in line
        assert files(here) == set()

    def test_no_config(self, here: Path) -> None:
        """Its name."""
        assert self.refused("nowhere.yaml") == "iobench: no config file 'nowhere.yaml'"

    def test_nothing_to_do(self, configs: Configs, here: Path) -> None:
        """What could be asked for."""
        assert "asks for nothing" in self.refused(configs.write())
        assert files(here) == set()

    def test_resume_without_a_folder(self, configs: Configs, here: Path) -> None:
        """There is no run to go on with."""
        assert "--resume needs --output" in self.refused(configs.write(loaders=NULL), "--resume")

    @pytest.mark.parametrize("pair", ["repeats", "a=[", "repaets=1"])
    def test_wrong_settings(self, configs: Configs, here: Path, pair: str) -> None:
        """As wrong keys are."""
        self.refused(configs.write(loaders=NULL), "--set", pair)

    def test_a_file_in_the_way(self, configs: Configs, tmp_path: Path) -> None:
        """The run's folder cannot be made."""
        (tmp_path / "run").touch()
        config = configs.write(loaders=NULL)
        assert "cannot make" in self.refused(config, "--output", tmp_path / "run")

    def test_a_folder_of_something_else(self, configs: Configs, tmp_path: Path) -> None:
        """A result that is none is not overwritten."""
        (tmp_path / "result.json").write_text("{}")
        config = configs.write(loaders=NULL)
        assert "not the result of a run" in self.refused(config, "--output", tmp_path)
        assert (tmp_path / "result.json").read_text() == "{}"


class TestReport:
    @pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
    def test_no_run_no_report(self, tmp_path: Path, content: bytes | None) -> None:
        """Exit code 2, and the folder as it was."""
        if content is not None:
            (tmp_path / "result.json").write_bytes(content)
        before = files(tmp_path)
        done = invoked("report", tmp_path)
        assert done.exit_code == 2
        assert str(tmp_path) in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert files(tmp_path) == before


def test_version_and_help() -> None:
    """Both programs have the same version."""
    assert invoked("--version").stdout == f"iobench {__version__}\n"
    shown = invoked("--help").stdout
    for name in ("run", "report", "selftest"):
        assert name in shown


def test_selftest_is_json_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """One object; the exit code says whether every figure was found."""
    from iobench import selftest

    good = selftest.Check("good", 1.0, 1.0, 0.1, "s")
    bad = selftest.Check("bad", 1.0, 2.0, 0.1, "s")
    for checks, code in (([good], 0), ([good, bad], 1)):
        monkeypatch.setattr(selftest, "checks", lambda found=checks: iter(found))
        done = invoked("selftest", "--json")
        assert done.exit_code == code
        assert json.loads(done.stdout)["checks"] == [check.as_dict() for check in checks]
        plain = invoked("selftest")
        assert plain.exit_code == code
        assert plain.stdout.splitlines() == [str(check) for check in checks]


class Stopped:
    """Runs of one loader that leaves a mark and one that waits to be let on."""

    def __init__(self, third_party: ThirdParty, configs: Configs) -> None:
        self.third_party = third_party
        self.folder = configs.folder / "run"
        self.config = configs.write(loaders=loaders("odd-counted", "odd-gated"))
        self.arguments = ("run", self.config, "--output", self.folder)

    def by(self, number: signal.Signals) -> Finished:
        """How it ends when the second trial meets a signal to the driver."""
        with Running(*self.arguments, program="iobench") as running:
            wait_until(lambda: self.third_party.has("reached") or running.ended, "the second")
            running.send(number)
            return running.finish()

    def resumed(self) -> Finished:
        """Let on, it goes on."""
        self.third_party.mark("open")
        return iobench(*self.arguments, "--resume")

    @property
    def counted(self) -> int:
        """How often the first loader was tried."""
        return len((self.third_party.folder / "count").read_text())

    def statuses(self) -> list[tuple[Any, str]]:
        """What the result holds."""
        return [(trial.params["loader"], trial.status) for trial in read(self.folder).trials]


@pytest.fixture
def stopped(third_party: ThirdParty, configs: Configs) -> Iterator[Stopped]:
    """No mark left from the test before; whoever waits is let on at the end."""
    for mark in third_party.folder.iterdir():
        mark.unlink()
    yield Stopped(third_party, configs)
    third_party.mark("open")


BOTH = [("odd-counted", "done"), ("odd-gated", "done")]


class TestStopped:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_with_a_report(self, stopped: Stopped, number: signal.Signals) -> None:
        """130, what was measured is reported and kept, and --resume measures the rest."""
        done = stopped.by(number)
        assert done.code == 130, done.err
        assert done.complaints == [
            "iobench: interrupted: what was measured is kept, --resume goes on"
        ]
        assert "odd-counted" in (stopped.folder / "report.html").read_text()
        assert read(stopped.folder).summary["verdict"].startswith("The fastest loader is odd-c")
        assert stopped.statuses() == BOTH[:1]
        again = stopped.resumed()
        assert again.code == 0, again.err
        assert stopped.statuses() == BOTH
        assert stopped.counted == 1

    def test_kill_9_keeps_what_was_measured(self, stopped: Stopped) -> None:
        """It can be drawn as it stands, and gone on with."""
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
    """A report of nothing is a report."""

    class Impatient(display.Lines):
        def begin(self, spec: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(display, "choose", Impatient)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        done = invoked("run", configs.write(loaders=NULL), "--output", tmp_path / "run")
    finally:
        signal.signal(signal.SIGINT, handlers[0])
        signal.signal(signal.SIGTERM, handlers[1])
    assert done.exit_code == 130
    assert "Nothing could be measured" in (tmp_path / "run" / "report.html").read_text()
    assert read(tmp_path / "run").trials == ()
