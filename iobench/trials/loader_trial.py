"""Trials of kind ``loader``: the rate of a loader whose batches are dropped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NotRequired, TypedDict

from dataprep.schema import typed
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.data.data_summary import DataSummary
from iobench.loaders.access import DIRECT
from iobench.loaders.protocol import WorkerBatch
from iobench.results.trial import Cold, Context, Metrics, Outcome, TrialSpec
from iobench.trials.epoch_cache import EpochCache, RankCacheEpoch, SharedCache, shared_epochs
from iobench.trials.epoch_loop import EpochTimings
from iobench.trials.loader_grid import LoaderTrial
from iobench.trials.loader_measurement import measure_loader
from iobench.trials.loader_opening import (
    ReopenedLoader,
    check_shares_samples,
    create_loader,
    import_loader,
    open_loader,
    summarize_loader_data,
    warm_metrics,
    with_warm_part,
)
from iobench.trials.loop_metrics import (
    EpochContent,
    epoch_records,
    harness_metrics,
    loop_metrics,
)
from iobench.trials.loop_timings import LoopTimings, combine_epochs
from iobench.trials.rank_processes import RankBarrier, notes_of_ranks, run_ranks
from iobench.trials.rank_timings import combine_processes
from iobench.trials.rate_measurement import RateMeasurement, measure_rate
from iobench.trials.rate_plan import plan_rate, rank_samples
from iobench.trials.spans import last_batches, process_spans
from iobench.trials.window import MIN_EPOCHS, Minimum


@dataclass(frozen=True, slots=True)
class _RankReport:
    """The measurements of one of several loading processes. The process sends them as JSON values.

    Attributes:
        epochs: the timings of the counted steps of each counted epoch.
        rule: its rate rule.
        cache: its report about the page cache in each epoch. If the cache is not prepared between
            epochs, all epochs have one report together.
        read_samples: for each report in ``cache``, the number of samples that the process read.
        notes: the notes of its loader.
        batches: the last batches that its workers made.
    """

    epochs: list[LoopTimings]
    rule: str
    cache: list[RankCacheEpoch]
    read_samples: list[int]
    notes: list[str]
    batches: list[WorkerBatch]

    def as_metrics(self) -> Metrics:
        """JSON values, from which ``from_metrics`` makes the same report."""
        return {
            "epochs": [timings.as_json() for timings in self.epochs],
            "rule": self.rule,
            "cache": [asdict(epoch) for epoch in self.cache],
            "read_samples": self.read_samples,
            "notes": self.notes,
            "batches": self.batches,
        }

    @classmethod
    def from_metrics(cls, metrics: Metrics) -> _RankReport:
        """The report whose ``as_metrics`` has passed through JSON."""
        return cls(
            epochs=[LoopTimings.from_json(timings) for timings in metrics["epochs"]],
            rule=str(metrics["rule"]),
            cache=typed(list[RankCacheEpoch], metrics["cache"]),
            read_samples=metrics["read_samples"],
            notes=[str(note) for note in metrics["notes"]],
            batches=[WorkerBatch(*batch) for batch in metrics["batches"]],
        )


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run a trial of kind ``loader``: one point of a grid of loaders."""
    trial = LoaderTrial.model_validate(spec.params)
    is_warm = trial.cache == "warm"
    context, warm_share = with_warm_part(context, trial.data, is_warm=is_warm)
    warm = warm_metrics(warm_share, is_warm=is_warm)
    if trial.processes > 1:
        return _run_several_processes(spec, trial, context, warm)
    location = context.locations[trial.data] if trial.data else None
    import_loader(trial.loader)
    begun_s = context.clock.now_s()
    loader = open_loader(trial, location, context)
    opening_s = context.clock.now_s() - begun_s
    data = summarize_loader_data(location, loader)
    cache = EpochCache(trial, trial.cache, location, data, before_every_epoch=True)
    reopened = ReopenedLoader(loader, lambda: open_loader(trial, location, context))

    def between_epochs(timings: EpochTimings) -> None:
        reopened.prepare_next_epoch(cache, timings)

    cache.prepare()
    waited_s = context.begin()
    measure = partial(
        _measure,
        trial,
        replace(context, give_up_s=context.give_up_s + waited_s),
        reopened,
        data,
        opening_s=opening_s,
        between_epochs=between_epochs,
        minimum=_minimum(trial),
    )
    measurement = measure_loader(
        reopened, measure, params=spec.params, location=location, data=data, cache=cache
    )
    rate = measurement.rate
    timings = combine_epochs(measurement.counted_epochs)
    metrics = {
        **loop_metrics(timings, data, rate.rule, rate.bounds),
        **measurement.first_batch,
        **harness_metrics(trial.loader, "null", context.clock, timings),
        **measurement.access,
        **_epoch_metrics(rate, cache.judged),
        **warm,
        "notes": reopened.notes,
    }
    windows_s = rate.windows[-1].end.time_s - rate.windows[0].start.time_s
    counted_from_s = timings.begun_s - timings.requested_s
    return Outcome(
        metrics,
        measurement.cold,
        origin_s=timings.requested_s,
        counted_s=(counted_from_s, counted_from_s + windows_s),
        pauses=_pauses(rate),
        spans=measurement.spans,
    )


