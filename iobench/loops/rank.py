"""One rank of a training loop on several devices; the trial's own process starts it and waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from itertools import repeat

from iobench.access import counting
from iobench.consumers.protocol import ConsumerSettings
from iobench.consumers.torch_group import TorchGroup
from iobench.consumers.torch_train import TorchConsumer
from iobench.errors import TrialFailed
from iobench.loaders import Batch
from iobench.loops.counting import full_batches
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.opening import built, loader_settings
from iobench.loops.training_plan import CONSUMER_KEYS
from iobench.machine import page_cache
from iobench.trial import Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """The loop over this rank's share. Its times are metrics: ``together`` makes figures of them.

    ``params`` are those of the trial, with ``rank``, ``world_size``, ``meeting``, ``leave_out``
    and ``classes``; ``device`` is ``cpu`` or ``gpu``, ``steps`` what every rank takes.
    """
    params = spec.params
    on_gpu = params["device"] == "gpu"
    group = TorchGroup(params["rank"], params["world_size"], params["meeting"], on_gpu=on_gpu)
    name = params["data"] or params["over"]
    place = context.places[name] if name else None
    loader = built(params["loader"], place, loader_settings(params), context)
    told = {key: params[key] for key in CONSUMER_KEYS}
    settings = ConsumerSettings(classes=params["classes"], **told)
    consumer = TorchConsumer(settings, context.clock, group)
    consumer.warm_up()

    def epoch() -> Iterator[Batch]:
        if params["input"] == "synthetic":
            return repeat(consumer.synthetic())
        return full_batches(loader, params["batch_size"])

    before = page_cache.physical_read_bytes()
    group.wait()
    try:
        with counting() if place is not None and place.is_remote else nullcontext() as gets:
            times = drive(
                epoch,
                consumer,
                context.clock,
                leave_out=params["leave_out"],
                max_steps=params["steps"],
                progress=lambda samples: context.progress(samples, "samples"),
            )
            fetched = gets.fetched() if gets else None
        _check(times, params["steps"])
    finally:
        loader.close()
    after = page_cache.physical_read_bytes()
    metrics = {
        "times": asdict(times),
        "fetched": fetched,
        "physical_bytes": None if before is None or after is None else after - before,
        "fingerprint": consumer.fingerprint(),
        "device": consumer.device,
        "precision": consumer.precision,
        "computed": list(consumer.notes),
        "loaded": list(loader.notes),
    }
    group.leave()
    return Outcome(metrics)


def _check(times: LoopTimes, steps: int) -> None:
    """Refuse a loop that ended early, before anybody waits for what this rank has left to do."""
    taken = times.left_out + len(times.step_s)
    if taken < steps:
        raise TrialFailed(
            f"the loader gave {taken} of the {steps} whole batches that it was counted to have"
        )
