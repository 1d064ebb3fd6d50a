"""Kind ``train``: a whole training loop, fed from the device, from memory, disk or store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any

from iobench.access import metered
from iobench.consumers import CONSUMERS, Consumer, ConsumerSettings
from iobench.errors import Unavailable
from iobench.extensions import made
from iobench.ladder import HELD_RUNGS
from iobench.loaders import Batch, HoldsSamples, Loader
from iobench.loaders.rungs.host_batch import NOTE, host_batch
from iobench.loops import several_devices
from iobench.loops.counting import classes_of, steps_of, whole_batches
from iobench.loops.devices import devices_of
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.epoch_cache import EVERY_EPOCH, epoch_cache_for
from iobench.loops.in_a_row import in_a_row, records, with_epochs
from iobench.loops.opening import check_frameworks, loader_settings, reached
from iobench.loops.outcome import loop_outcome
from iobench.loops.several_epochs import Drive, SeveralEpochs
from iobench.loops.threads import limit_threads
from iobench.loops.training_plan import CONSUMER_KEYS
from iobench.machine.hardware import available_bytes
from iobench.stored import Stored, stored
from iobench.trial import Context, Outcome, Params, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One training loop with one input."""
    params = spec.params
    on_cpu = params["device"] == "cpu"
    environment = dict(os.environ)
    limit_threads(params.get("threads"), params["workers"], on_cpu=on_cpu)
    if (devices := devices_of(params)) is not None:
        return several_devices.run(params, context, devices, environment)
    over = context.places[params["over"]] if params["over"] else None
    place = context.places[params["data"]] if params["data"] else None
    loader = reached(params, place or over, loader_settings(params), context)
    data = stored(over, loader.reads) if over is not None and loader.reads else None
    steps, leave_out = _steps(params, data, loader)
    held = params["input"] in HELD_RUNGS
    if held:
        # Before the consumer is warm: a GPU that waits for long lowers its clocks again.
        _hold(loader, params, steps)
    consumer = _consumer(params, data, context)
    consumer.warm_up()
    drive_epoch = _driving(consumer, context, steps, leave_out)
    if params["input"] in ("synthetic", "copy"):
        return _one_batch(loader, consumer, params, context, data, drive_epoch)
    check_frameworks(loader, consumer.framework)
    every = params.get("evict", EVERY_EPOCH) == EVERY_EPOCH
    read = None if held else data
    cache = epoch_cache_for(params, params["input"], place, read, every=every)

    def again() -> Loader:
        return reached(params, place or over, loader_settings(params), context)

    run_of = SeveralEpochs(loader, again, cache, params["batch_size"])
    try:
        with metered(params, loader, place, data) as needed:
            run_of.run(params.get("epochs", 1), drive_epoch)
    finally:
        run_of.close()
    epochs = {"epochs": records(run_of.epochs())}
    outcome = loop_outcome(
        in_a_row(run_of.times),
        consumer,
        params,
        context.clock,
        notes=[*run_of.notes, *run_of.first.notes],
        more={**run_of.first.metrics, **needed, **epochs},
        data=read,
        cold=run_of.cold(),
    )
    return with_epochs(outcome, run_of.times)


def _one_batch(
    loader: Loader,
    consumer: Consumer,
    params: Params,
    context: Context,
    data: Stored | None,
    drive_epoch: Drive,
) -> Outcome:
    """The loop over one batch, again and again: on the device, or in host memory."""
    loader.close()
    notes: tuple[str, ...] = ()
    if params["input"] == "copy":
        check_frameworks(loader, consumer.framework)
        batch, notes = host_batch(loader_settings(params), classes_of(data)), (NOTE,)
    else:
        batch = consumer.synthetic()
    times = [drive_epoch(lambda: repeat(batch)) for _ in range(params.get("epochs", 1))]
    outcome = loop_outcome(in_a_row(times), consumer, params, context.clock, notes=notes)
    return with_epochs(outcome, times)


def _hold(loader: Loader, params: Params, steps: int) -> None:
    """The loop's samples into memory, a quarter of what is free at most.

    Raises:
        Unavailable: the loader only gives what is stored.
    """
    if not isinstance(loader, HoldsSamples):
        raise Unavailable(f"loader {params['loader']} cannot be given samples from memory")
    loader.hold(params["input"], steps * params["batch_size"], available_bytes() // 4)


def _steps(params: Mapping[str, Any], data: Stored | None, loader: Loader) -> tuple[int, int]:
    """How many steps are run, and how many of them do not count: the same for every input."""
    if data is None:
        return steps_of(params, None, ())
    return steps_of(params, data, [whole_batches(loader, loader_settings(params), data.samples)])


def _driving(consumer: Consumer, context: Context, steps: int, leave_out: int) -> Drive:
    """One epoch after the other into the same consumer."""
    done = 0

    def progress(samples: float) -> None:
        context.progress(done + samples, "samples")

    def drive_epoch(epoch: Callable[[], Iterator[Batch]]) -> LoopTimes:
        nonlocal done
        times = drive(
            epoch,
            consumer,
            context.clock,
            leave_out=leave_out,
            max_steps=steps,
            progress=progress,
        )
        done += times.taken
        return times

    return drive_epoch


def _consumer(params: Mapping[str, Any], data: Stored | None, context: Context) -> Consumer:
    keys = (*CONSUMER_KEYS, "preset", "images_per_s")
    told = {key: params[key] for key in keys if key in params}
    kind = CONSUMERS.load(params["consumer"])
    settings = ConsumerSettings(classes=classes_of(data), **told)
    consumer: Consumer = context.around.consumer(
        made(CONSUMERS, params["consumer"], Consumer, lambda: kind(settings, context.clock))
    )
    return consumer
