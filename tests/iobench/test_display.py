"""What a person sees, on a clock that tests move."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.display import Bar, Lines, Meter, choose
from iobench.trial import Status, Trial, TrialSpec

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
    """How ``SPEC`` came out."""
    return Trial(SPEC.id, "train", PARAMS, 0, status, {"samples_per_s": 500.0}, reason=reason)


class TestMeter:
    def test_time_left_is_unknown_at_first(self) -> None:
        """Before a trial has ended nobody can tell."""
        meter = Meter(["train"] * 10, 0, 0.0)
        meter.begin(SPEC, 0.0)
        assert meter.left_s() is None
        assert meter.line() == "-:-- left"

    def test_rate_so_far(self) -> None:
        """All that the trial did over the time since it began."""
        meter = Meter(["train"] * 10, 0, 0.0)
        meter.begin(SPEC, 100.0)
        meter.progress(3000, "samples", 102.0)
        assert meter.line() == "1,500 samples/s so far, -:-- left"

    def test_a_trial_begins_without_a_rate(self) -> None:
        """The rate of the one before is not its own."""
        meter = Meter(["train"] * 10, 0, 0.0)
        meter.progress(3000, "samples", 2.0)
        meter.begin(SPEC, 3.0)
        assert "samples/s" not in meter.line()

    def test_no_rate_before_time_passes(self) -> None:
        """Samples at once are no endless rate."""
        meter = Meter(["train"] * 10, 0, 5.0)
        meter.begin(SPEC, 5.0)
        meter.progress(3000, "samples", 5.0)
        assert meter.line() == "-:-- left"

    @given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9), st.integers(0, 5))
    def test_the_rest_takes_as_long_as_what_was_seen(self, spans: list[float], kept: int) -> None:
        """Time left is the mean of the trials so far for each that is left."""
        meter = Meter(["train"] * (20 - kept), kept, 0.0)
        now_s = 0.0
        for span in spans:
            meter.begin(SPEC, now_s)
            now_s += span
            meter.end(ended(), now_s)
        mean_s = sum(spans) / len(spans)
        assert meter.left_s() == pytest.approx(mean_s * (20 - kept - len(spans)))

    def test_kinds_take_their_own_time(self) -> None:
        """What is to come of a kind takes as long as that kind did; others the mean of all."""
        meter = Meter(["disk", "disk", "train", "object"], 0, 0.0)
        meter.begin(TrialSpec("disk", {}), 0.0)
        meter.end(Trial("disk//0", "disk", DISK, 0, "done"), 2.0)
        assert meter.left_s() == 2.0 * 3
        meter.begin(SPEC, 2.0)
        meter.end(ended(), 42.0)
        assert meter.left_s() == 2.0 + (2.0 + 40.0) / 2

    def test_skipped_trials_do_not_shorten_the_rest(self) -> None:
        """One that took no time says nothing of the others."""
        meter = Meter(["train"] * 3, 0, 0.0)
        meter.begin(SPEC, 0.0)
        meter.end(ended(), 60.0)
        meter.begin(SPEC, 60.0)
        meter.end(ended("skipped"), 60.0)
        assert meter.left_s() == 60.0
        assert meter.line() == "1:00 left"

    @pytest.mark.parametrize(
        ("seconds", "shown"), [(0, "0:00"), (59.6, "1:00"), (130, "2:10"), (3661, "1:01:01")]
    )
    def test_time_left_is_a_clock(self, seconds: float, shown: str) -> None:
        """Minutes and seconds, hours where there are any."""
        meter = Meter(["train"] * 2, 0, 0.0)
        meter.begin(SPEC, 0.0)
        meter.end(ended(), seconds)
        assert meter.line() == f"{shown} left"


class TestLines:
    def test_a_line_for_each_trial(self) -> None:
        """How many there are, then each with its number and how it came out."""
        stream = io.StringIO()
        lines = Lines(stream, VirtualClock())
        lines.start(["train"] * 2, 1)
        lines.begin(SPEC)
        lines.progress(10, "samples")
        lines.end(ended())
        lines.begin(SPEC)
        lines.end(ended("failed", "it fell over"))
        lines.stop()
        assert stream.getvalue().splitlines() == [
            "3 trials, 1 of them measured before",
            "2/3  train g warm batch=8 #1: 500 samples/s",
            "3/3  failed train g warm batch=8 #1: it fell over",
        ]

    def test_it_writes_to_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        """stdout is for results."""
        Lines().note("sharding")
        assert capsys.readouterr() == ("", "sharding\n")


class TestBar:
    def test_it_shows_everything_on_stderr(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Notes and results stay above the bar; no name is taken for markup."""
        bar = Bar()
        hostile = TrialSpec("train", {**PARAMS, "group": "[bold]x[/nothing]"})
        bar.note("before it starts [/b]")
        bar.start(["train"] * 2, 0)
        bar.begin(hostile)
        bar.progress(10, "samples")
        bar.end(Trial(hostile.id, "train", hostile.params, 0, "failed", reason="[/red] no"))
        bar.stop()
        bar.stop()
        out, err = capsys.readouterr()
        assert out == ""
        assert "before it starts [/b]" in err
        assert "failed train [bold]x[/nothing] warm batch=8 #1: [/red] no" in err.replace("\n", "")

    def test_it_stops_though_it_never_started(self) -> None:
        """A run that fails early leaves the terminal alone."""
        Bar().stop()


def test_a_log_gets_lines() -> None:
    """There is a bar only on a terminal."""
    assert isinstance(choose(), Lines)
