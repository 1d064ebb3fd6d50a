"""What a person sees while trials run; always on stderr."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Sequence
from typing import IO, Protocol

from dataprep.counted import counted
from iobench.clock import Clock, SystemClock
from iobench.trial import Trial, TrialSpec
from iobench.words import point_words, rate_words, result_words


class Display(Protocol):
    """Shows a run's progress."""

    def start(self, kinds: Sequence[str], done: int) -> None:
        """A run begins: the kinds of the trials to come; ``done`` are there already."""
        ...

    def note(self, line: str) -> None:
        """Something worth a line of its own."""
        ...

    def begin(self, spec: TrialSpec) -> None:
        """A trial begins."""
        ...

    def progress(self, done: float, unit: str) -> None:
        """All that the trial did so far."""
        ...

    def end(self, trial: Trial) -> None:
        """A trial ended."""
        ...

    def stop(self) -> None:
        """No more will come."""
        ...


class Meter:
    """PURE. Trials against a clock that is passed in."""

    def __init__(self, kinds: Sequence[str], done: int, now_s: float) -> None:
        self.trials = done + len(kinds)
        self.ended = done
        self._to_come = Counter(kinds)
        self._seconds: dict[str, list[float]] = {}
        self._begun_s = now_s
        self._kind = ""
        self._rate = ""
        self.last = ""
        self._skipped: set[str] = set()

    def begin(self, spec: TrialSpec, now_s: float) -> None:
        """A trial begins."""
        self._begun_s, self._kind, self._rate = now_s, spec.kind, ""

    def progress(self, done: float, unit: str, now_s: float) -> None:
        """The rate over the trial so far, its preparation included."""
        elapsed_s = now_s - self._begun_s
        if elapsed_s > 0:
            self._rate = rate_words(done / elapsed_s, unit)

    def end(self, trial: Trial, now_s: float) -> None:
        """A trial ended; one that was skipped says nothing of how long others take."""
        self.ended += 1
        self._rate = ""
        self._to_come[trial.kind] -= 1
        self.last = result_words(trial)
        if trial.status == "skipped":
            # Once for a reason: the end says how many trials had the same.
            self.last = "" if trial.reason in self._skipped else self.last
            self._skipped.add(trial.reason)
        else:
            self._seconds.setdefault(self._kind, []).append(now_s - self._begun_s)

    def left_s(self) -> float | None:
        """Seconds left; None before the first has ended.

        Each trial to come takes as long as those of its kind, or of all kinds, took on average.
        """
        known = {kind: sum(spans) / len(spans) for kind, spans in self._seconds.items()}
        if not known:
            return None
        every = [span for spans in self._seconds.values() for span in spans]
        mean_s = sum(every) / len(every)
        return sum(count * known.get(kind, mean_s) for kind, count in self._to_come.items())

    def line(self) -> str:
        """``1,234 samples/s so far, 2:10 left``."""
        left_s = self.left_s()
        clock = "-:--" if left_s is None else _clock(left_s)
        rate = f"{self._rate} so far, " if self._rate else ""
        return f"{rate}{clock} left"


class Lines:
    """A line for each trial that ended, for logs."""

    def __init__(self, stream: IO[str] | None = None, clock: Clock | None = None) -> None:
        self._stream = stream
        self._clock = clock or SystemClock()
        self._meter = Meter((), 0, 0.0)

    def start(self, kinds: Sequence[str], done: int) -> None:
        """A run begins."""
        self._meter = Meter(kinds, done, self._clock.now_s())
        kept = f", {done} of them measured before" if done else ""
        self.note(f"{counted(self._meter.trials, 'trial')}{kept}")

    def note(self, line: str) -> None:
        """Print."""
        print(line, file=self._stream or sys.stderr, flush=True)

    def begin(self, spec: TrialSpec) -> None:
        """Remember when."""
        self._meter.begin(spec, self._clock.now_s())

    def progress(self, done: float, unit: str) -> None:
        """Nothing: a log is read afterwards."""

    def end(self, trial: Trial) -> None:
        """Print how the trial came out."""
        self._meter.end(trial, self._clock.now_s())
        if self._meter.last:
            self.note(f"{self._meter.ended}/{self._meter.trials}  {self._meter.last}")

    def stop(self) -> None:
        """Nothing."""


class Bar:
    """A live bar on a terminal, with the last result above it."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True)
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._started = False

    def start(self, kinds: Sequence[str], done: int) -> None:
        """A run begins."""
        from rich.progress import BarColumn, Progress, TextColumn

        self._meter = Meter(kinds, done, self._clock.now_s())
        self._rich = Progress(
            TextColumn("{task.completed}/{task.total}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[line]}  [dim]{task.description}[/dim]"),
            console=self._console,
            refresh_per_second=8,
        )
        self._task = self._rich.add_task("", total=self._meter.trials, completed=done, line="")
        self._rich.start()
        self._started = True

    def note(self, line: str) -> None:
        """Print above the bar."""
        self._console.print(line, highlight=False, markup=False)

    def begin(self, spec: TrialSpec) -> None:
        """Say which trial it is."""
        self._meter.begin(spec, self._clock.now_s())
        self._show(description=_escaped(point_words(spec)))

    def progress(self, done: float, unit: str) -> None:
        """Move the rate."""
        self._meter.progress(done, unit, self._clock.now_s())
        self._show()

    def end(self, trial: Trial) -> None:
        """Leave the result above the bar."""
        with self._lock:
            self._meter.end(trial, self._clock.now_s())
        if self._meter.last:
            self.note(self._meter.last)
        self._rich.update(self._task, completed=self._meter.ended)
        self._show()

    def stop(self) -> None:
        """Leave the bar as it stands."""
        if self._started:
            self._show(description="")
            self._rich.stop()
            self._started = False

    def _show(self, **fields: str) -> None:
        self._rich.update(self._task, line=self._meter.line(), **fields)  # type: ignore[arg-type]


def choose() -> Display:
    """A bar on a terminal, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    hours, rest = divmod(whole, 3600)
    minutes, second = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{second:02}" if hours else f"{minutes}:{second:02}"
