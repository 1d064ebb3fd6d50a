"""Kind ``train``: a whole training loop, fed from the device, from memory, disk or store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

from iobench.access import metered
from iobench.consumers import CONSUMERS, Consumer
from iobench.errors import Unavailable
from iobench.extensions import made
from iobench.ladder import HELD_RUNGS
from iobench.loaders import HoldsSamples, Loader
from iobench.loaders.memory import host_batch
from iobench.loops import several_devices
from iobench.loops.cache import EpochCache
from iobench.loops.counted import LEAST_EPOCHS, FixedSteps, Least
from iobench.loops.drive import drive
from iobench.loops.epochs import measure
from iobench.loops.figures import counted_epochs, epoch_records, first_batch, loop_outcome
from iobench.loops.opening import (
    OpenedLoader,
    check_batches,
    check_frameworks,
    classes_of,
    data_of,
    import_loader,
    rate_plan,
    reached,
    warm_metrics,
    whole_batches,
    with_warm_part,
)
from iobench.loops.several_devices import ranks_of, thread_limits
from iobench.loops.spans import epoch_spans, worker_spans
from iobench.loops.times import times_of
from iobench.loops.training_plan import TrainingTrial
from iobench.machine.hardware import available_bytes
from iobench.stored import Stored
from iobench.trial import Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run one training loop with one input.

    Samples that are read beforehand take a quarter of the free memory at most.
    """
    trial = TrainingTrial.model_validate(spec.params)
    environment = dict(os.environ)
    on_cpu = trial.device == "cpu"
    os.environ.update(thread_limits(trial.threads, trial.workers, environment, on_cpu=on_cpu))
    is_warm = trial.input == "warm"
    context, share = with_warm_part(context, trial.data, is_warm=is_warm)
    warm = warm_metrics(share, is_warm=is_warm)
    if (ranks := ranks_of(trial)) is not None:
        outcome = several_devices.run(spec, trial, context, ranks, environment)
        return replace(outcome, metrics={**outcome.metrics, **warm})
    over = context.places[trial.over] if trial.over else None
    place = context.places[trial.data] if trial.data else None
    import_loader(trial.loader)
    begun_s = context.clock.now_s()
    loader = reached(trial, place or over, context)
    opening_s = context.clock.now_s() - begun_s
    data = data_of(place or over, loader)
    whole = [whole_batches(loader, trial, data.samples)] if data is not None else []
    check_batches(trial, data, whole)
    epoch_samples = whole[0] * trial.batch_size if whole else None
    if trial.input in HELD_RUNGS:
        if not isinstance(loader, HoldsSamples):
            raise Unavailable(f"loader {trial.loader} cannot be given samples from memory")
        # Before the consumer warms up: a GPU that waits for long lowers its clocks again.
        samples = epoch_samples or trial.steps * trial.batch_size
        loader.hold(trial.input, samples, available_bytes() // 4)  # type: ignore[arg-type]
    kind = CONSUMERS.load(trial.consumer)
    settings = trial.model_copy(update={"classes": classes_of(data)})
    consumer = made(CONSUMERS, trial.consumer, Consumer, lambda: kind(settings, context.clock))
    consumer.warm_up()
    if trial.input != "synthetic":
        check_frameworks(loader, consumer.framework)
    if trial.input in ("synthetic", "copy"):
        loader.close()
        return _one_batch(trial, context, consumer, data)
    outcome = _read(spec, trial, context, loader, consumer, data, epoch_samples, opening_s)
    return replace(outcome, metrics={**outcome.metrics, **warm})


def _one_batch(
    trial: TrainingTrial, context: Context, consumer: Consumer, data: Stored | None
) -> Outcome:
    """Train on one batch again and again, which is on the device or in host memory."""
    notes = []
    if trial.input == "copy":
        batch = host_batch(trial, classes_of(data))
        notes.append("input copy: one batch in host memory, given again and again")
    else:
        batch = consumer.synthetic()
    rule = FixedSteps(1, trial.steps, batch.samples)
    context.begin()
    epoch = drive(
        lambda: repeat(batch),
        consumer,
        context.clock,
        rule,
        progress=lambda samples: context.progress(samples, "samples"),
    )
    assert epoch.window is not None  # noqa: S101  the batch is repeated without end
    times = times_of(epoch, epoch.window)
    return loop_outcome([times], trial, context.clock, _computed(consumer, notes), rule="steady")


def _read(
    spec: TrialSpec,
    trial: TrainingTrial,
    context: Context,
    loader: Loader,
    consumer: Consumer,
    data: Stored | None,
    epoch_samples: int | None,
    opening_s: float,
) -> Outcome:
    """Train on epochs of a loader, preparing and judging the page cache between them."""
    place = context.places[trial.data] if trial.data else None
    stored = None if trial.input in HELD_RUNGS else data
    cache = EpochCache(trial, trial.input, place, stored, every=trial.evict == "every-epoch")
    opened = OpenedLoader(loader, lambda: reached(trial, place, context))
    cache.before()
    waited_s = context.begin()
    plan = rate_plan(
        *(loader, trial, data, Least(trial.steps, epochs=max(LEAST_EPOCHS, trial.epochs or 1))),
        epoch_samples=epoch_samples,
        by_epochs=trial.epochs is not None,
        give_up_s=context.give_up_s + waited_s,
    )
    try:
        with metered(spec.params, loader, place, data) as needed:
            measured = measure(
                opened.request,
                consumer,
                context.clock,
                plan,
                arrived=opened.arrivals,
                full_batch=trial.batch_size,
                between=lambda epoch: opened.between(cache, epoch),
                progress=lambda samples: context.progress(samples, "samples"),
                opening_s=opening_s,
            )
        parts = first_batch(opened.loader, measured.epochs[0].time_to_first_batch_s)
        batches = opened.worker_batches()
        cold = cache.ended(sum(epoch.whole.samples for epoch in measured.epochs))
    finally:
        opened.loader.close()
    records = epoch_records(measured.epochs, cache.judged)
    more = {**parts, **needed, **_computed(consumer, opened.notes), "epochs": records}
    counted = counted_epochs(measured)
    origin_s = counted[0].requested_s
    return loop_outcome(
        counted,
        trial,
        context.clock,
        more,
        rule=measured.rule,
        bounds=measured.bounds,
        data=stored,
        cold=cold,
        spans=[*epoch_spans(measured.epochs, origin_s), *worker_spans(batches, origin_s)],
    )


def _computed(consumer: Consumer, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "emulated": consumer.emulated,
        "device": consumer.device,
        "precision": consumer.precision,
        "notes": [*consumer.notes, *notes],
    }
