"""The process that converts samples one at a time for another, and may die of one.

It is told a source and a policy once, then one sample after the other. Of each it answers the
SHA-256 of its file as soon as that is read, then the outcome; or the error in place of either.
"""

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
from dataprep.outcomes import Outcome, converted_or_why, digest_of
from dataprep.read_ahead import read_one
from dataprep.sources import Located, Source

_PR_SET_PDEATHSIG = 1  # prctl(2)
_FIRST_TO_GO = "1000"  # proc(5), oom_score_adj


def serve(descriptor: int, parent: int) -> None:
    """Answer until nobody asks any more."""
    _expendable(parent)
    connection: Connection[Any, Any] = Connection(descriptor)
    source: Source | None
    policy: ImagePolicy
    source, policy = pickle.loads(connection.recv_bytes())  # noqa: S301  our own parent's
    connection.send("ready")
    while True:
        try:
            item, data = connection.recv()
        except EOFError:
            os._exit(0)
        try:
            _answer(connection, source, policy, item, data)
        except OSError:  # nobody hears it
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


def _expendable(parent: int) -> None:
    """End with the parent, before it where memory runs out, and leave no core behind."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was gone before we asked
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
