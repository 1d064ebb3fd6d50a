"""Kind ``loader``: the rate of a loader whose batches are dropped; in one process or in several."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from iobench.access import DIRECT, metered
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders.protocol import WorkerBatch
from iobench.loops.aggregate import processes_as_one
from iobench.loops.cache import EpochCache, SharedCache, rank_epochs
from iobench.loops.counted import LEAST_EPOCHS, Least
from iobench.loops.drive import EpochTimes
from iobench.loops.epochs import Measured, measure
from iobench.loops.figures import (
    counted_epochs,
    epoch_records,
    first_batch,
    harness_metrics,
    loop_metrics,
)
from iobench.loops.loader_grid import LoaderTrial
from iobench.loops.opening import (
    OpenedLoader,
    built,
    check_shares,
    data_of,
    import_loader,
    rate_plan,
    reached,
    warm_metrics,
    with_warm_part,
)
from iobench.loops.ranks import RankMeeting, run_ranks
from iobench.loops.spans import epoch_spans, last_batches, process_spans, worker_spans
from iobench.loops.times import LoopTimes, epochs_as_one
from iobench.stored import Stored
from iobench.trial import Cold, Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Run one point of the grid."""
    trial = LoaderTrial.model_validate(spec.params)
    is_warm = trial.cache == "warm"
    context, share = with_warm_part(context, trial.data, is_warm=is_warm)
    if trial.processes > 1:
        return _several_processes(spec, trial, context, warm_metrics(share, is_warm=is_warm))
    place = context.places[trial.data] if trial.data else None
    import_loader(trial.loader)
    begun_s = context.clock.now_s()
    loader = reached(trial, place, context)
    opening_s = context.clock.now_s() - begun_s
    data = data_of(place, loader)
    cache = EpochCache(trial, trial.cache, place, data, every=True)
    opened = OpenedLoader(loader, lambda: reached(trial, place, context))
    cache.before()
    waited_s = context.begin()
    context = replace(context, give_up_s=context.give_up_s + waited_s)
    try:
        with metered(spec.params, loader, place, data) as needed:
            measured = _measured(
                *(trial, context, opened, data),
                opening_s=opening_s,
                between=lambda times: opened.between(cache, times),
            )
        parts = first_batch(opened.loader, measured.epochs[0].time_to_first_batch_s)
        batches = opened.worker_batches()
        cold = cache.ended(sum(epoch.whole.samples for epoch in measured.epochs))
    finally:
        opened.loader.close()
    times = epochs_as_one(counted_epochs(measured))
    metrics = {**loop_metrics(times, data, measured.rule, measured.bounds), **parts}
    metrics |= harness_metrics(trial.loader, "null", context.clock, times)
    metrics |= {**needed, **_epoch_metrics(measured, cache.judged)}
    metrics |= warm_metrics(share, is_warm=is_warm)
    metrics["notes"] = opened.notes
    counted_s = times.begun_s - times.requested_s
    return Outcome(
        metrics,
        cold,
        origin_s=times.requested_s,
        counted_s=(counted_s, counted_s + _span_s(measured)),
        pauses=_pauses(measured),
        spans=[
            *epoch_spans(measured.epochs, times.requested_s),
            *worker_spans(batches, times.requested_s),
        ],
    )


def _measured(
    trial: LoaderTrial,
    context: Context,
    opened: OpenedLoader,
    data: Stored | None,
    *,
    opening_s: float = 0.0,
    between: Callable[[EpochTimes], object],
    least: Least | None = None,
) -> Measured:
    """The epochs of one process's loop over its batches."""
    if least is None:
        epochs = max(LEAST_EPOCHS, trial.epochs or 1)
        least = Least(seconds=0.0 if trial.epochs else trial.seconds or 0.0, epochs=epochs)
    share = None
    if data is not None:
        share = len(range(trial.rank, data.samples, trial.world_size))
    plan = rate_plan(
        *(opened.loader, trial, data, least),
        epoch_samples=share,
        by_epochs=trial.epochs is not None or trial.access != DIRECT,
        give_up_s=context.give_up_s,
    )
    return measure(
        opened.request,
        NullConsumer(ConsumerSettings(), context.clock),
        context.clock,
        plan,
        arrived=opened.arrivals,
        between=between,
        progress=lambda samples: context.progress(samples, "samples"),
        opening_s=opening_s,
    )


