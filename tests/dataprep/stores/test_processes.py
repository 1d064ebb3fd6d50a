"""Tests of dataprep.stores.processes."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dataprep.stores.processes import lives, machine, started


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="proc(5) is Linux's")
def test_a_process_is_told_from_its_predecessors() -> None:
    """The same answer as long as it lives, a number; nothing once it is gone or a zombie."""
    assert started(os.getpid()) == started(os.getpid())
    assert started(os.getpid()).isdigit()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        assert started(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert started(child.pid) == ""
    assert started(child.pid) == ""


def test_a_machine_has_one_name_in_all_its_processes() -> None:
    """Which tells nobody what it is called."""
    code = "from dataprep.stores.processes import machine; print(machine())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == machine()
    assert socket.gethostname() not in machine()


def test_a_process_lives_until_it_is_gone() -> None:
    """A zombie does not, nor does another process of the same number."""
    assert lives(os.getpid(), started(os.getpid()))
    assert not lives(os.getpid(), "0")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        began = started(child.pid)
        assert lives(child.pid, began)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not lives(child.pid, began)
    assert not lives(child.pid, began)


def unread(error: OSError) -> Callable[[Path], str]:
    """In the place of reading."""

    def read(path: Path) -> str:
        raise error

    return read


def test_without_a_descriptor_to_look_with_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lacks is told by who needs it for the work."""
    monkeypatch.setattr(Path, "read_text", unread(OSError(errno.EMFILE, "too many")))
    assert lives(os.getpid(), "7")


@pytest.mark.parametrize(
    ("answer", "alive"), [(PermissionError(), True), (ProcessLookupError(), False)]
)
def test_a_process_that_is_hidden_lives(
    monkeypatch: pytest.MonkeyPatch, answer: OSError, alive: bool
) -> None:
    """It is another user's; that it is there is no secret."""

    def kill(process: int, number: int) -> None:
        raise answer

    monkeypatch.setattr(Path, "read_text", unread(FileNotFoundError()))
    monkeypatch.setattr(os, "kill", kill)
    assert lives(1, "7") is alive
