"""``python -m iobench.watching.companion PARENT STEPS SETTINGS``: sample, then write the report.

It samples the machine until the script announces its end on stdin, or has ended without that
(killed, out of memory). Then it reads the log of steps from the descriptor STEPS. It is a separate
process so that sampling does not take the script's interpreter lock, and the libraries for reports
are not imported into a training script.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path

from dataprep.errors import DataprepError
from dataprep.names import escape
from iobench.machine.sampling import Samples, SamplingSettings, sampling_beside
from iobench.watching.session import END, release, say

_PIECE_BYTES, _LOOK_EVERY_S = 1 << 16, 0.5


def listen(messages: int, parent: int) -> bytes:
    """All that the script ``parent`` sends through the pipe ``messages`` until it has ended."""
    received = b""
    while not received.endswith(END):
        # Checked before the pipe is read, so that all messages are in it. Workers may keep it open.
        gone = os.getppid() != parent
        ready, _, _ = select.select([messages], [], [], 0.0 if gone else _LOOK_EVERY_S)
        data = os.read(messages, _PIECE_BYTES) if ready else None
        received += data or b""
        if gone or data == b"":
            break
    return received


def main() -> int:
    """Follow the script, then write its report."""
    parent, steps, settings = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # for the script; this process waits for its end
    # Not validated: an unknown sampler is a note in the report.
    read = {name: settings[name] for name in ("per_s", "samplers")}
    with sampling_beside(SamplingSettings.model_construct(**read), parent) as recorder:
        received = listen(0, parent)
    samples = recorder.samples if recorder else Samples({}, 0.0, ())
    folder = Path(settings["folder"])
    loaders = [json.loads(line) for line in received.removesuffix(END).splitlines()]
    try:
        records = Path(f"/proc/self/fd/{steps}").read_bytes()
        # Imported here, so that pandas takes no memory and no time while the script runs.
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
