"""A trial in a process group of its own: watched, timed out, and gone afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from dataprep.names import escape
from iobench import child
from iobench.sampled import sampled
from iobench.samplers.background import beside
from iobench.samplers.settings import SamplingSettings
from iobench.trial import Cold, Outcome, Place, Status, TrialSpec

_TAIL_BYTES = 4096
# A file of the user's, called as a module is, is not taken for it.
_NOT_FROM_HERE = ("-P",)
_LONGEST_SAID = 300
_LOOK_EVERY_S = 0.5
_GRACE_S = 2.0
Verdict = tuple[Status, Outcome | None, str]


def run_isolated(
    spec: TrialSpec,
    places: Mapping[str, Place],
    *,
    timeout_s: float,
    environment: Mapping[str, str],
    progress: Callable[[float, str], None],
    sampling: SamplingSettings | None = None,
    scratch: Path | None = None,
) -> Verdict:
    """Run one trial; status, outcome if it is done, and else the reason.

    What the machine does meanwhile is sampled as ``sampling`` says; ``scratch`` is a folder that
    the trial may write to, and which the caller removes. Nothing else of the trial is left when
    this returns: its process group is killed.
    """
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as log, os.fdopen(read_end, "rb", buffering=0) as lines:
        process = subprocess.Popen(
            [
                sys.executable,
                *_NOT_FROM_HERE,
                "-m",
                "iobench.child",
                str(write_end),
                str(os.getpid()),
            ],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            pass_fds=[write_end],
            env={**os.environ, **environment},
            start_new_session=True,
        )
        os.close(write_end)
        message = None
        begun_s = time.perf_counter()
        try:
            with beside(sampling, process.pid) as meanwhile:
                _hand_over(process, child.request(spec, places, scratch))
                message = _listen(lines, process, time.monotonic() + timeout_s, progress)
        finally:
            _end(process, 0 if message is None else _GRACE_S)
        status, outcome, reason = _verdict(message, process.returncode, timeout_s, log)
        if outcome is not None and meanwhile is not None:
            outcome = sampled(outcome, meanwhile.samples, begun_s)
        return status, outcome, reason


def _hand_over(process: subprocess.Popen[bytes], request: bytes) -> None:
    assert process.stdin is not None  # noqa: S101  it was asked for
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(request)


def _listen(
    lines: IO[bytes],
    process: subprocess.Popen[bytes],
    deadline_s: float,
    progress: Callable[[float, str], None],
) -> dict[str, Any] | None:
    """The last message, an empty one if the trial ended without, None if time ran out."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(lines, selectors.EVENT_READ)
        while (left_s := deadline_s - time.monotonic()) > 0:
            if not selector.select(min(left_s, _LOOK_EVERY_S)):
                # Workers that outlive it hold the pipe open.
                if process.poll() is not None and not selector.select(0):
                    return {}
                continue
            data = lines.read(1 << 16)
            if not data:
                return {}
            *whole, pending = (pending + data).split(b"\n")
            for line in whole:
                message: dict[str, Any] = json.loads(line)
                if "progress" not in message:
                    return message
                done, unit = message["progress"]
                progress(done, unit)
    return None


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """Wait so long for the process to end, then kill whatever is left of its group."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(grace_s)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _verdict(
    message: dict[str, Any] | None, code: int | None, timeout_s: float, log: IO[bytes]
) -> Verdict:
    if message is None:
        said = _last_line(log)
        last = f"; it last said: {said[:_LONGEST_SAID]}" if said else ""
        return "failed", None, f"not done after {timeout_s:g} s (trial_timeout_s): killed{last}"
    if "outcome" in message:
        content = message["outcome"]
        cold = Cold(**content["cold"]) if content["cold"] else None
        series, origin_s = content["series"], content["origin_s"]
        return "done", Outcome(content["metrics"], cold, series, origin_s), ""
    if "skipped" in message:
        return "skipped", None, str(message["skipped"])
    if "failed" in message:
        return "failed", None, str(message["failed"])
    return "failed", None, f"{_how(code)}: {_last_line(log) or 'it said nothing'}"


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        # Real-time signals have numbers only.
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _last_line(log: IO[bytes]) -> str:
    log.seek(0, os.SEEK_END)
    log.seek(max(0, log.tell() - _TAIL_BYTES))
    lines = log.read().decode(errors="surrogateescape").strip().splitlines()
    return escape(lines[-1]) if lines else ""
