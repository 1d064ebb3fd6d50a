"""The log of steps, the companion process, and the folder of a watched run."""

from __future__ import annotations

import errno
import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from dataprep.errors import ConfigError
from iobench.runner.run_folder import read
from iobench.watching.session import (
    CLAIM,
    END,
    Session,
    StepLog,
    WatchSettings,
    claim_folder,
    job_rank,
    release_folder,
)
from tests.commandline import PATIENCE_S
from tests.iobench.watching.logged import MemoryLog, Record
from tests.permissions import unprivileged

RECORD: Record = (0, 0, 1, 2, 3, 4)


def test_records_are_written_about_once_a_second() -> None:
    """Writing each record would be a system call in the user's loop."""
    written: list[bytes] = []

    def write(data: bytes) -> int:
        written.append(data)
        return len(data)

    log = StepLog(write)
    for number in range(100):
        log.add(RECORD, number / 10)
    assert len(written) == 10
    assert [len(data) // 48 for data in written[:3]] == [1, 10, 10]


@pytest.mark.parametrize("written_bytes", [0, OSError(errno.ENOSPC, "full")])
def test_a_full_disk_stops_nothing(written_bytes: int | OSError) -> None:
    """The loop goes on, and records are neither written nor kept any more."""

    def write(data: bytes) -> int:
        if isinstance(written_bytes, OSError):
            raise written_bytes
        return written_bytes

    log = StepLog(write)
    log.add(RECORD, 0.0)
    assert log.closed
    log.add(RECORD, 5.0)
    assert not log._unsent


def test_a_forked_process_writes_nothing() -> None:
    """A worker of the loader has a copy of the log, and does not use it."""
    log = MemoryLog()
    child = os.fork()
    if not child:
        log.add(RECORD, 0.0)
        os._exit(len(log.records()))
    assert os.waitpid(child, 0)[1] == 0
    log.add(RECORD, 0.0)
    assert log.records() == [RECORD]


SETTINGS = WatchSettings("mine", "mine", "2026-11-22T12:00:00+00:00", 2.0, [])


@pytest.fixture
def companion(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that makes a session whose companion runs this code instead."""

    python = sys.executable

    def session_running(code: str) -> Session:
        path = tmp_path / "python"
        path.write_text(f"#!{python}\nimport os, sys, time\n{code}\n")
        path.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(path))
        return Session(SETTINGS)

    return session_running


def test_the_companion_is_sent_settings_loaders_and_steps(companion: Any, tmp_path: Path) -> None:
    """Loaders of one name are numbered, and outstanding records come before the end."""
    session = companion(
        f"""
lines = sys.stdin.buffer.read()
steps = os.pread(int(sys.argv[5]), 1000, 0)
got = "\\n".join([sys.argv[6], steps.hex(), lines.decode()])
open({str(tmp_path / "got")!r}, "w").write(got)
"""
    )
    session.before_close.append(lambda: session.log.add(RECORD, 3))
    assert session.add_loader("list", 4, 8) == (0, "list")
    assert session.add_loader("list", None) == (1, "list 2")
    session.log.add(RECORD, 3)
    assert session.finish(30.0)
    settings, steps, first, second, end, _ = (tmp_path / "got").read_text().split("\n")
    assert json.loads(settings) == asdict(SETTINGS)
    assert len(bytes.fromhex(steps)) == 2 * 48
    assert json.loads(first) == {"loader": "list", "batch_size": 4, "replay": 8}
    assert json.loads(second) == {"loader": "list 2", "batch_size": None, "replay": 0}
    assert f"{end}\n".encode() == END


def test_a_companion_that_has_gone_or_hangs_stops_nothing(companion: Any) -> None:
    """The script ends without a report."""
    session = companion("raise SystemExit(3)")
    session._process.wait(30)
    session.add_loader("list", None)
    session.log.add(RECORD, 3)
    assert not session.finish(30.0)
    hanging = companion("sys.stdin.buffer.read(); time.sleep(600)")
    assert not hanging.finish(0.1)
    hanging._process.kill()
    hanging._process.wait(30)


def test_a_script_that_is_killed_while_it_announces_a_loader_is_reported(tmp_path: Path) -> None:
    """The incomplete line is dropped, and the folder is no longer marked as used."""
    folder = claim_folder(tmp_path / "mine", 0, 1)
    session = Session(replace(SETTINGS, folder=str(folder)))
    session.add_loader("list", 4)
    for begun_s in range(5):
        session.log.add((0, 0, begun_s, begun_s + 0.5, begun_s + 1, 4), begun_s)
    session.log.flush()
    session._pipe.write(b'{"loader": "other", "batch')
    session._pipe.close()
    session._steps.close()
    assert session._process.wait(PATIENCE_S) == 0
    assert not (folder / CLAIM).exists()
    (trial,) = read(folder).trials
    assert trial.params["loader"] == "list"


def test_a_run_that_is_there_is_left_alone(tmp_path: Path) -> None:
    """The next run gets a folder beside it, and a claim can be released twice."""
    expected = tmp_path / "mine"
    first = claim_folder(expected, 0, 1)
    (first / "result.json").touch()
    second, third = claim_folder(expected, 0, 1), claim_folder(expected, 0, 1)
    assert [path.name for path in (first, second, third)] == ["mine", "mine-2", "mine-3"]
    release_folder(second)
    release_folder(second)
    assert claim_folder(expected, 0, 1) == second


def test_other_files_are_no_run(tmp_path: Path) -> None:
    """The folder of an experiment can be used, and each rank has a folder in it."""
    (tmp_path / "checkpoint.pt").touch()
    assert claim_folder(tmp_path, 0, 1) == tmp_path
    assert (tmp_path / CLAIM).exists()
    folders = {claim_folder(tmp_path / "job", rank, 2) for rank in (1, 0)}
    assert folders == {tmp_path / "job" / "rank-0", tmp_path / "job" / "rank-1"}


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A file and a folder without permission are refused before the training begins."""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file is a file: name another folder"):
        claim_folder(tmp_path / "file", 0, 1)
    tmp_path.chmod(0o500)
    with unprivileged(), pytest.raises(ConfigError, match="cannot write in"):
        claim_folder(tmp_path / "mine", 0, 1)


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({}, (0, 1, 0)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, (0, 1, 0)),
        ({"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"}, (9, 16, 1)),
        ({"RANK": "3", "WORLD_SIZE": "4"}, (3, 4, 3)),
        ({"RANK": "three", "WORLD_SIZE": "4"}, (0, 1, 0)),
        ({"RANK": "\u00b2", "WORLD_SIZE": "4"}, (0, 1, 0)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2, 1)),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}, (5, 8, 1)),
        (
            {"RANK": "1", "WORLD_SIZE": "2", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"},
            (1, 2, 1),
        ),
    ],
)
def test_the_rank_is_in_the_environment(
    environment: dict[str, str], rank: tuple[int, int, int]
) -> None:
    """torchrun comes before MPI and MPI before Slurm; a single process has no rank."""
    assert job_rank(environment) == rank
