"""Tests of iobench.programs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from iobench.programs import found, required


def program(folder: Path, name: str) -> str:
    """One that can be run, as far as anybody can see."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_this_environment_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``make bench`` does not put its own environment on the path."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    (tmp_path / "own").mkdir()
    on_path = program(tmp_path / "path", "peer")
    assert found("peer") == required("peer") == on_path
    own = program(tmp_path / "own", "peer")
    assert found("peer") == required("peer") == own


def test_a_wheel_with_a_program_inside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The script that only calls it is passed over."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own" / "python"))
    monkeypatch.syspath_prepend(str(tmp_path))
    program(tmp_path / "own", "wheeled")
    (tmp_path / "wheeled").mkdir()
    (tmp_path / "wheeled" / "__init__.py").touch()
    assert found("wheeled") == str(tmp_path / "own" / "wheeled")
    assert found("wheeled") != program(tmp_path / "wheeled" / "bin", "wheeled")
    assert found("wheeled") == str(tmp_path / "wheeled" / "bin" / "wheeled")


def test_what_is_not_there() -> None:
    """Is not found, and said by its name where it is needed."""
    assert found("no-such-program") is None
    with pytest.raises(FileNotFoundError, match="no-such-program is not installed"):
        required("no-such-program")
