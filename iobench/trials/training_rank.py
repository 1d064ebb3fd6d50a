"""One rank of a training loop on several devices: a process that trains on one device.

``iobench.trials.multi_device_training`` starts the ranks, and combines their reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import repeat
from typing import Protocol

from dataprep.schema import typed
from iobench.clock import Clock
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import Consumer, ConsumerSettings
from iobench.consumers.torch_train import TorchConsumer, TorchGroup
from iobench.data.data_summary import DataSummary
from iobench.errors import TrialFailed
from iobench.loaders import Batch
from iobench.loaders.protocol import WorkerBatch
from iobench.loaders.store_requests import RequestTotals, counting_requests
from iobench.results.trial import Context, Metrics, Outcome, TrialSpec
from iobench.trials.epoch_cache import EpochCache, RankCacheEpoch, SharedCache
from iobench.trials.epoch_loop import run_epoch
from iobench.trials.loader_opening import ReopenedLoader, create_loader, summarize_loader_data
from iobench.trials.loop_timings import LoopTimings, window_timings
from iobench.trials.rank_processes import RankBarrier
from iobench.trials.rate_plan import rank_samples
from iobench.trials.spans import last_batches
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window_rules import FixedSteps

_BARRIER_LOOK_S = 0.0002
"""Seconds between two checks of an emulated accelerator whether all others have ended their step.

