"""Training on several devices: one process for each, whose timings are combined into one loop.

The devices are GPUs, processors, or emulated accelerators (``training.accelerators``). In each step
all ranks wait for each other, as they do when they average gradients. The process of the trial
trains nothing itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, Literal, Protocol

from dataprep.processors import usable_processors
from iobench.access import RequestTotals, counting_requests, downloaded, sum_of_totals
from iobench.consumers import requirements
from iobench.consumers.paced import PacedConsumer
from iobench.consumers.protocol import Consumer
from iobench.consumers.torch_train import TorchConsumer, TorchGroup
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.loaders.frameworks import need_framework
from iobench.loaders.protocol import WorkerBatch
from iobench.loops.aggregate import rank_metrics, ranks_as_one
from iobench.loops.cache import EpochCache, SharedCache, rank_epochs
from iobench.loops.counted import BALANCED, FixedSteps
from iobench.loops.drive import drive
from iobench.loops.figures import epoch_record, loop_outcome
from iobench.loops.opening import (
    OpenedLoader,
    built,
    check_batches,
    check_frameworks,
    check_shares,
    classes_of,
    data_of,
    flow_through,
    steps_of_ranks,
    whole_batches,
)
from iobench.loops.ranks import RankMeeting, run_ranks
from iobench.loops.spans import last_batches, process_spans, rank_spans
from iobench.loops.times import LoopTimes, epochs_as_one, times_of
from iobench.loops.training_plan import TrainingTrial
from iobench.machine.hardware import gpus
from iobench.stored import Stored
from iobench.trial import Context, Metrics, Outcome, Place, TrialSpec

# Ranks talk over the loopback device, whatever networks and names this host has.
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}

_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")

_BARRIER_LOOK_S = 0.0002
"""How often an emulated accelerator looks whether all others have ended their step."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """``count`` processes that train together, each on a device of one kind."""

    count: int
    kind: Literal["gpu", "cpu", "paced"]

    def named(self, ranks: Sequence[str]) -> str:
        """``8 x NVIDIA H100`` or ``2 x CPU (AMD EPYC, 1 thread each)``, from each rank's device."""
        if self.kind == "cpu":
            return f"{self.count} x CPU ({ranks[0]} each)"
        return " + ".join(f"{count} x {name}" for name, count in Counter(ranks).items())


class RankGroup(Protocol):
    """The ranks of a loop, which wait for each other."""

    def wait(self) -> None:
        """Wait until all ranks have called this."""

    def leave(self) -> None:
        """Leave the group when all ranks are done."""


class PacedRank(PacedConsumer):
    """An emulated accelerator that ends each step together with all others."""

    group: RankGroup

    def step(self, batch: Batch) -> None:
        """Compute, then wait for the others as if gradients were averaged."""
        super().step(batch)
        self.group.wait()


