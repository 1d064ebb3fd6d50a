"""What both programs share: one-line errors, exit codes, signals."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dataprep.command_line import Commands, one_line, settings
from dataprep.errors import ConfigError, DataprepError


class ToyCommands(Commands):
    """Those of a program that only fails."""

    program = "toy"
    interrupted = "stopped by hand"
    interruptions: ClassVar = {"look": "saw nothing"}


def invoked(raised: BaseException, *arguments: str, command: str = "fail") -> Any:
    """What a command that raises ends with."""
    app = typer.Typer(cls=ToyCommands, pretty_exceptions_enable=False)

    @app.callback()
    def root(debug: bool = typer.Option(False, "--debug")) -> None:
        """Take options."""

    @app.command("fail")
    @app.command("look")
    def fail() -> None:
        """Raise."""
        raise raised

    return CliRunner().invoke(app, [*arguments, command])


class TestErrors:
    def test_known_errors_are_one_line(self) -> None:
        """On stderr, after the program's name, with the error's own exit code."""
        done = invoked(ConfigError("no such\nkey"))
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == "toy: no such\\nkey\n"

    def test_an_error_ends_with_its_code(self) -> None:
        """1, unless its class says otherwise."""
        assert invoked(DataprepError("x")).exit_code == 1

    def test_debug_shows_where(self) -> None:
        """The traceback, then the line and the exit code that there are without it."""
        done = invoked(ConfigError("x"), "--debug")
        assert done.stderr.startswith("Traceback")
        assert done.stderr.endswith("\ntoy: x\n")
        assert done.exit_code == 2

    def test_a_traceback_shows_no_credential(self) -> None:
        """What a library said, and another error grew from, may hold one."""
        error = ConfigError("refused")
        error.__cause__ = OSError("cannot reach http://jo:hunter2@host:1/x")
        shown = invoked(error, "--debug").stderr
        assert "cannot reach http://***@host:1/x" in shown
        assert "hunter2" not in shown

    def test_bugs_are_not_dressed_up(self) -> None:
        """What nobody foresaw keeps its traceback."""
        error = ZeroDivisionError("x")
        assert invoked(error).exception is error

    def test_a_full_disk_is_one_line(self) -> None:
        """Nobody needs a traceback to make room; other errors of the system keep theirs."""
        done = invoked(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        assert (done.exit_code, done.stderr) == (1, "toy: cannot write: No space left on device\n")
        other = OSError(errno.EBADF, "x")
        assert invoked(other).exception is other

    def test_a_name_that_cannot_be_is_one_line(self) -> None:
        """It is as somebody wrote it, shortened."""
        done = invoked(OSError(errno.ENAMETOOLONG, "File name too long", "x" * 5000))
        assert (done.exit_code, len(done.stderr)) == (2, 109)
        assert done.stderr.startswith("toy: 'xxx")
        assert done.stderr.endswith("xxx...: File name too long\n")

    def test_no_error_tells_a_credential(self) -> None:
        """An address may come out of a listing, or from a library."""
        said = invoked(ConfigError("https://jo:hunter2@host/x?sig=abc not read")).stderr
        assert said == "toy: https://***@host/x?sig=*** not read\n"

    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (MemoryError(), "out of memory: give it more"),
            (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "out of memory: give it more"),
            (ImportError("x.so: failed to map segment from shared object"), "out of memory"),
            (RuntimeError("can't start new thread"), "no thread or process more"),
            (BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "no thread or process more"),
            (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "too many open files: raise"),
            (
                FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']"),
                "no folder for temporary files can be written to: set TMPDIR",
            ),
        ],
        ids=["memory", "ENOMEM", "mapped", "thread", "process", "files", "temporary"],
    )
    def test_what_the_machine_lacks_is_one_line(self, error: Exception, said: str) -> None:
        """Each with what to do."""
        done = invoked(error)
        assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
        assert done.stderr.startswith(f"toy: {said}")

    def test_a_library_that_is_missing_keeps_its_traceback(self) -> None:
        """That is no lack of memory."""
        error = ImportError("No module named 'x'")
        assert invoked(error).exception is error

    def test_a_folder_that_was_removed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The one that the command is run in: nothing could be said of paths in it."""
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        (tmp_path / "here").rmdir()
        done = invoked(ZeroDivisionError())
        assert (done.exit_code, done.stderr) == (
            2,
            "toy: the current folder is not there any more: cd to one that is\n",
        )

    @pytest.mark.parametrize(
        ("command", "said"), [("fail", "stopped by hand"), ("look", "saw nothing")]
    )
    def test_an_interrupt_is_130(self, command: str, said: str) -> None:
        """And says what a person can do now, of this very command."""
        done = invoked(KeyboardInterrupt(), command=command)
        assert (done.exit_code, done.stderr) == (130, f"toy: {said}\n")