They must be short compared with a step, because they delay each step.
"""


class RankGroup(Protocol):
    """The membership of one rank in the group of all ranks of a loop, which wait for each other."""

    def wait(self) -> None:
        """Wait until all ranks have called this method as often as this rank has."""

    def leave(self) -> None:
        """Wait until all ranks have called this method, and leave the group."""


class PacedRank(PacedConsumer):
    """An emulated accelerator that ends each step at the same time as all other accelerators."""

    def __init__(self, settings: ConsumerSettings, clock: Clock, group: RankGroup) -> None:
        super().__init__(settings, clock)
        self._group = group

    def step(self, batch: Batch) -> None:
        """Pause for the computation. Then wait for the other ranks as if gradients were averaged.

        ``compute_s`` contains only the pause.
        """
        super().step(batch)
        self._group.wait()


@dataclass(frozen=True, slots=True)
class RankReport:
    """The measurements of one rank. Its process sends them as JSON values.

    Attributes:
        epochs: the timings of the counted steps of each epoch.
        requests: the sums over its requests to a store; None if its data are not on a store.
        cache: its report about the page cache in each epoch.
        fingerprint: a checksum of the network's parameters after the last step; empty if the device
            is emulated.
        device: the name of its device.
        precision: the precision of its computations.
        consumer_notes: the notes of its consumer.
        loader_notes: the notes of its loader; empty if the loader gave no batches.
        batches: the last batches that its workers made, at most its share of ``MAX_SPANS``; empty
            if the loader does not record them.
    """

    epochs: list[LoopTimings]
    requests: RequestTotals | None
    cache: list[RankCacheEpoch]
    fingerprint: int | str
    device: str
    precision: str
    consumer_notes: list[str]
    loader_notes: list[str]
    batches: list[WorkerBatch]

    def as_metrics(self) -> Metrics:
        """The report as JSON values, for ``from_metrics``."""
        return {
            "times": [timings.as_json() for timings in self.epochs],
            "fetched": self.requests,
            "cache": [asdict(epoch) for epoch in self.cache],
            "fingerprint": self.fingerprint,
            "device": self.device,
            "precision": self.precision,
            "computed": self.consumer_notes,
            "loaded": self.loader_notes,
            "batches": self.batches,
        }

    @classmethod
    def from_metrics(cls, metrics: Metrics) -> RankReport:
        """Restore a report from the values of ``as_metrics``, after they were sent as JSON."""
        requests = None
        if metrics["fetched"] is not None:
            requests = RequestTotals(*metrics["fetched"])
        return cls(
            epochs=[LoopTimings.from_json(timings) for timings in metrics["times"]],
            requests=requests,
            cache=typed(list[RankCacheEpoch], metrics["cache"]),
            fingerprint=metrics["fingerprint"],
            device=metrics["device"],
            precision=metrics["precision"],
            consumer_notes=[str(note) for note in metrics["computed"]],
            loader_notes=[str(note) for note in metrics["loaded"]],
            batches=[WorkerBatch(*batch) for batch in metrics["batches"]],
        )


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Run a trial of kind ``rank``: the training loop of one rank, in its own process.

    Its parameters are the parameters of the whole trial, but some have other values or are added:

    - ``rank``: the number of this rank, from 0.
    - ``world_size``: the number of ranks.
    - ``meeting``: the path of a file by which the ranks find each other.
    - ``device``: ``gpu``; ``cpu`` also for an emulated accelerator.
    - ``classes``: the number of classes of the network's last layer.
    - ``epochs``: the number of epochs that every rank runs.
    - ``left_out``: the number of steps at the start of each epoch that do not count.
    - ``steps``: the number of steps that follow and count. The epoch then ends.

    Its metrics are its report. ``iobench.trials.multi_device_training`` combines it with the
    reports of the other ranks.

    Raises:
        Unavailable: something that the loader or the consumer needs is missing.
        TrialFailed: the loader gave too few batches, or it is broken.
    """
    params = spec.params
    trial = TrainingTrial.model_validate(params)
    # If the rank reads no data, its loader is created for the data of the other inputs.
    data_name = trial.data or trial.over
    location = context.locations[data_name] if data_name else None
    loader = create_loader(trial, location, context)
    data = summarize_loader_data(location, loader) if trial.data else None
    group, consumer = _join_group(trial, params["meeting"], context)
    consumer.warm_up()
    reopened = ReopenedLoader(loader, lambda: create_loader(trial, location, context))
    cache = EpochCache(trial, trial.input, location, data, before_every_epoch=True)
    shared_cache = SharedCache(cache, group, trial.rank, context.clock, context.begin)
    is_synthetic = trial.input == "synthetic"
    epochs: list[LoopTimings] = []
    earlier_samples = 0

    def report_progress(earlier_samples: int, samples: float, unit: str) -> None:
        context.progress(earlier_samples + samples, unit)

    is_remote = location is not None and location.is_remote
    try:
        with counting_requests() if is_remote else nullcontext() as request_counter:
            for epoch_number in range(trial.epochs or 1):
                shared_cache.prepare()
                timings = _run_rank_epoch(
                    trial,
                    params["left_out"],
                    epoch_number,
                    replace(context, progress=partial(report_progress, earlier_samples)),
                    consumer,
                    reopened,
                )
                earlier_samples += timings.all_samples
                shared_cache.end_epoch()
                epochs.append(_with_dropped_samples(timings, trial, data))
            requests = request_counter.totals() if request_counter is not None else None
        batches = last_batches(reopened.worker_batches(), trial.world_size)
    finally:
        reopened.loader.close()
    fingerprint = consumer.fingerprint() if isinstance(consumer, TorchConsumer) else ""
    report = RankReport(
        epochs=epochs,
        requests=requests,
        cache=shared_cache.epochs,
        fingerprint=fingerprint,
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
    epoch_number: int,
    context: Context,
    consumer: Consumer,
    reopened: ReopenedLoader,
) -> LoopTimings:
    """Run one epoch of a rank, and return the timings of its counted steps.

    Args:
        trial: the parameters of the rank.
        left_out: the number of steps at the start of the epoch that do not count.
        epoch_number: the number of the epoch, from 0.
        context: the context of the trial.
        consumer: takes the batches.
        reopened: gives the batches, unless the input is ``synthetic``.

    Raises:
        TrialFailed: the loader gave fewer full batches than were counted before the loop. The other
            ranks would wait without end for the missing steps of this rank, but the failure of one
            rank ends all ranks.
    """
    is_synthetic = trial.input == "synthetic"

    def request() -> Iterator[Batch]:
        if is_synthetic:
            return repeat(consumer.synthetic())
        return reopened.request(epoch_number)

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
    """Count the samples that a rank read but did not consume as dropped, if whole epochs count.

    A rank stops after the number of steps that all ranks can take. By then its loader may have read
    the rest of its share of the epoch in advance. If more samples arrived than its share has, the
    excess has another cause. It is not counted as dropped, so that the balance shows it.
    """
    if not timings.epoch_first_steps or data is None or timings.arrived_samples is None:
        return timings
    share_samples = rank_samples(data.samples, trial.rank, trial.world_size)
    unused_samples = min(timings.arrived_samples, share_samples) - timings.samples
    return replace(timings, dropped_samples=max(0, unused_samples))


def _join_group(trial: TrainingTrial, meeting: str, context: Context) -> tuple[RankGroup, Consumer]:
    """Join the group of all ranks, and create the consumer of this rank.

    Args:
        trial: the parameters of the rank.
        meeting: the path of the file by which the ranks find each other.
        context: the context of the trial.

    Returns:
        The group, and the consumer.
    """
    if trial.accelerators is not None:
        barrier = RankBarrier(meeting, trial.world_size, _BARRIER_LOOK_S)
        return barrier, PacedRank(trial, context.clock, barrier)
    on_gpu = trial.device == "gpu"
    group = TorchGroup(trial.rank, trial.world_size, meeting, on_gpu=on_gpu)
    return group, TorchConsumer(trial, context.clock, group)
