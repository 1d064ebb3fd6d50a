"""A loader that is simulated event by event on a virtual clock.

Workers request windows of samples from a store, decode them and make batches, as the workers of
torch's DataLoader do over dataprep's reader. The store has a latency, and all transfers share its
rate. The simulation knows nothing of how ``iobench`` measures, so that its rates are the truth.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from dataprep.reading.read_ahead import GrowingWindows, ReadAhead
from dataprep.reading.read_counter import ReadTotals
from iobench.clock import VirtualClock
from iobench.loaders.null import placeholder
from iobench.loaders.protocol import Batch, Framework, ReadPattern

ENDLESS = 10**9
"""The samples of an epoch that no test reads to its end."""

Process = Generator[float, None, None]
"""A process of the simulation: it yields the seconds that it sleeps, or ``WAITING``."""

WAITING = -1.0


@dataclass(frozen=True)
class Simulation:
    """What is simulated.

    Attributes:
        workers, prefetch, batch: as in torch's DataLoader; with 0 workers the loop loads a batch
            when it requests one.
        item_s: seconds in which a worker decodes a sample.
        window: the largest number of samples that a worker requests together.
        first_window: samples of the first window, after which windows grow as in dataprep's reader;
            0 if all windows have the same size.
        at_once: windows that a worker requests at the same time, beside the one that it consumes.
        buffer: samples that a worker keeps back in its shuffle buffer.
        latency_s: seconds from a request until its transfer begins.
        store_per_s: samples/s of all transfers together.
        epoch_samples: samples of an epoch.
        start_s: seconds in which the workers start, before the first epoch.
        sample_bytes: the size of a sample.
    """

    workers: int = 2
    prefetch: int = 2
    batch: int = 10
    item_s: float = 0.0
    window: int = 10
    first_window: int = 0
    at_once: int = 1
    buffer: int = 0
    latency_s: float = 0.0
    store_per_s: float = math.inf
    epoch_samples: int = ENDLESS
    start_s: float = 0.5
    sample_bytes: int = 40_000

    @property
    def streams(self) -> int:
        """Return the number of workers, or 1 for the loop itself if there are none."""
        return max(1, self.workers)

    @property
    def pattern(self) -> ReadPattern:
        """Return how the loader reads ahead."""
        return ReadPattern(self.streams, self.window, self.at_once, self.buffer)

    @property
    def batches(self) -> int:
        """Return the number of batches in an epoch, of which the last one may be smaller."""
        return -(-self.epoch_samples // self.batch)

    def batch_samples(self, number: int) -> int:
        """Return the samples of the batch with this number."""
        return min(self.batch, self.epoch_samples - number * self.batch)

    def worker_samples(self, worker: int) -> int:
        """Return the number of samples that a worker reads in an epoch."""
        numbers = range(worker, self.batches, self.streams)
        samples = len(numbers) * self.batch
        if numbers and numbers[-1] == self.batches - 1:
            samples -= self.batch - self.batch_samples(self.batches - 1)
        return samples


class _Link:
    """Transfers that share one rate."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._left: dict[int, float] = {}
        self._now_s = 0.0
        self._numbers = itertools.count()

    def begin(self, samples: int, now_s: float) -> int:
        """Begin a transfer and return its number."""
        self._move(now_s)
        number = next(self._numbers)
        self._left[number] = samples
        return number

    def ends_at_s(self) -> float:
        """Return when the next transfer ends, if no other begins before."""
        if not self._left:
            return math.inf
        return self._now_s + min(self._left.values()) * len(self._left) / self._per_s

    def ended(self, now_s: float) -> list[int]:
        """Return the numbers of the transfers that have ended by now, and forget them."""
        self._move(now_s)
        numbers = [number for number, left in self._left.items() if left <= 1e-6]
        for number in numbers:
            del self._left[number]
        return numbers

    def _move(self, now_s: float) -> None:
        if self._left:
            moved = (now_s - self._now_s) * self._per_s / len(self._left)
            self._left = {number: left - moved for number, left in self._left.items()}
        self._now_s = now_s


