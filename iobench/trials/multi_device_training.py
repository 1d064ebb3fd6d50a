"""Training on several devices, with one process (a *rank*) for each device.

The devices are GPUs, processors, or emulated accelerators (``training.accelerators``). In each step
all ranks wait for each other, because they average gradients. The timings of all ranks are combined
into the timings of one loop. The process of the trial itself does not train. It starts the ranks
and combines their reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Literal, Protocol

from dataprep.machine.processors import usable_processors
from iobench.consumers import requirements
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import Consumer
from iobench.consumers.torch_train import TorchConsumer, TorchGroup
from iobench.data.data_summary import DataSummary
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.loaders.access import RequestTotals, counting_requests, downloaded, sum_of_totals
from iobench.loaders.frameworks import need_framework
from iobench.loaders.protocol import WorkerBatch
from iobench.machine.hardware import gpus
from iobench.results.trial import Cold, Context, Location, Metrics, Outcome, TrialSpec
from iobench.trials.epoch_cache import EpochCache, SharedCache, shared_epochs
from iobench.trials.epoch_loop import run_epoch
from iobench.trials.loader_opening import (
    ReopenedLoader,
    check_frameworks,
    check_shares_samples,
    create_loader,
    summarize_loader_data,
)
from iobench.trials.loop_metrics import EpochRecord, loop_outcome
from iobench.trials.loop_timings import LoopTimings, combine_epochs, window_timings
from iobench.trials.rank_processes import RankBarrier, run_ranks
from iobench.trials.rank_timings import combine_ranks, rank_metrics
from iobench.trials.rate_plan import (
    RankSteps,
    check_full_batches,
    count_full_batches,
    loader_flow,
    network_classes,
    plan_rank_steps,
    rank_samples,
)
from iobench.trials.spans import last_batches, process_spans, rank_spans
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window import MAX_IMBALANCE
from iobench.trials.window_rules import FixedSteps

# Ranks communicate over the loopback device. The networks and names of the host have no effect.
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")

_BARRIER_LOOK_S = 0.0002
"""How often an emulated accelerator checks whether all others have ended their step."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Processes that train together, each on a device of the same kind.

    Attributes:
        count: the number of ranks.
        device_kind: the kind of their devices. ``paced`` is an emulated accelerator.
    """

    count: int
    device_kind: Literal["gpu", "cpu", "paced"]

    def describe(self, devices: Sequence[str]) -> str:
        """The devices of all ranks, such as ``8 x NVIDIA H100`` or ``2 x CPU (AMD EPYC each)``.

        Args:
            devices: the name of the device of each rank.
        """
        if self.device_kind == "cpu":
            return f"{self.count} x CPU ({devices[0]} each)"
        return " + ".join(f"{count} x {name}" for name, count in Counter(devices).items())


class RankGroup(Protocol):
    """The ranks of a loop, which wait for each other."""

    def wait(self) -> None:
        """Wait until all ranks have called this."""

    def leave(self) -> None:
        """Leave the group when all ranks are done."""


class PacedRank(PacedConsumer):
    """An emulated accelerator that ends each step at the same time as all other accelerators."""

    group: RankGroup

    def step(self, batch: Batch) -> None:
        """Compute, then wait for the other ranks as if gradients were averaged."""
        super().step(batch)
        self.group.wait()


def ranks_of(trial: TrainingTrial) -> Ranks | None:
    """The ranks of a trial; None if one process trains.

    Raises:
        Unavailable: the trial requires more GPUs than torch finds.
    """
    if trial.accelerators is not None:
        return Ranks(trial.accelerators, "paced")
    if trial.devices == 1:
        return None
    torch = need_framework("torch")
    available = int(torch.cuda.device_count())
    build = f"torch {torch.__version__}"
    on_gpu = requirements.takes_gpu(trial.device, available > 0, build)
    count = trial.devices
    if count == "all":
        count = available if on_gpu else 1
    if on_gpu and count > available:
        raise Unavailable(f"devices: {count} needs {count} GPUs, but {build} finds {available}")
    if count == 1:
        return None
    return Ranks(count, "gpu" if on_gpu else "cpu")


def thread_limits(
    threads: int | None,
    workers: int,
    environment: Mapping[str, str],
    *,
    on_cpu: bool,
    ranks: int = 1,
) -> dict[str, str]:
    """Environment variables that limit the threads of a framework. Set them before its import.

    By default a training loop on the processor leaves one processor to each worker of its loader.
    Otherwise threads and workers would compete for processors. Steps would take many times as long,
    and the delay would look like a wait for data.

    Args:
        threads: the number of threads of a process; None for the default.
        workers: the number of workers of a loader.
        environment: the environment of the process. Variables that are set there are kept.
        on_cpu: whether the loop computes on the processor.
        ranks: the number of loops that share the processors evenly.
    """
    if threads is None:
        is_set = any(name in environment for name in _THREAD_VARIABLES)
        computes_on_gpu = not on_cpu and bool(gpus())
        if is_set or computes_on_gpu:
            return {}
        threads = max(1, usable_processors() // ranks - workers)
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


@dataclass(frozen=True, slots=True)
class _RankReport:
    """The measurements of one rank. Its process sends them as JSON values.

    Attributes:
        epochs: the timings of its epochs.
        requests: its requests to a store; None if its data are not on a store.
        cache: the page cache in each epoch (``RankCacheEpoch``), as JSON values.
        fingerprint: a checksum of the network's parameters; empty if the device is emulated.
        device: the name of its device.
        precision: the precision of its computations.
        consumer_notes: the notes of its consumer.
        loader_notes: the notes of its loader.
        batches: the last batches that its workers made.
    """

    epochs: list[LoopTimings]
    requests: RequestTotals | None
    cache: list[dict[str, Any]]
    fingerprint: int | str
    device: str
    precision: str
    consumer_notes: list[str]
    loader_notes: list[str]
    batches: list[WorkerBatch]

    def as_metrics(self) -> dict[str, Any]:
        """JSON values, from which ``from_metrics`` makes the same report."""
        return {
            "times": [timings.as_json() for timings in self.epochs],
            "fetched": self.requests,
            "cache": self.cache,
            "fingerprint": self.fingerprint,
            "device": self.device,
            "precision": self.precision,
            "computed": self.consumer_notes,
            "loaded": self.loader_notes,
            "batches": self.batches,
        }

    @classmethod
    def from_metrics(cls, metrics: Metrics) -> _RankReport:
        """The report whose ``as_metrics`` has passed through JSON."""
        requests = metrics["fetched"]
        return cls(
            epochs=[LoopTimings.from_json(timings) for timings in metrics["times"]],
            requests=RequestTotals(*requests) if requests is not None else None,
            cache=metrics["cache"],
            fingerprint=metrics["fingerprint"],
            device=metrics["device"],
            precision=metrics["precision"],
            consumer_notes=[str(note) for note in metrics["computed"]],
            loader_notes=[str(note) for note in metrics["loaded"]],
            batches=[WorkerBatch(*batch) for batch in metrics["batches"]],
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The data of a loop, and the steps of every rank.

    Attributes:
        data: the data; None if nothing is read.
        full_batches: the number of full batches of each rank; empty if nothing is read.
        steps: the steps of every rank.
    """

    data: DataSummary | None
    full_batches: Sequence[int]
    steps: RankSteps


