"""Tests of dataprep.job.socket_folder."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dataprep.job import socket_folder

_HOLDER = """
import os, signal, sys
from dataprep.job import socket_folder
from multiprocessing import util
if sys.argv[1] == "marked":
    socket_folder.hold()
    socket_folder.hold()
print(util.get_temp_dir(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def holder(how: str = "marked") -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with such a folder."""
    command = [sys.executable, "-c", _HOLDER, how]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        yield process, Path(process.stdout.readline().strip())


def test_the_dead_leave_nothing(temporary: Path) -> None:
    """A killed process's folder is removed, that of one that lives stays; it removes its own."""
    with holder() as (dead, left), holder() as (_, held):
        assert {left.parent, held.parent} == {temporary}
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert left.exists()
        socket_folder.sweep()
        assert not left.exists()
        assert held.exists()
    assert list(temporary.iterdir()) == []


def test_what_nobody_marked_is_not_ours(temporary: Path) -> None:
    """Other programs have such folders too, and links to elsewhere may be called so."""
    with holder("unmarked") as (other, left):
        other.send_signal(signal.SIGKILL)
        other.wait()
    target = temporary / "elsewhere"
    target.mkdir()
    (target / "dataprep.lock").touch()
    (temporary / "pymp-link").symlink_to(target)
    socket_folder.sweep()
    assert left.exists()
    assert (target / "dataprep.lock").exists()


def test_nothing_is_there_to_sweep(temporary: Path) -> None:
    """No folder for temporary files, or one that may not be read, is no error."""
    temporary.rmdir()
    socket_folder.sweep()
