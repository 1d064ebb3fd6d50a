"""Processes that do not outlive the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel kill this process when ``parent``, which started it, ends.

    It counts from the thread that started it: start such processes from the main thread. Another
    signal than SIGKILL leaves the process time to tidy up.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before we asked