def _minimum(trial: LoaderTrial) -> Minimum:
    """The minimum length of a trial: its seconds, or its whole epochs."""
    epochs = max(MIN_EPOCHS, trial.epochs or 1)
    seconds = 0.0 if trial.epochs else trial.seconds or 0.0
    return Minimum(seconds=seconds, epochs=epochs)


def _measure(
    trial: LoaderTrial,
    context: Context,
    reopened: ReopenedLoader,
    data: DataSummary | None,
    *,
    opening_s: float = 0.0,
    between_epochs: Callable[[EpochTimings], object],
    minimum: Minimum,
) -> RateMeasurement:
    """Measure the rate of the loader of one process. Its batches are dropped."""
    epoch_samples = None
    if data is not None:
        epoch_samples = rank_samples(data.samples, trial.rank, trial.world_size)
    plan = plan_rate(
        reopened.loader,
        trial,
        data,
        minimum,
        epoch_samples=epoch_samples,
        by_epochs=trial.epochs is not None or trial.access != DIRECT,
        give_up_s=context.give_up_s,
    )
    return measure_rate(
        reopened.request,
        NullConsumer(ConsumerSettings(), context.clock),
        context.clock,
        plan,
        read_totals=reopened.read_totals,
        between_epochs=between_epochs,
        progress=lambda samples: context.progress(samples, "samples"),
        opening_s=opening_s,
    )


class _EpochMetrics(TypedDict):
    """The metrics of the epochs that were read to their end.

    Attributes:
        epochs: the records of the first hundred of these epochs; left out if there is no epoch.
        whole_epochs: the number of these epochs. This key and the next two are only there if whole
            epochs count.
        first_epoch_s: the time of the first epoch, in seconds.
        steady_samples_per_s: the rate of all later epochs, with their starts.
    """

    epochs: NotRequired[Sequence[EpochContent]]
    whole_epochs: NotRequired[int]
    first_epoch_s: NotRequired[float]
    steady_samples_per_s: NotRequired[float]


def _epoch_metrics(measurement: RateMeasurement, verdicts: Sequence[Cold]) -> _EpochMetrics:
    """The metrics of the epochs that were read to their end; empty if there is none."""
    ended = [epoch for epoch in measurement.epochs if epoch.is_complete]
    if not ended:
        return {}
    metrics: _EpochMetrics = {"epochs": epoch_records(ended, verdicts)}
    if measurement.rule == "epochs":
        metrics["whole_epochs"] = len(ended)
        metrics["first_epoch_s"] = ended[0].all_steps.seconds
        later = ended[1:]
        later_s = sum(epoch.all_steps.seconds for epoch in later)
        if later_s > 0:
            later_samples = sum(epoch.all_steps.samples for epoch in later)
            metrics["steady_samples_per_s"] = later_samples / later_s
    return metrics


def _pauses(measurement: RateMeasurement) -> list[tuple[float, float]]:
    """The times between windows, in seconds after the request for the first counted epoch."""
    first_number = measurement.counted_numbers[0]
    origin_s = measurement.epochs[first_number].all_steps.start.time_s
    windows = measurement.windows
    pauses = []
    for before, after in pairwise(windows):
        pauses.append((before.end.time_s - origin_s, after.start.time_s - origin_s))
    return pauses