def ranks_of(trial: TrainingTrial) -> Ranks | None:
    """The ranks of a trial; None if one process trains.

    Raises:
        Unavailable: torch finds fewer GPUs.
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
        raise Unavailable(f"{count} GPUs are asked for (devices), and {build} finds {available}")
    return Ranks(count, "gpu" if on_gpu else "cpu") if count > 1 else None


def thread_limits(
    threads: int | None,
    workers: int,
    environment: Mapping[str, str],
    *,
    on_cpu: bool,
    ranks: int = 1,
) -> dict[str, str]:
    """Environment variables for the number of a framework's threads; to set before its import.

    By default (``threads`` is None), a training loop on the processor leaves one processor to each
    of its loader's ``workers``; ``ranks`` loops share the processors evenly. Otherwise threads and
    workers would compete for processors: steps would take many times as long, which would look
    like a wait for data. Variables that are set in ``environment`` are kept.
    """
    if threads is None:
        if any(name in environment for name in _VARIABLES) or (not on_cpu and gpus()):
            return {}
        threads = max(1, usable_processors() // ranks - workers)
    return dict.fromkeys(_VARIABLES, str(threads))


def run(
    spec: TrialSpec,
    trial: TrainingTrial,
    context: Context,
    ranks: Ranks,
    environment: Mapping[str, str],
) -> Outcome:
    """Run the trial with one process for each of ``ranks``; they start with ``environment``."""
    clock = context.clock
    more: dict[str, Any] = {"devices": ranks.count}
    place = context.places[trial.data] if trial.data else None
    if place is not None and trial.access == "file":
        begun_s = clock.now_s()
        if context.scratch is None:
            raise Unavailable("access file needs a folder to download to")
        folder = context.scratch / "download"
        folder.mkdir(parents=True)
        reads = built(trial, place, context).reads
        reads = "files" if reads is None else reads
        # Once, before any rank begins.
        place = downloaded(place, reads, folder, trial.connections)
        context = replace(context, places={**context.places, trial.data: place})
        more["download_s"] = clock.now_s() - begun_s
    share = _share(trial, context, place, ranks)
    on_cpu = ranks.kind != "gpu"
    parameters = {
        **spec.params,
        "device": "cpu" if on_cpu else "gpu",
        "epochs": share.epochs,
        "left_out": share.left_out,
        "steps": share.steps,
        "classes": classes_of(share.data),
    }
    limits = thread_limits(
        trial.threads, trial.workers, environment, on_cpu=on_cpu, ranks=ranks.count
    )
    environment = {**_LOOPBACK, **environment, **limits}
    answers = run_ranks("rank", parameters, ranks.count, context, environment=environment)
    times_of_ranks = [[LoopTimes.from_json(times) for times in one["times"]] for one in answers]
    epochs = [ranks_as_one(of_epoch) for of_epoch in zip(*times_of_ranks, strict=True)]
    whole = epochs_as_one(epochs)
    rule = "epochs" if whole.starts else "steady"
    _check_balance(whole, rule)
    notes = _each_once(answers, "computed")
    cache = EpochCache(trial, trial.input, place, share.data, every=True)
    read = [epoch.taken for epoch in epochs]
    cold = cache.after_ranks(rank_epochs([one["cache"] for one in answers], read))
    if trial.input != "synthetic":
        notes += _each_once(answers, "loaded")
        more["epochs"] = [
            epoch_record(
                number,
                epoch.taken,
                epoch.ended_s - epoch.requested_s,
                epoch.time_to_first_batch_s,
                judged,
            )
            for number, (epoch, judged) in enumerate(zip(epochs, cache.judged, strict=False))
        ]
        if place is not None and place.uri.startswith("s3://"):
            more |= sum_of_totals(RequestTotals(*one["fetched"]) for one in answers).metrics
    if share.whole_batches and min(share.whole_batches) < max(share.whole_batches):
        notes.append(
            f"ranks have {min(share.whole_batches):,} to {max(share.whole_batches):,} full "
            "batches: each takes the smaller number, since gradients are exchanged in every step"
        )
    if ranks.kind != "paced":
        more["ranks_agree"] = len({one["fingerprint"] for one in answers}) == 1
        if not more["ranks_agree"]:
            notes.append("parameters differ between ranks: their gradients were not exchanged")
    more |= {
        **rank_metrics(times_of_ranks, whole),
        "emulated": ranks.kind == "paced",
        "device": ranks.named([one["device"] for one in answers]),
        "precision": ", ".join(dict.fromkeys(one["precision"] for one in answers)),
        "notes": notes,
    }
    data = share.data if trial.input != "synthetic" else None
    batches = [[WorkerBatch(*batch) for batch in answer["batches"]] for answer in answers]
    spans = rank_spans(times_of_ranks, whole.requested_s)
    spans += process_spans(batches, whole.requested_s)
    return loop_outcome(epochs, trial, clock, more, rule=rule, data=data, cold=cold, spans=spans)


@dataclass(frozen=True, slots=True)
class _Share:
    """The data of a loop, and what every rank does with its share of them."""

    data: Stored | None
    whole_batches: Sequence[int]
    epochs: int
    left_out: int
    steps: int


def _share(trial: TrainingTrial, context: Context, place: Place | None, ranks: Ranks) -> _Share:
    """Count the full batches of each rank, and choose the steps; no sample is read.

    Raises:
        Unavailable: the loader does not suit such a loop.
        TrialFailed: a rank would have no full batch.
    """
    over = context.places[trial.over] if trial.over else None
    data: Stored | None = None
    whole: list[int] = []
    flow = None
    for rank in range(ranks.count):
        share = trial.model_copy(update={"rank": rank, "world_size": ranks.count})
        loader = built(share, place or over, context)
        if rank == 0:
            if trial.input != "synthetic":
                if ranks.kind != "paced":
                    check_frameworks(loader, "torch")
                check_shares(loader, trial.loader, "devices", "devices: 1")
            data = data_of(place or over, loader)
            flow = flow_through(loader, share, data)
        if data is not None:
            whole.append(whole_batches(loader, share, data.samples))
        loader.close()
    assert flow is not None  # noqa: S101  there are several ranks
    if trial.input == "synthetic":
        return _Share(data, [], 1, 1, trial.steps)
    check_batches(trial, data, whole)
    return _Share(data, whole, *steps_of_ranks(trial, flow, whole))


def _check_balance(times: LoopTimes, rule: str) -> None:
    """Refuse a rate of steps that were fetched before or after the time that counts.

    Raises:
        TrialFailed: arrived and consumed samples differ by more than 5 %.
    """
    balance = times.balance
    if rule == "steady" and balance is not None and abs(balance - 1) > BALANCED:
        raise TrialFailed(
            f"{times.arrived_samples:,} samples arrived while {times.samples:,} were consumed: "
            "the loop was not in a steady state; give more steps (training.steps)"
        )


def _each_once(answers: Sequence[Metrics], key: str) -> list[str]:
    return list(dict.fromkeys(str(note) for answer in answers for note in answer[key]))


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Kind ``rank``: the training loop of one rank, in a process of its own.

    Its metrics are its times, which ``aggregate`` combines. ``params`` are those of the trial, with
    ``rank``, ``world_size``, ``meeting``, ``left_out`` and ``classes``; ``device`` is ``cpu`` or
    ``gpu``. Every rank runs ``epochs`` epochs, in each of which ``steps`` steps count after
    ``left_out``.
    """
    params = spec.params
    trial = TrainingTrial.model_validate(params)
    name = trial.data or trial.over
    place = context.places[name] if name else None
    loader = built(trial, place, context)
    data = data_of(place, loader) if trial.data else None
    group, consumer = _member(trial, params, context)
    consumer.warm_up()
    opened = OpenedLoader(loader, lambda: built(trial, place, context))
    cache = EpochCache(trial, trial.input, place, data, every=True)
    shared = SharedCache(cache, group, trial.rank, context.begin)
    is_synthetic = trial.input == "synthetic"
    times: list[LoopTimes] = []

    def epoch(number: int) -> Iterator[Batch]:
        return repeat(consumer.synthetic()) if is_synthetic else opened.request(number)

    try:
        with (
            counting_requests() if place is not None and place.is_remote else nullcontext() as gets
        ):
            for number in range(trial.epochs or 1):
                shared.before()
                arrived = None if is_synthetic else opened.arrivals
                rule = FixedSteps(params["left_out"], trial.steps, trial.batch_size, arrived)
                driven = drive(
                    lambda number=number: epoch(number),  # type: ignore[misc]
                    consumer,
                    context.clock,
                    rule,
                    arrived=arrived,
                    full_batch=trial.batch_size,
                    progress=lambda samples: context.progress(samples, "samples"),
                )
                # Fail here, before other ranks wait for the missing steps of this one.
                if driven.window is None:
                    wanted = params["left_out"] + trial.steps
                    raise TrialFailed(
                        f"the loader gave {driven.whole.end.steps} full batches, where {wanted} "
                        "were counted beforehand"
                    )
                shared.after()
                times.append(_with_dropped(times_of(driven, driven.window), trial, data))
            fetched = gets.totals() if gets else None
        batches = last_batches(opened.worker_batches(), trial.world_size)
    finally:
        opened.loader.close()
    metrics = {
        "times": [one.as_json() for one in times],
        "fetched": fetched,
        "cache": shared.epochs,
        "fingerprint": consumer.fingerprint() if isinstance(consumer, TorchConsumer) else "",
        "device": consumer.device,
        "precision": consumer.precision,
        "computed": list(consumer.notes),
        "loaded": [] if is_synthetic else opened.notes,
        "batches": batches,
    }
    group.leave()
    return Outcome(metrics)


def _with_dropped(times: LoopTimes, trial: TrainingTrial, data: Stored | None) -> LoopTimes:
    """The times with the samples that were read and not consumed, where whole epochs count.

    A rank stops after the steps that all ranks have. The rest of its share of the epoch has been
    read ahead by then.
    """
    if not times.starts or data is None or times.arrived_samples is None:
        return times
    share = len(range(trial.rank, data.samples, trial.world_size))
    unused = min(times.arrived_samples, share) - times.samples
    return replace(times, dropped=max(0, unused))


def _member(
    trial: TrainingTrial, params: Mapping[str, Any], context: Context
) -> tuple[RankGroup, Consumer]:
    """The group of ranks, and this rank's device."""
    if trial.accelerators is not None:
        meeting = RankMeeting(params["meeting"], trial.world_size, _BARRIER_LOOK_S)
        accelerator = PacedRank(trial, context.clock)
        accelerator.group = meeting
        return meeting, accelerator
    on_gpu = trial.device == "gpu"
    group = TorchGroup(trial.rank, trial.world_size, params["meeting"], on_gpu=on_gpu)
    return group, TorchConsumer(trial, context.clock, group)
