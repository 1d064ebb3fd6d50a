"""Training on several devices, with one process (a *rank*) for each device.

The devices are GPUs, shares of the processors of this machine, or emulated accelerators
(``training.accelerators``). All ranks wait for each other in each step, because they average
gradients. Emulated accelerators compute no gradients, but they wait in the same way. The process of
the trial itself does not train. It starts the ranks (``iobench.trials.training_rank``), and
combines their timings into the timings of one loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Literal

from dataprep.machine.processors import usable_processors
from iobench.consumers import requirements
from iobench.data.data_summary import DataSummary
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders.access import downloaded
from iobench.loaders.frameworks import need_framework
from iobench.loaders.store_requests import sum_of_totals
from iobench.machine.hardware import gpus
from iobench.results.trial import Cold, Context, Location, Outcome, TrialSpec
from iobench.trials.epoch_cache import EpochCache, shared_epochs
from iobench.trials.loader_opening import (
    check_frameworks,
    check_shares_samples,
    create_loader,
    summarize_loader_data,
)
from iobench.trials.loop_metrics import DeviceMetrics, EpochContent, EpochRecord, loop_outcome
from iobench.trials.loop_timings import LoopTimings, combine_epochs
from iobench.trials.rank_processes import notes_of_ranks, run_ranks
from iobench.trials.rank_timings import combine_ranks, rank_metrics
from iobench.trials.rate_plan import (
    RankSteps,
    check_full_batches,
    count_full_batches,
    loader_flow,
    network_classes,
    plan_rank_steps,
)
from iobench.trials.spans import process_spans, rank_spans
from iobench.trials.training_rank import RankReport
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window import MAX_IMBALANCE

_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
"""Ranks communicate over the loopback device, so that the networks and names of the host have no
effect. The environment of the trial can set another device."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")
"""The variables that limit the threads of OpenMP, which torch uses, and of TensorFlow."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The number of processes that train together, and the kind of their devices.

    Attributes:
        count: the number of ranks, each with one device.
        device_kind: the kind of their devices. ``paced`` is an emulated accelerator.
    """

    count: int
    device_kind: Literal["gpu", "cpu", "paced"]

    def describe(self, devices: Sequence[str]) -> str:
        """The devices of all ranks, such as ``8 x NVIDIA H100`` or ``2 x CPU (AMD EPYC each)``.

        Args:
            devices: the name of the device of each rank. Ranks on processors have the same name.
        """
        if self.device_kind == "cpu":
            return f"{self.count} x CPU ({devices[0]} each)"
        return " + ".join(f"{count} x {name}" for name, count in Counter(devices).items())