INTERRUPTED = """
import os, signal, sys
def interrupt(event, arguments):
    if event == "import" and arguments[0] == "{module}":
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
sys.argv = ["dataprep", *{arguments!r}]
from dataprep.cli import main
main()
"""
AT_THE_END = """
import atexit, os, signal, sys
from dataprep.cli import main
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
sys.argv = ["dataprep", "--version"]
main()
"""


def script(source: str) -> subprocess.CompletedProcess[str]:
    """Run to its end."""
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )


class TestSignalsBeforeAndAfter:
    @pytest.mark.parametrize("module", ["typer", "dataprep.commands.looking"])
    def test_before_there_is_a_command(self, module: str) -> None:
        """While the program itself is imported: 130, and no traceback."""
        done = script(INTERRUPTED.format(module=module, arguments=["--version"]))
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")

    def test_while_a_command_imports(self) -> None:
        """What it needs is imported when it is chosen: told as any other interrupt."""
        arguments = ["shard", "--source", "x", "--output", "y"]
        done = script(INTERRUPTED.format(module="dataprep.job", arguments=arguments))
        assert done.returncode == 130
        assert done.stderr == (
            "dataprep: interrupted: what is stored is kept, the same command resumes\n"
        )

    def test_when_all_is_done(self) -> None:
        """A signal that comes too late ends the program, and changes nothing of its answer."""
        done = script(AT_THE_END)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("dataprep ")


