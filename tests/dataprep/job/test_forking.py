"""Tests of dataprep.job.forking."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from multiprocessing import process
from pathlib import Path

import pytest

from dataprep.errors import ConfigError, JobError
from dataprep.job.forking import (
    begin_imports,
    interrupts_held,
    refuse_while_main_is_imported,
    started_processes,
)

pytestmark = pytest.mark.process

SCRIPT = """
import dataprep
config = {config!r}
dataprep.shard(dataprep.ShardConfig.model_validate(config))
"""


def test_interrupts_are_held_for_a_while() -> None:
    """What was blocked before is blocked after, and nothing else."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with interrupts_held():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_the_environment_is_left_as_it_was() -> None:
    """What workers' memory is managed by is not the driver's business."""
    before = dict(os.environ)
    begin_imports()
    begin_imports()
    assert dict(os.environ) == before


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_of_a_process_that_has_workers() -> None:
    """Is refused with a way out: what Dask had there it would wait for without end."""
    begin_imports()
    reading, writing = os.pipe()
    fork = os.fork()
    if not fork:  # nothing of pytest may end with it
        try:
            begin_imports()
        except ConfigError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(fork, 0)
    assert b"by spawn, or give dask.processes: false" in os.read(reading, 4096)
    os.close(reading)
    begin_imports()  # here as before


def test_a_worker_that_begins_starts_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """While its caller's script is imported; before and after it may."""
    refuse_while_main_is_imported()
    monkeypatch.setattr(process.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(ConfigError, match="if __name__ == '__main__'"):
        refuse_while_main_is_imported()


def test_workers_that_do_not_begin() -> None:
    """Dask's word for it, and what to do; what else goes wrong is told as it is."""
    said = r"did not start \(Nanny failed\).*processes: false"
    with pytest.raises(JobError, match=said), started_processes():
        raise RuntimeError("Nanny failed")
    with pytest.raises(OSError, match="full"), started_processes():
        raise OSError("full")


@pytest.fixture
def script(images: Path, tmp_path: Path) -> str:
    """It starts a job of worker processes, wherever it is imported."""
    config = {
        "source": str(images),
        "output": str(tmp_path / "out"),
        "dask": {"workers": 1, "processes": True, "dashboard": "127.0.0.1:0"},
    }
    return SCRIPT.format(config=config)


def test_a_script_from_standard_input(script: str, tmp_path: Path) -> None:
    """Is in no file that workers could import, and needs no guard: the job is done."""
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out" / "train.manifest.json").exists()


def test_a_script_without_a_guard(script: str, tmp_path: Path) -> None:
    """Ends with what it lacks, and does not start the job in its workers."""
    file = tmp_path / "script.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "worker processes did not start" in last
    assert "if __name__ == '__main__'" in last
