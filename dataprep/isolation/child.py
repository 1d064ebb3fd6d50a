"""The process that converts samples one at a time for another, and may die of one.

It is a fork of a server that has imported for it and does nothing else, so that the next one is
there within milliseconds. Of each sample it answers the SHA-256 of its file as soon as that is
read, then the outcome; or the error in place of either.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import resource
import signal
from multiprocessing import reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dataprep.errors import ImageError, JobError
from dataprep.image import ImagePolicy
from dataprep.outcomes import Outcome, converted_or_why, digest_of
from dataprep.read_ahead import read_one
from dataprep.sources import Located, Source

_PR_SET_PDEATHSIG = 1  # prctl(2)
_FIRST_TO_GO = "1000"  # proc(5), oom_score_adj


def serve(descriptor: int, parent: int) -> None:
    """Start a child for each end of a pipe that is sent: its process id, then its exit code."""
    _end_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    control: Connection[Any, Any] = Connection(descriptor)
    source, policy = pickle.loads(control.recv_bytes())  # noqa: S301  our own parent's
    control.send("ready")
    server = os.getpid()
    with contextlib.suppress(EOFError, OSError):  # nobody asks any more
        while True:
            control.recv()
            end = reduction.recv_handle(control)
            child = os.fork()
            if not child:
                control.close()
                _convert_all(Connection(end), source, policy, server)
            os.close(end)
            control.send(child)
            control.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)


def _convert_all(
    connection: Connection[Any, Any], source: Source | None, policy: ImagePolicy, server: int
) -> None:
    """Answer until nobody asks any more. Where memory runs out this process goes first."""
    with contextlib.suppress(EOFError, OSError):
        _end_with(server)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)
        while True:
            item, data = connection.recv()
            _answer(connection, source, policy, item, data)
    os._exit(0)


def _answer(
    connection: Connection[Any, Any],
    source: Source | None,
    policy: ImagePolicy,
    item: Located,
    data: bytes | ImageError | None,
) -> None:
    try:
        if data is None:
            assert source is not None  # noqa: S101  whose bytes come along has none
            data = read_one(source, item, policy.max_source_bytes)
        digest = digest_of(data)
    except Exception as error:  # noqa: BLE001  raised by who asked
        connection.send(sendable(error))
        return
    connection.send(digest)
    answer: Outcome | Exception
    try:
        answer = Outcome(converted_or_why(data, policy, item.name), digest)
    except Exception as error:  # noqa: BLE001  raised by who asked
        answer = sendable(error)
    connection.send(answer)


def sendable(error: Exception) -> Exception:
    """The error itself, or its words where another process could not make it."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301  our own
    except Exception:  # noqa: BLE001  what cannot be sent is told
        return JobError(f"a worker failed: {type(error).__name__}: {error}")
    return error


def _end_with(parent: int) -> None:
    with contextlib.suppress(AttributeError, OSError):  # systems without it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before we asked