def run(
    spec: TrialSpec,
    trial: TrainingTrial,
    context: Context,
    ranks: Ranks,
    environment: Mapping[str, str],
) -> Outcome:
    """Run a trial with one process for each rank.

    Args:
        spec: the trial.
        trial: its parameters.
        context: its context.
        ranks: the ranks.
        environment: the environment variables of their processes, without limits of threads.

    Raises:
        Unavailable: the loader does not suit such a loop, or something is missing.
        TrialFailed: a rank failed, or the loop was not in a steady state.
    """
    more_metrics: dict[str, Any] = {"devices": ranks.count}
    if trial.data and trial.access == "file":
        begun_s = context.clock.now_s()
        context = _with_downloaded_data(trial, context)
        more_metrics["download_s"] = context.clock.now_s() - begun_s
    location = context.locations[trial.data] if trial.data else None
    plan = _plan(trial, context, location, ranks)
    reports = _run_rank_processes(spec, trial, context, ranks, plan, environment)
    epochs_of_ranks = [report.epochs for report in reports]
    ranks_of_epochs = zip(*epochs_of_ranks, strict=True)
    epochs = [combine_ranks(ranks_of_epoch) for ranks_of_epoch in ranks_of_epochs]
    loop = combine_epochs(epochs)
    rule = "epochs" if loop.epoch_first_steps else "steady"
    _check_balance(loop, rule)
    is_synthetic = trial.input == "synthetic"
    cache = EpochCache(trial, trial.input, location, plan.data, before_every_epoch=True)
    read_samples = [epoch.all_samples for epoch in epochs]
    cache_reports = [report.cache for report in reports]
    cold = cache.judge_shared_epochs(shared_epochs(cache_reports, read_samples))
    notes = _without_duplicates([report.consumer_notes for report in reports])
    if not is_synthetic:
        notes += _without_duplicates([report.loader_notes for report in reports])
        more_metrics["epochs"] = _epoch_records(epochs, cache.judged)
        if location is not None and location.uri.startswith("s3://"):
            requests = [report.requests for report in reports if report.requests is not None]
            more_metrics.update(sum_of_totals(requests).metrics)
    notes += _uneven_batches_notes(plan.full_batches)
    if ranks.device_kind != "paced":
        ranks_agree = len({report.fingerprint for report in reports}) == 1
        more_metrics["ranks_agree"] = ranks_agree
        if not ranks_agree:
            notes.append("parameters differ between ranks: their gradients were not exchanged")
    precisions = dict.fromkeys(report.precision for report in reports)
    more_metrics.update(rank_metrics(epochs_of_ranks, loop))
    more_metrics["emulated"] = ranks.device_kind == "paced"
    more_metrics["device"] = ranks.describe([report.device for report in reports])
    more_metrics["precision"] = ", ".join(precisions)
    more_metrics["notes"] = notes
    spans = rank_spans(epochs_of_ranks, loop.requested_s)
    spans += process_spans([report.batches for report in reports], loop.requested_s)
    return loop_outcome(
        epochs,
        trial,
        context.clock,
        more_metrics,
        rule=rule,
        data=None if is_synthetic else plan.data,
        cold=cold,
        spans=spans,
    )


