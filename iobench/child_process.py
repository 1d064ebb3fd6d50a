"""Run one trial in a process of its own, with a time limit; nothing of it is left afterwards.

The process runs ``iobench.child``. It reads a pickled request from its stdin, and answers with JSON
lines on a pipe. If the trial is to begin together with those of other hosts, a line on its stdin
lets it begin.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from dataprep.names import escape
from dataprep.schema import typed
from iobench.errors import TrialFailed
from iobench.machine.processes import SuspendedTime, starting
from iobench.machine.sampling import SamplingSettings, sampling_beside
from iobench.machine.usage import add_samples
from iobench.trial import GIVE_UP_SHARE, Outcome, Place, Status, TrialSpec

Message: TypeAlias = Mapping[str, Any]
Verdict = tuple[Status, Outcome | None, str]

REQUEST_SIZE_BYTES = 8
"""Length of the little-endian number before a request: the size of the request in bytes."""

LOOK_EVERY_S = 0.5
"""How often to check whether a process has ended: its workers may hold its pipe open."""

_TAIL_BYTES = 4096
_READ_BYTES = 1 << 16
_LONGEST_SAID = 300
_GRACE_S = 2.0
_WORTH_A_WORD_S = 1.0


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What a child process is asked for.

    Attributes:
        spec, places: the trial, and the places that its parameters name.
        scratch: a folder that it may write to.
        ends_within_s: seconds after which the trial ends by itself.
        waits: whether the trial waits between its preparation and its measurement, until
            ``ChildProcess.begin`` is called.
    """

    spec: TrialSpec
    places: Mapping[str, Place]
    scratch: Path | None = None
    ends_within_s: float = math.inf
    waits: bool = False


