"""Show the progress of a run on stderr, as a live bar on a terminal, or else as lines of text."""

from __future__ import annotations

import datetime
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import IO

from dataprep.message_text import counted
from iobench.clock import Clock, SystemClock
from iobench.results.numbers import rate_with_unit
from iobench.results.trial import Trial, TrialSpec
from iobench.results.wording import point_words, result_words


class Lines:
    """Progress as a line for each trial that has ended.

    Args:
        stream: receives the lines; None for stderr.
        clock: measures the durations of trials; None for the clock of the system.
    """

    def __init__(self, stream: IO[str] | None = None, clock: Clock | None = None) -> None:
        self._stream = stream
        self._clock = clock or SystemClock()
        self._trial_start_s = 0.0
        self._durations_s: dict[str, list[float]] = defaultdict(list)
        """The durations of the trials that have ended and were not skipped, by their kinds."""
        self._skip_reasons: set[str] = set()
        """The reasons for skipped trials that were printed."""

    def start(self, kinds: Sequence[str], measured_before: int) -> None:
        """Begin a run.

        Args:
            kinds: the kind of each trial that will be measured.
            measured_before: the number of trials that a resumed run keeps and does not measure.
        """
        self._remaining = Counter(kinds)
        self._ended = measured_before
        self._trials = measured_before + len(kinds)
        before = f", {measured_before} of them measured before" if measured_before else ""
        self.note(f"{counted(self._trials, 'trial')}{before}")

    def note(self, line: str) -> None:
        """Print a line."""
        print(line, file=self._stream or sys.stderr, flush=True)

    def begin(self, spec: TrialSpec) -> None:
        """Begin a trial."""
        self._trial_start_s = self._clock.now_s()

    def progress(self, done: float, unit: str) -> None:
        """Show the progress within a trial. Lines of text do not show it.

        Args:
            done: how much the trial has done so far, in ``unit``.
            unit: ``samples``, for example.
        """

    def end(self, trial: Trial) -> None:
        """Print the outcome of a trial. A skipped trial is printed only if its reason is new."""
        self._ended += 1
        self._remaining[trial.kind] -= 1
        if trial.status == "skipped":
            # The duration of a skipped trial does not predict the duration of other trials.
            if trial.reason in self._skip_reasons:
                return
            self._skip_reasons.add(trial.reason)
        else:
            self._durations_s[trial.kind].append(self._clock.now_s() - self._trial_start_s)
        self.note(f"{self._ended}/{self._trials}  {result_words(trial)}")

    def stop(self) -> None:
        """End the display."""

    def remaining_s(self) -> float | None:
        """The estimated remaining seconds; None before the first trial has ended.

        A trial is assumed to take the mean time of the ended trials of its kind. If no trial of its
        kind has ended, the mean time of all ended trials is used.
        """
        all_durations_s: list[float] = []
        for durations_s in self._durations_s.values():
            all_durations_s += durations_s
        if not all_durations_s:
            return None
        remaining_s = 0.0
        for kind, count in self._remaining.items():
            durations_s = self._durations_s.get(kind) or all_durations_s
            remaining_s += count * sum(durations_s) / len(durations_s)
        return remaining_s


class Bar(Lines):
    """Progress as a live bar on a terminal, with the outcomes above it."""

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

    def start(self, kinds: Sequence[str], measured_before: int) -> None:
        """Show the bar."""
        super().start(kinds, measured_before)
        self._rich.update(self._task, total=self._trials, visible=True)
        self._rich.start()
        self._show()

    def note(self, line: str) -> None:
        """Print above the bar."""
        self._rich.console.print(line, highlight=False, markup=False)

    def begin(self, spec: TrialSpec) -> None:
        """Show the name of the trial."""
        from rich.markup import escape

        super().begin(spec)
        self._show(description=escape(point_words(spec)))

    def progress(self, done: float, unit: str) -> None:
        """Show the mean rate since the trial began, with the time of its preparation."""
        elapsed_s = self._clock.now_s() - self._trial_start_s
        if elapsed_s > 0:
            self._show(f"{rate_with_unit(done / elapsed_s, unit)} so far, ")

    def end(self, trial: Trial) -> None:
        """Print the outcome of a trial, and move the bar."""
        super().end(trial)
        self._show()

    def stop(self) -> None:
        """Stop updating the bar."""
        self._rich.update(self._task, description="")
        self._rich.stop()

    def _show(self, rate: str = "", **fields: str) -> None:
        """Update the bar: ``1,234 samples/s so far, 0:02:10 left``.

        Args:
            rate: the rate as text, with a comma and a space after it; empty to show no rate.
            fields: other fields of the bar to change.
        """
        remaining_s = self.remaining_s()
        remaining = "-:--"
        if remaining_s is not None:
            remaining = str(datetime.timedelta(seconds=round(remaining_s)))
        line = f"{rate}{remaining} left"
        self._rich.update(self._task, completed=self._ended, line=line, **fields)  # type: ignore[arg-type]


def choose() -> Lines:
    """Choose the display: a bar if stderr is a terminal, or else lines of text."""
    return Bar() if sys.stderr.isatty() else Lines()