def _with_downloaded_data(trial: TrainingTrial, context: Context) -> Context:
    """Download the data once, before any rank begins, and return a context with the local copy."""
    if context.scratch is None:
        raise Unavailable("access file needs a folder to download to")
    location = context.locations[trial.data]
    folder = context.scratch / "download"
    folder.mkdir(parents=True)
    reads = create_loader(trial, location, context).reads
    if reads is None:
        reads = "files"
    local = downloaded(location, reads, folder, trial.connections)
    return replace(context, locations={**context.locations, trial.data: local})


def _plan(trial: TrainingTrial, context: Context, location: Location | None, ranks: Ranks) -> _Plan:
    """Count the full batches of each rank, and choose the steps. No sample is read.

    Raises:
        Unavailable: the loader does not suit such a loop.
        TrialFailed: a rank would have no full batch.
    """
    if location is None and trial.over:
        # The trial reads no data, but it takes as many samples as the trials of the other inputs.
        location = context.locations[trial.over]
    is_synthetic = trial.input == "synthetic"
    data: DataSummary | None = None
    full_batches: list[int] = []
    flow = None
    for rank in range(ranks.count):
        rank_trial = trial.model_copy(update={"rank": rank, "world_size": ranks.count})
        loader = create_loader(rank_trial, location, context)
        if rank == 0:
            if not is_synthetic:
                if ranks.device_kind != "paced":
                    check_frameworks(loader, "torch")
                check_shares_samples(loader, trial.loader, "devices", "devices: 1")
            data = summarize_loader_data(location, loader)
            flow = loader_flow(loader, rank_trial, data)
        if data is not None:
            full_batches.append(count_full_batches(loader, rank_trial, data.samples))
        loader.close()
    assert flow is not None  # noqa: S101  there are several ranks
    if is_synthetic:
        return _Plan(data, [], RankSteps(epochs=1, left_out=1, steps=trial.steps))
    check_full_batches(trial, data, full_batches)
    return _Plan(data, full_batches, plan_rank_steps(trial, flow, full_batches))


