"""Start multiprocessing's fork server. Dask's worker processes are forks of it.

The fork server imports the modules that every worker needs (``dataprep.job.fork_server_preload``).
This happens once, while the driver still plans the job.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver, process, resource_tracker


def start_fork_server(modules: Sequence[str]) -> None:
    """Start the fork server in the background, unless this process has one.

    Args:
        modules: the modules that the fork server imports, in addition to
            ``dataprep.job.fork_server_preload``. They are ignored if this process has a fork server
            already.
    """
    multiprocessing.set_forkserver_preload(["dataprep.job.fork_server_preload", *modules])
    resource_tracker.ensure_running()  # up to Python 3.12, its start unblocks interrupts
    with interrupts_blocked():
        forkserver.ensure_running()


def keep_modules_of_fork_server() -> None:
    """Keep Dask from importing further packages, such as pandas, for the fork server.

    Dask has no setting for this. This function sets an internal variable of Dask. A test in
    ``tests/dataprep/job/test_fork_server.py`` checks that the variable exists.
    """
    import distributed.utils

    distributed.utils._forkserver_preload_set = True


def is_starting_worker() -> bool:
    """Return whether this process is a starting worker, which imports the main script."""
    return bool(getattr(process.current_process(), "_inheriting", False))


@contextmanager
def main_script_hidden() -> Iterator[None]:
    """Keep workers from importing the main script if Python reads it from standard input.

    Workers could not read it, because there is no file with that name.
    """
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) != "<stdin>":
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = "<stdin>"


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in threads and processes that are started in the ``with`` block.

    The driver alone handles Ctrl-C, and ends them.
    """
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
