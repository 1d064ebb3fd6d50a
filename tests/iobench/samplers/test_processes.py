"""Processes as the kernel tells them."""

from __future__ import annotations

import os
from pathlib import Path

from iobench.samplers.processes import Process, descendants, read_process


def write(proc: Path, pid: int, parent: int, ticks: str = "0 0 0 0") -> None:
    """``/proc/PID/stat``, of a process whose name holds brackets."""
    (proc / str(pid)).mkdir()
    line = f"{pid} (a) b ) c) S {parent} {'0 ' * 9}{ticks} 20 0 1 0 500 9000 25 0\n"
    (proc / str(pid) / "stat").write_text(line)


def test_a_process_has_its_time_and_that_of_its_reaped_children(tmp_path: Path) -> None:
    """User and system apart; and its pages in memory."""
    write(tmp_path, 10, 7, "1 20 300 4000")
    assert read_process(10, tmp_path) == Process(7, 301, 4020, 25)
    assert read_process(11, tmp_path) is None


def test_a_line_that_is_none_is_no_process(tmp_path: Path) -> None:
    """It went while it was read."""
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "stat").write_text("10 (a) S 1\n")
    assert read_process(10, tmp_path) is None


def test_all_below_are_found(tmp_path: Path) -> None:
    """However deep; what is no process is passed over."""
    for pid, parent in ((10, 1), (11, 10), (12, 11), (99, 1)):
        write(tmp_path, pid, parent)
    (tmp_path / "meminfo").write_text("")
    assert descendants(10, tmp_path) == {10, 11, 12}
    assert descendants(12, tmp_path) == {12}


def test_this_process_is_told_by_the_kernel() -> None:
    """With its own parent."""
    found = read_process(os.getpid(), Path("/proc"))
    assert found is not None
    assert found.parent == os.getppid()
    assert found.user_ticks > 0