class ChildProcess:
    """A process that runs one trial; a selector can wait for its ``messages``.

    Args:
        environment: all of its environment.
        own_session: whether it leads a session, and so a process group, of its own.
        keep: descriptors that it inherits.

    Raises:
        TrialFailed: the system refuses to start it.
    """

    def __init__(
        self, environment: Mapping[str, str], *, own_session: bool, keep: Iterable[int] = ()
    ) -> None:
        self._pending = b""
        self.closed = False
        """Whether every process that could write messages has ended."""
        with starting("the process of the trial"), contextlib.ExitStack() as unless_started:
            read_end, write_end = os.pipe()
            self._lines = unless_started.enter_context(os.fdopen(read_end, "rb", buffering=0))
            with os.fdopen(write_end, "wb", buffering=0):
                os.set_blocking(read_end, False)
                self._log = unless_started.enter_context(tempfile.TemporaryFile())
                self._process = subprocess.Popen(
                    # -P: a file of the user's that is named like a module is not taken for it.
                    [sys.executable, "-P", "-m", "iobench.child", str(write_end), str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=self._log,
                    stderr=self._log,
                    pass_fds=[write_end, *keep],
                    env=environment,
                    start_new_session=own_session,
                )
            unless_started.pop_all()
        assert self._process.stdin is not None  # noqa: S101  it was asked for
        self._stdin = self._process.stdin
        self.pid = self._process.pid

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(0)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._lines.close()
        self._log.close()

    def fileno(self) -> int:
        """The descriptor of the pipe with its messages."""
        return self._lines.fileno()

    def ask(self, request: TrialRequest) -> None:
        """Request a trial."""
        data = pickle.dumps(request)
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(len(data).to_bytes(REQUEST_SIZE_BYTES, "little") + data)
            self._stdin.flush()
            if not request.waits:
                self._stdin.close()

    def begin(self) -> None:
        """Let a trial begin that was asked for with ``waits`` and has sent ``ready``."""
        with contextlib.suppress(BrokenPipeError), self._stdin:
            self._stdin.write(b"begin\n")

    def messages(self) -> list[Message]:
        """All messages that have arrived since the last call; does not wait.

        A pipe may hold more than one read gives: 1 MiB where memory has pages of 64 KiB.
        """
        arrived = [self._pending]
        while data := self._lines.read(_READ_BYTES):
            arrived.append(data)
        self.closed = data is not None  # empty: nobody holds the other end; None: nothing is there
        *whole, self._pending = b"".join(arrived).split(b"\n")
        return [json.loads(line) for line in whole]

    @property
    def ended(self) -> bool:
        """Whether the process has ended; its workers may not have."""
        return self._process.poll() is not None

    def wait(self, seconds: float) -> None:
        """Wait at most so long for its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self, grace_s: float) -> None:
        """Wait so long for its end, then kill it."""
        self.wait(grace_s)
        self._process.kill()
        self._process.wait()

    @property
    def how(self) -> str:
        """How it ended, and the last line that it printed."""
        return f"{_how(self._process.returncode)}: {self.last_line or 'it said nothing'}"

    @property
    def last_line(self) -> str:
        """The last line that it printed; empty if it printed none."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _TAIL_BYTES))
        lines = self._log.read().decode(errors="surrogateescape").strip().splitlines()
        return escape(lines[-1]) if lines else ""


def run_isolated(
    spec: TrialSpec,
    places: Mapping[str, Place],
    *,
    timeout_s: float,
    environment: Mapping[str, str],
    progress: Callable[[float, str], None],
    sampling: SamplingSettings | None = None,
    scratch: Path | None = None,
    begin: Callable[[], None] | None = None,
) -> Verdict:
    """Run one trial; returns its status, its outcome if it is done, and else the reason.

    The machine is sampled meanwhile as ``sampling`` says. ``scratch`` is a folder that the trial
    may write to; the caller removes it. The process group of the trial is killed at the end. A
    trial whose process cannot be started has failed.

    ``begin`` is called when the trial is prepared. It waits for other hosts, which does not count
    as time of the trial, and raises TrialFailed if they do not begin together.
    """
    try:
        return _run(spec, places, timeout_s, environment, progress, sampling, scratch, begin)
    except TrialFailed as error:
        return "failed", None, str(error)


def _run(
    spec: TrialSpec,
    places: Mapping[str, Place],
    timeout_s: float,
    environment: Mapping[str, str],
    progress: Callable[[float, str], None],
    sampling: SamplingSettings | None,
    scratch: Path | None,
    begin: Callable[[], None] | None,
) -> Verdict:
    with ChildProcess({**os.environ, **environment}, own_session=True) as child:
        message, still_s = None, 0.0
        begun_s = time.perf_counter()
        try:
            with sampling_beside(sampling, child.pid) as meanwhile:
                # A trial that cannot end in time says so itself, before it is killed.
                ends_within_s = GIVE_UP_SHARE * timeout_s
                waits = begin is not None
                child.ask(TrialRequest(spec, dict(places), scratch, ends_within_s, waits))
                message, still_s = _listen(child, timeout_s, progress, begin)
        finally:
            # Then kill whatever is left of its process group.
            child.wait(0 if message is None else _GRACE_S)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.end(0)
        status, outcome, reason = _verdict(message, child, timeout_s)
        if outcome is not None and meanwhile is not None:
            outcome = add_samples(outcome, meanwhile.samples, begun_s)
        if outcome is not None and still_s >= _WORTH_A_WORD_S:
            metrics = {**outcome.metrics, "stood_still_s": round(still_s, 1)}
            outcome = replace(outcome, metrics=metrics)
        return status, outcome, reason


def _listen(
    child: ChildProcess,
    timeout_s: float,
    progress: Callable[[float, str], None],
    begin: Callable[[], None] | None,
) -> tuple[Message | None, float]:
    """The last message and the seconds for which either process was stopped.

    The message is empty if the trial ended without one, and None if time ran out. Time for which
    this process was stopped, or waited for other hosts, does not count as the trial's.
    """
    suspended = SuspendedTime(child.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(child, selectors.EVENT_READ)
        while (left_s := timeout_s - suspended.awake_s) > 0:
            ready = selector.select(min(left_s, LOOK_EVERY_S))
            suspended.look()
            if not ready:
                # Workers that outlive it hold the pipe open.
                if child.ended and not selector.select(0):
                    return {}, suspended.seconds
                continue
            for message in child.messages():
                if "progress" in message:
                    done, unit = message["progress"]
                    progress(done, unit)
                elif "ready" in message and begin is not None:
                    begin()
                    child.begin()
                    suspended.skip()
                else:
                    return message, suspended.seconds
            if child.closed:
                return {}, suspended.seconds
    return None, suspended.seconds


def _verdict(message: Message | None, child: ChildProcess, timeout_s: float) -> Verdict:
    if message is None:
        said = child.last_line
        last = f"; it last said: {said[:_LONGEST_SAID]}" if said else ""
        return "failed", None, f"not done after {timeout_s:g} s (trial_timeout_s): killed{last}"
    if "outcome" in message:
        return "done", typed(Outcome, message["outcome"]), ""
    if "skipped" in message:
        return "skipped", None, str(message["skipped"])
    if "failed" in message:
        return "failed", None, str(message["failed"])
    return "failed", None, child.how


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        # Real-time signals have numbers only.
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"
