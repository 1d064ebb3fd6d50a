"""Metrics and series of a loop from its timings, for trials of loaders and of training loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from iobench.clock import Clock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.data.data_summary import DataSummary
from iobench.loaders import Loader, SplitsFirstBatch
from iobench.loaders.capabilities import capabilities_of
from iobench.loaders.null import placeholder
from iobench.results.statistics import median, quantiles
from iobench.results.trial import Cold, Outcome, Span
from iobench.trials.epoch_loop import EpochTimings, run_epoch
from iobench.trials.loop_timings import LoopTimings, combine_epochs
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window_rules import FixedSteps

_CALIBRATION_STEPS, _CALIBRATION_ROUNDS = 1_000, 5
_MAX_EPOCH_RECORDS = 100
"""The largest number of epochs that a result has a record of: the first ones."""


def loop_metrics(
    timings: LoopTimings,
    data: DataSummary | None,
    rule: str,
    bounds: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """PURE. Rates, waits, the balance of samples, and the starts of epochs.

    MB/s are rates of stored bytes. The quantiles of waits are without the first step of each epoch,
    because its wait is the start of the epoch.

    Args:
        timings: the timings of the steps that count.
        data: the data that were read; None if nothing was read.
        rule: the rate rule, ``steady``, ``epochs`` or ``bounds`` (``iobench.trials.window_rules``).
        bounds: the lower and the upper bound of the rate if they do not agree. In this case there
            is no single rate.
    """
    epoch_starts_s = float(timings.epoch_starts_s.sum())
    metrics: dict[str, Any] = {
        "rate_rule": rule,
        "samples": timings.samples,
        "seconds": timings.seconds,
        "batches": len(timings.wait_s),
        "left_out": timings.left_out_steps,
        "time_to_first_batch_s": timings.time_to_first_batch_s,
        "epoch_start_share": _share(epoch_starts_s, timings.seconds),
    }
    if bounds is None:
        metrics["samples_per_s"] = timings.samples_per_s
    else:
        metrics["samples_per_s_low"], metrics["samples_per_s_high"] = bounds
    if len(timings.epoch_first_steps) > 1:
        metrics["epoch_start_s"] = float(timings.epoch_starts_s[1:].mean())
    if timings.arrived_samples is not None:
        metrics["fetched_samples"] = timings.arrived_samples
        metrics["fetched_bytes"] = timings.arrived_bytes
        metrics["balance"] = timings.balance
    if timings.dropped_samples:
        metrics["dropped_samples"] = timings.dropped_samples
    if data is not None:
        if bounds is None:
            metrics["mb_per_s"] = timings.samples_per_s * data.sample_bytes / 1e6
        if data.object_bytes is not None:
            metrics["objects"] = data.objects
            metrics["mean_object_bytes"] = data.object_bytes
    later_waits_s = timings.wait_s[timings.later_steps]
    metrics.update(_named_quantiles("batch_wait_s", later_waits_s))
    return metrics


def _named_quantiles(prefix: str, values: Any) -> dict[str, float]:
    return {f"{prefix}_{name}": value for name, value in quantiles(values).items()}


def _share(part: float, total: float) -> float:
    return part / total if total > 0 else 0.0


def loop_outcome(
    epochs: Sequence[LoopTimings],
    trial: TrainingTrial,
    clock: Clock,
    more_metrics: Mapping[str, Any],
    *,
    rule: str,
    bounds: tuple[float, float] | None = None,
    data: DataSummary | None = None,
    cold: Cold | None = None,
    spans: Sequence[Span] = (),
) -> Outcome:
    """Metrics and series of a training loop.

    In the series, ``time_s`` of a step is the moment of its end, counted from the request for the
    first epoch. If there are several epochs, each step also has the number of its epoch, and the
    times between epochs are pauses.

    Args:
        epochs: the timings of the epochs that count.
        trial: the parameters of the trial.
        clock: the clock of the loop.
        more_metrics: further metrics, of the device and the loader.
        rule: the rate rule.
        bounds: the lower and the upper bound of the rate if they do not agree. In this case there
            is no single rate.
        data: the data that were read; None if nothing was read.
        cold: the verdict on the page cache.
        spans: spans for a trace.
    """
    timings = combine_epochs(epochs)
    metrics = loop_metrics(timings, data, rule, bounds)
    metrics.update(_named_quantiles("step_s", timings.step_s[timings.later_steps]))
    metrics.update(harness_metrics(trial.loader, trial.consumer, clock, timings))
    metrics["steps"] = len(timings.step_s)
    metrics["wait_share"] = _share(float(timings.wait_s.sum()), timings.seconds)
    metrics["au_mlperf"] = timings.au_mlperf
    metrics.update(more_metrics)
    step_ends_s, epoch_numbers, epoch_bounds_s = [], [], []
    for number, epoch in enumerate(epochs):
        begun_s = epoch.begun_s - timings.requested_s
        step_ends_s.append(begun_s + np.cumsum(epoch.step_s))
        epoch_numbers.append(np.full(len(epoch.step_s), number))
        epoch_bounds_s += [begun_s, begun_s + epoch.seconds]
    series: dict[str, Sequence[float]] = {
        "step_end_s": np.cumsum(timings.step_s).tolist(),
        "wait_s": timings.wait_s.tolist(),
        "compute_s": timings.compute_s.tolist(),
        "time_s": np.concatenate(step_ends_s).tolist(),
    }
    if len(epochs) > 1:
        series["epoch"] = np.concatenate(epoch_numbers).tolist()
    # Begins and ends of epochs alternate, so every second pair is a time between two epochs.
    pauses = tuple(pairwise(epoch_bounds_s))[1::2]
    return Outcome(
        metrics,
        cold,
        series,
        origin_s=timings.requested_s,
        counted_s=(epoch_bounds_s[0], epoch_bounds_s[-1]),
        pauses=pauses,
        spans=spans,
    )


def harness_metrics(
    loader: str, consumer: str, clock: Clock, timings: LoopTimings
) -> dict[str, Any]:
    """The cost of timing a step, and its share of the time of all steps.

    If the loader and the consumer do nothing, the share is left out: timing is then the whole work.
    """
    cost_s = step_cost_s(clock)
    metrics = {"harness_step_s": cost_s}
    does_nothing = not capabilities_of(loader).reads_data and consumer == "null"
    if not does_nothing and timings.seconds > 0:
        metrics["harness_share"] = cost_s * len(timings.step_s) / timings.seconds
    return metrics


def step_cost_s(clock: Clock) -> float:
    """The seconds that ``run_epoch`` itself takes for a step.

    They are measured with a loader and a consumer that do nothing. The result is an upper bound,
    since it includes the calls of the loader and of the consumer. It is the median of a few rounds,
    so that one interruption has no effect. The measurement takes a few milliseconds.
    """
    batches = partial(repeat, placeholder(1), _CALIBRATION_STEPS)
    costs_s = []
    for _ in range(_CALIBRATION_ROUNDS):
        consumer = NullConsumer(ConsumerSettings(), clock)
        rule = FixedSteps(1, _CALIBRATION_STEPS - 1, batch_size=1)
        timings = run_epoch(batches, consumer, clock, rule, progress=lambda _: clock.now_s())
        assert timings.window is not None  # noqa: S101  there are enough batches
        costs_s.append(timings.window.seconds / timings.window.steps)
    return median(costs_s)


def first_batch_metrics(loader: Loader, time_to_first_batch_s: float) -> dict[str, float]:
    """The parts of the time to the first batch that the loader reports, and the rest.

    The names are ``first_batch_listing_s`` and so on, and ``first_batch_rest_s`` for the rest. The
    result is empty if the loader reports no part.
    """
    parts_s: dict[str, float] = {}
    first_batch = loader.first_batch() if isinstance(loader, SplitsFirstBatch) else None
    if first_batch is not None:
        reported_s = first_batch._asdict()
        parts_s = {name: seconds for name, seconds in reported_s.items() if seconds is not None}
    if parts_s:
        parts_s["rest_s"] = max(0.0, time_to_first_batch_s - sum(parts_s.values()))
    return {f"first_batch_{name}": seconds for name, seconds in parts_s.items()}


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """An epoch as a result saves it.

    Attributes:
        number: the number of the epoch, from 0.
        samples: all samples that the loop took.
        seconds: the time from the request for the epoch to the end of its last step.
        time_to_first_batch_s: the time from the request to the first batch.
        cold: the verdict on the page cache; None if nothing was read.
    """

    number: int
    samples: int
    seconds: float
    time_to_first_batch_s: float
    cold: Cold | None

    def as_json(self) -> dict[str, Any]:
        """The record as JSON values."""
        content: dict[str, Any] = {
            "number": self.number,
            "samples": self.samples,
            "seconds": self.seconds,
            "samples_per_s": self.samples / self.seconds if self.seconds > 0 else 0.0,
            "time_to_first_batch_s": self.time_to_first_batch_s,
        }
        cold = self.cold
        if cold is not None:
            content["asked"] = cold.asked
            content["resident_before"] = cold.resident_before
            content["physical_ratio"] = cold.physical_ratio
            content["label"] = cold.label
            content["why"] = cold.why
            if cold.amplification is not None:
                content["amplification"] = cold.amplification
        return content


def epoch_records(
    epochs: Sequence[EpochTimings], verdicts: Sequence[Cold | None]
) -> list[dict[str, Any]]:
    """PURE. The saved records of the first hundred epochs that were read, as JSON values.

    Args:
        epochs: the epochs, in order.
        verdicts: the verdict on the page cache in each epoch; shorter if later epochs were not
            judged.
    """
    records = []
    for number, epoch in enumerate(epochs[:_MAX_EPOCH_RECORDS]):
        record = EpochRecord(
            number,
            epoch.all_steps.samples,
            epoch.all_steps.seconds,
            epoch.time_to_first_batch_s,
            verdicts[number] if number < len(verdicts) else None,
        )
        records.append(record.as_json())
    return records
