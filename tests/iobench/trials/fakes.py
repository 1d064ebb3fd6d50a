"""Loaders and consumers whose work advances a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iobench.clock import Clock, VirtualClock
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.protocol import Batch, FirstBatch, Framework
from iobench.loaders.settings import LoaderSettings
from iobench.results.trial import Location

START_S, WAIT_S, STEP_S, SAMPLES = 3.0, 0.25, 0.5, 10
PARAMS = {
    "loader": "slow",
    "data": "",
    "cache": "warm",
    "batch_size": SAMPLES,
    "workers": 1,
    "prefetch": 2,
    "seconds": 5.0,
}


class Only:
    """A registry in which every name means one class."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def load(self, name: str) -> type:
        """Return that class."""
        return self._kind

    def origin(self, name: str) -> str:
        """Return no package, which stands for this one."""
        return ""


class SlowLoader:
    """A loader that takes ``START_S`` to open and ``WAIT_S`` for each of ``batches`` batches."""

    framework: Framework = "none"
    reads: str | None = None
    notes: Sequence[str] = ("a fake",)
    batches = 8
    last_samples = SAMPLES
    restart_s = 0.0

    def __init__(self, location: Location | None, settings: LoaderSettings, clock: Clock) -> None:
        self.location, self.settings, self.clock = location, settings, clock
        self.epochs: list[int] = []
        self.closed = False

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield batches of ``SAMPLES`` samples."""
        self.epochs.append(number)
        self.clock.sleep(self.restart_s if number else START_S)
        for index in range(self.batches):
            self.clock.sleep(WAIT_S)
            last = index == self.batches - 1
            yield Batch(None, None, self.last_samples if last else SAMPLES)

    def close(self) -> None:
        """Note that the loader is closed."""
        self.closed = True


class TellingLoader(SlowLoader):
    """A loader whose start is listing, and half of whose first wait is fetching."""

    parts: FirstBatch | None = FirstBatch(listing_s=START_S, fetch_s=WAIT_S / 2)

    def first_batch(self) -> FirstBatch | None:
        """Return the parts of the first batch, before the loader is closed."""
        assert not self.closed
        return self.parts


class SlowConsumer:
    """A consumer whose steps take ``STEP_S`` each."""

    framework: Framework = "none"
    emulated = False
    device = "a fake device"
    precision = "float32"
    notes: Sequence[str] = ("no work",)
    asynchronous = False

    def __init__(self, settings: ConsumerSettings, clock: Clock) -> None:
        self.settings, self.clock = settings, clock
        self.steps = 0
        self.pending = 0
        self.warm = False

    def synthetic(self) -> Batch:
        """Return a batch of the configured size."""
        return Batch(None, None, self.settings.batch_size)

    def warm_up(self) -> None:
        """Take 100 s, which belong to no figure."""
        self.clock.sleep(100)
        self.warm = True

    def step(self, batch: Batch) -> None:
        """Compute a step now, or hand it over to the device."""
        assert self.warm
        self.steps += 1
        if self.asynchronous:
            self.pending += 1
        else:
            self.clock.sleep(STEP_S)

    def finish(self) -> None:
        """Wait for the steps that were handed over."""
        self.clock.sleep(self.pending * STEP_S)
        self.pending = 0

    def compute_s(self) -> Sequence[float]:
        """Return ``STEP_S`` for each step."""
        return [STEP_S] * self.steps


class AsynchronousConsumer(SlowConsumer):
    """A consumer whose steps return at once, and are computed by ``finish``."""

    asynchronous = True


def looped(batches: int, last_samples: int = SAMPLES) -> tuple[SlowLoader, VirtualClock]:
    """Return a loader with this number of batches in an epoch, and its clock."""
    clock = VirtualClock()
    loader = SlowLoader(None, LoaderSettings(batch_size=SAMPLES), clock)
    loader.batches, loader.last_samples = batches, last_samples
    return loader, clock


def warm(kind: type[SlowConsumer], clock: Clock) -> SlowConsumer:
    """Return a consumer that has warmed up."""
    consumer = kind(ConsumerSettings(batch_size=SAMPLES), clock)
    consumer.warm_up()
    return consumer
