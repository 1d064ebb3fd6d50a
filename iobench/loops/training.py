"""Kind ``train``: a whole training loop, fed from the device, the page cache, disk or store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, repeat
from types import MappingProxyType
from typing import Any

from dataprep.counted import counted
from iobench.access.meter import metered
from iobench.consumers import CONSUMERS, Consumer, ConsumerSettings
from iobench.errors import TrialFailed
from iobench.extensions import made
from iobench.loaders import Batch, CountsBatches, Loader
from iobench.loops.caching import prepared_for
from iobench.loops.drive import LoopTimes, drive, steps_to_leave_out
from iobench.loops.figures import harness_metrics, loop_metrics
from iobench.loops.opening import check_frameworks, loader_settings, reached
from iobench.loops.overhead import step_cost_s
from iobench.loops.threads import limit_threads
from iobench.loops.training_plan import CONSUMER_KEYS
from iobench.stats import quantiles
from iobench.stored import Stored, stored
from iobench.trial import Cold, Context, Outcome, TrialSpec


def run(spec: TrialSpec, context: Context) -> Outcome:
    """One training loop with one input."""
    params = spec.params
    on_cpu = params["device"] == "cpu"
    limit_threads(params.get("threads"), params["workers"], on_cpu=on_cpu)
    over = context.places[params["over"]] if params["over"] else None
    place = context.places[params["data"]] if params["data"] else None
    loader = reached(params, place or over, loader_settings(params), context)
    data = stored(over, loader.reads) if over is not None and loader.reads else None
    steps, leave_out = _steps(params, data, loader)
    consumer = _consumer(params, data, context)
    consumer.warm_up()
    if params["input"] == "synthetic":
        times = _drive(lambda: repeat(consumer.synthetic()), consumer, context, steps, leave_out)
        return _outcome(times, consumer, params, context, notes=())
    check_frameworks(loader, consumer.framework)
    cache = prepared_for(params, params["input"], place, data)
    try:
        with metered(params, loader, place, data) as needed:
            times = _drive(
                lambda: _full_batches(loader, params["batch_size"]),
                consumer,
                context,
                steps,
                leave_out,
            )
    finally:
        loader.close()
    return _outcome(
        times,
        consumer,
        params,
        context,
        notes=loader.notes,
        needed=needed,
        data=data,
        cold=cache.judged(params["loader"], times.taken) if cache else None,
    )


def _full_batches(loader: Loader, batch_size: int) -> Iterator[Batch]:
    """One epoch without its short batches, for each size of which a GPU would tune anew."""
    return (batch for batch in loader.epoch(0) if batch.samples == batch_size)


def _steps(params: Mapping[str, Any], data: Stored | None, loader: Loader) -> tuple[int, int]:
    """How many steps are run, and how many of them do not count: the same for every input."""
    batch_size = params["batch_size"]
    steps = params["steps"]
    if data is not None:
        whole = data.samples // batch_size
        steps = min(steps, loader.whole_batches() if isinstance(loader, CountsBatches) else whole)
    leave_out = steps_to_leave_out(params["workers"], params["prefetch"], steps)
    if steps <= leave_out:
        shared = f" among {params['workers']} workers" if params["workers"] > 1 else ""
        raise TrialFailed(
            f"{data.samples if data else 0:,} images{shared} are "
            f"{counted(steps, 'whole batch')} of {batch_size}: give more images, a smaller "
            "batch_size or fewer workers"
        )
    return steps, leave_out


def _drive(
    epoch: Callable[[], Iterator[Batch]],
    consumer: Consumer,
    context: Context,
    steps: int,
    leave_out: int,
) -> LoopTimes:
    return drive(
        epoch,
        consumer,
        context.clock,
        leave_out=leave_out,
        max_steps=steps,
        progress=lambda samples: context.progress(samples, "samples"),
    )


def _consumer(params: Mapping[str, Any], data: Stored | None, context: Context) -> Consumer:
    keys = (*CONSUMER_KEYS, "preset", "images_per_s")
    told = {key: params[key] for key in keys if key in params}
    classes = max(data.classes if data else 2, 1000)
    kind, settings = CONSUMERS.load(params["consumer"]), ConsumerSettings(classes=classes, **told)
    return made(CONSUMERS, params["consumer"], Consumer, lambda: kind(settings, context.clock))


def _outcome(
    times: LoopTimes,
    consumer: Consumer,
    params: Mapping[str, Any],
    context: Context,
    *,
    notes: Sequence[str],
    needed: Mapping[str, Any] = MappingProxyType({}),
    data: Stored | None = None,
    cold: Cold | None = None,
) -> Outcome:
    metrics = loop_metrics(times, data)
    metrics |= {f"step_s_{name}": value for name, value in quantiles(times.step_s).items()}
    metrics |= harness_metrics(params, step_cost_s(context.clock), times)
    metrics |= {
        **needed,
        "steps": len(times.step_s),
        "wait_share": sum(times.wait_s) / times.seconds,
        "au_mlperf": times.au_mlperf,
        "emulated": consumer.emulated,
        "device": consumer.device,
        "precision": consumer.precision,
        "notes": [*consumer.notes, *notes],
    }
    ends = tuple(accumulate(times.step_s))
    series = {
        "step_end_s": ends,
        "wait_s": times.wait_s,
        "compute_s": times.compute_s,
        "time_s": tuple(times.begun_s + end_s for end_s in ends),
    }
    return Outcome(metrics=metrics, cold=cold, series=series, origin_s=times.asked_s)
