"""Processor time of a process and of what it started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iobench.errors import Unavailable
from iobench.samplers.tree import TreeSampler

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def write(
    proc: Path, pid: int, parent: int, ticks: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> None:
    """``/proc/PID/stat``: user, system, and those of its reaped children."""
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    before = "0 " * 9
    (folder / "stat").write_text(
        f"{pid} (a) b ) c) S {parent} {before}{' '.join(map(str, ticks))} 20 0 1 0\n"
    )


def test_all_below_the_process_are_counted(tmp_path: Path) -> None:
    """Workers of workers too; others are not. Names may hold brackets."""
    for pid, parent in ((10, 1), (11, 10), (12, 11), (99, 1)):
        write(tmp_path, pid, parent)
    sampler = TreeSampler(10, tmp_path)
    assert sampler.read(0.0) == {"processes": 3}
    write(tmp_path, 10, 1, (100, 20, 0, 0))
    write(tmp_path, 12, 11, (50, 0, 0, 0))
    write(tmp_path, 99, 1, (10_000, 0, 0, 0))
    found = sampler.read(1.0)
    assert found["user_cores"] == pytest.approx(150 * TICK_S)
    assert found["system_cores"] == pytest.approx(20 * TICK_S)


def test_a_worker_that_ended_is_counted_once(tmp_path: Path) -> None:
    """Its time has gone over to the process that reaped it."""
    write(tmp_path, 10, 1, (100, 0, 0, 0))
    write(tmp_path, 11, 10, (40, 0, 0, 0))
    sampler = TreeSampler(10, tmp_path)
    sampler.read(0.0)
    (tmp_path / "11" / "stat").unlink()
    write(tmp_path, 10, 1, (100, 0, 50, 0))
    assert sampler.read(1.0) == {
        "user_cores": pytest.approx(10 * TICK_S),
        "system_cores": 0,
        "processes": 1,
    }


def test_new_workers_are_found_after_a_while(tmp_path: Path) -> None:
    """Not at once: that takes a look at every process of the machine."""
    write(tmp_path, 10, 1)
    sampler = TreeSampler(10, tmp_path)
    sampler.read(0.0)
    write(tmp_path, 11, 10)
    assert sampler.read(0.5)["processes"] == 1
    assert sampler.read(2.5)["processes"] == 2


def test_a_process_that_has_gone_takes_nothing(tmp_path: Path) -> None:
    """The last reading of a trial may come after its end."""
    write(tmp_path, 10, 1, (100, 0, 0, 0))
    sampler = TreeSampler(10, tmp_path)
    sampler.read(0.0)
    (tmp_path / "10" / "stat").unlink()
    assert sampler.read(1.0) == {"user_cores": 0, "system_cores": 0, "processes": 0}


def test_a_process_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """So on machines without ``/proc``."""
    with pytest.raises(Unavailable, match="no processor time of the process tree"):
        TreeSampler(10, tmp_path)
