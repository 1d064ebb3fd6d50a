"""The process that worker processes of this machine are forks of.

It imports once what every worker needs, while the driver still plans. Python takes this way by
default from 3.14 on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import forkserver, process, resource_tracker

from dataprep.errors import ConfigError, JobError
from dataprep.job import socket_folder

_IMPORTED = "dataprep.forked"
# Its environment is that of its workers. Dask tells glibc to give every freed block back to the
# kernel at once, and a task's thread has an arena that maps anything large anew. Pixels come and go
# by the half megabyte: a quarter of a worker's time went into page faults. One arena that keeps
# them costs a few megabytes. What is above 4 MiB, such as a shard that grows, is mapped by itself:
# in the arena it would leave holes.
MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
    "MALLOC_MMAP_THRESHOLD_": str(2**22),
    "MALLOC_ARENA_MAX": "1",
}
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def begin_imports(modules: Sequence[str] = ()) -> None:
    """Start that process, unless this one has such a process already; nothing is waited for.

    ``modules`` are imported as well.

    Raises:
        ConfigError: this process is a fork of one that has it.
    """
    _refuse_a_fork()
    _import_no_stdin()
    multiprocessing.set_forkserver_preload([_IMPORTED, *modules])
    resource_tracker.ensure_running()  # up to Python 3.12 its start lets interrupts through
    socket_folder.hold()
    with interrupts_held(), _environment({**_ONE_THREAD, **os.environ, **MALLOC}):
        forkserver.ensure_running()


def _refuse_a_fork() -> None:
    """Dask's threads are not in a fork of a process that ran it, and would be waited for.

    Raises:
        ConfigError: such a server is there and another process's.
    """
    server: int | None = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if server is None:
        return
    try:
        os.waitid(os.P_PID, server, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        raise ConfigError(
            "this process is a fork of one that had worker processes, and cannot have its own: "
            "start it by spawn, or give dask.processes: false"
        ) from None


def _import_no_stdin() -> None:
    """Have workers not look for a file of that name, as which Python tells a script from a pipe."""
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) == "<stdin>":
        del main.__file__


_GUARD = (
    "in a script, put what starts a job under if __name__ == '__main__':, since worker processes "
    "import it; dask.processes: false does without them"
)


def refuse_while_main_is_imported() -> None:
    """A script without a guard would start workers in each of its workers.

    Raises:
        ConfigError: this process is a worker that is about to begin.
    """
    if getattr(process.current_process(), "_inheriting", False):
        raise ConfigError(_GUARD)


@contextlib.contextmanager
def started_processes() -> Iterator[None]:
    """While workers begin.

    Raises:
        JobError: they do not.
    """
    try:
        yield
    except RuntimeError as error:
        raise JobError(
            f"worker processes did not start ({error}): allow more of them (ulimit -u) and memory; "
            + _GUARD
        ) from error


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Threads and processes that begin here never see Ctrl-C: the driver ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    added = {name: os.environ.get(name) for name in values if os.environ.get(name) != values[name]}
    os.environ.update({name: values[name] for name in added})
    try:
        yield
    finally:
        for name, value in added.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
