"""Kind ``loader``: what a loader supplies to a consumer that costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iobench.access.meter import metered
from iobench.access.modes import DIRECT
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders import LoaderSettings
from iobench.loops import several_processes
from iobench.loops.caching import prepared_for
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.loops.epochs import Epochs, epoch_limit
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.loops.first_batch import first_batch
from iobench.loops.opening import loader_settings, reached
from iobench.loops.overhead import step_cost_s
from iobench.stored import stored
from iobench.trial import Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One point of the grid."""
    params = spec.params
    if params.get("processes", 1) > 1:
        return several_processes.run(params, context)
    settings = loader_settings(params)
    place = context.places[params["data"]] if params["data"] else None
    loader = reached(params, place, settings, context)
    data = stored(place, loader.reads) if place is not None and loader.reads else None
    cache = prepared_for(params, params["cache"], place, data)
    epochs = Epochs(loader, context.clock, epoch_limit(params))
    try:
        with metered(params, loader, place, data) as needed:
            times = driven(epochs, settings, params, context)
        first = first_batch(loader, times.time_to_first_batch_s)
    finally:
        loader.close()
    metrics = {**loop_metrics(times, data), **first.metrics}
    metrics |= harness_metrics(params, step_cost_s(context.clock), times)
    if _has_epochs(params):
        metrics |= epochs.metrics(times.asked_s)
    metrics |= {**needed, "notes": [*loader.notes, *first.notes]}
    read = min(times.taken, data.samples) if data and params.get("epochs") else times.taken
    cold = cache.judged(params["loader"], read) if cache else None
    return Outcome(metrics=metrics, cold=cold, origin_s=times.asked_s, counted_s=times.counted_s)


def _has_epochs(params: Mapping[str, Any]) -> bool:
    return "epochs" in params or params.get("access", DIRECT) != DIRECT


def driven(
    epochs: Epochs, settings: LoaderSettings, params: Mapping[str, Any], context: Context
) -> LoopTimes:
    """The loop of one process over its batches."""
    consumer = NullConsumer(ConsumerSettings(), context.clock)
    consumer.warm_up()
    return drive(
        lambda: iter(epochs),
        consumer,
        context.clock,
        leave_out=steps_to_leave_out(settings.workers, settings.prefetch, None),
        max_seconds=None if params.get("epochs") else params["seconds"],
        progress=lambda samples: context.progress(samples, "samples"),
    )