class _Epoch:
    """One epoch of the workers, which advances to any moment.

    Attributes:
        now_s: the moment to which it has advanced.
        arrived: samples that have arrived from the store.
        ready: for each worker, the finished batches that are not yet consumed.
    """

    def __init__(self, simulation: Simulation, now_s: float, *, is_first: bool) -> None:
        self._simulation = simulation
        self.now_s = now_s
        self.arrived = 0
        self._sleeping: list[tuple[float, int, Process]] = []
        self._order = itertools.count()
        self._blocked: list[Process] = []
        self._link = _Link(simulation.store_per_s)
        # Worker and samples of each transfer, by its number.
        self._transfers: dict[int, tuple[int, int]] = {}
        streams = simulation.streams
        self._requested_batches = [simulation.prefetch if simulation.workers else 0] * streams
        self.ready = [0] * streams
        # Each list has an entry for each worker: the samples that it has not requested, those that
        # have not arrived, those that have arrived, and the windows that it has not consumed.
        self._unread = [simulation.worker_samples(worker) for worker in range(streams)]
        self._missing = list(self._unread)
        self._waiting_samples = [0] * streams
        self._open_windows: list[deque[int]] = [deque() for _ in range(streams)]
        most = ReadAhead(simulation.window, simulation.at_once)
        first = simulation.first_window or simulation.window * simulation.at_once
        self._growing = [
            GrowingWindows(first, most, clock=lambda: self.now_s) for _ in range(streams)
        ]
        self.window_samples = 0
        self._windows_on_their_way = [0] * streams
        for worker in range(streams):
            self._run(self._worker(worker, simulation.start_s if is_first else 0.0))

    def advance(self, until_s: float) -> None:
        """Let everything happen until that moment."""
        while (at_s := self.next_event_s()) <= until_s:
            self.step(at_s)
        self.now_s = max(self.now_s, until_s)

    def next_event_s(self) -> float:
        """Return the moment of the next event."""
        wakes_s = self._sleeping[0][0] if self._sleeping else math.inf
        return min(wakes_s, self._link.ends_at_s())

    def step(self, at_s: float) -> None:
        """Let the next event happen."""
        self.now_s = max(self.now_s, at_s)
        for number in self._link.ended(self.now_s):
            self._arrive(*self._transfers.pop(number))
        while self._sleeping and self._sleeping[0][0] <= self.now_s:
            self._run(heapq.heappop(self._sleeping)[2])
        self._wake()

    def request_batch(self, worker: int) -> None:
        """Let this worker make one more batch."""
        self._requested_batches[worker] += 1
        self._wake()

    def _wake(self) -> None:
        blocked, self._blocked = self._blocked, []
        for process in blocked:
            self._run(process)

    def _run(self, process: Process) -> None:
        seconds = next(process, None)
        if seconds is None:
            return
        if seconds == WAITING:
            self._blocked.append(process)
        else:
            heapq.heappush(self._sleeping, (self.now_s + seconds, next(self._order), process))

    def _fetch(self, worker: int, samples: int) -> Process:
        simulation = self._simulation
        while self._windows_on_their_way[worker] == simulation.at_once:
            yield WAITING
        self._windows_on_their_way[worker] += 1
        yield simulation.latency_s
        if math.isinf(simulation.store_per_s):
            self._arrive(worker, samples)
        else:
            self._transfers[self._link.begin(samples, self.now_s)] = worker, samples

    def _arrive(self, worker: int, samples: int) -> None:
        self._windows_on_their_way[worker] -= 1
        self._missing[worker] -= samples
        self._waiting_samples[worker] += samples
        self.arrived += samples

    def _request_windows(self, worker: int) -> None:
        """Keep ``at_once`` windows requested beyond the one that is being consumed."""
        simulation = self._simulation
        while self._unread[worker] and len(self._open_windows[worker]) < simulation.at_once + 1:
            size = simulation.window
            if simulation.first_window:
                size = self._growing[worker].next_size()
                self.window_samples = max(self.window_samples, size)
            samples = min(size, self._unread[worker])
            self._unread[worker] -= samples
            self._open_windows[worker].append(samples)
            self._run(self._fetch(worker, samples))

    def _worker(self, worker: int, start_s: float) -> Process:
        """Make one requested batch after the other."""
        simulation = self._simulation
        if start_s:
            yield start_s
        of_window = in_buffer = 0
        for number in range(worker, simulation.batches, simulation.streams):
            while self._requested_batches[worker] == 0:
                yield WAITING
            self._requested_batches[worker] -= 1
            needed_samples = simulation.batch_samples(number)
            while needed_samples:
                self._request_windows(worker)
                while not self._waiting_samples[worker] and self._missing[worker]:
                    yield WAITING
                room = simulation.buffer + needed_samples - in_buffer
                moved = min(room, self._waiting_samples[worker])
                self._waiting_samples[worker] -= moved
                in_buffer += moved
                of_window += moved
                while self._open_windows[worker] and of_window >= self._open_windows[worker][0]:
                    consumed = self._open_windows[worker].popleft()
                    of_window -= consumed
                    self._request_windows(worker)
                    self._growing[worker].note_taken(consumed)
                has_more = self._missing[worker] or self._waiting_samples[worker]
                kept_back = simulation.buffer if has_more else 0
                taken_samples = min(needed_samples, max(0, in_buffer - kept_back))
                in_buffer -= taken_samples
                needed_samples -= taken_samples
                yield taken_samples * simulation.item_s
            self.ready[worker] += 1


