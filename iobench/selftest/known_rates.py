"""Measure loops of emulated loaders and devices whose exact rates are known."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from dataprep.message_text import counted
from iobench.clock import Clock, Pauses, SystemClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import Consumer, ConsumerSettings
from iobench.loaders.mock import MockLoader
from iobench.loaders.null import NullLoader
from iobench.loaders.protocol import Loader
from iobench.machine.sampling import Samples
from iobench.trials.loader_grid import LoopTrial
from iobench.trials.loader_opening import ReopenedLoader
from iobench.trials.loop_timings import LoopTimings, combine_epochs
from iobench.trials.rate_measurement import measure_rate
from iobench.trials.rate_plan import plan_rate
from iobench.trials.window import Minimum
from iobench.watching.figures import outcome, read_step_log
from iobench.watching.proxy import TimedEpoch
from iobench.watching.replay import Replay, ReplaySettings
from iobench.watching.session import StepLog

MAX_ERROR_SHARE = 0.05
"""The largest error of a rate, as a share of the known rate."""

_BATCH = 20
_ITEM_S = 0.002
_WAIT_S, _WORK_S = 0.050, 0.150
"""The seconds to load a batch, and to compute a step, in a loop that waits 25 % of its time."""

_REPLAY = ReplaySettings(batches=4, steps=40, warm_up=20)
_HALF_STEP_S = 0.010
"""The seconds to load a batch, and also to compute a step, in a loop with a loss of one half."""
_MOCK_STEPS = {1: 21, 3: 67, 8: 171}
"""The minimum number of steps, by the number of workers. It is no multiple of that number, unless
there is one worker."""


@dataclass(frozen=True, slots=True)
class Check:
    """A measured figure, and the known figure with which it is compared.

    Attributes:
        name: the description of the measurement.
        expected: the known figure; None if there is none, and any measured figure is right.
        found: the measured figure.
        limit: the largest accepted difference; None if any measured figure is right.
        unit: the unit of all figures.
    """

    name: str
    expected: float | None
    found: float
    limit: float | None
    unit: str

    @property
    def ok(self) -> bool:
        """Whether the measured figure differs from the expected figure by at most ``limit``."""
        if self.expected is None or self.limit is None:
            return True
        return abs(self.found - self.expected) <= self.limit

    def __str__(self) -> str:
        measured = f"{self.name}: {self.found:.4g} {self.unit}".rstrip()
        if self.expected is None or self.limit is None:
            return f"      {measured}"
        mark = "ok   " if self.ok else "WRONG"
        return f"{mark} {measured}, expected {self.expected:.4g} within {self.limit:.3g}"


@dataclass(frozen=True, slots=True)
class NotRun:
    """A measurement that was not possible, and the reason."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"not run: {self.name}: {self.why}"


