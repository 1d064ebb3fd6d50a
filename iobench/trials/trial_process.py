"""The process of one trial, for its parent process: start it, send a request, and read messages.

The process runs ``iobench.trials.trial_process_main``. It reads a pickled request from its stdin,
and answers with JSON lines on a pipe. If the trial must begin at the same time as trials of other
hosts or ranks, it waits for a line on its stdin.

``iobench.trials.trial_timeout`` uses this to run a trial with a time limit, and
``iobench.trials.rank_processes`` uses it to run the ranks of a trial.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.name_encoding import escape
from iobench.machine.processes import starting
from iobench.results.trial import Location, TrialSpec

Message: TypeAlias = Mapping[str, Any]
"""A message of the process of a trial: a JSON object (``iobench.trials.trial_process_main``)."""

REQUEST_SIZE_BYTES = 8
"""A request begins with a little-endian number of this many bytes: the size of the rest."""

LOOK_EVERY_S = 0.5
"""Seconds between two checks whether a process has ended.

The end of its pipe does not show this, since its workers may keep the pipe open.
"""

_MAX_PRINTED_BYTES = 4096
"""``last_line`` reads this many bytes at the end of the output of the process."""
_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A request to a process to run one trial.

    Attributes:
        spec: the trial.
        locations: the locations that the parameters of the trial name, by their names.
        scratch: a folder that the trial may write to; None if it needs none.
        ends_within_s: the seconds after which the trial ends by itself, with a reason.
        waits: whether the trial waits after its preparation, until ``ChildProcess.let_begin`` is
            called.
    """

    spec: TrialSpec
    locations: Mapping[str, Location]
    scratch: Path | None = None
    ends_within_s: float = math.inf
    waits: bool = False


class ChildProcess:
    """A process that runs one trial. A selector can wait for its messages.

    Args:
        environment: all environment variables of the process.
        own_session: whether the process leads a session, and so a process group, of its own.
        inherited_descriptors: file descriptors that the process inherits.

    Raises:
        TrialFailed: the system refuses to start the process.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        own_session: bool,
        inherited_descriptors: Iterable[int] = (),
    ) -> None:
        self._incomplete_line = b""
        self.closed = False
        """Whether every process that could write messages has ended."""
        with starting("the process of the trial"), contextlib.ExitStack() as close_on_failure:
            read_end, write_end = os.pipe()
            self._pipe = close_on_failure.enter_context(os.fdopen(read_end, "rb", buffering=0))
            with os.fdopen(write_end, "wb", buffering=0):
                os.set_blocking(read_end, False)
                self._output = close_on_failure.enter_context(tempfile.TemporaryFile())
                self._process = subprocess.Popen(
                    _program_arguments(write_end),
                    stdin=subprocess.PIPE,
                    stdout=self._output,
                    stderr=self._output,
                    pass_fds=[write_end, *inherited_descriptors],
                    env=environment,
                    start_new_session=own_session,
                )
            close_on_failure.pop_all()
        assert self._process.stdin is not None  # noqa: S101  stdin=PIPE
        self._stdin = self._process.stdin
        self.pid = self._process.pid

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(0)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._pipe.close()
        self._output.close()

    def fileno(self) -> int:
        """The descriptor of the pipe with the messages, for selectors."""
        return self._pipe.fileno()

    def request(self, request: TrialRequest) -> None:
        """Send the request for a trial. A process takes one request."""
        data = pickle.dumps(request)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(len(data).to_bytes(REQUEST_SIZE_BYTES, "little") + data)
            self._stdin.flush()
            if not request.waits:
                self._stdin.close()

    def let_begin(self) -> None:
        """Let the measurement begin.

        This is for a request with ``waits``, after the message ``ready`` has arrived.
        """
        with contextlib.suppress(BrokenPipeError), self._stdin:
            self._stdin.write(b"begin\n")

    def messages(self) -> list[Message]:
        """All messages that have arrived since the last call. This does not wait.

        It reads until the pipe is empty. A pipe may hold more than one read returns: 1 MiB on a
        machine with memory pages of 64 KiB.
        """
        pieces = [self._incomplete_line]
        data = self._pipe.read(_READ_BYTES)
        while data:
            pieces.append(data)
            data = self._pipe.read(_READ_BYTES)
        # An empty result means that no process holds the other end any more. None means that the
        # pipe is empty at the moment.
        self.closed = data is not None
        lines = b"".join(pieces).split(b"\n")
        self._incomplete_line = lines.pop()
        return [json.loads(line) for line in lines]

    @property
    def ended(self) -> bool:
        """Whether the process has ended. Its workers may still run."""
        return self._process.poll() is not None

    def wait(self, limit_s: float) -> None:
        """Wait until the process has ended, at most ``limit_s`` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(limit_s)

    def end(self, grace_s: float) -> None:
        """Wait until the process has ended, at most ``grace_s`` seconds, then kill it."""
        self.wait(grace_s)
        self._process.kill()
        self._process.wait()

    @property
    def ending(self) -> str:
        """A description of how the process ended, with the last line that it printed."""
        last_line = self.last_line or "it printed nothing"
        return f"{_describe_exit_code(self._process.returncode)}: {last_line}"

    @property
    def last_line(self) -> str:
        """The last line that the process printed; empty if it printed nothing."""
        self._output.seek(0, os.SEEK_END)
        size_bytes = self._output.tell()
        self._output.seek(max(0, size_bytes - _MAX_PRINTED_BYTES))
        lines = self._output.read().decode(errors="surrogateescape").strip().splitlines()
        return escape(lines[-1]) if lines else ""


def _program_arguments(message_descriptor: int) -> list[str]:
    """The command line of a trial's process, which writes its messages to this descriptor."""
    program = "iobench.trials.trial_process_main"
    # -P: Python must not import a file of the user instead of a module of the same name.
    return [sys.executable, "-P", "-m", program, str(message_descriptor), str(os.getpid())]


def _describe_exit_code(code: int | None) -> str:
    """How a process ended, in words. A negative exit code is the number of a signal."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    number = -code
    if number not in set(signal.Signals):  # Real-time signals have numbers but no names.
        return f"killed by signal {number}"
    name = signal.Signals(number).name
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}"
