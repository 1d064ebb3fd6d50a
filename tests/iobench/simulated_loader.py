"""A loader that is simulated event by event on a virtual clock.

Workers request windows of samples from a store, decode them and make batches, as the workers of
torch's DataLoader do over dataprep's reader. The store has a latency, and all transfers share its
rate. The simulation knows nothing of how ``iobench`` measures.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from dataprep.reading.read_counter import ReadTotals
from iobench.clock import VirtualClock
from iobench.loaders.null import placeholder
from iobench.loaders.protocol import Batch, Framework, ReadPattern

SAMPLE_BYTES = 40_000

Event = Generator[float, None, None]
"""A process of the simulation: it yields the seconds that it sleeps, or ``WAITING``."""

WAITING = -1.0


@dataclass(frozen=True)
class Simulated:
    """What is simulated.

    Attributes:
        workers, prefetch, batch: as of torch's DataLoader; 0 workers load when a batch is taken.
        item_s: seconds in which a worker decodes a sample.
        window: samples that a worker requests together; ``at_once`` of them at the same time.
        latency_s: from a request until its transfer begins.
        store_per_s: samples/s of all transfers together.
        epoch_samples: samples of an epoch.
        start_s: how long workers take to start, before the first epoch.
    """

    workers: int = 2
    prefetch: int = 2
    batch: int = 10
    item_s: float = 0.0
    window: int = 10
    at_once: int = 1
    latency_s: float = 0.0
    store_per_s: float = math.inf
    epoch_samples: int = 10**9
    start_s: float = 0.5

    @property
    def pattern(self) -> ReadPattern:
        """How it reads ahead."""
        return ReadPattern(max(1, self.workers), self.window, self.at_once)

    def longer(self) -> Simulated:
        """The same with an epoch that does not end."""
        return replace(self, epoch_samples=10**9)


class _Link:
    """Transfers that share one rate."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: dict[int, float] = {}
        self._now_s = 0.0
        self._numbers = itertools.count()

    def begin(self, samples: int, now_s: float) -> int:
        """Begin a transfer."""
        self._move(now_s)
        number = next(self._numbers)
        self._left[number] = samples
        return number

    def ends_at_s(self) -> float:
        """When the next transfer ends, if no other begins before."""
        if not self._left:
            return math.inf
        return self._now_s + min(self._left.values()) * len(self._left) / self._rate

    def ended(self, now_s: float) -> list[int]:
        """The transfers that have ended by now."""
        self._move(now_s)
        done = [number for number, left in self._left.items() if left <= 1e-6]
        for number in done:
            del self._left[number]
        return done

    def _move(self, now_s: float) -> None:
        if self._left:
            each = (now_s - self._now_s) * self._rate / len(self._left)
            self._left = {number: left - each for number, left in self._left.items()}
        self._now_s = now_s