def checks(clock: Clock | None = None, steps: int = 100) -> Iterator[Check]:
    """Measure every known rate.

    Args:
        clock: the clock of the loops; by default the clock of the machine.
        steps: number of steps of loops whose loader does nothing.
    """
    clock = clock or SystemClock()
    # With a loader that takes no time the device never waits. So au_ceiling must be 1.
    device_per_s = _BATCH / 0.020
    settings = ConsumerSettings(batch_size=_BATCH, images_per_s=device_per_s)
    times = _loop_times(NullLoader, PacedConsumer(settings, clock), clock, steps)
    au_ceiling = times.samples_per_s / device_per_s
    yield Check("null store, paced device of 20 ms: au_ceiling", 1.0, au_ceiling, 0.02, "")
    for workers, mock_steps in _MOCK_STEPS.items():
        yield mock_alone(clock, mock_steps, workers)
        for device_share in (0.5, 2.0):
            yield mock_with_device(clock, mock_steps, workers, device_share)
    yield watched_waits(clock, max(1, steps // 5))
    yield watched_loss(clock, steps)
    consumer = NullConsumer(ConsumerSettings(), clock)
    times = _loop_times(NullLoader, consumer, clock, 10 * steps)
    batch_us = times.seconds / len(times.step_s) * 1e6
    yield Check("null into null: overhead of the loop", None, batch_us, None, "us per batch")


def mock_alone(clock: Clock, steps: int, workers: int) -> Check:
    """Measure a loader whose workers take 2 ms per sample: 500 samples/s for each of them."""
    consumer = NullConsumer(ConsumerSettings(), clock)
    times = _loop_times(MockLoader, consumer, clock, steps, workers=workers, item_s=_ITEM_S)
    expected = workers / _ITEM_S
    return _rate_check(_mock_name(workers), expected, times)


def mock_with_device(clock: Clock, steps: int, workers: int, device_share: float) -> Check:
    """Measure a loop of the same loader and a device. Its rate is the lower of their two rates.

    ``device_share`` is the rate of the device, divided by the rate of the loader.
    """
    loader_per_s = workers / _ITEM_S
    device_per_s = device_share * loader_per_s
    settings = ConsumerSettings(batch_size=_BATCH, images_per_s=device_per_s)
    consumer = PacedConsumer(settings, clock)
    times = _loop_times(MockLoader, consumer, clock, steps, workers=workers, item_s=_ITEM_S)
    name = f"{_mock_name(workers)}, device of {device_per_s:g}/s"
    return _rate_check(name, min(loader_per_s, device_per_s), times)


def _mock_name(workers: int) -> str:
    return f"mock loader, {counted(workers, 'worker')} of 2 ms per item"


def _rate_check(name: str, expected: float, times: LoopTimings) -> Check:
    return Check(name, expected, times.samples_per_s, MAX_ERROR_SHARE * expected, "samples/s")


def watched_waits(clock: Clock, steps: int) -> Check:
    """Watch a loop with 50 ms per batch and 150 ms per step: it waits 25 % of the time."""
    load_pauses, step_pauses = Pauses(clock), Pauses(clock)

    def batches() -> Iterator[list[int]]:
        for _ in range(steps + 1):
            load_pauses.pause(_WAIT_S)
            yield [0] * _BATCH

    records = BytesIO()
    log = StepLog(records.write)
    for _ in TimedEpoch(batches, 0, 0, log, clock=clock.now_s):
        step_pauses.pause(_WORK_S)
    log.flush()
    table, no_readings = read_step_log(records.getvalue()), Samples({}, 0.0, ())
    watched = outcome(table, 0, no_readings, step_cost_s=0.0)
    wait_share = float(watched.metrics["wait_share"])
    return Check("watched loop that waits 50 of 200 ms: share", 0.25, wait_share, 0.02, "")


def watched_loss(clock: Clock, steps: int) -> Check:
    """Watch a loop with a replay: 10 ms per batch and 10 ms per step, so that it loses half."""
    load_pauses, step_pauses = Pauses(clock), Pauses(clock)

    def batches() -> Iterator[list[int]]:
        for _ in range(_REPLAY.begins_after + steps):
            load_pauses.pause(_HALF_STEP_S)
            yield [0] * _BATCH

    records = BytesIO()
    log = StepLog(records.write)
    replay = Replay(_REPLAY, 0, log, clock=clock.now_s)
    for _ in TimedEpoch(batches, 0, 0, log, replay=replay, clock=clock.now_s):
        step_pauses.pause(_HALF_STEP_S)
    log.flush()
    table, no_readings = read_step_log(records.getvalue()), Samples({}, 0.0, ())
    watched = outcome(table, 0, no_readings, step_cost_s=0.0, replay_batches=_REPLAY.batches)
    loss = float(watched.metrics.get("loss_share", math.nan))
    return Check("watched loop with a replay that loads for 10 of 20 ms: loss", 0.5, loss, 0.02, "")


def _loop_times(
    loader_class: type[Loader], consumer: Consumer, clock: Clock, steps: int, **settings: Any
) -> LoopTimings:
    """Run a loop with the same rules as in a trial, and return its timings.

    Args:
        loader_class: the class of the loader, which is opened for the loop.
        consumer: the device.
        clock: the clock of the loop.
        steps: the minimum number of steps that count.
        settings: fields of ``LoopTrial``.
    """
    trial = LoopTrial(loader="", data="", batch_size=_BATCH, **settings)
    loader = loader_class(None, trial, clock)
    reopened = ReopenedLoader(loader, lambda: loader)
    plan = plan_rate(
        loader,
        trial,
        None,
        Minimum(steps),
        epoch_samples=None,
        by_epochs=False,
        give_up_s=math.inf,
    )
    consumer.warm_up()
    try:
        measurement = measure_rate(
            reopened.request, consumer, clock, plan, read_totals=reopened.read_totals
        )
    finally:
        loader.close()
    return combine_epochs(measurement.counted_timings())
