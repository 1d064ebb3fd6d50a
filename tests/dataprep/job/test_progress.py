"""Tests of dataprep.job.progress."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.job.progress import Bar, Lines, Meter, choose
from dataprep.job.worker import Progress


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_line_says_all() -> None:
    """A line has samples done and in all, rates of this run alone, failures and time left."""
    meter = Meter(5_000, 200, 10.0)
    meter.add(Progress(1_000, 50_000_000, 3))
    assert meter.line(12.0) == ("1,200/5,000 images, 500 img/s, 25 MB/s read, 3 failed, 0:08 left")


def test_nothing_done_yet() -> None:
    """Without work there is no rate to tell the time from, and no division by zero."""
    assert Meter(10, 0, 5.0).line(5.0) == ("0/10 images, 0 img/s, 0 MB/s read, 0 failed, -:-- left")


@pytest.mark.parametrize(
    ("samples", "left"), [(61, "1:00"), (3_601, "1:00:00"), (360_062, "100:01:01"), (1, "0:00")]
)
def test_time_left(samples: int, left: str) -> None:
    """Time is minutes and seconds, with hours where there are some."""
    meter = Meter(samples, 0, 0.0)
    meter.add(Progress(1, 0, 0))
    assert meter.line(1.0).endswith(f", {left} left")


def test_work_that_is_done_twice() -> None:
    """A shard made twice never makes more than all; what is taken back leaves the right sum."""
    meter = Meter(100, 0, 0.0)
    meter.add(Progress(95, 950, 2))
    meter.add(Progress(10, 100, 1))
    assert meter.done == 100
    meter.add(-Progress(10, 100, 1))
    assert (meter.done, meter.failed) == (95, 2)


@given(parts=st.lists(st.builds(Progress, *[st.integers(0, 1000)] * 3), max_size=9))
def test_the_sum_does_not_depend_on_the_parts(parts: list[Progress]) -> None:
    """Progress in parts is shown as progress at once."""
    one, many = Meter(10**6, 0, 0.0), Meter(10**6, 0, 0.0)
    one.add(sum(parts, Progress()))
    for part in parts:
        many.add(part)
    assert one.line(3.0) == many.line(3.0)


def test_lines_come_in_their_time() -> None:
    """A line comes once the interval has passed, one at the end, and a note at once."""
    clock, stream = Clock(), io.StringIO()
    lines = Lines(stream, clock, every_s=5.0)
    lines.start("train", 100, 10**9, 0)
    for _ in range(4):
        clock.now_s += 2.0
        lines.advance(Progress(10, 2_000_000, 0))
    assert stream.getvalue() == (
        "train: 30/100 images, 5 img/s, 1 MB/s read, 0 failed, 0:14 left\n"
    )
    lines.note("a note")
    lines.stop()
    assert stream.getvalue().splitlines()[1:] == [
        "a note",
        "train: 40/100 images, 5 img/s, 1 MB/s read, 0 failed, 0:12 left",
    ]


def test_a_second_split_starts_anew() -> None:
    """The next split counts from what it has stored, from its own start."""
    clock, stream = Clock(), io.StringIO()
    lines = Lines(stream, clock)
    lines.start("train", 10, 10, 0)
    clock.now_s += 4.0
    lines.advance(Progress(10, 10, 1))
    lines.start("validation", 8, 10, 6)
    clock.now_s += 1.0
    lines.advance(Progress(1, 10, 0))
    assert stream.getvalue() == ""
    lines.stop()
    assert stream.getvalue() == (
        "validation: 7/8 images, 1 img/s, 0 MB/s read, 0 failed, 0:01 left\n"
    )


def test_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a stream everything goes to stderr, nothing to stdout."""
    Lines().note("a note")
    assert capsys.readouterr() == ("", "a note\n")


def test_a_bar_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets a bar, everything else lines."""
    assert isinstance(choose(), Lines)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert isinstance(choose(), Bar)


def test_the_bar_can_be_stopped_and_started_again(capsys: pytest.CaptureFixture[str]) -> None:
    """A bar shows its split and notes on stderr, and may be stopped twice."""
    bar = Bar()
    for split in ("train", "validation"):
        bar.start(split, 10, 100, 0)
        bar.advance(Progress(4, 40, 0))
        bar.note("[a] note")
        bar.stop()
        bar.stop()
    out, err = capsys.readouterr()
    assert out == ""
    assert "train" in err
    assert "validation" in err
    assert err.count("[a] note") == 2
    assert "4/10 images" in err
