"""The windows of a stream begin small and grow, on a virtual clock over a simulated link."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import pytest

from dataprep.reading.read_ahead import WINDOW_S, GrowingWindows, ReadAhead, read_ahead

PHOTO_BYTES = 42_000
BATCH = 64
MOST = read_ahead(PHOTO_BYTES, is_remote=True)


@dataclass
class Link:
    """A store: each request waits ``latency_s``, then the transfers share ``per_s`` samples/s.

    Requests are served in the order in which they arrive. For equal windows this takes as long as
    sharing the rate.
    """

    per_s: float = math.inf
    latency_s: float = 0.0
    free_at_s: float = 0.0

    def ends_s(self, samples: int, asked_s: float) -> float:
        """The time at which a request made at ``asked_s`` is answered, in seconds."""
        self.free_at_s = max(self.free_at_s, asked_s + self.latency_s) + samples / self.per_s
        return self.free_at_s


@dataclass
class Run:
    """The observations of a loop: its windows in the order of the requests, and their times.

    Attributes:
        sizes: samples of each window that was requested.
        done_s: when the loop had consumed each window.
        most_held: the most samples that were requested and not yet consumed.
    """

    sizes: list[int] = field(default_factory=list)
    done_s: list[float] = field(default_factory=list)
    most_held: int = 0

    def first_batch_s(self) -> float:
        """When a loop that takes no time had consumed the samples of one batch, in seconds."""
        samples = 0
        for size, done_s in zip(self.sizes, self.done_s, strict=False):
            samples += size
            if samples >= BATCH:
                return done_s
        raise AssertionError("no batch")


def run(link: Link, loop_per_s: float, windows: int, most: ReadAhead = MOST) -> Run:
    """Read ``windows`` windows as ``Records.stream`` does, in the slots of ``in_order``."""
    now_s = 0.0
    growing = GrowingWindows(BATCH, most, clock=lambda: now_s)
    slots = [0.0] * most.windows_at_once
    pending: deque[tuple[int, float, float]] = deque()
    observed = Run()
    while len(observed.done_s) < windows:
        while len(pending) < most.windows_at_once + 1:
            size = growing.next_size()
            observed.sizes.append(size)
            slot = min(range(len(slots)), key=slots.__getitem__)
            begun_s = max(now_s, slots[slot])
            slots[slot] = link.ends_s(size, begun_s)
            pending.append((size, slots[slot] - begun_s, slots[slot]))
            if len(observed.sizes) == 1:
                now_s = slots[slot]  # nothing else is requested before the first window has arrived
        observed.most_held = max(observed.most_held, sum(size for size, _, _ in pending))
        size, lasted_s, arrived_s = pending.popleft()
        now_s = max(now_s, arrived_s)
        growing.note_arrival(lasted_s)
        growing.note_taken(size)
        now_s += size / loop_per_s
        observed.done_s.append(now_s)
    return observed


def rate(observed: Run, after: int) -> float:
    """The rate from the end of a window on, in samples/s."""
    samples = sum(observed.sizes[after + 1 : len(observed.done_s)])
    return samples / (observed.done_s[-1] - observed.done_s[after])


def test_the_first_batch_waits_for_its_own_samples_alone() -> None:
    """At 12 MB/s the first batch takes its own transfer time, not that of large windows."""
    observed = run(Link(12e6 / PHOTO_BYTES), math.inf, 10)
    assert observed.first_batch_s() == pytest.approx(BATCH * PHOTO_BYTES / 12e6)
    assert observed.sizes[0] == BATCH


def test_windows_double_up_to_the_largest() -> None:
    """A fast loop over a fast store gets windows up to 16 MiB. Each at most doubles the last."""
    observed = run(Link(10_000, 0.05), 5_000, 20)
    assert observed.sizes[-1] == MOST.window_samples
    assert all(
        size <= 2 * before for before, size in zip(observed.sizes, observed.sizes[1:], strict=False)
    )
    assert observed.sizes == sorted(observed.sizes)


@pytest.mark.parametrize("latency_s", [0.0, 0.05, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("loop_per_s", [300.0, 2_000.0, 20_000.0])
def test_the_rate_is_that_of_large_windows(latency_s: float, loop_per_s: float) -> None:
    """Small windows at first cost nothing in the long run, for any latency of the store."""
    observed = run(Link(5_000, latency_s), loop_per_s, 60)
    large = min(loop_per_s, 5_000.0, 2 * MOST.window_samples / (latency_s + 0.08))
    assert rate(observed, 20) >= 0.97 * large


@pytest.mark.parametrize("latency_s", [0.0, 0.05])
def test_a_slow_loop_keeps_little_in_memory(latency_s: float) -> None:
    """A loop of 100 samples/s never holds more than a few batches, however fast the store is."""
    observed = run(Link(100_000, latency_s), 100, 100)
    assert observed.most_held <= 4 * BATCH


def test_a_slow_link_keeps_little_in_memory() -> None:
    """Windows of a second keep a link of 12 MB/s busy."""
    observed = run(Link(12e6 / PHOTO_BYTES), 2_000, 100)
    assert max(observed.sizes) * PHOTO_BYTES <= 12e6 * WINDOW_S
    assert rate(observed, 20) == pytest.approx(12e6 / PHOTO_BYTES, rel=0.02)


def test_a_batch_above_the_largest_window_is_read_in_several() -> None:
    """Windows of large samples do not exceed 16 MiB."""
    most = ReadAhead(34, 2)
    observed = run(Link(1_000), math.inf, 10, most)
    assert max(observed.sizes) == 34


def test_a_disk_begins_with_one_whole_batch() -> None:
    """One window at a time is requested, so the first one has the whole batch."""
    observed = run(Link(50_000), 2_000, 10, read_ahead(PHOTO_BYTES, is_remote=False))
    assert observed.sizes[:2] == [BATCH, BATCH]
    assert max(observed.sizes) == MOST.window_samples


def test_the_next_stream_goes_on_with_large_windows_after_its_first_batch() -> None:
    """After its first batch, the next stream has large windows, so only the first one learns."""
    growing = GrowingWindows(BATCH, MOST, earlier_size=MOST.window_samples)
    sizes = [growing.next_size() for _ in range(4)]
    assert sizes == [BATCH] + 3 * [MOST.window_samples]