class _Epoch:
    """One epoch of the workers, which advances to any moment."""

    def __init__(self, told: Simulated, now_s: float, count: int, is_first: bool) -> None:
        self._told = told
        self.now_s = now_s
        self.arrived = 0
        self._sleeping: list[tuple[float, int, Event]] = []
        self._order = itertools.count()
        self._blocked: list[Event] = []
        self._link = _Link(told.store_per_s)
        self._windows: dict[int, tuple[int, int]] = {}
        sizes = [told.batch] * (count // told.batch)
        if count % told.batch:
            sizes.append(count % told.batch)
        workers = max(1, told.workers)
        self._left = [deque(sizes[worker::workers]) for worker in range(workers)]
        self._unread = [sum(sizes) for sizes in self._left]
        self._requested_batches = [told.prefetch if told.workers else 0] * workers
        self.ready = [0] * workers
        self._buffers = [0] * workers
        self._outstanding = [0] * workers
        self._transfers = [0] * workers
        self.sizes = sizes
        for worker in range(workers):
            self._run(self._worker(worker, told.start_s if is_first else 0.0))

    def advance(self, until_s: float) -> None:
        """Let everything happen until that moment."""
        while (at_s := self.next_event_s()) <= until_s:
            self.step(at_s)
        self.now_s = max(self.now_s, until_s)

    def next_event_s(self) -> float:
        """The moment of the next event."""
        sleeping = self._sleeping[0][0] if self._sleeping else math.inf
        return min(sleeping, self._link.ends_at_s())

    def step(self, at_s: float) -> None:
        """Let the next event happen."""
        self.now_s = max(self.now_s, at_s)
        for transfer in self._link.ended(self.now_s):
            worker, samples = self._windows.pop(transfer)
            self._arrive(worker, samples)
        while self._sleeping and self._sleeping[0][0] <= self.now_s:
            self._run(heapq.heappop(self._sleeping)[2])
        self._wake()

    def request_batch(self, worker: int) -> None:
        """A batch of this worker was taken, or is wanted: it may make one more."""
        self._requested_batches[worker] += 1
        self._wake()

    def _wake(self) -> None:
        blocked, self._blocked = self._blocked, []
        for process in blocked:
            self._run(process)

    def _run(self, process: Event) -> None:
        seconds = next(process, None)
        if seconds is None:
            return
        if seconds == WAITING:
            self._blocked.append(process)
        else:
            heapq.heappush(self._sleeping, (self.now_s + seconds, next(self._order), process))

    def _fetch(self, worker: int, samples: int) -> Event:
        while self._transfers[worker] == self._told.at_once:
            yield WAITING
        self._transfers[worker] += 1
        yield self._told.latency_s
        if math.isinf(self._told.store_per_s):
            self._arrive(worker, samples)
            return
        self._windows[self._link.begin(samples, self.now_s)] = worker, samples

    def _arrive(self, worker: int, samples: int) -> None:
        self._transfers[worker] -= 1
        self._buffers[worker] += samples
        self.arrived += samples

    def _request_windows(self, worker: int) -> None:
        """Keep ``at_once`` windows requested beyond the one that is being consumed."""
        while self._unread[worker] and self._outstanding[worker] < self._told.at_once + 1:
            samples = min(self._told.window, self._unread[worker])
            self._unread[worker] -= samples
            self._outstanding[worker] += 1
            self._run(self._fetch(worker, samples))

    def _worker(self, worker: int, start_s: float) -> Event:
        if start_s:
            yield start_s
        in_window = 0
        for size in self._left[worker]:
            while self._requested_batches[worker] == 0:
                yield WAITING
            self._requested_batches[worker] -= 1
            missing = size
            while missing:
                self._request_windows(worker)
                while not self._buffers[worker]:
                    yield WAITING
                part = min(missing, self._buffers[worker])
                self._buffers[worker] -= part
                missing -= part
                in_window += part
                while in_window >= self._told.window:
                    in_window -= self._told.window
                    self._outstanding[worker] -= 1
                    self._request_windows(worker)
                yield part * self._told.item_s
            self.ready[worker] += 1


class SimulatedLoader:
    """Batches of a simulated loader; counts what arrives."""

    framework: Framework = "none"
    reads: str | None = None
    notes: Sequence[str] = ()

    def __init__(self, told: Simulated, clock: VirtualClock) -> None:
        self.told, self._clock = told, clock
        self._arrived_before = 0
        self._epoch: _Epoch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """One epoch; taking a batch requests the next one of the same worker."""
        told, clock = self.told, self._clock
        if self._epoch is not None:
            self._arrived_before += self._epoch.arrived
        count = min(told.epoch_samples, 2_000_000)
        epoch = self._epoch = _Epoch(told, clock.now_s(), count, not number)
        workers = max(1, told.workers)
        for index, size in enumerate(epoch.sizes):
            worker = index % workers
            epoch.advance(clock.now_s())
            if not told.workers:
                epoch.request_batch(worker)
            while not epoch.ready[worker]:
                epoch.step(epoch.next_event_s())
            epoch.ready[worker] -= 1
            clock.sleep(epoch.now_s - clock.now_s())
            if told.workers:
                epoch.request_batch(worker)
            yield placeholder(size)

    def read_so_far(self) -> ReadTotals:
        """What has arrived until now."""
        if self._epoch is None:
            return ReadTotals()
        self._epoch.advance(self._clock.now_s())
        samples = self._arrived_before + self._epoch.arrived
        return ReadTotals(samples, samples * SAMPLE_BYTES)

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """How it reads ahead."""
        return self.told.pattern

    def close(self) -> None:
        """Nothing to end."""


def long_run_rate(told: Simulated, device_per_s: float, samples: int) -> float:
    """The rate of a loop over an epoch that does not end, far from its start.

    This is the truth for a steady state: ``samples`` are consumed first, then five times as many
    are timed, by a plain loop.
    """
    clock = VirtualClock()
    loader = SimulatedLoader(told.longer(), clock)
    consumed, begun_s, begun = 0, math.nan, 0
    for batch in loader.epoch(0):
        clock.sleep(batch.samples / device_per_s)
        consumed += batch.samples
        if begun == 0 and consumed >= samples:
            begun, begun_s = consumed, clock.now_s()
        if consumed >= 6 * samples:
            break
    return (consumed - begun) / (clock.now_s() - begun_s)


def whole_epochs_rate(told: Simulated, device_per_s: float, epochs: int) -> float:
    """The rate of a loop over whole epochs with their starts, by a plain loop."""
    clock = VirtualClock()
    loader = SimulatedLoader(told, clock)
    consumed = 0
    for number in range(epochs):
        for batch in loader.epoch(number):
            clock.sleep(batch.samples / device_per_s)
            consumed += batch.samples
    return consumed / clock.now_s()
