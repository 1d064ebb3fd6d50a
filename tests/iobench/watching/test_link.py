"""The pipe to a companion is never in the loop's way."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from iobench.watching.link import Link


@pytest.fixture
def companion(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """``companion(code)``: the next link is to a process that runs this instead."""

    python = sys.executable

    def given(code: str) -> Link:
        path = tmp_path / "python"
        path.write_text(f"#!{python}\n{code}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))
        return Link({"settings": True})

    return given


def test_what_is_sent_arrives_in_order(companion: Any, tmp_path: Path) -> None:
    """More than a pipe holds, too: what it does not take waits, and goes at the end."""
    got = tmp_path / "got"
    line = companion(f"import sys; open({str(got)!r}, 'wb').write(sys.stdin.buffer.read())")
    piece = os.urandom(300_000)
    for _ in range(10):
        line.send({"steps": 0}, piece)
    assert line.end(30.0)
    data = got.read_bytes()
    assert data.startswith(b'{"settings": true}\n')
    assert data.endswith(b'{"end": true}\n')
    assert data.count(piece) == 10


def test_a_companion_that_has_gone_stops_nothing(companion: Any) -> None:
    """The script goes on; in the end it is told that there is no report."""
    line = companion("raise SystemExit(3)")
    line._process.wait(30)
    for _ in range(3):
        line.send({"steps": 0}, b"x" * 100_000)
    assert not line.alive
    assert not line._waiting[0]
    assert not line.end(30.0)


def test_a_companion_that_does_not_end_is_left(companion: Any) -> None:
    """A script must come to its end."""
    line = companion("import sys, time; sys.stdin.buffer.read(); time.sleep(600)")
    assert not line.end(0.1)
    line._process.kill()
    line._process.wait(30)


def test_a_forked_process_says_nothing(companion: Any, tmp_path: Path) -> None:
    """A loader's worker has the pipe, and is not the script."""
    got = tmp_path / "got"
    line = companion(f"import sys; open({str(got)!r}, 'wb').write(sys.stdin.buffer.read())")
    child = os.fork()
    if not child:
        line.send({"from": "the worker"})
        os._exit(0 if not line.alive and line.end(1.0) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert line.end(30.0)
    assert b"worker" not in got.read_bytes()
