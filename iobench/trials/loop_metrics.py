"""Metrics and series of a loop from its timings, for trials of loaders and of training loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from iobench.clock import Clock
from iobench.consumers.null import NullConsumer
from iobench.consumers.protocol import ConsumerSettings
from iobench.data.data_summary import DataSummary
from iobench.loaders import Loader, SplitsFirstBatch
from iobench.loaders.capabilities import capabilities_of
from iobench.loaders.null import placeholder
from iobench.results.statistics import median, quantiles
from iobench.results.trial import Cold, Metrics, Outcome, Span
from iobench.trials.epoch_loop import EpochTimings, run_epoch
from iobench.trials.loop_timings import LoopTimings, combine_epochs, ratio
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window_rules import FixedSteps

_CALIBRATION_STEPS, _CALIBRATION_ROUNDS = 1_000, 5
"""``step_cost_s`` takes the median of this many rounds, each with this many steps."""
_MAX_EPOCH_RECORDS = 100
"""A result has records of at most this many epochs, from the first epoch on."""


class _RateMetrics(TypedDict):
    """The metrics of the rate of a loop, over the steps that count.

    Attributes:
        rate_rule: the rate rule, ``steady``, ``epochs`` or ``bounds``
            (``iobench.trials.window_rules``). If loading processes have different rules, their
            names are joined by " and ".
        samples: the number of samples.
        seconds: the duration of the steps that count.
        batches: the number of steps.
        left_out: the number of steps before the steps that count.
        time_to_first_batch_s: the seconds from the request for the first epoch to its first batch.
        epoch_start_share: the starts of epochs, as a share of ``seconds``; for several loading
            processes, the mean of their shares.
        samples_per_s: the rate; left out if only bounds of the rate are known.
        samples_per_s_low, samples_per_s_high: the bounds, if there is no single rate.
        epoch_start_s: the mean duration of the start of an epoch, in seconds. The first epoch of
            each process is left out.
        fetched_samples, fetched_bytes: what arrived from storage, if the loader counts its reads.
        balance: arrived samples / consumed samples, if the loader counts its reads.
        dropped_samples: samples that were read but not consumed (``LoopTimings``), if there are
            any.
        mb_per_s: the rate in MB/s of stored bytes.
        objects: the number of files or shards of the data.
        mean_object_bytes: the mean size of a file or shard.
    """

    rate_rule: str
    samples: int
    seconds: float
    batches: int
    left_out: int
    time_to_first_batch_s: float
    epoch_start_share: float
    samples_per_s: NotRequired[float]
    samples_per_s_low: NotRequired[float]
    samples_per_s_high: NotRequired[float]
    epoch_start_s: NotRequired[float]
    fetched_samples: NotRequired[int]
    fetched_bytes: NotRequired[int | None]
    balance: NotRequired[float | None]
    dropped_samples: NotRequired[int]
    mb_per_s: NotRequired[float]
    objects: NotRequired[int]
    mean_object_bytes: NotRequired[float]


class DeviceMetrics(TypedDict):
    """The metrics of the device that trains, and the notes of a training loop.

    Attributes:
        emulated: whether the device only waits instead of computing.
        device: a description of the device, or of the devices of all ranks.
        precision: the precision of its computations.
        notes: facts that are needed to understand the figures.
    """

    emulated: bool
    device: str
    precision: str
    notes: list[str]


def loop_metrics(
    timings: LoopTimings,
    data: DataSummary | None,
    rule: str,
    bounds: tuple[float, float] | None = None,
) -> Metrics:
    """PURE. The metrics of the rate of a loop (``_RateMetrics``), and quantiles of its waits.

    The quantiles are called ``batch_wait_s_p50`` and so on. They leave out the first step of each
    epoch, because its wait is the start of the epoch.

    Args:
        timings: the timings of the steps that count.
        data: the size of the data that were read; None if nothing was read.
        rule: the value of ``rate_rule`` (``_RateMetrics``).
        bounds: the lower and the upper bound of the rate if they do not agree. In this case there
            is no single rate.
    """
    later_waits_s = timings.wait_s[timings.later_steps]
    return {
        **_rate_metrics(timings, data, rule, bounds),
        **_named_quantiles("batch_wait_s", later_waits_s),
    }


def _rate_metrics(
    timings: LoopTimings,
    data: DataSummary | None,
    rule: str,
    bounds: tuple[float, float] | None,
) -> _RateMetrics:
    epoch_starts_s = float(timings.epoch_starts_s.sum())
    metrics: _RateMetrics = {
        "rate_rule": rule,
        "samples": timings.samples,
        "seconds": timings.seconds,
        "batches": len(timings.wait_s),
        "left_out": timings.left_out_steps,
        "time_to_first_batch_s": timings.time_to_first_batch_s,
        "epoch_start_share": ratio(epoch_starts_s, timings.processes * timings.seconds),
    }
    if bounds is None:
        metrics["samples_per_s"] = timings.samples_per_s
    else:
        metrics["samples_per_s_low"], metrics["samples_per_s_high"] = bounds
    later_epoch_starts_s = timings.later_epoch_starts_s
    if len(later_epoch_starts_s):
        metrics["epoch_start_s"] = float(later_epoch_starts_s.mean())
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
    return metrics


def _named_quantiles(prefix: str, values: NDArray[np.float64]) -> dict[str, float]:
    return {f"{prefix}_{name}": value for name, value in quantiles(values).items()}


def loop_outcome(
    epochs: Sequence[LoopTimings],
    trial: TrainingTrial,
    clock: Clock,
    more_metrics: Metrics,
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
        data: the size of the data that were read; None if nothing was read.
        cold: the verdict on the page cache; None if nothing was read.
        spans: the spans for a trace.
    """
    timings = combine_epochs(epochs)
    later_steps_s = timings.step_s[timings.later_steps]
    metrics = {
        **loop_metrics(timings, data, rule, bounds),
        **_named_quantiles("step_s", later_steps_s),
        **harness_metrics(trial.loader, trial.consumer, clock, timings),
        "steps": len(timings.step_s),
        "wait_share": ratio(float(timings.wait_s.sum()), timings.seconds),
        "au_mlperf": timings.au_mlperf,
        **more_metrics,
    }
    # The begin and the end of each epoch, in seconds after the request for the first epoch.
    begins_s = [epoch.begun_s - timings.requested_s for epoch in epochs]
    ends_s = [begin_s + epoch.seconds for begin_s, epoch in zip(begins_s, epochs, strict=True)]
    return Outcome(
        metrics,
        cold,
        _loop_series(timings, epochs, begins_s),
        origin_s=timings.requested_s,
        counted_s=(begins_s[0], ends_s[-1]),
        pauses=tuple(zip(ends_s[:-1], begins_s[1:], strict=True)),
        spans=spans,
    )


