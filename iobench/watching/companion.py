"""``python -m iobench.watching.companion PARENT``: samples, and keeps a watched script's steps.

Messages come by stdin, the first with the settings. When the script says that it ends, or has
ended without a word (killed, out of memory), the report is written. A process of its own, because
reading the machine in the script's would take its interpreter lock, and because libraries that
draw a report have no place in somebody's training script.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dataprep.errors import DataprepError
from dataprep.names import escape
from iobench.clock import SystemClock
from iobench.machine.sampling import Recorder
from iobench.watching.folders import released
from iobench.watching.messages import Inbox, Message
from iobench.watching.passes import Passes
from iobench.watching.tally import Tally

_PIECE_BYTES = 1 << 20


class Kept:
    """What came from the script. ``ended``: it said that it ends."""

    def __init__(self) -> None:
        self.settings: Mapping[str, Any] = {}
        self.loaders: dict[int, Mapping[str, Any]] = {}
        self.tallies: dict[int, Tally] = {}
        self._passes = Passes()
        self.ended = False

    def take(self, message: Message) -> None:
        """Whatever it is."""
        head, doubles = message
        if "end" in head:
            self.ended = True
        elif "open" in head:
            self.loaders[head["open"]] = head
            self.tallies[head["open"]] = Tally(self._passes)
        elif "steps" in head:
            self.tallies[head["steps"]].add(doubles, head["first"])
        elif "idle" in head:
            self.tallies[head["idle"]].add_idle(doubles)
        else:
            self.settings = head


class Listening:
    """Bytes from a descriptor into ``kept``."""

    def __init__(self, descriptor: int, kept: Kept) -> None:
        self._descriptor, self._kept = descriptor, kept
        self._inbox = Inbox()
        self.closed = False

    def wait(self, seconds: float) -> None:
        """At most so long for something to come, and take it."""
        if not select.select([self._descriptor], [], [], max(0.0, seconds))[0]:
            return
        data = os.read(self._descriptor, _PIECE_BYTES)
        self.closed = not data
        for message in self._inbox.taken(data):
            self._kept.take(message)


def follow(
    listening: Listening, kept: Kept, recorder: Recorder, alive: Callable[[], bool]
) -> tuple[float, float]:
    """Sample and listen until the script has ended; processor and wall seconds that it took."""
    begun_s, cpu_s = time.perf_counter(), time.process_time()
    period_s = 1 / float(kept.settings["per_s"])
    recorder.sample()
    due_s = begun_s + period_s
    while not kept.ended and not listening.closed:
        if (now_s := time.perf_counter()) >= due_s:
            recorder.sample()
            due_s = max(due_s + period_s, now_s)
            if not alive():
                # Its workers may hold the pipe open: what is in it is all that will come.
                listening.wait(0)
                break
        listening.wait(due_s - time.perf_counter())
    recorder.sample()
    return time.process_time() - cpu_s, time.perf_counter() - begun_s


def main() -> int:
    """Follow the script, then write its report."""
    parent = int(sys.argv[1])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the script, whose end is waited for
    kept = Kept()
    listening = Listening(0, kept)
    while not kept.settings and not listening.closed:
        listening.wait(1.0)
    if not kept.settings:
        return 1
    recorder = Recorder.of(kept.settings["samplers"], parent, SystemClock())
    spent = follow(listening, kept, recorder, lambda: os.getppid() == parent)
    folder = Path(kept.settings["folder"])
    samples = recorder.end(*spent)
    try:
        from iobench.watching.writing import written

        _say(written(folder, kept.settings, kept.loaders, kept.tallies, samples, kept.ended))
        _say(escape(_shown(folder / "report.html")))
    except DataprepError as error:
        _say(escape(str(error)))
        return 1
    finally:
        released(folder)
    return 0


def _shown(path: Path) -> str:
    """As the script's owner would call it: from where the script was started, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # a terminal that is gone
        print(f"iobench: {line}", file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
