"""``python -m iobench.watching.companion PARENT STEPS SETTINGS``: sample, then write the report.

It samples the machine until the script says by stdin that it ends, or has ended without a word
(killed, out of memory). Then it reads the log of steps from the descriptor STEPS. It is a process
of its own, because sampling in the script's would take its interpreter lock, and because libraries
that draw a report have no place in somebody's training script.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from pathlib import Path

from dataprep.errors import DataprepError
from dataprep.names import escape
from iobench.clock import SystemClock
from iobench.machine.sampling import Recorder, Samples
from iobench.watching.session import END, release, say

_PIECE_BYTES = 1 << 16


def follow(messages: int, parent: int, recorder: Recorder, per_s: float) -> tuple[bytes, Samples]:
    """Sample until the script ``parent`` has ended; what came by the pipe ``messages``."""
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    received = b""
    due_s = begun_s
    while not received.endswith(END):
        # Looked at before the pipe: all that it sent is in it then. Its workers may hold it open.
        gone = os.getppid() != parent
        if time.perf_counter() >= due_s:
            recorder.sample()
            due_s = max(due_s + 1 / per_s, time.perf_counter())
        wait_s = 0.0 if gone else max(0.0, due_s - time.perf_counter())
        ready, _, _ = select.select([messages], [], [], wait_s)
        data = os.read(messages, _PIECE_BYTES) if ready else None
        received += data or b""
        if gone or data == b"":
            break
    recorder.sample()
    return received, recorder.end(time.process_time() - cpu_s, time.perf_counter() - begun_s)


def main() -> int:
    """Follow the script, then write its report."""
    parent, steps, settings = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the script, whose end is waited for
    recorder = Recorder.of(settings["samplers"], parent, SystemClock())
    received, samples = follow(0, parent, recorder, settings["per_s"])
    folder = Path(settings["folder"])
    loaders = [json.loads(line) for line in received.removesuffix(END).splitlines()]
    try:
        with os.fdopen(steps, "rb") as file:
            file.seek(0)
            records = file.read()
        # Imported here: pandas would take memory, and its threads time, as long as the script runs.
        from iobench.watching.report import write

        ended = received.endswith(END)
        say(write(folder, settings, loaders, records, samples, ended=ended))
        report, here = folder / "report.html", Path.cwd()
        say(escape(str(report.relative_to(here) if report.is_relative_to(here) else report)))
    except DataprepError as error:
        say(escape(str(error)))
        return 1
    finally:
        release(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
