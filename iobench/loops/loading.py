"""Kind ``loader``: what a loader supplies to a consumer that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.errors import TrialFailed
from iobench.loaders import Batch, Loader, LoaderSettings
from iobench.loops.caching import prepared
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.loops.first_batch import first_batch
from iobench.loops.opening import built, loader_settings
from iobench.loops.overhead import step_cost_s
from iobench.stored import stored
from iobench.trial import Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One point of the grid."""
    params = spec.params
    settings = loader_settings(params)
    place = context.places[params["data"]] if params["data"] else None
    loader = built(params["loader"], place, settings, context)
    data = stored(place, loader.reads) if place is not None and loader.reads else None
    cache = prepared(params["cache"], place, data) if place is not None and data else None
    try:
        times = _driven(loader, settings, params, context)
        first = first_batch(loader, times.time_to_first_batch_s)
    finally:
        loader.close()
    cold = cache.judged(params["loader"], times.taken) if cache else None
    harness = harness_metrics(params, step_cost_s(context.clock), times)
    return Outcome(
        metrics={
            **loop_metrics(times, data),
            **first.metrics,
            **harness,
            "notes": [*loader.notes, *first.notes],
        },
        cold=cold,
        origin_s=times.asked_s,
        counted_s=times.counted_s,
    )


def _driven(
    loader: Loader, settings: LoaderSettings, params: Mapping[str, Any], context: Context
) -> LoopTimes:
    consumer = NullConsumer(ConsumerSettings(), context.clock)
    consumer.warm_up()
    return drive(
        lambda: loader.epoch(0) if params["cache"] == "cold" else endless(loader),
        consumer,
        context.clock,
        leave_out=steps_to_leave_out(settings.workers, settings.prefetch, None),
        max_seconds=params["seconds"],
        progress=lambda samples: context.progress(samples, "samples"),
    )


def endless(loader: Loader) -> Iterator[Batch]:
    """One epoch after the other.

    Raises:
        TrialFailed: an epoch has no batch.
    """
    for number in count():
        empty = True
        for batch in loader.epoch(number):
            empty = False
            yield batch
        if empty:
            raise TrialFailed("the loader gave no batch")
