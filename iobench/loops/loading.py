"""Kind ``loader``: what a loader supplies to a consumer that costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from iobench.access import DIRECT, metered
from iobench.clock import Clock, PausedClock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders import LoaderSettings
from iobench.loops import several_processes
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.loops.epoch_cache import EpochCache, epoch_cache_for
from iobench.loops.epochs import Epochs, epoch_limit
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.loops.first_batch import first_batch
from iobench.loops.opening import loader_settings, reached
from iobench.loops.overhead import step_cost_s
from iobench.stored import stored
from iobench.trial import Cold, Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One point of the grid."""
    params = spec.params
    if params.get("processes", 1) > 1:
        return several_processes.run(params, context)
    settings = loader_settings(params)
    place = context.places[params["data"]] if params["data"] else None
    loader = reached(params, place, settings, context)
    data = stored(place, loader.reads) if place is not None and loader.reads else None
    cache = epoch_cache_for(params, params["cache"], place, data, every=False)
    clock = PausedClock(context.clock)
    epochs = Epochs(loader, clock, epoch_limit(params), _judging(cache, clock))
    if cache is not None:
        cache.before()
    try:
        with metered(params, loader, place, data) as needed:
            times = driven(epochs, settings, params, context, clock)
        first = first_batch(loader, times.time_to_first_batch_s)
    finally:
        loader.close()
    metrics = {**loop_metrics(times, data), **first.metrics}
    metrics |= harness_metrics(params, step_cost_s(context.clock), times)
    if _has_epochs(params):
        metrics |= epochs.metrics(times.asked_s)
    metrics |= {**needed, **epochs.records(), "notes": [*loader.notes, *first.notes]}
    cold = cache.ended(times.taken) if cache else None
    return Outcome(metrics=metrics, cold=cold, origin_s=times.asked_s, counted_s=times.counted_s)


def _judging(cache: EpochCache | None, clock: PausedClock) -> Callable[[int, bool], Cold | None]:
    """Each epoch by itself, its workers alive, on no clock."""

    def between(samples: int, more: bool) -> Cold | None:
        if cache is None:
            return None
        with clock.paused():
            cold = cache.after(samples)
            if more:
                cache.before()
        return cold

    return between


def _has_epochs(params: Mapping[str, Any]) -> bool:
    return "epochs" in params or params.get("access", DIRECT) != DIRECT


def driven(
    epochs: Epochs,
    settings: LoaderSettings,
    params: Mapping[str, Any],
    context: Context,
    clock: Clock,
) -> LoopTimes:
    """The loop of one process over its batches."""
    consumer = NullConsumer(ConsumerSettings(), clock)
    consumer.warm_up()
    return drive(
        lambda: iter(epochs),
        consumer,
        clock,
        leave_out=steps_to_leave_out(settings.workers, settings.prefetch, None),
        max_seconds=None if params.get("epochs") else params["seconds"],
        progress=lambda samples: context.progress(samples, "samples"),
    )
