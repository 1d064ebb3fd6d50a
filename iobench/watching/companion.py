"""The program of the companion: ``python -m iobench.watching.companion PARENT STEPS SETTINGS``.

PARENT is the id of the script's process. The companion samples the machine until the script
announces its end on stdin, or until the script has ended without an announcement, for example
because it was killed. Then it reads the log of steps from the file descriptor STEPS, and writes the
report.

It is a separate process for two reasons: sampling must not take the interpreter lock of the script,
and the libraries for reports must not be imported into a training script.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from pathlib import Path

from dataprep.errors import DataprepError
from dataprep.name_encoding import escape
from dataprep.schema import typed
from iobench.machine.sampling import Samples, SamplingSettings, sampling_beside
from iobench.watching.session import END, WatchedLoader, WatchSettings, print_line, release_folder

_READ_BYTES = 1 << 16
_LOOK_EVERY_S = 0.5
"""Seconds between two checks whether the script has ended without an announcement."""


def listen(messages: int, parent: int) -> bytes:
    """Wait until the script has announced its end or has ended, and return all of its messages.

    Args:
        messages: the descriptor of the pipe through which the script sends them.
        parent: the id of the script's process.
    """
    received = b""
    while not received.endswith(END):
        # This is checked before the pipe is read. If the script has ended, the pipe then has all of
        # its messages. The end of the pipe does not show the end of the script, since workers of
        # the script may keep the pipe open.
        has_ended = os.getppid() != parent
        ready, _, _ = select.select([messages], [], [], 0.0 if has_ended else _LOOK_EVERY_S)
        data = os.read(messages, _READ_BYTES) if ready else None
        received += data or b""
        if has_ended or data == b"":
            break
    return received


def announced_loaders(received: bytes) -> list[WatchedLoader]:
    """The loaders in all messages of a script.

    If the script was killed while it sent a line, this line is incomplete, and is dropped.
    """
    complete_lines, _, _ = received.removesuffix(END).rpartition(b"\n")
    return [typed(WatchedLoader, json.loads(line)) for line in complete_lines.splitlines()]


def main() -> int:
    """Sample the machine until the script has ended, then write its report.

    Returns the exit code: 1 if the report could not be written.
    """
    parent, steps_descriptor = int(sys.argv[1]), sys.argv[2]
    settings = typed(WatchSettings, json.loads(sys.argv[3]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # These signals are meant for the script. This process waits until the script has ended.
        signal.signal(number, signal.SIG_IGN)
    # The settings are not validated: an unknown sampler becomes a note in the report.
    sampling = SamplingSettings.model_construct(
        per_s=settings.per_s, samplers=list(settings.samplers)
    )
    folder = Path(settings.folder)
    try:
        with sampling_beside(sampling, parent) as recorder:
            received = listen(0, parent)
        samples = recorder.samples if recorder else Samples({}, 0.0, ())
        loaders = announced_loaders(received)
        records = Path(f"/proc/self/fd/{steps_descriptor}").read_bytes()
        # Imported here, so that pandas takes no memory and no time while the script runs.
        from iobench.watching.report import write

        announced_end = received.endswith(END)
        verdict = write(folder, settings, loaders, records, samples, announced_end=announced_end)
        print_line(verdict)
        report = folder / "report.html"
        if report.is_relative_to(Path.cwd()):
            report = report.relative_to(Path.cwd())
        print_line(escape(str(report)))
    except DataprepError as error:
        print_line(escape(str(error)))
        return 1
    finally:
        release_folder(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