def _run_rank_processes(
    spec: TrialSpec,
    trial: TrainingTrial,
    context: Context,
    ranks: Ranks,
    plan: _Plan,
    environment: Mapping[str, str],
) -> list[_RankReport]:
    """Run all ranks, and return the report of each."""
    on_cpu = ranks.device_kind != "gpu"
    params = {
        **spec.params,
        "device": "cpu" if on_cpu else "gpu",
        "epochs": plan.steps.epochs,
        "left_out": plan.steps.left_out,
        "steps": plan.steps.steps,
        "classes": network_classes(plan.data),
    }
    limits = thread_limits(
        trial.threads, trial.workers, environment, on_cpu=on_cpu, ranks=ranks.count
    )
    rank_environment = {**_LOOPBACK, **environment, **limits}
    metrics_of_ranks = run_ranks("rank", params, ranks.count, context, environment=rank_environment)
    return [_RankReport.from_metrics(metrics) for metrics in metrics_of_ranks]


def _check_balance(loop: LoopTimings, rule: str) -> None:
    """Refuse a rate if many of its samples were fetched before the time that counts, or after it.

    Raises:
        TrialFailed: arrived and consumed samples differ by more than ``MAX_IMBALANCE``.
    """
    balance = loop.balance
    if rule == "steady" and balance is not None and abs(balance - 1) > MAX_IMBALANCE:
        raise TrialFailed(
            f"{loop.arrived_samples:,} samples arrived while {loop.samples:,} were consumed: "
            "the loop was not in a steady state; set more steps (training.steps)"
        )


def _epoch_records(epochs: Sequence[LoopTimings], verdicts: Sequence[Cold]) -> list[dict[str, Any]]:
    """The saved records of the epochs whose page cache was judged, as JSON values."""
    records = []
    for number, (epoch, verdict) in enumerate(zip(epochs, verdicts, strict=False)):
        seconds = epoch.ended_s - epoch.requested_s
        record = EpochRecord(
            number, epoch.all_samples, seconds, epoch.time_to_first_batch_s, verdict
        )
        records.append(record.as_json())
    return records


def _uneven_batches_notes(full_batches: Sequence[int]) -> list[str]:
    """A note if ranks have different numbers of full batches."""
    if not full_batches or min(full_batches) == max(full_batches):
        return []
    return [
        f"ranks have {min(full_batches):,} to {max(full_batches):,} full batches: each takes the "
        "smaller number, since gradients are exchanged in every step"
    ]


