"""Tests of iobench.sidebyside.s5cmd."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iobench.sidebyside.limited_store import RunningStore
from iobench.sidebyside.s5cmd import copy

pytestmark = pytest.mark.slow

STORE = RunningStore(0, "http://127.0.0.1:1")


def program(folder: Path, script: str) -> None:
    """One that is called s5cmd."""
    path = folder / "s5cmd"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_what_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint, what to copy, and where to."""
    monkeypatch.setattr("iobench.programs.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program(tmp_path, f'echo "$@" > {tmp_path}/told')
    assert copy(STORE, "a/*", tmp_path / "to") > 0
    said = (tmp_path / "told").read_text().split()
    assert said == ["--endpoint-url", STORE.url, "cp", "s3://bench/a/*", f"{tmp_path}/to/"]


def test_where_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does the contender."""
    monkeypatch.setattr("iobench.programs.find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    program(tmp_path, "exit 3")
    with pytest.raises(subprocess.CalledProcessError):
        copy(STORE, "a/*", tmp_path)
