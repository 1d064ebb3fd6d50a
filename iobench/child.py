"""``python -m iobench.child FD PARENT``: one trial in a process of its own.

Reads the trial from stdin (``iobench.child_process``). Writes JSON lines to the file
descriptor FD: any number of ``{"progress": [done, unit]}``, then ``{"outcome": ...}``,
``{"skipped": why}`` or ``{"failed": why, "at_s": when}``. A trial that is to begin together with
others sends ``{"ready": true}`` when it is prepared, and waits for a line on stdin. What the trial
prints goes to stdout and stderr, which are not parsed.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pkgutil import resolve_name
from typing import Any

from dataprep.errors import DataprepError
from iobench.child_process import REQUEST_SIZE_BYTES, TrialRequest
from iobench.clock import SystemClock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.processes import end_with
from iobench.trial import Context, begin_at_once

KINDS = {
    "disk": "iobench.probes.disk:run",
    "layout": "iobench.probes.layout:run",
    "object": "iobench.probes.object_store.probe:run",
    "loader": "iobench.loops.loading:run",
    "train": "iobench.loops.training:run",
    # Parts of a trial, which it starts itself in processes of their own.
    "rank": "iobench.loops.several_devices:run_rank",
    "loading-rank": "iobench.loops.loading:run_rank",
}

_EVERY_S = 0.25
_LONGEST_REASON = 400


class Lines:
    """JSON lines to a file descriptor; progress at most four times a second."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._clock = SystemClock()
        self._last_s = -_EVERY_S

    def progress(self, done: float, unit: str) -> None:
        """Send how much is done so far."""
        now_s = self._clock.now_s()
        if now_s - self._last_s >= _EVERY_S:
            self._last_s = now_s
            self.send({"progress": [done, unit]})

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one line."""
        data = json.dumps(message, allow_nan=False).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


def main() -> int:
    """Run the trial; the exit code is 0 also if the trial failed and said so."""
    lines = Lines(int(sys.argv[1]))
    end_with(int(sys.argv[2]))
    # TensorFlow would take all memory of every GPU, also of those that it does not use.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    request = _request()
    spec, clock = request.spec, SystemClock()
    context = Context(
        request.places,
        clock,
        lines.progress,
        request.scratch,
        give_up_s=clock.now_s() + request.ends_within_s,
        begin=partial(_begin_when_told, lines, clock) if request.waits else begin_at_once,
    )
    message: dict[str, Any]
    try:
        outcome = resolve_name(KINDS[spec.kind])(spec, context)
        message = {"outcome": asdict(outcome)}
        json.dumps(message, allow_nan=False)
    except Unavailable as error:
        message = {"skipped": str(error)}
    except Exception as error:  # noqa: BLE001  anything from a third-party loader
        message = {"failed": reason(error), "at_s": clock.now_s()}
        traceback.print_exc()
    lines.send(message)
    return 0


def _request() -> TrialRequest:
    """Read the request of the parent, and nothing after it: a line may follow much later."""
    size = int.from_bytes(sys.stdin.buffer.read(REQUEST_SIZE_BYTES), "little")
    request: TrialRequest = pickle.loads(sys.stdin.buffer.read(size))  # noqa: S301  its parent wrote it
    return request


def _begin_when_told(lines: Lines, clock: SystemClock) -> float:
    """Say that the trial is prepared, and wait until its parent lets it begin.

    Returns the seconds that it waited.

    Raises:
        TrialFailed: the parent has closed stdin instead.
    """
    ready_s = clock.now_s()
    lines.send({"ready": True})
    if not sys.stdin.buffer.readline():
        raise TrialFailed("the trial was not told to begin")
    return clock.now_s() - ready_s


def reason(error: Exception) -> str:
    """The error in one line of bounded length, with its type unless it is one of this package."""
    text = " ".join(str(error).split())
    if len(text) > _LONGEST_REASON:  # TensorFlow's may fill a screen
        text = f"{text[:_LONGEST_REASON]} ..."
    if isinstance(error, DataprepError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


if __name__ == "__main__":
    try:
        code = main()
    except SystemExit as error:  # of a library that takes the process for its own
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    # A normal exit may hang in threads of frameworks, or release what other processes wait for
    # before this one has ended. All messages are sent.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