def _without_duplicates(notes_of_ranks: Sequence[Sequence[str]]) -> list[str]:
    """The notes of all ranks, each once."""
    notes: dict[str, None] = {}
    for rank_notes in notes_of_ranks:
        notes.update(dict.fromkeys(rank_notes))
    return list(notes)


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Run a trial of kind ``rank``: the training loop of one rank, in its own process.

    Its parameters are the parameters of the whole trial, and in addition ``rank``, ``world_size``,
    ``meeting``, ``left_out`` and ``classes``. ``device`` is ``cpu`` or ``gpu``. Every rank runs
    ``epochs`` epochs. In each epoch, the first ``left_out`` steps do not count, and the next
    ``steps`` steps count.

    Its metrics are its report, which ``run`` combines with the reports of the other ranks.
    """
    params = spec.params
    trial = TrainingTrial.model_validate(params)
    name = trial.data or trial.over
    location = context.locations[name] if name else None
    loader = create_loader(trial, location, context)
    data = summarize_loader_data(location, loader) if trial.data else None
    group, consumer = _join_group(trial, params["meeting"], context)
    consumer.warm_up()
    reopened = ReopenedLoader(loader, lambda: create_loader(trial, location, context))
    cache = EpochCache(trial, trial.input, location, data, before_every_epoch=True)
    shared = SharedCache(cache, group, trial.rank, context.begin)
    is_synthetic = trial.input == "synthetic"
    epochs: list[LoopTimings] = []
    is_remote = location is not None and location.is_remote
    try:
        with counting_requests() if is_remote else nullcontext() as request_counter:
            for number in range(trial.epochs or 1):
                shared.prepare()
                timings = _run_rank_epoch(
                    trial, params["left_out"], number, context, consumer, reopened
                )
                shared.end_epoch()
                epochs.append(_with_dropped_samples(timings, trial, data))
            requests = request_counter.totals() if request_counter is not None else None
        batches = last_batches(reopened.worker_batches(), trial.world_size)
    finally:
        reopened.loader.close()
    report = _RankReport(
        epochs=epochs,
        requests=requests,
        cache=[epoch.as_json() for epoch in shared.epochs],
        fingerprint=consumer.fingerprint() if isinstance(consumer, TorchConsumer) else "",
        device=consumer.device,
        precision=consumer.precision,
        consumer_notes=list(consumer.notes),
        loader_notes=[] if is_synthetic else reopened.notes,
        batches=list(batches),
    )
    group.leave()
    return Outcome(report.as_metrics())


def _run_rank_epoch(
    trial: TrainingTrial,
    left_out: int,
    number: int,
    context: Context,
    consumer: Consumer,
    reopened: ReopenedLoader,
) -> LoopTimings:
    """Run one epoch of a rank.

    Raises:
        TrialFailed: the loader gave fewer full batches than were counted before the loop. If the
            rank went on, the other ranks would wait for its missing steps without end.
    """
    is_synthetic = trial.input == "synthetic"

    def request() -> Iterator[Batch]:
        if is_synthetic:
            return repeat(consumer.synthetic())
        return reopened.request(number)

    read_totals = None if is_synthetic else reopened.read_totals
    epoch = run_epoch(
        request,
        consumer,
        context.clock,
        FixedSteps(left_out, trial.steps, trial.batch_size, read_totals),
        read_totals=read_totals,
        full_batch=trial.batch_size,
        progress=lambda samples: context.progress(samples, "samples"),
    )
    if epoch.window is None:
        raise TrialFailed(
            f"the loader gave {epoch.all_steps.end.steps} full batches, but "
            f"{left_out + trial.steps} were counted before the loop"
        )
    return window_timings(epoch, epoch.window)


def _with_dropped_samples(
    timings: LoopTimings, trial: TrainingTrial, data: DataSummary | None
) -> LoopTimings:
    """Add the samples that were read but not consumed to the timings, if whole epochs count.

    A rank stops after the number of steps that all ranks can take. By then its loader may have read
    the rest of its share of the epoch in advance.
    """
    if not timings.epoch_first_steps or data is None or timings.arrived_samples is None:
        return timings
    share_samples = rank_samples(data.samples, trial.rank, trial.world_size)
    unused_samples = min(timings.arrived_samples, share_samples) - timings.samples
    return replace(timings, dropped_samples=max(0, unused_samples))


def _join_group(trial: TrainingTrial, meeting: str, context: Context) -> tuple[RankGroup, Consumer]:
    """Join the group of ranks. Returns the group, and the consumer of this rank."""
    if trial.accelerators is not None:
        barrier = RankBarrier(meeting, trial.world_size, _BARRIER_LOOK_S)
        accelerator = PacedRank(trial, context.clock)
        accelerator.group = barrier
        return barrier, accelerator
    on_gpu = trial.device == "gpu"
    group = TorchGroup(trial.rank, trial.world_size, meeting, on_gpu=on_gpu)
    return group, TorchConsumer(trial, context.clock, group)
