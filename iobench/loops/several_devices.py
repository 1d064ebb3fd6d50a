"""Training on several devices: one process for each, whose timings are combined into one loop.

The process of the trial counts the steps and prepares the page cache before the ranks begin; it
trains nothing itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from typing import Literal

from dataprep.schema import typed
from iobench.access import Fetched, added, counting, downloaded
from iobench.consumers import requirements
from iobench.consumers.torch_train import TorchConsumer, TorchGroup
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import Batch
from iobench.loaders.protocol import need_framework
from iobench.loops.aggregate import rank_metrics, ranks_as_one
from iobench.loops.cache import EpochCache, physical_bytes, physical_since
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.figures import epoch_record, loop_outcome
from iobench.loops.opening import (
    built,
    check_frameworks,
    check_shares,
    classes_of,
    data_of,
    full_batches,
    steps_of,
    whole_batches,
)
from iobench.loops.ranks import run_ranks
from iobench.loops.training_plan import TrainingTrial
from iobench.machine.hardware import gpus
from iobench.stored import Stored
from iobench.trial import Context, Metrics, Outcome, Place, TrialSpec

# Ranks talk over the loopback device, whatever networks and names this host has.
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}

_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


@dataclass(frozen=True, slots=True)
class Devices:
    """``count`` GPUs, or ``count`` processes on the processor: one for each rank."""

    count: int
    on_gpu: bool

    def named(self, ranks: Sequence[str]) -> str:
        """``8 x NVIDIA H100`` or ``2 x CPU (AMD EPYC, 1 thread each)``, from each rank's device."""
        if not self.on_gpu:
            return f"{self.count} x CPU ({ranks[0]} each)"
        return " + ".join(f"{count} x {name}" for name, count in Counter(ranks).items())


