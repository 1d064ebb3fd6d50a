"""Measure a loop that reads with a loader: its rate, its first batch, and its use of storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iobench.data.data_summary import DataSummary
from iobench.loaders.access import metered
from iobench.results.trial import Cold, Location, Metrics, Params, Span
from iobench.trials.epoch_cache import EpochCache
from iobench.trials.loader_opening import ReopenedLoader
from iobench.trials.loop_metrics import first_batch_metrics
from iobench.trials.loop_timings import LoopTimings
from iobench.trials.rate_measurement import RateMeasurement
from iobench.trials.spans import epoch_spans, worker_spans


@dataclass(frozen=True, slots=True)
class LoaderMeasurement:
    """The measurement of a loop that read with a loader.

    Attributes:
        rate: the epochs that were read, and the parts of them that count.
        counted_epochs: the timings of the epochs that count.
        first_batch: the metrics of the parts of the time to the first batch.
        access: the metrics of requests to a store, and of the disk and memory that were needed.
        cold: the verdict on the page cache; None if nothing was read.
        spans: a span for each epoch, and for each batch of a worker.
    """

    rate: RateMeasurement
    counted_epochs: Sequence[LoopTimings]
    first_batch: Metrics
    access: Metrics
    cold: Cold | None
    spans: Sequence[Span]


def measure_loader(
    reopened: ReopenedLoader,
    measure: Callable[[], RateMeasurement],
    *,
    params: Params,
    location: Location | None,
    data: DataSummary | None,
    cache: EpochCache,
) -> LoaderMeasurement:
    """Run the loop ``measure``, judge its page cache, and close its loader.

    Args:
        reopened: the loader of the loop.
        measure: runs the loop, and returns its rate.
        params: the parameters of the trial.
        location: the location of the data; None if the loop reads nothing.
        data: the size of the data; None if the loop reads nothing.
        cache: the page cache, which is prepared already.
    """
    try:
        with metered(params, reopened.loader, location, data) as access:
            rate = measure()
        first_epoch = rate.epochs[0]
        first_batch = first_batch_metrics(reopened.loader, first_epoch.time_to_first_batch_s)
        batches = reopened.worker_batches()
        cold = cache.judge_trial(sum(epoch.all_steps.samples for epoch in rate.epochs))
    finally:
        reopened.loader.close()
    counted_epochs = rate.counted_timings()
    origin_s = counted_epochs[0].requested_s
    spans = [*epoch_spans(rate.epochs, origin_s), *worker_spans(batches, origin_s)]
    return LoaderMeasurement(rate, counted_epochs, first_batch, access, cold, spans)