def ranks_of(trial: TrainingTrial) -> Ranks | None:
    """The ranks of a trial; None if the trial has one real device and needs no ranks.

    ``devices: all`` means all GPUs. If the trial does not train on a GPU, it means one process.

    Raises:
        Unavailable: torch is not installed, or it finds no GPU although the trial requires one, or
            it finds fewer GPUs than the trial requires.
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

    By default a process that trains on processors leaves one processor to each worker of its
    loader. Otherwise threads and workers would compete for processors. Steps would take many times
    as long, and the delay would look like a wait for data.

    The default is no limit (an empty dictionary) if the environment has a limit already, or if the
    process computes on a GPU.

    Args:
        threads: the number of threads of a process, also if the environment has another number;
            None for the default.
        workers: the number of workers of each loader.
        environment: the environment of the process.
        on_cpu: whether the process computes on processors in any case. If False, it computes on a
            GPU if the machine has one.
        ranks: the number of processes that train and share the processors evenly.
    """
    if threads is None:
        has_limit = any(name in environment for name in _THREAD_VARIABLES)
        computes_on_gpu = not on_cpu and bool(gpus())
        if has_limit or computes_on_gpu:
            return {}
        threads = max(1, usable_processors() // ranks - workers)
    return dict.fromkeys(_THREAD_VARIABLES, str(threads))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The data of a loop, and the steps of every rank.

    Attributes:
        data: the size and the files of the data for which the loader is created, also if the input
            is ``synthetic`` and they are not read; None if the loader reads no data.
        full_batches: the number of full batches of each rank in an epoch; empty if nothing is read.
        steps: the steps that every rank takes.
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
        trial: the parameters of the trial.
        context: the context of the trial.
        ranks: the number and the device kind of the ranks.
        environment: the environment variables of the ranks. The limits of threads are added here.

    Raises:
        Unavailable: the loader or the data do not suit a loop on several devices, or something that
            the loop needs is missing.
        TrialFailed: a rank failed or has no full batch, or the loop was not in a steady state.
    """
    download_s = None
    if trial.data and trial.access == "file":
        begun_s = context.clock.now_s()
        context = _with_downloaded_data(trial, context)
        download_s = context.clock.now_s() - begun_s
    location = context.locations[trial.data] if trial.data else None
    plan = _plan(trial, context, location, ranks)
    reports = _run_rank_processes(spec, trial, context, ranks, plan, environment)
    epochs_of_ranks = [report.epochs for report in reports]
    # The timings of all ranks in epoch 0, then in epoch 1, and so on.
    timings_by_epoch = zip(*epochs_of_ranks, strict=True)
    epochs = [combine_ranks(timings_of_ranks) for timings_of_ranks in timings_by_epoch]
    loop = combine_epochs(epochs)
    # If no step is left out, whole epochs count.
    rule = "epochs" if loop.epoch_first_steps else "steady"
    _check_balance(loop, rule)
    cache = EpochCache(trial, trial.input, location, plan.data, before_every_epoch=True)
    cache_reports = [report.cache for report in reports]
    read_samples = [epoch.all_samples for epoch in epochs]
    cold = cache.judge_shared_epochs(shared_epochs(cache_reports, read_samples))
    is_synthetic = trial.input == "synthetic"
    metrics: dict[str, object] = {"devices": ranks.count}
    if download_s is not None:
        metrics["download_s"] = download_s
    if not is_synthetic:
        metrics["epochs"] = _epoch_records(epochs, cache.judged)
        metrics |= _request_metrics(location, reports)
    ranks_agree = _ranks_agree(ranks, reports)
    if ranks_agree is not None:
        metrics["ranks_agree"] = ranks_agree
    metrics |= rank_metrics(epochs_of_ranks, loop)
    metrics |= _device_metrics(ranks, reports, plan)
    spans = rank_spans(epochs_of_ranks, loop.requested_s)
    spans += process_spans([report.batches for report in reports], loop.requested_s)
    return loop_outcome(
        epochs,
        trial,
        context.clock,
        metrics,
        rule=rule,
        data=None if is_synthetic else plan.data,
        cold=cold,
        spans=spans,
    )


def _with_downloaded_data(trial: TrainingTrial, context: Context) -> Context:
    """Download the data once, before any rank begins, and return a context with the local copy.

    Raises:
        Unavailable: there is no folder for the download, or too little space.
    """
    if context.scratch is None:
        raise Unavailable("access file needs a folder to download to")
    location = context.locations[trial.data]
    folder = context.scratch / "download"
    folder.mkdir(parents=True)
    with closing(create_loader(trial, location, context)) as loader:
        reads = loader.reads
    if reads is None:  # As in ``DownloadedLoader``, files are copied if the loader names no form.
        reads = "files"
    local = downloaded(location, reads, folder, trial.connections)
    return replace(context, locations={**context.locations, trial.data: local})


def _plan(trial: TrainingTrial, context: Context, location: Location | None, ranks: Ranks) -> _Plan:
    """Count the full batches of each rank, and choose the steps. No sample is read.

    Args:
        trial: the parameters of the trial.
        context: the context of the trial.
        location: the location of the data that the trial reads; None if it reads nothing.
        ranks: the number and the device kind of the ranks.

    Raises:
        Unavailable: the loader gives all samples to every rank, its batches are not batches of
            torch, or something that it needs is missing.
        TrialFailed: a rank would have no full batch.
    """
    if location is None and trial.over:
        # The trial reads no data, but its loader and its network are created for the data of the
        # trials of the other inputs.
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
    assert flow is not None  # noqa: S101  there is at least one rank
    if is_synthetic:
        # No samples are in flight. Only the first step, which may take longer, does not count.
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
) -> list[RankReport]:
    """Run all ranks, and return the report of each.

    Raises:
        Unavailable: something that a rank needs is missing.
        TrialFailed: a rank failed or could not be started.
    """
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
    return [RankReport.from_metrics(metrics) for metrics in metrics_of_ranks]


def _check_balance(loop: LoopTimings, rule: str) -> None:
    """Refuse a steady rate if arrived and consumed samples are not balanced.

    Whole epochs are not refused, and neither are loaders that do not count their reads.

    Args:
        loop: the timings of the counted steps of all ranks.
        rule: the rate rule, ``steady`` or ``epochs``.

    Raises:
        TrialFailed: arrived and consumed samples differ by more than ``MAX_IMBALANCE``.
    """
    balance = loop.balance
    if rule == "steady" and balance is not None and abs(balance - 1) > MAX_IMBALANCE:
        raise TrialFailed(
            f"{loop.arrived_samples:,} samples arrived while {loop.samples:,} were consumed: "
            "the loop was not in a steady state; set more steps (training.steps)"
        )


def _epoch_records(epochs: Sequence[LoopTimings], verdicts: Sequence[Cold]) -> list[EpochContent]:
    """The saved records of the epochs whose page cache was judged, as JSON values.

    Args:
        epochs: the timings of all ranks together, for each epoch.
        verdicts: the verdict on the page cache in each epoch; empty if no data were read.
    """
    records = []
    for number, (epoch, verdict) in enumerate(zip(epochs, verdicts, strict=False)):
        seconds = epoch.ended_s - epoch.requested_s
        record = EpochRecord(
            number, epoch.all_samples, seconds, epoch.time_to_first_batch_s, verdict
        )
        records.append(record.as_json())
    return records


def _request_metrics(
    location: Location | None, reports: Sequence[RankReport]
) -> Mapping[str, float]:
    """The metrics of the requests of all ranks; empty if the data are not on S3."""
    if location is None or not location.uri.startswith("s3://"):
        return {}
    requests = [report.requests for report in reports if report.requests is not None]
    return sum_of_totals(requests).metrics


def _ranks_agree(ranks: Ranks, reports: Sequence[RankReport]) -> bool | None:
    """Whether the networks of all ranks have the same parameters at the end.

    None for emulated accelerators, which have no network.
    """
    if ranks.device_kind == "paced":
        return None
    return len({report.fingerprint for report in reports}) == 1


def _device_metrics(ranks: Ranks, reports: Sequence[RankReport], plan: _Plan) -> DeviceMetrics:
    """The metrics of the devices of all ranks, and the notes of the loop."""
    notes = [
        *notes_of_ranks([report.consumer_notes for report in reports]),
        *notes_of_ranks([report.loader_notes for report in reports]),
        *_uneven_batches_notes(plan.full_batches),
    ]
    if _ranks_agree(ranks, reports) is False:
        notes.append("parameters differ between ranks: their gradients were not exchanged")
    precisions = dict.fromkeys(report.precision for report in reports)
    return {
        "emulated": ranks.device_kind == "paced",
        "device": ranks.describe([report.device for report in reports]),
        "precision": ", ".join(precisions),
        "notes": notes,
    }


def _uneven_batches_notes(full_batches: Sequence[int]) -> list[str]:
    """A note if ranks have different numbers of full batches; otherwise no note.

    Args:
        full_batches: the number of full batches of each rank; empty if nothing is read.
    """
    if not full_batches or min(full_batches) == max(full_batches):
        return []
    return [
        f"ranks have {min(full_batches):,} to {max(full_batches):,} full batches: each takes the "
        "smaller number, since gradients are exchanged in every step"
    ]