def devices_of(asked: int | Literal["all"], device: str) -> Devices | None:
    """The devices that a trial's ``devices`` and ``device`` ask for; None if it is one.

    Raises:
        Unavailable: torch finds fewer GPUs.
    """
    if asked == 1:
        return None
    torch = need_framework("torch")
    there = int(torch.cuda.device_count())
    build = f"torch {torch.__version__}"
    on_gpu = requirements.takes_gpu(device, there > 0, build)
    if asked == "all":
        asked = there if on_gpu else 1
    if on_gpu and asked > there:
        raise Unavailable(f"{asked} GPUs are asked for (devices), and {build} finds {there}")
    return Devices(asked, on_gpu) if asked > 1 else None


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
        threads = max(1, len(os.sched_getaffinity(0)) // ranks - workers)
    return dict.fromkeys(_VARIABLES, str(threads))


def run(
    spec: TrialSpec,
    trial: TrainingTrial,
    context: Context,
    devices: Devices,
    environment: Mapping[str, str],
) -> Outcome:
    """Run the trial with one rank on each of ``devices``; ranks start with ``environment``."""
    clock = context.clock
    more: dict[str, object] = {"devices": devices.count}
    place = context.places[trial.data] if trial.data else None
    if place is not None and trial.access == "file":
        begun_s = clock.now_s()
        if context.scratch is None:
            raise Unavailable("access file needs a folder to download to")
        folder = context.scratch / "download"
        folder.mkdir(parents=True)
        reads = built(trial, place, context).reads or "files"
        # Once, before any rank begins.
        place = downloaded(place, reads, folder, trial.connections)
        context = replace(context, places={**context.places, trial.data: place})
        more["download_s"] = clock.now_s() - begun_s
    data, batches = _counted(trial, context, place, devices)
    steps, leave_out = steps_of(trial, data, batches)
    cache = EpochCache(trial, trial.input, place, data, every=True)
    cache.before()
    on_cpu = not devices.on_gpu
    told = {
        **spec.params,
        "device": "cpu" if on_cpu else "gpu",
        "steps": steps,
        "leave_out": leave_out,
        "classes": classes_of(data),
    }
    limits = thread_limits(
        trial.threads, trial.workers, environment, on_cpu=on_cpu, ranks=devices.count
    )
    environment = {**_LOOPBACK, **environment, **limits}
    found = run_ranks("rank", told, devices.count, context, environment=environment)
    times = [typed(LoopTimes, one["times"]) for one in found]
    whole = ranks_as_one(times)
    notes = _each_once(found, "computed")
    cold = cache.after(whole.taken, [one["physical_bytes"] for one in found])
    if trial.input != "synthetic":
        notes += _each_once(found, "loaded")
        record = (0, whole.taken, whole.counted_s[1], whole.time_to_first_batch_s, cold)
        more["epochs"] = [epoch_record(*record)]
        if place is not None and place.uri.startswith("s3://"):
            more |= added(Fetched(*one["fetched"]) for one in found).metrics
    if batches and min(batches) < max(batches) and steps == min(batches):
        notes.append(
            f"ranks have {steps:,} to {max(batches):,} full batches: each takes {steps:,}, since "
            "gradients are exchanged in every step"
        )
    more["ranks_agree"] = len({one["fingerprint"] for one in found}) == 1
    if not more["ranks_agree"]:
        notes.append("parameters differ between ranks: their gradients were not exchanged")
    more |= {
        **rank_metrics(times, whole),
        "emulated": False,
        "device": devices.named([one["device"] for one in found]),
        "precision": ", ".join(dict.fromkeys(one["precision"] for one in found)),
        "notes": notes,
    }
    read = data if trial.input != "synthetic" else None
    return loop_outcome([whole], trial, clock, more, data=read, cold=cold)


def _counted(
    trial: TrainingTrial, context: Context, place: Place | None, devices: Devices
) -> tuple[Stored | None, list[int]]:
    """The data, and the number of full batches of each rank; no sample is read.

    Raises:
        Unavailable: the loader does not suit such a loop.
    """
    over = context.places[trial.over] if trial.over else None
    data: Stored | None = None
    whole: list[int] = []
    for rank in range(devices.count):
        share = trial.model_copy(update={"rank": rank, "world_size": devices.count})
        loader = built(share, place or over, context)
        if rank == 0:
            if trial.input != "synthetic":
                check_frameworks(loader, "torch")
                check_shares(loader, trial.loader, "devices", "devices: 1")
            data = data_of(over, loader)
        if data is not None:
            whole.append(whole_batches(loader, share, data.samples))
        loader.close()
    return data, whole


def _each_once(found: Sequence[Metrics], key: str) -> list[str]:
    return list(dict.fromkeys(str(note) for one in found for note in one[key]))


def run_rank(spec: TrialSpec, context: Context) -> Outcome:
    """Kind ``rank``: the training loop of one rank, in a process of its own.

    Its metrics are its times, which ``aggregate`` combines. ``params`` are those of the trial, with
    ``rank``, ``world_size``, ``meeting``, ``leave_out`` and ``classes``; ``device`` is ``cpu`` or
    ``gpu``, ``steps`` the number of steps of every rank.
    """
    params = spec.params
    trial = TrainingTrial.model_validate(params)
    on_gpu = trial.device == "gpu"
    group = TorchGroup(trial.rank, trial.world_size, params["meeting"], on_gpu=on_gpu)
    name = trial.data or trial.over
    place = context.places[name] if name else None
    loader = built(trial, place, context)
    consumer = TorchConsumer(trial, context.clock, group)
    consumer.warm_up()

    def epoch() -> Iterator[Batch]:
        if trial.input == "synthetic":
            return repeat(consumer.synthetic())
        return full_batches(loader, trial.batch_size)

    before = physical_bytes()
    group.wait()
    try:
        with counting() if place is not None and place.is_remote else nullcontext() as gets:
            times = drive(
                epoch,
                consumer,
                context.clock,
                leave_out=params["leave_out"],
                max_steps=trial.steps,
                progress=lambda samples: context.progress(samples, "samples"),
            )
            fetched = gets.fetched() if gets else None
        # Fail here, before other ranks wait for the missing steps of this one.
        if (taken := times.left_out + len(times.step_s)) < trial.steps:
            raise TrialFailed(
                f"the loader gave {taken} full batches, where {trial.steps} were counted beforehand"
            )
    finally:
        loader.close()
    metrics = {
        "times": asdict(times),
        "fetched": fetched,
        "physical_bytes": physical_since(before),
        "fingerprint": consumer.fingerprint(),
        "device": consumer.device,
        "precision": consumer.precision,
        "computed": list(consumer.notes),
        "loaded": list(loader.notes),
    }
    group.leave()
    return Outcome(metrics)