def _run_several_processes(
    spec: TrialSpec, trial: LoaderTrial, context: Context, warm: Mapping[str, float]
) -> Outcome:
    """Run loaders in several processes at the same time, like the ranks of a job.

    Each process has a share of the samples, and its own workers. The process that calls this
    function reads no samples: it counts the bytes of the data, and combines the results.

    Args:
        spec: the trial.
        trial: its parameters.
        context: its context.
        warm: the metrics that only a warm trial has.

    Raises:
        Unavailable: the loader does not share its samples among processes.
        TrialFailed: a process failed, or the processes did not run at the same time.
    """
    location = context.locations[trial.data] if trial.data else None
    loader = create_loader(trial, location, context)
    check_shares_samples(loader, trial.loader, "processes", "processes: 1")
    data = summarize_loader_data(location, loader)
    loader.close()
    cache = EpochCache(trial, trial.cache, location, data, before_every_epoch=True)
    metrics_of_ranks = run_ranks(
        "loading-rank", spec.params, trial.processes, context, environment=dict(os.environ)
    )
    reports = [_RankReport.from_metrics(metrics) for metrics in metrics_of_ranks]
    combined, rates = combine_processes([report.epochs for report in reports])
    rules = sorted({report.rule for report in reports})
    metrics = {
        **loop_metrics(combined, data, " and ".join(rules)),
        **harness_metrics(trial.loader, "null", context.clock, combined),
        **warm,
        "process_samples_per_s": rates,
        # 1 means that all processes have the same rate.
        "process_evenness": min(rates) / max(rates) if max(rates) > 0 else 1.0,
        "notes": notes_of_ranks([report.notes for report in reports]),
    }
    samples_of_epochs = zip(*(report.read_samples for report in reports), strict=True)
    read_samples = [sum(samples_of_ranks) for samples_of_ranks in samples_of_epochs]
    cache_reports = [report.cache for report in reports]
    cold = cache.judge_shared_epochs(shared_epochs(cache_reports, read_samples))
    counted_from_s = combined.begun_s - combined.requested_s
    return Outcome(
        metrics,
        cold,
        origin_s=combined.requested_s,
        counted_s=(counted_from_s, counted_from_s + combined.seconds),
        spans=process_spans([report.batches for report in reports], combined.requested_s),
    )


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Run a trial of kind ``loading-rank``: one of several processes that load at the same time.

    Its parameters are the parameters of the whole trial, and in addition ``rank``, ``world_size``
    and ``meeting``, the path of a file by which the processes wait for each other. Its metrics are
    its report, which ``run`` combines with the reports of the other processes.
    """
    trial = LoaderTrial.model_validate(spec.params)
    location = context.locations[trial.data] if trial.data else None
    loader = create_loader(trial, location, context)
    data = summarize_loader_data(location, loader)
    reopened = ReopenedLoader(loader, lambda: create_loader(trial, location, context))
    cache = EpochCache(trial, trial.cache, location, data, before_every_epoch=True)
    barrier = RankBarrier(spec.params["meeting"], trial.world_size)
    shared_cache = SharedCache(cache, barrier, trial.rank, context.clock, context.begin)
    read_samples: list[int] = []
    waited_s = shared_cache.prepare()
    context = replace(context, give_up_s=context.give_up_s + waited_s)
    minimum = _minimum(trial)
    if cache.evicts:
        # The processes wait for each other between epochs, while the cache is prepared. So all of
        # them must read the same number of epochs, and a minimum duration must not end one earlier.
        minimum = replace(minimum, seconds=0.0)

    def between_epochs(timings: EpochTimings) -> None:
        if cache.evicts:
            read_samples.append(timings.all_steps.samples)
            shared_cache.end_epoch()
            shared_cache.prepare()

    try:
        measurement = _measure(
            trial, context, reopened, data, between_epochs=between_epochs, minimum=minimum
        )
        all_samples = sum(epoch.all_steps.samples for epoch in measurement.epochs)
        read_samples.append(all_samples - sum(read_samples))
        shared_cache.end_epoch()
        batches = last_batches(reopened.worker_batches(), trial.world_size)
    finally:
        reopened.loader.close()
    report = _RankReport(
        epochs=measurement.counted_timings(),
        rule=measurement.rule,
        cache=shared_cache.epochs,
        read_samples=read_samples,
        notes=reopened.notes,
        batches=list(batches),
    )
    barrier.leave()
    return Outcome(report.as_metrics())
