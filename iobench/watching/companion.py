"""The program of the companion: ``python -m iobench.watching.companion PARENT STEPS SETTINGS``.

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
from dataprep.schema import typed
from iobench.machine.sampling import Samples, SamplingSettings, sampling_beside
from iobench.watching.session import END, WatchedLoader, WatchSettings, release_folder, say

_READ_BYTES = 1 << 16
_LOOK_EVERY_S = 0.5
"""How often to check whether the script has ended without an announcement."""


def listen(messages: int, parent: int) -> bytes:
    """All that the script ``parent`` sends through the pipe ``messages`` until it has ended."""
    received = b""
    while not received.endswith(END):
        # This is checked before the pipe is read, so that all messages are in the pipe by then.
        # The pipe alone is not enough: workers of the script may keep it open.
        has_ended = os.getppid() != parent
        ready, _, _ = select.select([messages], [], [], 0.0 if has_ended else _LOOK_EVERY_S)
        data = os.read(messages, _READ_BYTES) if ready else None
        received += data or b""
        if has_ended or data == b"":
            break
    return received


def main() -> int:
    """Follow the script, then write its report."""
    parent, steps_descriptor = int(sys.argv[1]), sys.argv[2]
    settings = typed(WatchSettings, json.loads(sys.argv[3]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # These signals are for the script. This process waits until the script has ended.
        signal.signal(number, signal.SIG_IGN)
    # The settings are not validated: an unknown sampler becomes a note in the report.
    sampling = SamplingSettings.model_construct(
        per_s=settings.per_s, samplers=list(settings.samplers)
    )
    with sampling_beside(sampling, parent) as recorder:
        received = listen(0, parent)
    samples = recorder.samples if recorder else Samples({}, 0.0, ())
    folder = Path(settings.folder)
    lines = received.removesuffix(END).splitlines()
    loaders = [typed(WatchedLoader, json.loads(line)) for line in lines]
    try:
        records = Path(f"/proc/self/fd/{steps_descriptor}").read_bytes()
        # Imported here, so that pandas takes no memory and no time while the script runs.
        from iobench.watching.report import write

        announced_end = received.endswith(END)
        verdict = write(folder, settings, loaders, records, samples, announced_end=announced_end)
        say(verdict)
        report = folder / "report.html"
        if report.is_relative_to(Path.cwd()):
            report = report.relative_to(Path.cwd())
        say(escape(str(report)))
    except DataprepError as error:
        say(escape(str(error)))
        return 1
    finally:
        release_folder(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
