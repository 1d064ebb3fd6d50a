"""One run at a time in a folder."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from dataprep.errors import ConfigError
from iobench.alone import alone
from iobench.errors import RunConflict


def test_a_second_is_kept_out_until_the_first_has_ended(tmp_path: Path) -> None:
    """By its name, and with the exit code of a wrong request; no file is left."""
    folder = tmp_path / "a" / "run"
    with alone(folder):
        with pytest.raises(RunConflict, match=r"another run is at work in .*/a/run:") as caught:
            alone(folder).__enter__()
        with alone(tmp_path / "a" / "other"):
            """Another folder is another run's."""
    assert caught.value.exit_code == 2
    with alone(folder):
        assert not list(folder.iterdir())


def test_an_error_within_lets_go(tmp_path: Path) -> None:
    """Whatever a run meets, it can be resumed."""
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), alone(tmp_path):
            raise KeyboardInterrupt


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """A file stands where it should be."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot make .*/file/run: Not a directory"):
        alone(tmp_path / "file" / "run").__enter__()


def test_no_locks_there_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems of the network have none: runs go on without."""

    def refused(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refused)
    with alone(tmp_path), alone(tmp_path):
        """Both."""