class TestSettings:
    def test_values_are_yaml(self) -> None:
        """Numbers, lists and mappings are what they look like; the first ``=`` divides."""
        pairs = ["a=1", "b.c=[x, 2]", "d=", "e=k=v", "f={g: true}"]
        assert settings(pairs, "x=1") == {
            "a": 1,
            "b.c": ["x", 2],
            "d": None,
            "e": "k=v",
            "f": {"g": True},
        }

    def test_the_last_of_a_key_wins(self) -> None:
        """As with any option."""
        assert settings(["a=1", "a=2"], "x=1") == {"a": 2}

    @pytest.mark.parametrize("pair", ["", "a", "=1", "a: 1"])
    def test_no_pair_is_refused_with_an_example(self, pair: str) -> None:
        """It shows how one is written."""
        with pytest.raises(ConfigError, match=r"write KEY=VALUE, as in --set x\.y=1"):
            settings([pair], "x.y=1")

    @pytest.mark.parametrize("value", ["[1", "{a: ", "'", "!!python/name:os.getcwd"])
    def test_broken_yaml_is_refused(self, value: str) -> None:
        """With the pair that holds it."""
        with pytest.raises(ConfigError, match=r"a=.*: the value is not valid YAML"):
            settings([f"a={value}"], "x=1")

    def test_an_impossible_date_is_refused(self) -> None:
        """YAML reads a date there, and there is no such date."""
        with pytest.raises(ConfigError, match="not valid YAML"):
            settings(["a=2024-13-01"], "x=1")


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    """Nothing in it moves a cursor; printable text stays as it is."""
    shown = one_line(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    if text.isprintable():
        assert shown == text


SCRIPT = """
import os, signal, sys, time, typer
from dataprep.command_line import Commands, start

class Toy(Commands):
    program, interrupted = "toy", "stopped by hand"

app = typer.Typer(cls=Toy)

@app.callback()
def root(debug: bool = typer.Option(False, "--debug")):
    pass

@app.command()
def wait(how: str):
    number = getattr(signal, how.split("-")[0])
    try:
        os.kill(os.getpid(), number)
        time.sleep(0 if how.endswith("ignored") else 60)
    finally:
        if how.endswith("twice"):
            os.kill(os.getpid(), number)
            time.sleep(60)
        print("cleaned up")

@app.command()
def fail():
    raise ZeroDivisionError

start(app, Toy)
"""


def toy(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The program above, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


class TestSignals:
    @pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
    def test_the_first_ends_in_order(self, name: str) -> None:
        """Blocks are left as by an exception; the code is 130."""
        done = toy("wait", name)
        assert (done.returncode, done.stdout) == (130, "cleaned up\n")
        assert done.stderr == "toy: stopped by hand\n"

    def test_a_second_ends_at_once(self) -> None:
        """Whatever is still being cleaned up."""
        done = toy("wait", "SIGTERM-twice")
        assert (done.returncode, done.stdout) == (130, "")
        assert done.stderr == "toy: stopped by hand\n"

    def test_what_is_ignored_stays_so(self) -> None:
        """A job under ``nohup`` or in the background is not ended by Ctrl-C."""

        def ignore() -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        done = toy("wait", "SIGINT-ignored", preexec_fn=ignore)
        assert (done.returncode, done.stdout, done.stderr) == (0, "cleaned up\n", "")

    def test_debug_may_stand_anywhere(self) -> None:
        """After the command as before it."""
        for arguments in (("--debug", "fail"), ("fail", "--debug")):
            assert "ZeroDivisionError" in toy(*arguments).stderr


class TestTheEnd:
    SCRIPT = """
import atexit, sys, threading, time
import typer
from dataprep.command_line import Commands, application, start

class Toy(Commands):
    program, interrupted = "toy", ""

app = application(Toy, "Ends.")

class Torn:
    def __del__(self):
        print("taken apart", flush=True)

torn = Torn()

@app.command()
def work(code: int):
    atexit.register(print, "in order")
    print("worked")
    raise typer.Exit(code)

@app.command()
def delegate():
    threading.Thread(target=lambda: (time.sleep(0.3), print("late"))).start()

start(app, Toy)
"""

    @staticmethod
    def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
        """The program above, in a process of its own."""
        return subprocess.run(
            [sys.executable, "-c", TestTheEnd.SCRIPT, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @pytest.mark.parametrize("code", [0, 3])
    def test_is_at_once(self, code: int) -> None:
        """What was registered for it is run, all output written, and nothing taken apart."""
        done = self.ended("work", str(code))
        assert (done.returncode, done.stdout) == (code, "worked\nin order\n")

    def test_waits_for_threads(self) -> None:
        """What still runs is waited for."""
        assert self.ended("delegate").stdout.startswith("late\n")


class TestCollections:
    SCRIPT = """
import gc
import typer
from dataprep.command_line import Commands, application, start

class Toy(Commands):
    program, interrupted = "toy", ""

app = application(Toy, "Makes objects.")
usual = gc.get_threshold()

@app.command()
def work():
    before = gc.get_stats()[0]["collections"]
    many = [[] for _ in range(50_000)]
    print(gc.get_stats()[0]["collections"] == before)
    many += [[] for _ in range(60_000)]
    print(gc.get_freeze_count() > 90_000, gc.get_threshold() == usual)

@app.command()
def rest():
    pass

start(app, Toy)
"""

    def test_imports_are_not_looked_at_again(self) -> None:
        """The first hundred thousand objects are looked at once, what follows as usual."""
        done = subprocess.run(
            [sys.executable, "-c", self.SCRIPT, "work"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == "True\nTrue True\n"


class TestFullStdout:
    SCRIPT = """
import typer
from dataprep.command_line import Commands, application, start

class Toy(Commands):
    program, interrupted = "toy", ""

app = application(Toy, "Talks.")

@app.command()
def talk():
    typer.echo("words")

@app.command()
def rest():
    pass

start(app, Toy)
"""

    def test_one_line(self) -> None:
        """Not even the interpreter complains when it flushes what is left."""
        with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
            done = subprocess.run(
                [sys.executable, "-c", self.SCRIPT, "talk"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                timeout=60,
                check=False,
            )
        line = "toy: cannot write to standard output: No space left on device\n"
        assert (done.returncode, done.stderr) == (1, line)