def _epoch_metrics(measured: Measured, colds: Sequence[Cold]) -> dict[str, Any]:
    """Of the epochs that were read to their end; empty if there was none.

    ``epochs`` are the records of the first hundred. If whole epochs count, ``first_epoch_s`` is the
    time of the first one, and ``steady_samples_per_s`` the rate of all later ones, their starts
    included.
    """
    ended = [epoch for epoch in measured.epochs if epoch.is_over]
    if not ended:
        return {}
    metrics: dict[str, Any] = {"epochs": epoch_records(ended, colds)}
    if measured.rule == "epochs":
        metrics["whole_epochs"] = len(ended)
        metrics["first_epoch_s"] = ended[0].whole.seconds
        later = ended[1:]
        seconds = sum(epoch.whole.seconds for epoch in later)
        if seconds > 0:
            samples = sum(epoch.whole.samples for epoch in later)
            metrics["steady_samples_per_s"] = samples / seconds
    return metrics


def _span_s(measured: Measured) -> float:
    """Seconds from the begin of the first window that counts to the end of the last."""
    return measured.windows[-1].end.time_s - measured.windows[0].start.time_s


def _pauses(measured: Measured) -> list[tuple[float, float]]:
    """The times between windows, in seconds after the first epoch that counts was requested."""
    origin_s = measured.epochs[measured.counted[0]].whole.start.time_s
    return [
        (before.end.time_s - origin_s, after.start.time_s - origin_s)
        for before, after in zip(measured.windows, measured.windows[1:], strict=False)
    ]


def _several_processes(
    spec: TrialSpec, trial: LoaderTrial, context: Context, more: Mapping[str, float]
) -> Outcome:
    """Run loaders in several processes at the same time, like the ranks of a job.

    Each has a share of the samples and its own workers. This process counts the bytes; it loads
    nothing itself. ``more`` metrics are added.

    Raises:
        Unavailable: the loader does not share its samples among processes.
        TrialFailed: a process failed, or they did not run at the same time.
    """
    place = context.places[trial.data] if trial.data else None
    loader = built(trial, place, context)
    check_shares(loader, trial.loader, "processes", "processes: 1")
    data = data_of(place, loader)
    loader.close()
    cache = EpochCache(trial, trial.cache, place, data, every=True)
    environment = dict(os.environ)
    ranks = run_ranks(
        "loading-rank", spec.params, trial.processes, context, environment=environment
    )
    processes = [[LoopTimes.from_json(epoch) for epoch in rank["epochs"]] for rank in ranks]
    whole, rates = processes_as_one(processes)
    rules = sorted({str(rank["rule"]) for rank in ranks})
    metrics = {
        **loop_metrics(whole, data, " and ".join(rules)),
        **harness_metrics(trial.loader, "null", context.clock, whole),
        **more,
        "process_samples_per_s": rates,
        # 1 if all have the same rate.
        "process_evenness": min(rates) / max(rates) if max(rates) > 0 else 1.0,
        "notes": list(dict.fromkeys(str(note) for rank in ranks for note in rank["notes"])),
    }
    read = [sum(samples) for samples in zip(*(rank["read_samples"] for rank in ranks), strict=True)]
    cold = cache.after_ranks(rank_epochs([rank["cache"] for rank in ranks], read))
    begun_s = whole.begun_s - whole.requested_s
    batches = [[WorkerBatch(*batch) for batch in rank["batches"]] for rank in ranks]
    return Outcome(
        metrics,
        cold,
        origin_s=whole.requested_s,
        counted_s=(begun_s, begun_s + whole.seconds),
        spans=process_spans(batches, whole.requested_s),
    )


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Kind ``loading-rank``: one of several processes that load at the same time.

    Its metrics are its times, which ``aggregate`` combines. ``params`` are those of the trial, with
    ``rank``, ``world_size`` and ``meeting``.
    """
    trial = LoaderTrial.model_validate(spec.params)
    place = context.places[trial.data] if trial.data else None
    loader = built(trial, place, context)
    data = data_of(place, loader)
    opened = OpenedLoader(loader, lambda: built(trial, place, context))
    cache = EpochCache(trial, trial.cache, place, data, every=True)
    meeting = RankMeeting(spec.params["meeting"], trial.world_size)
    shared = SharedCache(cache, meeting, trial.rank, context.begin)
    read_samples: list[int] = []
    shared.before()
    # Where the cache is prepared between epochs, all processes must read the same number of them.
    least = Least(epochs=max(LEAST_EPOCHS, trial.epochs or 1)) if cache.evicts else None

    def between(times: EpochTimes) -> None:
        if cache.evicts:
            read_samples.append(times.whole.samples)
            shared.after()
            shared.before()

    try:
        measured = _measured(trial, context, opened, data, between=between, least=least)
        total = sum(epoch.whole.samples for epoch in measured.epochs)
        read_samples.append(total - sum(read_samples))
        shared.after()
        batches = last_batches(opened.worker_batches(), trial.world_size)
    finally:
        opened.loader.close()
    return Outcome(
        {
            "epochs": [times.as_json() for times in counted_epochs(measured)],
            "rule": measured.rule,
            "cache": shared.epochs,
            "read_samples": read_samples,
            "notes": opened.notes,
            "batches": batches,
        }
    )
