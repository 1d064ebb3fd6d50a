"""A GPU's idle time by events of a library that is made up: no GPU is needed, and none is shown."""

from __future__ import annotations

import sys
import types
from array import array

import pytest

from iobench.clock import VirtualClock
from iobench.watching.device import DeviceIdle, cuda


class FakeCuda:
    """A stream: work takes time on the device, events are reached when all before them is done."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock, self.busy_until_s, self.made = clock, 0.0, 0

    def compute(self, seconds: float) -> None:
        """Hand work over; it begins when what was handed over before is done."""
        self.busy_until_s = max(self.busy_until_s, self.clock.now_s()) + seconds

    def Event(self, enable_timing: bool) -> FakeEvent:  # noqa: N802
        assert enable_timing
        self.made += 1
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, stream: FakeCuda) -> None:
        self._stream, self._reached_s = stream, 0.0

    def record(self) -> None:
        self._reached_s = max(self._stream.busy_until_s, self._stream.clock.now_s())

    def query(self) -> bool:
        return self._stream.clock.now_s() >= self._reached_s

    def elapsed_time(self, other: FakeEvent) -> float:
        return (other._reached_s - self._reached_s) * 1e3


def waited(wait_s: float, computes_s: float) -> tuple[list[float], FakeCuda]:
    """Four batches, each waited for while the device computes what it was handed before."""
    clock = VirtualClock()
    stream = FakeCuda(clock)
    idle = DeviceIdle(stream)
    for _ in range(4):
        idle.asking(clock.now_s())
        clock.sleep(wait_s)
        idle.given()
        stream.compute(computes_s)
    clock.sleep(100)
    return list(array("d", idle.settled())), stream


def test_a_device_that_still_computes_is_not_idle() -> None:
    """The host waited 1 s for each batch, of which nothing was lost but the first."""
    pairs, _ = waited(wait_s=1.0, computes_s=1.5)
    assert pairs[::2] == [0, 1, 2, 3]
    assert pairs[1::2] == [1.0, 0, 0, 0]


def test_a_device_that_is_done_early_is_idle_for_the_rest() -> None:
    """Of 1 s of waiting it computed a quarter."""
    assert waited(wait_s=1.0, computes_s=0.25)[0][3::2] == pytest.approx([0.75] * 3)


def test_events_that_were_not_reached_are_told_later() -> None:
    """Nothing waits for the device."""
    clock = VirtualClock()
    stream = FakeCuda(clock)
    idle = DeviceIdle(stream)
    stream.compute(10)
    idle.asking(0.0)
    idle.given()
    assert idle.settled() == b""
    clock.sleep(10)
    found = idle.settled()
    assert len(found) == 16
    assert idle.settled() == found
    idle.forget(found)
    assert idle.settled() == b""


def test_events_are_used_again() -> None:
    """A long training does not make them without end."""
    clock = VirtualClock()
    stream = FakeCuda(clock)
    idle = DeviceIdle(stream)
    for _ in range(50):
        idle.asking(clock.now_s())
        idle.given()
        idle.forget(idle.settled())
    assert stream.made == 2


@pytest.mark.parametrize("available", [True, False])
def test_only_a_torch_that_is_there_and_sees_a_gpu(
    monkeypatch: pytest.MonkeyPatch, available: bool
) -> None:
    """It is never imported for this."""
    monkeypatch.setitem(sys.modules, "torch", None)
    assert cuda() is None
    seen = types.SimpleNamespace(is_available=lambda: available)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=seen))
    assert (cuda() is seen) == available
