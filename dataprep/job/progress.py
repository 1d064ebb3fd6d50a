"""What a person sees while a job runs; always on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Protocol

from dataprep.job.worker import Progress

_EVERY_S = 5.0


class Display(Protocol):
    """Shows a job's progress."""

    def start(self, split: str, samples: int, source_bytes: int, done: int) -> None:
        """A split begins; ``done`` of its samples are stored already."""
        ...

    def advance(self, progress: Progress) -> None:
        """Work was done somewhere; called from any thread."""
        ...

    def note(self, line: str) -> None:
        """Something worth a line of its own."""
        ...

    def stop(self) -> None:
        """No more will come for this split."""
        ...


class Silent:
    """Shows nothing."""

    def start(self, split: str, samples: int, source_bytes: int, done: int) -> None:
        """Nothing."""

    def advance(self, progress: Progress) -> None:
        """Nothing."""

    def note(self, line: str) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Nothing."""


class Meter:
    """PURE. Samples, bytes and failures against a clock that is passed in."""

    def __init__(self, samples: int, done: int, now_s: float) -> None:
        self.total = samples
        self.failed = 0
        self._before = done
        self._worked = 0
        self._bytes = 0
        self._start_s = now_s

    @property
    def done(self) -> int:
        """Samples that are done, at most all."""
        # A shard that is made again after its worker died is counted again.
        return min(self.total, self._before + self._worked)

    def add(self, progress: Progress) -> None:
        """Count what was done."""
        self._worked += progress.samples
        self._bytes += progress.source_bytes
        self.failed += progress.failed

    def line(self, now_s: float) -> str:
        """``1,200/5,000 images, 812 img/s, 89 MB/s read, 0 failed, 0:04 left``."""
        elapsed = max(now_s - self._start_s, 1e-9)
        rate = self._worked / elapsed
        left = _clock((self.total - self.done) / rate) if rate > 0 else "-:--"
        return (
            f"{self.done:,}/{self.total:,} images, {rate:,.0f} img/s, "
            f"{self._bytes / elapsed / 1e6:,.0f} MB/s read, {self.failed:,} failed, {left} left"
        )


class Lines:
    """A plain line every few seconds, for logs."""

    def __init__(
        self,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        every_s: float = _EVERY_S,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._every_s = every_s
        self._lock = threading.Lock()
        self._split = ""
        self._meter: Meter | None = None
        self._last_s = 0.0

    def start(self, split: str, samples: int, source_bytes: int, done: int) -> None:
        """A split begins."""
        now = self._clock()
        self._split, self._meter, self._last_s = split, Meter(samples, done, now), now

    def advance(self, progress: Progress) -> None:
        """Print if it is time."""
        with self._lock:
            if self._meter is None:
                return
            self._meter.add(progress)
            now = self._clock()
            if now - self._last_s >= self._every_s:
                self._last_s = now
                self.note(f"{self._split}: {self._meter.line(now)}")

    def note(self, line: str) -> None:
        """Print."""
        print(line, file=self._stream or sys.stderr, flush=True)

    def stop(self) -> None:
        """Print the last state, if there is one."""
        if self._meter is not None:
            self.note(f"{self._split}: {self._meter.line(self._clock())}")
            self._meter = None


class Bar:
    """A live bar on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._progress: object | None = None
        self._lock = threading.Lock()

    def start(self, split: str, samples: int, source_bytes: int, done: int) -> None:
        """A split begins."""
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._meter = Meter(samples, done, time.monotonic())
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[line]}"),
            console=self._console,
            refresh_per_second=8,
        )
        line = self._meter.line(time.monotonic())
        self._task = self._rich.add_task(split, total=samples, completed=done, line=line)
        self._rich.start()
        self._progress = self._rich

    def advance(self, progress: Progress) -> None:
        """Move the bar."""
        with self._lock:
            self._meter.add(progress)
            line = self._meter.line(time.monotonic())
            self._rich.update(self._task, completed=self._meter.done, line=line)

    def note(self, line: str) -> None:
        """Print above the bar."""
        self._console.print(line, highlight=False, markup=False)

    def stop(self) -> None:
        """Leave the bar as it stands."""
        if self._progress is not None:
            self._rich.stop()
            self._progress = None


def choose() -> Display:
    """A bar on a terminal, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    minutes, second = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{second:02}" if hours else f"{minutes}:{second:02}"
