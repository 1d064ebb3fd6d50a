"""Rates, kept against a clock that only sleeps move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.faults import RateLimit
from iobench.faults.pacing import Pacer, Pacers


class FakeTime:
    """A clock that moves only when someone sleeps, and then by ``late_s`` too far."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now = 100.0
        self.late_s = late_s

    def clock(self) -> float:
        return self.now

    def sleep(self, duration_s: float) -> None:
        self.now += duration_s + self.late_s


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=6), st.floats(1_000_000, 100_000_000))
def test_bytes_take_their_time(sizes: list[int], bytes_per_s: float) -> None:
    """However a body is cut into blocks, it passes whole, in size / rate seconds."""
    time = FakeTime()
    pacer = Pacer(bytes_per_s, time.clock, time.sleep)
    passed = sum(map(len, pacer(bytes(size) for size in sizes)))
    assert passed == sum(sizes)
    assert time.now - 100.0 == pytest.approx(sum(sizes) / bytes_per_s)


def test_slow_rates_pass_small_slices() -> None:
    """A slow rate does not make bursts: no slice takes longer than 20 ms, or is below one byte."""
    time = FakeTime()
    assert max(map(len, Pacer(5_000, time.clock, time.sleep)([bytes(1_000)]))) == 100
    assert max(map(len, Pacer(1, time.clock, time.sleep)([bytes(3)]))) == 1


def test_late_sleeps_are_made_up_for() -> None:
    """Sleeps that end a little late do not lower the rate."""
    time = FakeTime(late_s=0.004)
    list(Pacer(1_000_000, time.clock, time.sleep)([bytes(1_000_000)]))
    assert time.now - 100.0 == pytest.approx(1.0, abs=0.01)


def test_idle_time_is_not_saved_up() -> None:
    """After a long pause, a body takes its time, less 10 ms at most."""
    time = FakeTime()
    pacer = Pacer(1_000, time.clock, time.sleep)
    time.now += 60
    list(pacer([bytes(1_000)]))
    assert time.now - 160.0 == pytest.approx(0.99)


def test_equal_limits_are_one_link() -> None:
    """Equal limits share a pacer per direction, and fresh pacers share nothing."""
    time = FakeTime()
    pacers = Pacers(time.clock, time.sleep)
    pacer = pacers.get(RateLimit(10), "upload")
    assert pacers.get(RateLimit(10), "upload") is pacer
    assert pacers.get(RateLimit(10), "download") is not pacer
    assert pacers.get(RateLimit(11), "upload") is not pacer
    assert pacers.fresh().get(RateLimit(10), "upload") is not pacer
