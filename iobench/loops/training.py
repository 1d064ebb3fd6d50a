"""Kind ``train``: a whole training loop, fed from the device, from memory, disk or store."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

from iobench.access import metered
from iobench.consumers import CONSUMERS, Consumer
from iobench.errors import Unavailable
from iobench.extensions import made
from iobench.loaders import Batch, HoldsSamples, Loader
from iobench.loaders.memory import NOTE, host_batch
from iobench.loops import several_devices
from iobench.loops.aggregate import epochs_as_one, with_epochs
from iobench.loops.cache import EpochCache, epoch_cache_for
from iobench.loops.devices import devices_of, limit_threads
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.figures import Split, epoch_record, first_batch, loop_outcome
from iobench.loops.opening import (
    check_frameworks,
    classes_of,
    data_of,
    full_batches,
    reached,
    steps_of,
    whole_batches,
)
from iobench.loops.training_plan import TrainingTrial, training_trial
from iobench.machine.hardware import available_bytes
from iobench.stored import Stored
from iobench.trial import Cold, Context, Outcome, TrialSpec

Drive = Callable[[Callable[[], Iterator[Batch]]], LoopTimes]


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One training loop with one input."""
    trial = training_trial(spec.params)
    settings = trial.settings
    environment = dict(os.environ)
    on_cpu = trial.compute.device == "cpu"
    limit_threads(trial.threads, settings.workers, on_cpu=on_cpu)
    if (devices := devices_of(trial.devices, trial.compute.device)) is not None:
        return several_devices.run(spec, trial, context, devices, environment)
    over = context.places[trial.over] if trial.over else None
    place = context.places[trial.data] if trial.data else None

    def opened() -> Loader:
        return reached(trial, place or over, context)

    loader = opened()
    data = data_of(over, loader)
    whole = [whole_batches(loader, settings, data.samples)] if data is not None else []
    steps, leave_out = steps_of(trial, data, whole)
    if trial.is_held:
        # Before the consumer is warm: a GPU that waits for long lowers its clocks again.
        _hold(loader, trial, steps)
    consumer = _consumer(trial, data, context)
    consumer.warm_up()
    drive_epoch = _driving(consumer, context, steps, leave_out)
    if trial.input in ("synthetic", "copy"):
        return _one_batch(loader, consumer, trial, context, data, drive_epoch)
    check_frameworks(loader, consumer.framework)
    read = None if trial.is_held else data
    every = trial.evict == "every-epoch"
    cache = epoch_cache_for(trial, trial.input, place, read, every=every)
    epochs = SeveralEpochs(loader, opened, cache, settings.batch_size)
    try:
        with metered(spec.params, loader, place, data) as needed:
            epochs.run(trial.epochs or 1, drive_epoch)
    finally:
        epochs.close()
    outcome = loop_outcome(
        epochs_as_one(epochs.times),
        consumer,
        trial,
        context.clock,
        notes=[*epochs.notes, *epochs.first.notes],
        more={**epochs.first.metrics, **needed, "epochs": epochs.records()},
        data=read,
        cold=epochs.cold(),
    )
    return with_epochs(outcome, epochs.times)


@dataclass
class SeveralEpochs:
    """Epochs of one trial, each driven by itself, the page cache prepared and judged between them.

    The loader is made ``again`` where its workers must end between epochs. The first batch is that
    of the first epoch. ``close`` ends the loader that is open; the last epoch is judged after
    that, when every worker is reaped.
    """

    loader: Loader
    again: Callable[[], Loader]
    cache: EpochCache | None
    batch_size: int
    times: list[LoopTimes] = field(default_factory=list)
    first: Split = field(default_factory=Split)
    notes: list[str] = field(default_factory=list)
    _colds: list[Cold | None] = field(default_factory=list)

    def run(self, count: int, drive: Drive) -> None:
        """All of them; raises what the loader and ``drive`` do."""
        for number in range(count):
            if number:
                self._between()
            if self.cache is not None:
                self.cache.before()
            self.times.append(drive(lambda: full_batches(self.loader, self.batch_size, number)))  # noqa: B023
            if not number:
                self.first = first_batch(self.loader, self.times[0].time_to_first_batch_s)

    def close(self) -> None:
        """End the loader's workers; its notes stay."""
        self.loader.close()
        self.notes = list(dict.fromkeys([*self.notes, *self.loader.notes]))

    def records(self) -> list[dict[str, object]]:
        """The record of each, with its verdict; once the loader is closed."""
        self._judge()
        return [
            epoch_record(number, times.taken, times.counted_s[1], times.time_to_first_batch_s, cold)
            for number, (times, cold) in enumerate(zip(self.times, self._colds, strict=True))
        ]

    def cold(self) -> Cold | None:
        """Of all epochs together; None where nothing was read."""
        self._judge()
        return self.cache.whole() if self.cache is not None else None

    def _between(self) -> None:
        if self.cache is not None and self.cache.restarts:
            self.close()
            self._judge()
            gc.collect()  # what a loader left in cycles may hold a mapping
            self.loader = self.again()
        else:
            self._judge()

    def _judge(self) -> None:
        """Judge the last epoch, once."""
        if len(self._colds) < len(self.times):
            taken = self.times[-1].taken
            self._colds.append(self.cache.after(taken) if self.cache is not None else None)


def _one_batch(
    loader: Loader,
    consumer: Consumer,
    trial: TrainingTrial,
    context: Context,
    data: Stored | None,
    drive_epoch: Drive,
) -> Outcome:
    """The loop over one batch, again and again: on the device, or in host memory."""
    loader.close()
    notes: tuple[str, ...] = ()
    if trial.input == "copy":
        check_frameworks(loader, consumer.framework)
        batch, notes = host_batch(trial.settings, classes_of(data)), (NOTE,)
    else:
        batch = consumer.synthetic()
    times = [drive_epoch(lambda: repeat(batch)) for _ in range(trial.epochs or 1)]
    outcome = loop_outcome(epochs_as_one(times), consumer, trial, context.clock, notes=notes)
    return with_epochs(outcome, times)


def _hold(loader: Loader, trial: TrainingTrial, steps: int) -> None:
    """Put the loop's samples into memory, a quarter of what is free at most.

    Raises:
        Unavailable: the loader only gives what is stored.
    """
    if not isinstance(loader, HoldsSamples):
        raise Unavailable(f"loader {trial.loader} cannot be given samples from memory")
    loader.hold(trial.input, steps * trial.settings.batch_size, available_bytes() // 4)  # type: ignore[arg-type]


def _driving(consumer: Consumer, context: Context, steps: int, leave_out: int) -> Drive:
    """One epoch after the other into the same consumer."""
    done = 0

    def progress(samples: float) -> None:
        context.progress(done + samples, "samples")

    def drive_epoch(epoch: Callable[[], Iterator[Batch]]) -> LoopTimes:
        nonlocal done
        bounds = {"leave_out": leave_out, "max_steps": steps}
        times = drive(epoch, consumer, context.clock, progress=progress, **bounds)
        done += times.taken
        return times

    return drive_epoch


def _consumer(trial: TrainingTrial, data: Stored | None, context: Context) -> Consumer:
    kind = CONSUMERS.load(trial.consumer)
    settings = trial.compute.model_copy(update={"classes": classes_of(data)})
    consumer: Consumer = context.around.consumer(
        made(CONSUMERS, trial.consumer, Consumer, lambda: kind(settings, context.clock))
    )
    return consumer
