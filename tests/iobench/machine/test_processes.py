"""Processes: programs that can be started, memory, descendants and suspended time."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iobench.clock import VirtualClock
from iobench.machine import processes
from iobench.machine.processes import (
    SuspendedTime,
    descendants,
    find_program,
    peak_memory,
    proportional_bytes,
)
from tests.commandline import wait_until
from tests.permissions import unprivileged


def program(folder: Path, name: str) -> str:
    """Write an executable script, whose path is returned."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_programs_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel's own program comes first, then this environment, then ``PATH``."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "own" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_program("peer") is None
    on_path = program(tmp_path / "path", "peer")
    assert find_program("peer") == on_path
    own = program(tmp_path / "own", "peer")
    assert find_program("peer") == own
    monkeypatch.syspath_prepend(str(tmp_path))
    inside = program(tmp_path / "peer" / "bin", "peer")
    (tmp_path / "peer" / "__init__.py").touch()
    assert find_program("peer") == inside


MIB = 2**20
HOLDING = "import sys; held = b'x' * {}; print('ready', flush=True); sys.stdin.read()"
MAPPING = """\
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    pages = mmap.mmap(file.fileno(), 0)
sum(pages[::4096])
print("mapped", flush=True)
sys.stdin.read()
"""


@contextmanager
def running(code: str, *arguments: str) -> Iterator[int]:
    """Run Python code up to its first line of output; yield the process id, then let it end."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process.pid
        process.communicate()


class TestMemory:
    """The proportional memory of a process."""

    def test_pages_of_two_processes_count_half_for_each(self, tmp_path: Path) -> None:
        """Shared pages are not counted twice, and pages of a file can be left out."""
        path = tmp_path / "pages"
        path.write_bytes(b"x" * (64 * MIB))
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as pages:
            assert sum(pages[::4096]) > 0
            alone = proportional_bytes(os.getpid())
            unbacked = proportional_bytes(os.getpid(), unbacked=True)
            with running(MAPPING, str(path)) as other:
                shared, theirs = proportional_bytes(os.getpid()), proportional_bytes(other)
        if alone is None:
            pytest.skip("this kernel has no smaps_rollup")
        assert shared is not None
        assert theirs is not None
        assert 16 * MIB < alone - shared < 48 * MIB
        assert theirs > 16 * MIB
        assert unbacked is not None
        assert unbacked < alone - 32 * MIB

    def test_memory_of_another_users_process_is_unknown(self) -> None:
        """The memory of another user's process is unknown."""
        with running(HOLDING.format(1)) as process, unprivileged():
            if os.geteuid() == Path(f"/proc/{process}").stat().st_uid:
                pytest.skip("only root can become another user")
            assert proportional_bytes(process) is None
        assert proportional_bytes(process) == 0  # The process has ended.


def test_descendants() -> None:
    """They are found at any depth; a process that has ended has none."""
    inner = HOLDING.format(1)
    outer = (
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', sys.argv[1]], "
        "stdin=sys.stdin); print(child.pid, flush=True); child.wait()"
    )
    with running(outer, inner) as process:
        wait_until(lambda: len(descendants(process)) == 2, "its child")
        assert descendants(os.getpid()) > descendants(process)
    assert descendants(process) == {process}


class TestPeakMemory:
    """The peak memory of a process and its descendants."""

    def test_a_new_process_counts_from_the_second_look_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At the first look the memory of a new process may still be its parent's."""
        own, looks = os.getpid(), 0
        memory = {own: 100, 11: 500}
        tree = {own}

        def looked(root: int) -> set[int]:
            nonlocal looks
            looks += 1
            return set(tree)

        monkeypatch.setattr(processes, "descendants", looked)
        monkeypatch.setattr(processes, "_MEMORY_INTERVAL_S", 0.001)
        monkeypatch.setattr(
            processes, "proportional_bytes", lambda process, *, unbacked: memory[process]
        )
        with peak_memory() as peak:
            wait_until(lambda: peak.needed_bytes == 0, "a first look")
            memory[own] = 400
            wait_until(lambda: peak.needed_bytes == 300, "a look at more")
            memory[own] = 100
            tree.add(11)
            wait_until(lambda: peak.needed_bytes == 500, "a look at the new process")
        assert peak.core_share > 0

    def test_a_kernel_without_smaps_rollup(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A kernel without smaps_rollup gives None."""
        monkeypatch.setattr(processes, "proportional_bytes", lambda process, *, unbacked: None)
        with peak_memory() as peak:
            pass
        assert peak.needed_bytes is None

    @pytest.mark.slow
    def test_this_process_and_a_child_are_measured(self) -> None:
        """Memory counts when either process has filled it."""
        with peak_memory() as peak, mmap.mmap(-1, 64 * MIB) as own:
            own[: 32 * MIB] = b"x" * (32 * MIB)
            with running(HOLDING.format(32 * MIB)):
                wait_until(lambda: (peak.needed_bytes or 0) >= 64 * MIB, "both to be seen")
        assert peak.needed_bytes is not None
        assert peak.needed_bytes < 96 * MIB


class TestSuspended:
    """The time in which a process was suspended."""

    def test_looks_at_a_running_process(self) -> None:
        """All time counts as awake, also that of a process that has ended."""
        clock = VirtualClock(100.0)
        with running("print(1)") as process:
            suspended = SuspendedTime(process, clock.now_s)
            for _ in range(10):
                clock.sleep(0.5)
                suspended.look()
        clock.sleep(0.5)
        suspended.look()
        assert (suspended.awake_s, suspended.seconds) == (5.5, 0.0)

    def test_time_in_which_it_is_suspended_adds_up(self) -> None:
        """Time until a look counts as suspended if the process is stopped at that look."""
        clock = VirtualClock(100.0)
        with running(HOLDING.format(1)) as process:
            suspended = SuspendedTime(process, clock.now_s)
            for sent in (signal.SIGSTOP, signal.SIGCONT, signal.SIGSTOP, signal.SIGSTOP):
                os.kill(process, sent)
                options = os.WSTOPPED if sent == signal.SIGSTOP else os.WCONTINUED
                os.waitid(os.P_PID, process, options | os.WNOWAIT)
                clock.sleep(0.5)
                suspended.look()
            os.kill(process, signal.SIGCONT)
        assert (suspended.awake_s, suspended.seconds) == (2.0, 1.5)

    def test_the_observer_may_have_been_suspended(self) -> None:
        """A long leap is suspended time of the observer; a late look of a busy machine is none."""
        clock = VirtualClock(100.0)
        suspended = SuspendedTime(os.getpid(), clock.now_s)
        clock.sleep(4.0)
        suspended.look()
        assert (suspended.awake_s, suspended.seconds) == (4.0, 0.0)
        clock.sleep(3600.0)
        suspended.look()
        assert (suspended.awake_s, suspended.seconds) == (4.0, 3600.0)
