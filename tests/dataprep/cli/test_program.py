"""Both programs have one-line errors, exit codes, signal handling, and help in groups."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from typing import Annotated, Any, ClassVar

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dataprep.cli.program import Commands, GroupedCommand, application, printable
from dataprep.errors import ConfigError, DataprepError

FULL = (errno.ENOSPC, os.strerror(errno.ENOSPC))
TOO_LONG = (errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), "x" * 5000)


class ToyCommands(Commands):
    """A program with two commands that fail."""

    advice_when_interrupted: ClassVar = {"look": ": look again"}


def invoked(raised: BaseException, *arguments: str, command: str = "fail") -> Any:
    """The result of a command that raises."""
    app = application("toy", "Fails.", ToyCommands)

    @app.command("fail")
    @app.command("look")
    def fail() -> None:
        raise raised

    return CliRunner().invoke(app, [*arguments, command])


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataprepError("x"), 1, "x"),
        (ConfigError("no key 'a'"), 2, "no key 'a'"),
        (ConfigError("a\x1b[2Jb"), 2, "a\\x1b[2Jb"),
        (
            ConfigError("https://jo:hunter2@host/x?sig=abc not read"),
            2,
            "https://***@host/x?sig=*** not read",
        ),
        (MemoryError(), 1, "out of memory: use fewer workers or raise the memory limit"),
        (OSError(*FULL), 1, "No space left on device"),
        (OSError(*FULL, "/data/x"), 1, "No space left on device: /data/x"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, "Permission denied: /x"),
        (OSError(*TOO_LONG), 2, f"File name too long: {'x' * 200}"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_an_error_is_one_line_and_an_exit_code(error: Exception, code: int, line: str) -> None:
    """An error is one line on stderr after the program's name, without control characters."""
    done = invoked(error)
    assert (done.exit_code, done.stdout, done.stderr) == (code, "", f"toy: {line}\n")


def test_an_error_may_have_several_lines() -> None:
    """The lines after the first are indented."""
    done = invoked(ConfigError("other settings:\nsize 1 -> 2"))
    assert done.stderr == "toy: other settings:\n  size 1 -> 2\n"


def test_debug_shows_the_traceback() -> None:
    """--debug prints the traceback before the line, without credentials, with the same code."""
    error = ConfigError("refused")
    error.__cause__ = OSError("cannot reach http://jo:hunter2@host:1/x")
    done = invoked(error, "--debug")
    assert "Traceback" in done.stderr
    assert "cannot reach http://***@host:1/x" in done.stderr
    assert done.stderr.endswith("\ntoy: refused\n")
    assert done.exit_code == 2


def test_a_bug_keeps_its_traceback() -> None:
    """An unexpected exception is not turned into an error line."""
    error = ZeroDivisionError("x")
    assert invoked(error).exception is error


@pytest.mark.parametrize(
    ("command", "line"), [("fail", "interrupted"), ("look", "interrupted: look again")]
)
def test_an_interrupt_exits_with_130(command: str, line: str) -> None:
    """The line says how to continue this command."""
    done = invoked(KeyboardInterrupt(), command=command)
    assert (done.exit_code, done.stderr) == (130, f"toy: {line}\n")


def test_help_groups_options() -> None:
    """Arguments come first, then a section for each group."""
    app = application("toy", "Groups.", ToyCommands)

    @app.command(cls=GroupedCommand)
    def work(
        heading: Annotated[str, typer.Argument(help="Where.")],
        usual: Annotated[int, typer.Option(help="Often used.")] = 2,
        rare: Annotated[int, typer.Option(help="Rarely used.", rich_help_panel="More")] = 1,
    ) -> None:
        """Work."""

    @app.command()
    def rest() -> None:
        """Rest."""

    output = CliRunner().invoke(app, ["work", "--help"]).stdout
    positions = [output.index(text) for text in ("Arguments:", "Where.", "Options:", "Often used.")]
    positions += [output.index(text) for text in ("More:", "Rarely used.")]
    assert positions == sorted(positions)


@given(st.text())
def test_printable_text_is_one_line(text: str) -> None:
    """Printed text is one line without control characters."""
    assert printable(text).isprintable()


SCRIPT = """
import os, signal, sys, threading, time, typer
from dataprep.cli.program import Commands, application, start

app = application("toy", "Waits.", Commands)

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
def speak():
    typer.echo("words")

@app.command()
def fail():
    raise ZeroDivisionError

start(app)
"""


def toy(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the program above in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        **{"stdout": subprocess.PIPE, **options},
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_ends_in_order(name: str) -> None:
    """The first signal exits blocks like an exception, and the exit code is 130."""
    done = toy("wait", name, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
    assert (done.returncode, done.stdout) == (130, "cleaned up\n")
    assert done.stderr == "toy: interrupted\n"


def test_a_second_signal_ends_at_once() -> None:
    """A second signal ends the process even during its cleanup."""
    done = toy("wait", "SIGTERM-twice")
    assert (done.returncode, done.stdout) == (130, "")


def test_an_ignored_signal_stays_ignored() -> None:
    """Ctrl-C does not end a job under ``nohup`` or in the background."""
    done = toy(
        "wait",
        "SIGINT-ignored",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "cleaned up\n", "")


def test_debug_may_stand_anywhere() -> None:
    """``--debug`` is accepted after the command as well as before it."""
    for arguments in (("--debug", "fail"), ("fail", "--debug")):
        assert "ZeroDivisionError" in toy(*arguments).stderr


def test_a_result_that_cannot_be_written_is_an_error() -> None:
    """A full disk behind stdout is one error line, and exit code 1."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with open("/dev/full", "wb") as full:  # noqa: PTH123  a device
        done = toy("speak", stdout=full, env=environment)
    assert (done.returncode, done.stderr) == (1, "toy: No space left on device\n")
