"""Metrics and series from the timings of a loop, for both kinds of trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from iobench.clock import Clock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.loaders import Loader, SplitsFirstBatch
from iobench.loaders.capabilities import capabilities_of
from iobench.loaders.null import placeholder
from iobench.loops.counted import FixedSteps
from iobench.loops.drive import EpochTimes, drive
from iobench.loops.epochs import Measured
from iobench.loops.times import LoopTimes, epochs_as_one, times_of
from iobench.loops.training_plan import TrainingTrial
from iobench.stats import median, quantiles
from iobench.stored import Stored
from iobench.trial import Cold, Outcome, Span

_STEPS, _ROUNDS = 1_000, 5
_MOST_RECORDS = 100
"""Epochs of which a result has a record."""


def counted_epochs(measured: Measured) -> list[LoopTimes]:
    """The timings of each epoch that counts."""
    pairs = zip(measured.counted, measured.windows, strict=True)
    return [times_of(measured.epochs[number], window) for number, window in pairs]


def loop_metrics(
    times: LoopTimes, data: Stored | None, rule: str, bounds: tuple[float, float] | None = None
) -> dict[str, Any]:
    """PURE. Rates, waits, the balance of bytes, and the starts of epochs.

    MB/s count stored bytes. Quantiles of waits leave out the first step of each epoch, whose wait
    is the start of the epoch.

    Args:
        times: of the steps that count.
        data: what was read; None if nothing was.
        rule: ``steady``, ``epochs`` or ``bounds`` (``iobench.loops.counted``).
        bounds: lower and upper bound of the rate where they do not agree; then there is no rate.
    """
    metrics: dict[str, Any] = {
        "rate_rule": rule,
        "samples": times.samples,
        "seconds": times.seconds,
        "batches": len(times.wait_s),
        "left_out": times.left_out,
        "time_to_first_batch_s": times.time_to_first_batch_s,
        "epoch_start_share": _share(float(times.epoch_starts_s.sum()), times.seconds),
    }
    rate = times.samples_per_s
    if bounds is None:
        metrics["samples_per_s"] = rate
    else:
        metrics["samples_per_s_low"], metrics["samples_per_s_high"] = bounds
    if len(times.starts) > 1:
        metrics["epoch_start_s"] = float(times.epoch_starts_s[1:].mean())
    if times.arrived_samples is not None:
        metrics["fetched_samples"] = times.arrived_samples
        metrics["fetched_bytes"] = times.arrived_bytes
        metrics["balance"] = times.balance
    if times.dropped:
        metrics["dropped_samples"] = times.dropped
    if data is not None:
        if bounds is None:
            metrics["mb_per_s"] = rate * data.sample_bytes / 1e6
        if data.object_bytes is not None:
            metrics |= {"objects": data.objects, "mean_object_bytes": data.object_bytes}
    waits = times.wait_s[times.later_steps]
    return metrics | {f"batch_wait_s_{name}": value for name, value in quantiles(waits).items()}


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def loop_outcome(
    epochs: Sequence[LoopTimes],
    trial: TrainingTrial,
    clock: Clock,
    more: Mapping[str, Any],
    *,
    rule: str,
    bounds: tuple[float, float] | None = None,
    data: Stored | None = None,
    cold: Cold | None = None,
    spans: Sequence[Span] = (),
) -> Outcome:
    """Metrics and series of a training loop; ``more`` metrics describe its device and loader.

    ``time_s`` of a step is its end on the clock. With several epochs, each step also has the number
    of its epoch, and the times between epochs are pauses.
    """
    times = epochs_as_one(epochs)
    metrics = loop_metrics(times, data, rule, bounds)
    steps_s = times.step_s[times.later_steps]
    metrics |= {f"step_s_{name}": value for name, value in quantiles(steps_s).items()}
    metrics |= harness_metrics(trial.loader, trial.consumer, clock, times)
    metrics |= {
        "steps": len(times.step_s),
        "wait_share": _share(float(times.wait_s.sum()), times.seconds),
        "au_mlperf": times.au_mlperf,
        **more,
    }
    time_s, numbers, bounds_s = [], [], []
    for number, epoch in enumerate(epochs):
        begun_s = epoch.begun_s - times.requested_s
        time_s.append(begun_s + np.cumsum(epoch.step_s))
        numbers.append(np.full(len(epoch.step_s), number))
        bounds_s += [begun_s, begun_s + epoch.seconds]
    series: dict[str, Sequence[float]] = {
        "step_end_s": np.cumsum(times.step_s).tolist(),
        "wait_s": times.wait_s.tolist(),
        "compute_s": times.compute_s.tolist(),
        "time_s": np.concatenate(time_s).tolist(),
    }
    if len(epochs) > 1:
        series["epoch"] = np.concatenate(numbers).tolist()
    return Outcome(
        metrics,
        cold,
        series,
        origin_s=times.requested_s,
        counted_s=(bounds_s[0], bounds_s[-1]),
        pauses=tuple(pairwise(bounds_s))[1::2],
        spans=spans,
    )


def harness_metrics(loader: str, consumer: str, clock: Clock, times: LoopTimes) -> dict[str, Any]:
    """The cost of timing a step, and its share of the time of all steps.

    The share is left out if loader and consumer do nothing, since then it is the whole time.
    """
    cost_s = step_cost_s(clock)
    metrics = {"harness_step_s": cost_s}
    idle = not capabilities_of(loader).reads_data and consumer == "null"
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
        rule = FixedSteps(1, _STEPS - 1, batch_size=1)
        times = drive(batches, consumer, clock, rule, progress=lambda _: clock.now_s())
        assert times.window is not None  # noqa: S101  there are as many batches as it counts
        rounds.append(times.window.seconds / times.window.steps)
    return median(rounds)


def first_batch(loader: Loader, time_to_first_batch_s: float) -> dict[str, float]:
    """The parts of the time to the first batch that the loader reports, and the rest.

    ``first_batch_listing_s`` and so on, ``first_batch_rest_s`` last; empty if it reports none.
    """
    first = loader.first_batch() if isinstance(loader, SplitsFirstBatch) else None
    named = first._asdict() if first else {}
    parts = {name: seconds for name, seconds in named.items() if seconds is not None}
    if parts:
        parts["rest_s"] = max(0.0, time_to_first_batch_s - sum(parts.values()))
    return {f"first_batch_{name}": seconds for name, seconds in parts.items()}


def epoch_records(
    epochs: Sequence[EpochTimes], colds: Sequence[Cold | None]
) -> list[dict[str, Any]]:
    """PURE. The saved records of the first hundred epochs that were read.

    Args:
        epochs: the epochs, in order.
        colds: what the page cache did in each; shorter if later ones were not judged.
    """
    records = []
    for number, epoch in enumerate(epochs[:_MOST_RECORDS]):
        cold = colds[number] if number < len(colds) else None
        samples, seconds = epoch.whole.samples, epoch.whole.seconds
        records.append(epoch_record(number, samples, seconds, epoch.time_to_first_batch_s, cold))
    return records


def epoch_record(
    number: int, samples: int, seconds: float, first_batch_s: float, cold: Cold | None
) -> dict[str, Any]:
    """PURE. The saved record of epoch ``number``, from 0; ``cold`` is None if nothing was read.

    ``seconds`` last from the request for the epoch to the end of its last step; ``first_batch_s``
    is the part until its first batch. ``samples`` are all that the loop took.
    """
    record: dict[str, Any] = {
        "number": number,
        "samples": samples,
        "seconds": seconds,
        "samples_per_s": samples / seconds if seconds > 0 else 0.0,
        "time_to_first_batch_s": first_batch_s,
    }
    if cold is not None:
        for name in ("asked", "resident_before", "physical_ratio", "label", "why"):
            record[name] = getattr(cold, name)
        if cold.amplification is not None:
            record["amplification"] = cold.amplification
    return record
