"""Kind ``train``: a whole training loop, fed from the device, from memory, disk or store."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from iobench.access import metered
from iobench.consumers import CONSUMERS, Consumer
from iobench.errors import Unavailable
from iobench.extensions import made
from iobench.ladder import HELD_RUNGS
from iobench.loaders import Batch, HoldsSamples, Loader
from iobench.loaders.memory import host_batch
from iobench.loops import several_devices
from iobench.loops.cache import EpochCache
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.figures import epoch_record, first_batch, loop_outcome
from iobench.loops.opening import (
    check_frameworks,
    classes_of,
    data_of,
    full_batches,
    reached,
    steps_of,
    whole_batches,
)
from iobench.loops.several_devices import devices_of, thread_limits
from iobench.loops.training_plan import TrainingTrial
from iobench.machine.hardware import available_bytes
from iobench.stored import Stored
from iobench.trial import Cold, Context, Outcome, Params, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run one training loop with one input.

    Samples that are read beforehand take a quarter of the free memory at most.
    """
    trial = TrainingTrial.model_validate(spec.params)
    environment = dict(os.environ)
    on_cpu = trial.device == "cpu"
    os.environ.update(thread_limits(trial.threads, trial.workers, environment, on_cpu=on_cpu))
    if (devices := devices_of(trial.devices, trial.device)) is not None:
        return several_devices.run(spec, trial, context, devices, environment)
    over = context.places[trial.over] if trial.over else None
    place = context.places[trial.data] if trial.data else None
    loader = reached(trial, place or over, context)
    data = data_of(over, loader)
    whole = [whole_batches(loader, trial, data.samples)] if data is not None else []
    steps, leave_out = steps_of(trial, data, whole)
    if trial.input in HELD_RUNGS:
        if not isinstance(loader, HoldsSamples):
            raise Unavailable(f"loader {trial.loader} cannot be given samples from memory")
        # Before the consumer warms up: a GPU that waits for long lowers its clocks again.
        loader.hold(trial.input, steps * trial.batch_size, available_bytes() // 4)  # type: ignore[arg-type]
    kind = CONSUMERS.load(trial.consumer)
    settings = trial.model_copy(update={"classes": classes_of(data)})
    consumer: Consumer = context.around.consumer(
        made(CONSUMERS, trial.consumer, Consumer, lambda: kind(settings, context.clock))
    )
    consumer.warm_up()
    done = 0

    def drive_epoch(epoch: Callable[[], Iterator[Batch]]) -> LoopTimes:
        """Train for one epoch, always with the same consumer."""
        nonlocal done
        times = drive(
            epoch,
            consumer,
            context.clock,
            leave_out=leave_out,
            max_steps=steps,
            progress=lambda samples: context.progress(done + samples, "samples"),
        )
        done += times.taken
        return times

    if trial.input != "synthetic":
        check_frameworks(loader, consumer.framework)
    if trial.input in ("synthetic", "copy"):
        loader.close()
        notes = []
        if trial.input == "copy":
            batch = host_batch(trial, classes_of(data))
            notes.append("input copy: one batch in host memory, given again and again")
        else:
            batch = consumer.synthetic()
        times = [drive_epoch(lambda: repeat(batch)) for _ in range(trial.epochs or 1)]
        return loop_outcome(times, trial, context.clock, _computed(consumer, notes))
    return _read(spec.params, trial, context, loader, consumer, data, drive_epoch)


def _read(
    params: Params,
    trial: TrainingTrial,
    context: Context,
    loader: Loader,
    consumer: Consumer,
    data: Stored | None,
    drive_epoch: Callable[[Callable[[], Iterator[Batch]]], LoopTimes],
) -> Outcome:
    """Train on epochs of a loader, preparing and judging the page cache between them.

    The loader is made again if its workers must end between epochs. The last epoch is judged when
    all workers have ended.
    """
    place = context.places[trial.data] if trial.data else None
    read = None if trial.input in HELD_RUNGS else data
    cache = EpochCache(trial, trial.input, place, read, every=trial.evict == "every-epoch")
    times: list[LoopTimes] = []
    colds: list[Cold | None] = []
    notes: list[str] = []
    try:
        with metered(params, loader, place, data) as needed:
            for number in range(trial.epochs or 1):
                if number and cache.restarts:
                    loader.close()
                    notes += loader.notes
                if number:
                    colds.append(cache.after(times[-1].taken))
                if number and cache.restarts:
                    gc.collect()  # an object in a reference cycle may keep a file mapped
                    loader = reached(trial, place, context)
                cache.before()
                batches = partial(full_batches, loader, trial.batch_size, number)
                times.append(drive_epoch(batches))
                if not number:
                    parts = first_batch(loader, times[0].time_to_first_batch_s)
    finally:
        loader.close()
    colds.append(cache.after(times[-1].taken))
    records = [
        epoch_record(number, one.taken, one.counted_s[1], one.time_to_first_batch_s, cold)
        for number, (one, cold) in enumerate(zip(times, colds, strict=True))
    ]
    notes = list(dict.fromkeys([*notes, *loader.notes]))
    more = {**parts, **needed, **_computed(consumer, notes), "epochs": records}
    return loop_outcome(times, trial, context.clock, more, data=read, cold=cache.whole())


def _computed(consumer: Consumer, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "emulated": consumer.emulated,
        "device": consumer.device,
        "precision": consumer.precision,
        "notes": [*consumer.notes, *notes],
    }