def _loop_series(
    timings: LoopTimings, epochs: Sequence[LoopTimings], begins_s: Sequence[float]
) -> dict[str, Sequence[float]]:
    """The series of a training loop: for each column, a value for each counted step.

    Args:
        timings: the timings of all epochs together.
        epochs: the timings of each epoch.
        begins_s: the begin of each epoch, in seconds after the request for the first epoch.
    """
    step_ends_s, epoch_numbers = [], []
    for number, (epoch, begin_s) in enumerate(zip(epochs, begins_s, strict=True)):
        step_ends_s.append(begin_s + np.cumsum(epoch.step_s))
        epoch_numbers.append(np.full(len(epoch.step_s), number))
    series: dict[str, Sequence[float]] = {
        "step_end_s": np.cumsum(timings.step_s).tolist(),
        "wait_s": timings.wait_s.tolist(),
        "compute_s": timings.compute_s.tolist(),
        "time_s": np.concatenate(step_ends_s).tolist(),
    }
    if len(epochs) > 1:
        series["epoch"] = np.concatenate(epoch_numbers).tolist()
    return series


def harness_metrics(
    loader: str, consumer: str, clock: Clock, timings: LoopTimings
) -> dict[str, float]:
    """The cost of timing a step (``harness_step_s``), and its share of the time of counted steps.

    The share (``harness_share``) is left out if the loader reads no data and the consumer is
    ``null``, because such a loop only measures the harness.
    """
    cost_s = step_cost_s(clock)
    metrics = {"harness_step_s": cost_s}
    measures_harness = not capabilities_of(loader).reads_data and consumer == "null"
    if not measures_harness and timings.seconds > 0:
        steps_of_process = len(timings.step_s) / timings.processes
        metrics["harness_share"] = cost_s * steps_of_process / timings.seconds
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


class EpochContent(TypedDict):
    """An epoch as JSON values, as a result saves it.

    The keys from ``asked`` on are those of ``iobench.results.trial.Cold``. They are left out if
    nothing was read.
    """

    number: int
    samples: int
    seconds: float
    samples_per_s: float
    time_to_first_batch_s: float
    asked: NotRequired[str]
    resident_before: NotRequired[float | None]
    physical_ratio: NotRequired[float | None]
    label: NotRequired[str]
    why: NotRequired[str]
    amplification: NotRequired[float]


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """An epoch of which a result has a record.

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

    def as_json(self) -> EpochContent:
        """The record as JSON values."""
        content: EpochContent = {
            "number": self.number,
            "samples": self.samples,
            "seconds": self.seconds,
            "samples_per_s": ratio(self.samples, self.seconds),
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
) -> list[EpochContent]:
    """PURE. The saved records of the first hundred epochs that were read, as JSON values.

    Args:
        epochs: the epochs, in order.
        verdicts: the verdict on the page cache in each epoch; shorter if later epochs were not
            judged.
    """
    records = []
    for number, epoch in enumerate(epochs[:_MAX_EPOCH_RECORDS]):
        all_steps = epoch.all_steps
        cold = verdicts[number] if number < len(verdicts) else None
        record = EpochRecord(
            number, all_steps.samples, all_steps.seconds, epoch.time_to_first_batch_s, cold
        )
        records.append(record.as_json())
    return records