class SimulatedLoader:
    """A loader that is simulated, and counts the samples that arrive."""

    framework: Framework = "none"
    reads: str | None = None
    notes: Sequence[str] = ()

    def __init__(self, simulation: Simulation, clock: VirtualClock) -> None:
        self.simulation, self._clock = simulation, clock
        self._arrived_before = 0
        self._epoch: _Epoch | None = None

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch; taking one requests the next of the same worker."""
        simulation, clock = self.simulation, self._clock
        if self._epoch is not None:
            self._arrived_before += self._epoch.arrived
        epoch = self._epoch = _Epoch(simulation, clock.now_s(), is_first=not number)
        for index in range(simulation.batches):
            worker = index % simulation.streams
            epoch.advance(clock.now_s())
            if not simulation.workers:
                epoch.request_batch(worker)
            while not epoch.ready[worker]:
                epoch.step(epoch.next_event_s())
            epoch.ready[worker] -= 1
            clock.sleep(epoch.now_s - clock.now_s())
            if simulation.workers:
                epoch.request_batch(worker)
            yield placeholder(simulation.batch_samples(index))

    def read_so_far(self) -> ReadTotals:
        """Return the samples and bytes that have arrived so far."""
        if self._epoch is None:
            return ReadTotals()
        self._epoch.advance(self._clock.now_s())
        samples = self._arrived_before + self._epoch.arrived
        window_samples = self._epoch.window_samples
        return ReadTotals(samples, samples * self.simulation.sample_bytes, window_samples)

    def read_pattern(self, sample_bytes: float) -> ReadPattern:
        """Return how the loader reads ahead."""
        return self.simulation.pattern

    def close(self) -> None:
        """Do nothing."""


def long_run_rate(simulation: Simulation, device_per_s: float, samples: int) -> float:
    """Return the samples/s of a loop over an endless epoch, far from its start.

    This is the truth for a steady state. A plain loop consumes ``samples`` first, and is then timed
    for five times as many.
    """
    clock = VirtualClock()
    loader = SimulatedLoader(replace(simulation, epoch_samples=ENDLESS), clock)
    consumed, begun_s, begun = 0, math.nan, 0
    for batch in loader.epoch(0):
        clock.sleep(batch.samples / device_per_s)
        consumed += batch.samples
        if begun == 0 and consumed >= samples:
            begun, begun_s = consumed, clock.now_s()
        if consumed >= 6 * samples:
            break
    return (consumed - begun) / (clock.now_s() - begun_s)


def whole_epochs_rate(simulation: Simulation, device_per_s: float, epochs: int) -> float:
    """Return the samples/s of a plain loop over whole epochs with their starts."""
    clock = VirtualClock()
    loader = SimulatedLoader(simulation, clock)
    consumed = 0
    for number in range(epochs):
        for batch in loader.epoch(number):
            clock.sleep(batch.samples / device_per_s)
            consumed += batch.samples
    return consumed / clock.now_s()
