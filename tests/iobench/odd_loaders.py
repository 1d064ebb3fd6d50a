"""Loaders as the package of a third party would have them, most of which misbehave.

They leave marks in the folder ``ODD_FOLDER`` and look there for marks of a test.
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
from iobench.results.trial import Location

FAR_TOO_LONG_S = 600


class Steady:
    """Yields the same empty batch, nearly without end."""

    framework: Framework = "none"
    reads: str | None = None
    notes: Sequence[str] = ("a third party's",)

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        self.samples = settings.batch_size
        self.clock = clock

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield a thousand batches."""
        self.begin()
        for _ in range(1000):
            yield Batch(None, None, self.samples)

    def begin(self) -> None:
        """Do nothing odd."""

    def close(self) -> None:
        """Do nothing."""


class Raising(Steady):
    """Raises an error with control characters and line feeds in its message."""

    def begin(self) -> None:
        raise ValueError("shard 7 is\n  broken \x1b[2J\udcff")


class Silent(Steady):
    """Raises an error without a message."""

    def begin(self) -> None:
        raise MemoryError


class Hanging(Steady):
    """Never yields its first batch, and ignores SIGTERM."""

    def begin(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(FAR_TOO_LONG_S)


class Waiting(Steady):
    """Prints what it waits for, and waits."""

    def begin(self) -> None:
        sys.stdout.write("starting\nwaiting for the license server \x1b[2J" + "." * 1000 + "\n")
        sys.stdout.flush()
        time.sleep(FAR_TOO_LONG_S)


class Empty(Steady):
    """Yields no batch."""

    def epoch(self, number: int) -> Iterator[Batch]:
        return iter(())


class Killed(Steady):
    """Is killed after its first batch, as by the kernel's out-of-memory killer."""

    def epoch(self, number: int) -> Iterator[Batch]:
        yield Batch(None, None, self.samples)
        os.kill(os.getpid(), signal.SIGKILL)


class Signalled(Steady):
    """Is killed by a signal without a name."""

    def begin(self) -> None:
        os.kill(os.getpid(), signal.SIGRTMIN + 1)


class Exiting(Steady):
    """Ends its process, as a library may do."""

    def begin(self) -> None:
        sys.stderr.write("license expired\n")
        raise SystemExit(3)


class Vanishing(Steady):
    """Ends its process with exit code 0 and without a message."""

    def begin(self) -> None:
        os._exit(0)


class Noisy(Steady):
    """Prints text that looks like messages, and bytes that are no text."""

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
    """Is killed while the process that it left behind holds the pipe."""

    def begin(self) -> None:
        super().begin()
        os.kill(os.getpid(), signal.SIGKILL)


class Missing(Steady):
    """Needs a library that is not installed."""

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        raise Unavailable("oddlib is not installed: pip install 'odd-loaders[oddlib]'")


class Flaky(Steady):
    """Fails until a test has left the mark ``mended``."""

    def begin(self) -> None:
        if not Path(os.environ["ODD_FOLDER"], "mended").exists():
            raise OSError("not today")


class Gated(Steady):
    """Leaves the mark ``reached``, and waits for the mark ``open``."""

    def begin(self) -> None:
        folder = Path(os.environ["ODD_FOLDER"])
        (folder / "reached").touch()
        while not (folder / "open").exists():
            time.sleep(0.01)


class Counted(Steady):
    """Adds to a mark each time that it is opened."""

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        with Path(os.environ["ODD_FOLDER"], "count").open("a") as marks:
            marks.write("x")


class Copied(Steady):
    """Leaves a mark with the location of its data, and fails."""

    reads = "tfrecord"

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        super().__init__(location, settings, clock)
        self.location = location

    def begin(self) -> None:
        assert self.location is not None
        Path(os.environ["ODD_FOLDER"], "copied").write_text(self.location.uri)
        assert Path(self.location.uri, "labels.json").exists()
        raise OSError("the copy is of no use")


class CopiedKilled(Copied):
    """Leaves a mark with the location of its data, and is killed."""

    def begin(self) -> None:
        try:
            super().begin()
        except OSError:
            os.kill(os.getpid(), signal.SIGKILL)


ODD = (
    *(Steady, Raising, Silent, Hanging, Empty, Killed, Signalled, Exiting, Vanishing, Noisy),
    *(Orphaning, Forsaken, Missing, Flaky, Gated, Counted, Waiting, Copied, CopiedKilled),
)
ENTRY_POINTS = "[iobench.loaders]\n"
for kind in ODD:
    name = kind.__name__
    ENTRY_POINTS += f"odd-{name.lower()} = tests.iobench.odd_loaders:{name}\n"
ENTRY_POINTS += (
    "[iobench.samplers]\n"
    "odd-count = tests.iobench.machine.odd_samplers:Counting\n"
    "odd-missing = tests.iobench.machine.odd_samplers:Missing\n"
)
