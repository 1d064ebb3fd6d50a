"""Programs whose standard streams are closed, full, or read by nobody: run as they are run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TOY = """
import os, signal, subprocess, sys, typer
from dataprep.command_line import Commands, application, start

class Toy(Commands):
    program, interrupted = "toy", "stopped"

app = application(Toy, "Says and writes.")

@app.command()
def write(file: str):
    with open(file, "wb", buffering=0) as target:
        for _ in range(200):
            print("progress " * 9, file=sys.stderr)
        target.write(b"data" if sys.stdin.read() == "" else b"")
    typer.echo("written")

@app.command()
def speak(file: str):
    typer.echo("a result\\n" * 100_000, nl=False)

@app.command()
def chatter(file: str):
    with open(file, "wb", buffering=0) as target:
        os.write(2, b"said by a library")
        subprocess.run(["sh", "-c", "echo said by a child >&2"], check=True)

@app.command()
def stop(file: str):
    try:
        os.kill(os.getpid(), signal.SIGHUP)
    finally:
        if file == "at once":
            os.kill(os.getpid(), signal.SIGHUP)

start(app, Toy)
"""


def toy(streams: str, command: str, file: object) -> subprocess.CompletedProcess[str]:
    """The program above, its streams as a shell makes them; under nohup or not."""
    return subprocess.run(
        ["sh", "-c", f'"$0" -c "$TOY" {command} "{file}" {streams}', sys.executable],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "TOY": TOY},
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )


CLOSED = ["2>&-", "<&- 2>&-", "<&-"]
NOBODY_HEARS = [*CLOSED, "2>/dev/full"]


@pytest.mark.parametrize("streams", NOBODY_HEARS)
def test_what_nobody_hears_ends_nothing(streams: str, tmp_path: Path) -> None:
    """The work is done all the same."""
    done = toy(streams, "write", tmp_path / "data")
    assert (done.returncode, done.stdout) == (0, "written\n")
    assert (tmp_path / "data").read_bytes() == b"data"


@pytest.mark.parametrize("streams", [*CLOSED, "<&- >&- 2>&-"])
def test_no_file_gets_a_number_that_is_spoken_to(streams: str, tmp_path: Path) -> None:
    """What a library says, or a child, would end up in it."""
    assert toy(streams, "chatter", tmp_path / "data").returncode == 0
    assert (tmp_path / "data").read_bytes() == b""


def test_a_pipe_that_nobody_reads(tmp_path: Path) -> None:
    """``2>&1 >/dev/null | tee log``, and tee is killed."""
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-c", TOY, "write", str(tmp_path / "data")]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes, check=False
    )
    os.close(writes)
    assert (done.returncode, done.stdout) == (0, b"written\n")


def test_a_pipe_that_nobody_empties(tmp_path: Path) -> None:
    """One that does not wait, as some programs make those of their children."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    while True:
        try:
            os.write(writes, b"x" * 1024)
        except BlockingIOError:
            break
    command = [sys.executable, "-c", TOY, "write", str(tmp_path / "data")]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=writes, check=False
    )
    os.close(reads)
    os.close(writes)
    assert (done.returncode, done.stdout) == (0, b"written\n")


def test_a_result_waits_for_its_reader() -> None:
    """Through a pipe that does not wait."""
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    speaking = subprocess.Popen(
        [sys.executable, "-c", TOY, "speak", "-"], stdin=subprocess.DEVNULL, stdout=writes
    )
    os.close(writes)
    with os.fdopen(reads, "rb") as told:
        assert told.read() == b"a result\n" * 100_000
    assert speaking.wait(timeout=60) == 0


@pytest.mark.parametrize("streams", NOBODY_HEARS)
@pytest.mark.parametrize("how", ["in order", "at once"])
def test_a_terminal_that_went_away(how: str, streams: str) -> None:
    """SIGHUP ends it as ever, although the farewell is heard by nobody."""
    assert toy(streams, "stop", how).returncode == 130


def test_what_was_asked_for_and_cannot_be_said(tmp_path: Path) -> None:
    """A result that is lost is an error, which names the stream and not some disk."""
    done = toy(">/dev/full", "write", tmp_path / "data")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "toy: cannot write to standard output: No space left on device"
    )
