"""Find programs, report processes that cannot start, and observe processes and their memory."""

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
_MAX_LOOK_INTERVAL_S = 5.0
"""If more seconds pass between two looks at a process, the observing process itself is assumed to
have been suspended. It looks about twice a second."""

_MEMORY_INTERVAL_S = 0.2
"""The shortest time between two readings of memory, in seconds."""

_MEMORY_CPU_SHARE = 0.01
"""The share of a processor that reading memory may take. Memory is read less often if it takes
longer."""


def find_program(name: str) -> str | None:
    """Return the path of a program in this environment or on PATH; None if it is not found.

    A wheel may have a program as ``NAME/bin/NAME``, and install a Python script that calls it. The
    program itself is preferred, since the script takes longer to start.
    """
    spec = find_spec(name) if name.isidentifier() else None
    packages = (spec.submodule_search_locations if spec else None) or ()
    folders = [f"{package}/bin" for package in packages]
    folders += [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    return shutil.which(name, path=os.pathsep.join(folders))


_REMEDIES = {
    errno.EAGAIN: "end other programs, or raise the limit of processes (ulimit -u, or pids.max of "
    "the control group)",
    errno.ENOMEM: "end other programs, or use fewer workers: this machine lacks free memory",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "end other programs: this machine has too many open files",
}
"""What the user can do if the system refuses to start a process, by the number of the error."""


@contextlib.contextmanager
def starting(noun: str) -> Iterator[None]:
    """Turn the system's refusal to start a process or a thread into a failed trial.

    The run continues with the next trial, because the system may have resources again.

    Args:
        noun: the process or thread that the block starts, as the beginning of a message.

    Raises:
        TrialFailed: the block raised OSError, or the RuntimeError of ``Thread.start``.
    """
    try:
        yield
    except OSError as error:
        remedy = _REMEDIES.get(error.errno or 0, "")
        advice = f": {remedy}, then continue with --resume" if remedy else ""
        raise TrialFailed(
            f"{noun} could not be started: {error.strerror or error}{advice}"
        ) from None
    except RuntimeError as error:
        remedy = _REMEDIES[errno.EAGAIN]
        raise TrialFailed(
            f"{noun} could not be started: {error}: {remedy}, then continue with --resume"
        ) from None


def end_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel kill this process when its parent ends.

    The kernel sends the signal when the thread ends that started this process. So this process must
    be started from the main thread of its parent. If the parent has ended already, this function
    ends this process.

    Args:
        parent: the id of the parent.
        by: the signal that ends this process. With a signal other than SIGKILL, the process can
            clean up first.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)  # The parent had ended before the call.


def descendants(root: int) -> set[int]:
    """Return the ids of a process and of all its descendants.

    If the process has ended or may not be observed, the result has only its own id.
    """
    try:
        return {root, *(child.pid for child in psutil.Process(root).children(recursive=True))}
    except psutil.Error:
        return {root}


def proportional_bytes(process: int, *, unbacked: bool = False) -> int | None:
    """Return the proportional set size of a process (``/proc/PID/smaps_rollup``, Linux 4.14).

    Each page counts divided by the number of processes that map it. The kernel walks all pages of
    the process, which takes about 20 ms per GB.

    Args:
        process: the id of the process.
        unbacked: whether to count only pages that no file backs: anonymous and shared memory. A
            kernel that does not report these pages separately counts all pages.

    Returns:
        The size in bytes; 0 if the process has ended, None if the size may not be read.
    """
    try:
        data = Path(f"/proc/{process}/smaps_rollup").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except OSError:
        return None
    sizes = {name: 1024 * int(kib) for name, kib in _PSS.findall(data)}
    if unbacked and b"Pss_Anon" in sizes:
        return sizes[b"Pss_Anon"] + sizes.get(b"Pss_Shmem", 0)
    return sizes.get(b"Pss", 0)


@dataclass
class Cost:
    """The cost of the calls that ``repeated`` makes.

    Attributes:
        core_share: the share of a processor that the calls took; set when the block ends.
    """

    core_share: float = 0.0


@contextlib.contextmanager
def repeated(look: Callable[[], float]) -> Iterator[Cost]:
    """Call a function in a thread repeatedly while the block runs, also at its begin and end.

    Args:
        look: the function. It returns the seconds until its next call.

    Yields:
        The cost of the calls, which is known when the block has ended.

    Raises:
        TrialFailed: the system refuses to start a thread.
    """
    cost = Cost()
    ended = threading.Event()

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

    Attributes:
        needed_bytes: the largest increase since the beginning; None if the kernel does not report
            it.
    """

    needed_bytes: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Read the memory of this process and its descendants in a thread while the block runs.

    Only pages that no file backs count, since the kernel can take the page cache back. They are
    read five times a second, or less often if that would take more than 1 % of a processor.
    """
    peak = PeakMemory()
    members = descendants(os.getpid())
    begin_bytes = _tree_bytes(members)

    def look() -> float:
        nonlocal members
        cpu_before_s = time.thread_time()
        earlier_members, members = members, descendants(os.getpid())
        # A new process shows the memory of its parent until it runs its own program (vfork(2)). So
        # a process counts from the second reading on in which it exists.
        now_bytes = _tree_bytes(earlier_members & members)
        if now_bytes is not None and begin_bytes is not None:
            peak.needed_bytes = max(peak.needed_bytes or 0, now_bytes - begin_bytes)
        cpu_s = time.thread_time() - cpu_before_s
        return max(_MEMORY_INTERVAL_S, cpu_s / _MEMORY_CPU_SHARE)

    with repeated(look) as cost:
        yield peak
    peak.core_share = cost.core_share


def _tree_bytes(processes: Iterable[int]) -> int | None:
    """Return the memory of processes, which include this one, in bytes.

    It is None if the kernel does not report the memory of this process. The memory of other
    processes counts as far as the kernel reports it.
    """
    sizes = {process: proportional_bytes(process, unbacked=True) for process in processes}
    if not sizes[os.getpid()]:
        return None
    return sum(size or 0 for size in sizes.values())


class SuspendedTime:
    """Adds up for how long a process was suspended (Ctrl-Z, SIGSTOP).

    The observing process, which has this object, looks at the other process about twice a second.
    It may be suspended itself, as in a paused container. A long time between two looks shows that.

    Attributes:
        awake_s: seconds since this object was made in which the observing process was not
            suspended, without the time that ``skip`` leaves out.
        seconds: seconds in which at least one of both processes was suspended.

    Args:
        process: the id of the process that is observed.
        clock: the monotonic clock in seconds.
    """

    def __init__(self, process: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._process, self._clock = process, clock
        self._looked_s = clock()
        self.awake_s = 0.0
        self.seconds = 0.0

    def skip(self) -> None:
        """Leave out the time since the last look, if there was a reason not to look."""
        self._looked_s = self._clock()

    def look(self) -> None:
        """Look once, and add the time since the last look. Call this about twice a second."""
        now_s = self._clock()
        interval_s = now_s - self._looked_s
        self._looked_s = now_s
        was_suspended_itself = interval_s > _MAX_LOOK_INTERVAL_S
        if not was_suspended_itself:
            self.awake_s += interval_s
        status = ""
        with contextlib.suppress(psutil.Error):
            status = psutil.Process(self._process).status()
        is_stopped = status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
        if was_suspended_itself or is_stopped:
            self.seconds += interval_s
