"""Loaders as a third party's package would bring them, most of which misbehave.

``ODD_FOLDER`` is where they leave marks, and look for what a test has put there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from iobench.clock import Clock
from iobench.errors import Unavailable
from iobench.loaders.protocol import Batch, Framework
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Place

FAR_TOO_LONG_S = 600


class Steady:
    """The same empty batch, with no end."""

    framework: Framework = "none"
    reads: str | None = None
    notes: Sequence[str] = ("a third party's",)

    def __init__(self, location: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        self.samples = settings.batch_size
        self.clock = clock

    def epoch(self, number: int) -> Iterator[Batch]:
        """A thousand batches."""
        self.begin()
        for _ in range(1000):
            yield Batch(None, None, self.samples)

    def begin(self) -> None:
        """Nothing odd."""

    def close(self) -> None:
        """Nothing."""


class Raising(Steady):
    """Raises, with control characters and line feeds in its words."""

    def begin(self) -> None:
        raise ValueError("shard 7 is\n  broken \x1b[2J\udcff")


class Silent(Steady):
    """Raises without a word."""

    def begin(self) -> None:
        raise MemoryError


class Hanging(Steady):
    """Never gives its first batch, and ignores polite requests."""

    def begin(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(FAR_TOO_LONG_S)


class Waiting(Steady):
    """Says what it waits for, and waits."""

    def begin(self) -> None:
        sys.stdout.write("starting\nwaiting for the license server \x1b[2J" + "." * 1000 + "\n")
        sys.stdout.flush()
        time.sleep(FAR_TOO_LONG_S)


class Empty(Steady):
    """Yields nothing."""

    def epoch(self, number: int) -> Iterator[Batch]:
        return iter(())


class Killed(Steady):
    """Dies as by the kernel's out-of-memory killer, halfway through."""

    def epoch(self, number: int) -> Iterator[Batch]:
        yield Batch(None, None, self.samples)
        os.kill(os.getpid(), signal.SIGKILL)


class Signalled(Steady):
    """Dies of a signal without a name."""

    def begin(self) -> None:
        os.kill(os.getpid(), signal.SIGRTMIN + 1)


class Exiting(Steady):
    """Ends its process, as libraries do that think it is theirs."""

    def begin(self) -> None:
        sys.stderr.write("license expired\n")
        raise SystemExit(3)


class Vanishing(Steady):
    """Ends it without a word, and with success."""

    def begin(self) -> None:
        os._exit(0)


class Noisy(Steady):
    """Prints what could be taken for messages, and bytes that are no text."""

    def begin(self) -> None:
        for stream in (1, 2):
            os.write(stream, b'{"outcome": 1}\n{"failed": "no"}\n\xff\xfe' + b"x" * 300_000)


class Orphaning(Steady):
    """Leaves a process behind that holds every descriptor open."""

    def begin(self) -> None:
        code = f"import time; time.sleep({FAR_TOO_LONG_S})"
        left = subprocess.Popen([sys.executable, "-c", code], close_fds=False)
        Path(os.environ["ODD_FOLDER"], "orphan").write_text(str(left.pid))


class Forsaken(Orphaning):
    """Dies while the process that it left holds the pipe."""

    def begin(self) -> None:
        super().begin()
        os.kill(os.getpid(), signal.SIGKILL)


class Missing(Steady):
    """Needs what is not there."""

    def __init__(self, location: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        raise Unavailable("oddlib is not installed: pip install 'odd-loaders[oddlib]'")


class Flaky(Steady):
    """Fails, until a test has mended it."""

    def begin(self) -> None:
        if not Path(os.environ["ODD_FOLDER"], "mended").exists():
            raise OSError("not today")


class Gated(Steady):
    """Says that it is reached, and waits to be let on."""

    def begin(self) -> None:
        folder = Path(os.environ["ODD_FOLDER"])
        (folder / "reached").touch()
        while not (folder / "open").exists():
            time.sleep(0.01)


class Counted(Steady):
    """Leaves a mark each time that it is tried."""

    def __init__(self, location: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        with Path(os.environ["ODD_FOLDER"], "count").open("a") as marks:
            marks.write("x")


class Copied(Steady):
    """Says where its data lie, and fails over them."""

    reads = "tfrecord"

    def __init__(self, location: Place | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        self.place = location

    def begin(self) -> None:
        assert self.place is not None
        Path(os.environ["ODD_FOLDER"], "copied").write_text(self.place.uri)
        assert Path(self.place.uri, "labels.json").exists()
        raise OSError("the copy is of no use")


class CopiedKilled(Copied):
    """Dies over them without a word."""

    def begin(self) -> None:
        try:
            super().begin()
        except OSError:
            os.kill(os.getpid(), signal.SIGKILL)


ODD = (
    *(Steady, Raising, Silent, Hanging, Empty, Killed, Signalled, Exiting, Vanishing, Noisy),
    *(Orphaning, Forsaken, Missing, Flaky, Gated, Counted, Waiting),
    *(Copied, CopiedKilled),
)
ENTRY_POINTS = "[iobench.loaders]\n" + "".join(
    f"odd-{kind.__name__.lower()} = tests.iobench.odd_loaders:{kind.__name__}\n" for kind in ODD
)
ENTRY_POINTS += (
    "[iobench.samplers]\n"
    "odd-count = tests.iobench.machine.odd_samplers:Counting\n"
    "odd-missing = tests.iobench.machine.odd_samplers:Missing\n"
)
