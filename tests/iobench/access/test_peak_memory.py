"""Memory of a process tree, as the kernel tells it."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from iobench.access.peak_memory import PeakMemory, tree_bytes
from tests.commandline import wait_until

pytestmark = pytest.mark.slow

MIB = 2**20


def process(proc: Path, pid: int, parent: int, rollup: str | None) -> None:
    """``/proc/PID``, with its memory where it can be read."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} (a) S {parent} {'0 ' * 9}0 0 0 0 20 0 1 0 0 0 0 0\n")
    if rollup is not None:
        (folder / "smaps_rollup").write_text(rollup)


def test_those_told_count(tmp_path: Path) -> None:
    """One that cannot be read counts nothing, unless it is the first."""
    process(tmp_path, 10, 1, "Pss: 10 kB\n")
    process(tmp_path, 11, 10, "Pss: 5 kB\n")
    process(tmp_path, 13, 10, None)
    assert tree_bytes(10, {11, 13, 14}, tmp_path) == 15 * 1024
    assert tree_bytes(13, {11}, tmp_path) is None


def test_a_new_process_counts_from_the_second_look_on(tmp_path: Path) -> None:
    """At the first its memory may still be its parent's; what is not below never counts."""
    process(tmp_path, 10, 1, "Pss: 100 kB\n")
    process(tmp_path, 99, 1, "Pss: 1000 kB\n")
    memory = PeakMemory(10, tmp_path)
    memory._before = 100 * 1024
    process(tmp_path, 11, 10, "Pss: 100 kB\n")
    memory._look()
    assert memory.needed_bytes == 0
    (tmp_path / "11" / "smaps_rollup").write_text("Pss: 5 kB\n")
    memory._look()
    assert memory.needed_bytes == 5 * 1024


def test_the_most_above_the_beginning_is_what_was_needed(tmp_path: Path) -> None:
    """Not what is there at the end, and never below nothing."""
    process(tmp_path, 10, 1, "Pss: 100 kB\n")
    memory = PeakMemory(10, tmp_path)
    with memory:
        wait_until(lambda: memory.needed_bytes == 0, "a first reading")
        (tmp_path / "10" / "smaps_rollup").write_text("Pss: 400 kB\n")
        wait_until(lambda: memory.needed_bytes == 300 * 1024, "a reading of more")
        (tmp_path / "10" / "smaps_rollup").write_text("Pss: 50 kB\n")
    assert memory.needed_bytes == 300 * 1024
    assert memory.core_share > 0


def test_what_cannot_be_told_is_none(tmp_path: Path) -> None:
    """On a kernel without smaps_rollup, or where it may not be read."""
    process(tmp_path, 10, 1, None)
    with PeakMemory(10, tmp_path) as memory:
        pass
    assert memory.needed_bytes is None


def test_this_process_and_a_child_are_measured() -> None:
    """Memory that either of them fills is seen, and memory that is not touched is not."""
    code = (
        f"import sys; held = b'x' * {32 * MIB}; "
        "sys.stdout.write('y'); sys.stdout.flush(); sys.stdin.read()"
    )
    with PeakMemory() as memory, mmap.mmap(-1, 64 * MIB) as own:
        own[: 32 * MIB] = b"x" * (32 * MIB)
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            assert child.stdout.read(1) == b"y"
            wait_until(lambda: (memory.needed_bytes or 0) >= 64 * MIB, "both to be seen")
            assert child.stdin is not None
            child.stdin.close()
    assert memory.needed_bytes is not None
    assert memory.needed_bytes < 96 * MIB
