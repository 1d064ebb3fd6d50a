"""Metrics and series from the timings of a loop, for both kinds of trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise, repeat
from typing import Any

from iobench.clock import Clock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders import Loader, SplitsFirstBatch
from iobench.loaders.null import placeholder
from iobench.loaders.own import SYNTHETIC
from iobench.loops.aggregate import epochs_as_one
from iobench.loops.drive import LoopTimes, drive
from iobench.loops.training_plan import TrainingTrial
from iobench.stats import median, quantiles
from iobench.stored import Stored
from iobench.trial import Cold, Outcome

_STEPS, _ROUNDS = 1_000, 5


def loop_metrics(times: LoopTimes, data: Stored | None) -> dict[str, Any]:
    """PURE. Rates, waits and the first batch. MB/s count stored bytes; objects: files or shards."""
    metrics: dict[str, Any] = {
        "samples_per_s": times.samples_per_s,
        "samples": times.samples,
        "seconds": times.seconds,
        "batches": len(times.wait_s),
        "left_out": times.left_out,
        "time_to_first_batch_s": times.time_to_first_batch_s,
    }
    if data is not None:
        metrics["mb_per_s"] = times.samples_per_s * data.sample_bytes / 1e6
        if data.object_bytes is not None:
            metrics |= {"objects": data.objects, "mean_object_bytes": data.object_bytes}
    metrics |= {f"batch_wait_s_{name}": value for name, value in quantiles(times.wait_s).items()}
    return metrics


def loop_outcome(
    epochs: Sequence[LoopTimes],
    trial: TrainingTrial,
    clock: Clock,
    more: Mapping[str, Any],
    *,
    data: Stored | None = None,
    cold: Cold | None = None,
) -> Outcome:
    """Metrics and series of a training loop; ``more`` metrics describe its device and loader.

    ``time_s`` of a step is its end on the clock. With several epochs, each step also has the number
    of its epoch, and the times between epochs are pauses.
    """
    times = epochs_as_one(epochs)
    metrics = loop_metrics(times, data)
    metrics |= {f"step_s_{name}": value for name, value in quantiles(times.step_s).items()}
    metrics |= harness_metrics(trial.loader, trial.consumer, clock, times)
    metrics |= {
        "steps": len(times.step_s),
        "wait_share": sum(times.wait_s) / times.seconds,
        "au_mlperf": times.au_mlperf,
        **more,
    }
    time_s: list[float] = []
    numbers: list[int] = []
    bounds: list[float] = []
    for number, one in enumerate(epochs):
        begun_s = one.asked_s - times.asked_s + one.begun_s
        time_s += [begun_s + end_s for end_s in accumulate(one.step_s)]
        numbers += [number] * len(one.step_s)
        bounds += [begun_s, begun_s + one.seconds]
    series: dict[str, Sequence[float]] = {
        "step_end_s": tuple(accumulate(times.step_s)),
        "wait_s": times.wait_s,
        "compute_s": times.compute_s,
        "time_s": tuple(time_s),
    }
    if len(epochs) > 1:
        series["epoch"] = tuple(numbers)
    return Outcome(
        metrics,
        cold,
        series,
        origin_s=times.asked_s,
        counted_s=(bounds[0], bounds[-1]),
        pauses=tuple(pairwise(bounds))[1::2],
    )


def harness_metrics(loader: str, consumer: str, clock: Clock, times: LoopTimes) -> dict[str, Any]:
    """The cost of timing a step, and its share of the time of all steps.

    The share is left out if loader and consumer do nothing, since then it is the whole time.
    """
    cost_s = step_cost_s(clock)
    metrics = {"harness_step_s": cost_s}
    idle = loader in SYNTHETIC and consumer == "null"
    if not idle and times.seconds > 0:
        metrics["harness_share"] = cost_s * len(times.step_s) / times.seconds
    return metrics


def step_cost_s(clock: Clock) -> float:
    """Seconds per step of ``drive`` with a loader and a consumer that do nothing.

    This is an upper bound, since it includes the calls of both. It is the median of a few rounds,
    so that one interruption has no effect. It takes a few milliseconds.
    """
    batches = partial(repeat, placeholder(1), _STEPS)
    rounds = []
    for _ in range(_ROUNDS):
        consumer = NullConsumer(ConsumerSettings(), clock)
        times = drive(batches, consumer, clock, leave_out=1, progress=lambda _: clock.now_s())
        rounds.append(times.seconds / len(times.step_s))
    return median(rounds)


def first_batch(loader: Loader, time_to_first_batch_s: float) -> dict[str, float]:
    """The parts of the time to the first batch that the loader reports, and the rest.

    ``first_batch_listing_s`` and so on, ``first_batch_rest_s`` last; empty if it reports none.
    """
    told = loader.first_batch() if isinstance(loader, SplitsFirstBatch) else None
    given = told._asdict() if told else {}
    parts = {name: seconds for name, seconds in given.items() if seconds is not None}
    if parts:
        parts["rest_s"] = max(0.0, time_to_first_batch_s - sum(parts.values()))
    return {f"first_batch_{name}": seconds for name, seconds in parts.items()}


def epoch_record(
    number: int, samples: int, seconds: float, first_batch_s: float, cold: Cold | None
) -> dict[str, Any]:
    """PURE. The saved record of epoch ``number``, from 0; ``cold`` is None if nothing was read.

    ``seconds`` last from the request for the epoch to the end of its last step; ``first_batch_s``
    is the part until its first batch. ``samples`` are all that the loop took.
    """
    found: dict[str, Any] = {
        "number": number,
        "samples": samples,
        "seconds": seconds,
        "samples_per_s": samples / seconds if seconds > 0 else 0.0,
        "time_to_first_batch_s": first_batch_s,
    }
    if cold is not None:
        for name in ("asked", "resident_before", "physical_ratio", "label", "why"):
            found[name] = getattr(cold, name)
        if cold.amplification is not None:
            found["amplification"] = cold.amplification
    return found
