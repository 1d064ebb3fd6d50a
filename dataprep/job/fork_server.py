"""Start multiprocessing's fork server, of which Dask's worker processes are forks.

The fork server imports once what every worker needs (``dataprep.job.fork_server_preload``), while
the driver still plans.
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
        modules: the modules that it imports, in addition to ``dataprep.job.fork_server_preload``.
    """
    multiprocessing.set_forkserver_preload(["dataprep.job.fork_server_preload", *modules])
    resource_tracker.ensure_running()  # up to Python 3.12, its start unblocks interrupts
    with interrupts_blocked():
        forkserver.ensure_running()


def keep_modules_of_fork_server() -> None:
    """Keep Dask from importing further packages, such as pandas, for the fork server.

    Dask has no setting for this. It looks at an internal variable, whose existence
    ``tests/dataprep/job/test_fork_server.py`` checks.
    """
    import distributed.utils

    distributed.utils._forkserver_preload_set = True


def is_starting_worker() -> bool:
    """Return whether this process is a worker that imports the main script as it starts."""
    return bool(getattr(process.current_process(), "_inheriting", False))


@contextmanager
def main_script_hidden() -> Iterator[None]:
    """Keep workers from importing a script that Python reads from its standard input."""
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
    """Hide Ctrl-C from threads and processes that start here, because the driver ends them."""
    previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
