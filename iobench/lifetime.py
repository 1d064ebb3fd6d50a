"""Processes that do not outlive the one that started them, however that ends."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # prctl(2)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when ``parent``, which started it, ends.

    It counts from the thread that started it: start such processes from the main thread.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before we asked
