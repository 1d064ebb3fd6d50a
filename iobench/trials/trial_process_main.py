"""The program of a trial's own process.

``python -m iobench.trials.trial_process_main DESCRIPTOR PARENT`` reads a request for one trial from
stdin (see ``iobench.trials.trial_process``), runs the trial, and writes JSON lines to the file
descriptor DESCRIPTOR:

- ``{"progress": [done, unit]}``, any number of times;
- ``{"ready": true}`` if the request has ``waits``. The trial is prepared, and begins when a line
  arrives on stdin;
- as the last message one of ``{"outcome": ...}``, ``{"skipped": reason}`` and
  ``{"failed": reason, "at_s": moment}``.

The trial's own output goes to stdout and stderr. PARENT is the id of the parent process. If the
parent process ends, this process is killed.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import traceback
from dataclasses import asdict
from functools import partial
from pkgutil import resolve_name

from dataprep.errors import DataprepError
from iobench.clock import SystemClock
from iobench.errors import TrialFailed, Unavailable
from iobench.machine.processes import end_with_parent
from iobench.results.trial import Context, begin_at_once
from iobench.trials.trial_process import REQUEST_SIZE_BYTES, Message, TrialRequest

TRIAL_FUNCTIONS = {
    "disk": "iobench.probes.disk:run",
    "layout": "iobench.probes.layout:run",
    "object": "iobench.probes.object_store.probe:run",
    "loader": "iobench.trials.loader_trial:run",
    "train": "iobench.trials.training_trial:run",
    # A trial with several processes starts each process as a trial of one of these kinds.
    "rank": "iobench.trials.training_rank:run_rank",
    "loading-rank": "iobench.trials.loader_trial:run_rank",
}
"""The function that runs a trial, by the kind of the trial."""

_PROGRESS_EVERY_S = 0.25
"""The least time between two messages about progress, in seconds."""
_MAX_REASON_CHARACTERS = 400
"""The text of an error that ends a trial is cut to this many characters."""


class MessageWriter:
    """Writes JSON lines to a file descriptor, and progress at most four times a second."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._clock = SystemClock()
        self._last_progress_s = -_PROGRESS_EVERY_S

    def progress(self, done: float, unit: str) -> None:
        """Send the progress so far, but at most every ``_PROGRESS_EVERY_S`` seconds."""
        now_s = self._clock.now_s()
        if now_s - self._last_progress_s >= _PROGRESS_EVERY_S:
            self._last_progress_s = now_s
            self.send({"progress": [done, unit]})

    def send(self, message: Message) -> None:
        """Send one message."""
        unsent = json.dumps(message, allow_nan=False).encode() + b"\n"
        while unsent:
            written_bytes = os.write(self._descriptor, unsent)
            unsent = unsent[written_bytes:]


def main() -> int:
    """Run the requested trial. The exit code is also 0 if the trial failed and sent its reason."""
    writer = MessageWriter(int(sys.argv[1]))
    end_with_parent(int(sys.argv[2]))
    # By default TensorFlow allocates the whole memory of every GPU, also of GPUs that it does not
    # use.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    request = _read_request()
    spec, clock = request.spec, SystemClock()
    begin = begin_at_once
    if request.waits:
        begin = partial(_wait_for_begin, writer, clock)
    context = Context(
        request.locations,
        clock,
        writer.progress,
        request.scratch,
        give_up_s=clock.now_s() + request.ends_within_s,
        begin=begin,
    )
    message: Message
    try:
        run_trial = resolve_name(TRIAL_FUNCTIONS[spec.kind])
        outcome = run_trial(spec, context)
        message = {"outcome": asdict(outcome)}
        # If the outcome is not JSON, the trial has failed.
        json.dumps(message, allow_nan=False)
    except Unavailable as error:
        message = {"skipped": str(error)}
    except Exception as error:  # noqa: BLE001  a third-party loader may raise any error
        message = {"failed": describe_error(error), "at_s": clock.now_s()}
        traceback.print_exc()
    writer.send(message)
    return 0


def _read_request() -> TrialRequest:
    """Read the request of the parent process.

    No more bytes than the request has are read. If the trial waits, the line that lets it begin
    follows on the same stream later.
    """
    size_bytes = int.from_bytes(sys.stdin.buffer.read(REQUEST_SIZE_BYTES), "little")
    data = sys.stdin.buffer.read(size_bytes)
    request: TrialRequest = pickle.loads(data)  # noqa: S301  the parent process wrote it
    return request


def _wait_for_begin(writer: MessageWriter, clock: SystemClock) -> float:
    """Report that the trial is prepared, and wait until the parent process lets it begin.

    Returns the waiting time in seconds.

    Raises:
        TrialFailed: the parent process has closed stdin instead.
    """
    ready_s = clock.now_s()
    writer.send({"ready": True})
    if not sys.stdin.buffer.readline():
        raise TrialFailed("the parent process ended before it let the trial begin")
    return clock.now_s() - ready_s


def describe_error(error: Exception) -> str:
    """An error as one line of limited length.

    The line begins with the type of the error, except for errors of this package, whose message is
    complete without it.
    """
    text = " ".join(str(error).split())
    if len(text) > _MAX_REASON_CHARACTERS:  # A message of TensorFlow may fill a screen.
        text = f"{text[:_MAX_REASON_CHARACTERS]} ..."
    if isinstance(error, DataprepError):
        return text
    type_name = type(error).__name__
    return f"{type_name}: {text}" if text else type_name


if __name__ == "__main__":
    try:
        code = main()
    except SystemExit as error:  # A library may call sys.exit.
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    # All messages are sent. A normal exit could hang in threads of a framework. It could also close
    # connections that other ranks wait for, before they can see that this process has ended.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
