"""The progress that a user sees, on a virtual clock."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.results.trial import Status, Trial, TrialSpec
from iobench.runner.progress import Bar, Lines, choose

PARAMS: dict[str, Any] = {"group": "g", "input": "warm", "batch_size": 8}
DISK: dict[str, Any] = {
    "target": "t",
    "operation": "read",
    "pattern": "random",
    "block_bytes": 4096,
    "parallelism": 1,
    "cache": "direct",
}
SPEC = TrialSpec("train", PARAMS)


def ended(status: Status = "done", reason: str = "") -> Trial:
    """Return a trial of ``SPEC`` with this status."""
    return Trial(SPEC.id, "train", PARAMS, 0, status, {"samples_per_s": 500.0}, reason=reason)


class Timed:
    """The lines of a run on a virtual clock."""

    def __init__(self, kinds: list[str], done: int = 0) -> None:
        self.clock = VirtualClock()
        self.lines = Lines(io.StringIO(), self.clock)
        self.lines.start(kinds, done)

    def took(self, seconds: float, trial: Trial) -> None:
        """Run a trial that takes this time."""
        self.lines.begin(TrialSpec(trial.kind, trial.params))
        self.clock.sleep(seconds)
        self.lines.end(trial)


class TestTimeLeft:
    """The estimate of the remaining time."""

    @given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9), st.integers(0, 5))
    def test_the_rest_takes_as_long_as_what_was_seen(self, spans: list[float], kept: int) -> None:
        """Each remaining trial takes the mean so far; before the first, the time is unknown."""
        timed = Timed(["train"] * (20 - kept), kept)
        assert timed.lines.remaining_s() is None
        for span in spans:
            timed.took(span, ended())
        mean_s = sum(spans) / len(spans)
        assert timed.lines.remaining_s() == pytest.approx(mean_s * (20 - kept - len(spans)))

    def test_kinds_take_their_own_time(self) -> None:
        """A trial takes the mean of its kind, or the mean of all if its kind is new."""
        timed = Timed(["disk", "disk", "train", "object"])
        timed.took(2.0, Trial("disk//0", "disk", DISK, 0, "done"))
        assert timed.lines.remaining_s() == 2.0 * 3
        timed.took(40.0, ended())
        assert timed.lines.remaining_s() == 2.0 + (2.0 + 40.0) / 2

    def test_skipped_trials_do_not_shorten_the_rest(self) -> None:
        """A trial that took no time is not in the mean."""
        timed = Timed(["train"] * 3)
        timed.took(60.0, ended())
        timed.took(0.0, ended("skipped"))
        assert timed.lines.remaining_s() == 60.0


class TestLines:
    """Progress as lines."""

    def test_a_line_for_each_trial(self) -> None:
        """The first line has the number of trials; a reason to skip is shown once."""
        stream = io.StringIO()
        lines = Lines(stream, VirtualClock())
        lines.start(["train"] * 4, 1)
        lines.begin(SPEC)
        lines.progress(10, "samples")
        skipped = ended("skipped", "none")
        for trial in (ended(), ended("failed", "it fell over"), skipped, skipped):
            lines.begin(SPEC)
            lines.end(trial)
        lines.stop()
        assert stream.getvalue().splitlines() == [
            "5 trials, 1 of them measured before",
            "2/5  train g warm batch=8 #1: 500 samples/s",
            "3/5  failed train g warm batch=8 #1: it fell over",
            "4/5  skipped train g warm batch=8 #1: none",
        ]

    def test_a_log_gets_lines_on_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Output that is no terminal gets lines on stderr, since stdout is for results."""
        lines = choose()
        assert not isinstance(lines, Bar)
        lines.note("sharding")
        assert capsys.readouterr() == ("", "sharding\n")


class TestBar:
    """Progress as a bar on a terminal."""

    def test_it_shows_everything_on_stderr(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Notes and results are above the bar with rate and time left; names are no markup."""
        monkeypatch.setenv("COLUMNS", "200")
        clock = VirtualClock()
        bar = Bar(clock)
        hostile = TrialSpec("train", {**PARAMS, "group": "[bold]x[/nothing]"})
        bar.note("before it starts [/b]")
        bar.start(["train"] * 2, 0)
        bar.begin(hostile)
        bar.progress(3000, "samples")
        clock.sleep(2)
        bar.end(Trial(hostile.id, "train", hostile.params, 0, "failed", reason="[/red] no"))
        bar.begin(SPEC)
        clock.sleep(2)
        bar.progress(3000, "samples")
        bar.stop()
        bar.stop()
        out, err = capsys.readouterr()
        assert out == ""
        assert "before it starts [/b]" in err
        assert "1/2  failed train [bold]x[/nothing] warm batch=8 #1: [/red] no" in err
        assert "1,500 samples/s so far, 0:00:02 left" in err

    def test_it_stops_though_it_never_started(self) -> None:
        """A bar that was not started can be stopped."""
        Bar().stop()
