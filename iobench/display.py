"""Progress of a run on stderr: a live bar on a terminal, else a line for each trial."""

from __future__ import annotations

import datetime
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import IO

from dataprep.counted import counted
from iobench.clock import Clock, SystemClock
from iobench.numbers import rate_with_unit
from iobench.trial import Trial, TrialSpec
from iobench.words import point_words, result_words


class Lines:
    """A line for each trial that ended, for logs."""

    def __init__(self, stream: IO[str] | None = None, clock: Clock | None = None) -> None:
        self._stream = stream
        self._clock = clock or SystemClock()
        self._begun_s = 0.0
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._skipped: set[str] = set()

    def start(self, kinds: Sequence[str], done: int) -> None:
        """Begin a run: the kinds of the trials to come; ``done`` were measured before."""
        self._to_come = Counter(kinds)
        self._ended, self._trials = done, done + len(kinds)
        kept = f", {done} of them measured before" if done else ""
        self.note(f"{counted(self._trials, 'trial')}{kept}")

    def note(self, line: str) -> None:
        """Print a line."""
        print(line, file=self._stream or sys.stderr, flush=True)

    def begin(self, spec: TrialSpec) -> None:
        """Begin a trial."""
        self._begun_s = self._clock.now_s()

    def progress(self, done: float, unit: str) -> None:
        """Show how much the trial has done; not in a log."""

    def end(self, trial: Trial) -> None:
        """Print the outcome of a trial; for skipped trials once for each reason."""
        self._ended += 1
        self._to_come[trial.kind] -= 1
        if trial.status == "skipped":
            # Its time is no estimate for other trials.
            if trial.reason in self._skipped:
                return
            self._skipped.add(trial.reason)
        else:
            self._seconds[trial.kind].append(self._clock.now_s() - self._begun_s)
        self.note(f"{self._ended}/{self._trials}  {result_words(trial)}")

    def stop(self) -> None:
        """End the display."""

    def left_s(self) -> float | None:
        """Seconds left; None before the first trial has ended.

        Each trial to come takes as long as those of its kind, or of all kinds, took on average.
        """
        every = [span for spans in self._seconds.values() for span in spans]
        if not every:
            return None
        left_s = 0.0
        for kind, count in self._to_come.items():
            spans = self._seconds.get(kind) or every
            left_s += count * sum(spans) / len(spans)
        return left_s


class Bar(Lines):
    """A live bar on a terminal, with the results above it."""

    def __init__(self, clock: Clock | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        super().__init__(clock=clock)
        self._rich = Progress(
            TextColumn("{task.completed}/{task.total}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[line]}  [dim]{task.description}[/dim]"),
            console=Console(stderr=True),
            refresh_per_second=8,
        )
        self._task = self._rich.add_task("", visible=False, line="")

    def start(self, kinds: Sequence[str], done: int) -> None:
        """Show the bar."""
        super().start(kinds, done)
        self._rich.update(self._task, total=self._trials, visible=True)
        self._rich.start()
        self._show()

    def note(self, line: str) -> None:
        """Print above the bar."""
        self._rich.console.print(line, highlight=False, markup=False)

    def begin(self, spec: TrialSpec) -> None:
        """Show which trial it is."""
        from rich.markup import escape

        super().begin(spec)
        self._show(description=escape(point_words(spec)))

    def progress(self, done: float, unit: str) -> None:
        """Show the rate over the trial so far, its preparation included."""
        elapsed_s = self._clock.now_s() - self._begun_s
        if elapsed_s > 0:
            self._show(f"{rate_with_unit(done / elapsed_s, unit)} so far, ")

    def end(self, trial: Trial) -> None:
        """Print the outcome of a trial, and move the bar."""
        super().end(trial)
        self._show()

    def stop(self) -> None:
        """Leave the bar as it is."""
        self._rich.update(self._task, description="")
        self._rich.stop()

    def _show(self, rate: str = "", **fields: str) -> None:
        """``1,234 samples/s so far, 0:02:10 left``."""
        left_s = self.left_s()
        left = "-:--" if left_s is None else datetime.timedelta(seconds=round(left_s))
        line = f"{rate}{left} left"
        self._rich.update(self._task, completed=self._ended, line=line, **fields)  # type: ignore[arg-type]


def choose() -> Lines:
    """A bar on a terminal, lines elsewhere."""
    return Bar() if sys.stderr.isatty() else Lines()
