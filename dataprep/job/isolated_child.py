"""The process that converts images one at a time for ``isolate``, and may die of one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dataprep.errors import ImageError, JobError
from dataprep.image import ImagePolicy
from dataprep.job.worker import outcome_of

_PR_SET_PDEATHSIG = 1  # prctl(2)
_FIRST_TO_BE_KILLED = "1000"  # proc(5), oom_score_adj


def serve(descriptor: int, parent: int) -> None:
    """Convert what arrives until the other end of the pipe is closed."""
    with contextlib.suppress(AttributeError, OSError):  # systems without it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # where memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED)
    connection: Connection[Any, Any] = Connection(descriptor)
    with contextlib.suppress(EOFError, OSError):
        policy: ImagePolicy = connection.recv()
        connection.send("ready")
        while True:
            data, name = connection.recv()
            connection.send(_answer(data, policy, name))


def _answer(data: bytes | ImageError, policy: ImagePolicy, name: str) -> Any:
    """The outcome, or the error to raise in the process that asked."""
    try:
        return outcome_of(data, policy, name)
    except Exception as error:  # noqa: BLE001  raised by the process that asked
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301  our own
        except Exception:  # noqa: BLE001  the error cannot be pickled
            return JobError(f"a worker failed: {type(error).__name__}: {error}")
        return error
