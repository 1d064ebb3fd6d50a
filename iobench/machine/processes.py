"""Processes: find and start programs, end with a parent, descendants, memory, suspended time."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from iobench.errors import TrialFailed

_PR_SET_PDEATHSIG = 1  # prctl(2)
_PSS = re.compile(rb"^(Pss|Pss_Anon|Pss_Shmem):\s+(\d+) kB$", re.M)
_LONGEST_LOOK_S = 5.0
"""If more time passes between two looks, the looking process itself was suspended."""
_MEMORY_EVERY_S, _MEMORY_SHARE = 0.2, 0.01


def find_program(name: str) -> str | None:
    """Path of a program of this interpreter's environment or on the path; None if not found.

    A wheel that brings one as ``NAME/bin/NAME`` installs a Python script that calls it, which
    takes longer to start than the program does: the program itself is preferred.
    """
    spec = find_spec(name) if name.isidentifier() else None
    folders = [f"{package}/bin" for package in (spec and spec.submodule_search_locations) or ()]
    folders += [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return shutil.which(name, path=os.pathsep.join(folders))


_REMEDIES = {
    errno.EAGAIN: "end other programs, or raise the limit of processes (ulimit -u, or pids.max of "
    "the control group)",
    errno.ENOMEM: "end other programs, or use fewer workers: this machine lacks free memory",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "end other programs: this machine has too many open files",
}


@contextlib.contextmanager
def starting(what: str) -> Iterator[None]:
    """Turn the system's refusal to start a process or a thread into a failed trial.

    Such a refusal may pass, so that the next trial is tried all the same. ``what`` is started by
    the block, and begins the message.

    Raises:
        TrialFailed: the block raised OSError, or the RuntimeError of ``Thread.start``.
    """
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "")
        advice = f": {remedy}, then continue with --resume" if remedy else ""
        raise TrialFailed(
            f"{what} could not be started: {error.strerror or error}{advice}"
        ) from None
    except RuntimeError as error:
        remedy = _REMEDIES[errno.EAGAIN]
        raise TrialFailed(
            f"{what} could not be started: {error}: {remedy}, then continue with --resume"
        ) from None


def end_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel kill this process when ``parent``, which started it, ends.

    The thread that started it counts: start such processes from the main thread. Another signal
    than SIGKILL lets the process tidy up.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)  # it had ended before the call


def descendants(root: int) -> set[int]:
    """``root`` and every process below it."""
    try:
        return {root, *(child.pid for child in psutil.Process(root).children(recursive=True))}
    except psutil.Error:
        return {root}


def proportional_bytes(process: int, *, unbacked: bool = False) -> int | None:
    """Proportional set size of a process (``/proc/PID/smaps_rollup``, Linux 4.14, proc(5)).

    A page counts divided by the number of processes that map it. The kernel walks all pages of
    the process for it: about 20 ms a GB. With ``unbacked`` only pages that no file backs count:
    anonymous and shared memory, all where an older kernel does not separate them. 0 for a process
    that has ended; None if it may not be read.
    """
    try:
        data = Path(f"/proc/{process}/smaps_rollup").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None
    found = {name: 1024 * int(kib) for name, kib in _PSS.findall(data)}
    if unbacked and b"Pss_Anon" in found:
        return found[b"Pss_Anon"] + found.get(b"Pss_Shmem", 0)
    return found.get(b"Pss", 0)


@dataclass
class Cost:
    """The share of a processor that ``repeated`` calls took; set when the block ends."""

    core_share: float = 0.0


@contextlib.contextmanager
def repeated(look: Callable[[], float]) -> Iterator[Cost]:
    """Call ``look`` in a thread at the begin and end of the block, and repeatedly between.

    ``look`` returns the seconds until its next call.
    """
    cost, ended = Cost(), threading.Event()

    def run() -> None:
        begun_s = time.perf_counter()
        while not ended.wait(look()):
            pass
        look()
        cost.core_share = time.thread_time() / max(time.perf_counter() - begun_s, 1e-9)

    thread = threading.Thread(target=run, name=look.__qualname__, daemon=True)
    with starting("a thread of the measurement"):
        thread.start()
    try:
        yield cost
    finally:
        ended.set()
        thread.join()


@dataclass
class PeakMemory(Cost):
    """The memory that this process and its descendants needed while ``peak_memory`` ran.

    ``needed_bytes`` is the largest amount above that at the beginning, None if the kernel does not
    report it.
    """

    needed_bytes: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Read the memory of this process and its descendants in a thread while the block runs.

    Only pages that no file backs count, since the kernel can take the page cache back. They are
    read five times a second, or less often if that would take more than 1 % of a processor.
    """
    peak, below = PeakMemory(), descendants(os.getpid())
    at_first = _tree_bytes(below)

    def look() -> float:
        nonlocal below
        cpu_s = time.thread_time()
        before, below = below, descendants(os.getpid())
        # Until a new process has its own program its memory is its parent's (vfork(2)).
        now = _tree_bytes(before & below)
        if now is not None and at_first is not None:
            peak.needed_bytes = max(peak.needed_bytes or 0, now - at_first)
        return max(_MEMORY_EVERY_S, (time.thread_time() - cpu_s) / _MEMORY_SHARE)

    with repeated(look) as cost:
        yield peak
    peak.core_share = cost.core_share


def _tree_bytes(processes: Iterable[int]) -> int | None:
    """Memory of these processes; None if the kernel does not report that of this one."""
    found = {process: proportional_bytes(process, unbacked=True) for process in processes}
    return sum(size or 0 for size in found.values()) if found[os.getpid()] else None


class SuspendedTime:
    """Add up for how long ``process`` was suspended (Ctrl-Z, SIGSTOP).

    The process that looks may have been suspended too, as in a paused container.
    """

    def __init__(self, process: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._process, self._clock = process, clock
        self._looked_s = clock()
        self.awake_s = 0.0
        """Seconds since the first look in which the process that looks was not suspended."""
        self.seconds = 0.0
        """Seconds in which either was."""

    def skip(self) -> None:
        """Leave out the time since the last look: nothing was looked at on purpose."""
        self._looked_s = self._clock()

    def look(self) -> None:
        """Look once; call this about twice a second."""
        now_s = self._clock()
        since_s, self._looked_s = now_s - self._looked_s, now_s
        slept = since_s > _LONGEST_LOOK_S
        if not slept:
            self.awake_s += since_s
        status = ""
        with contextlib.suppress(psutil.Error):
            status = psutil.Process(self._process).status()
        if slept or status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP):
            self.seconds += since_s
