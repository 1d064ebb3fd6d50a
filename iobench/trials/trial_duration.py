"""PURE. How long a trial will take, estimated before the run.

A trial of a loader or of a training loop ends when its rate is known
(``iobench.trials.window_rules``), so its duration depends on the rate itself. The estimate is a
range, from these assumptions:

- The minimum is the time for the smallest number of samples that the rate rule needs, at the
  highest assumed rate. Only the rates of emulated devices and of the loader ``mock`` are known. For
  other trials, the highest rate is infinite, so that these samples take no time. A trial of a
  loader takes its ``seconds`` at least.
- The maximum is the time for the largest number of samples that the rate rule can need, at the
  lowest assumed rate. It is ``SLOWEST_SAMPLES_PER_S``, or the rate of an emulated device if that is
  lower. Nothing is assumed about the rate of a real device, so the maximum is ``trial_timeout_s``.
- If an earlier run has measured the rate, the measured rate replaces both assumed rates.
- Every trial takes some seconds to start. The time to make data and to fill the page cache is not
  included.
- An epoch has all samples of the data. In fact, a warm trial reads only a part of data that do not
  fit into memory.

The duration of other trials is their ``seconds`` and the time to start.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TypedDict

from dataprep.message_text import counted
from iobench.consumers.accelerators import RATES
from iobench.data.data_summary import DataSummary
from iobench.loaders.access import DIRECT
from iobench.loaders.capabilities import capabilities_of
from iobench.loaders.protocol import ReadPattern
from iobench.results.numbers import rough_duration
from iobench.results.trial import GIVE_UP_SHARE, TrialSpec
from iobench.results.wording import params_words
from iobench.trials.ladder import PRELOADED_RUNGS
from iobench.trials.loader_grid import LoaderTrial, LoopTrial
from iobench.trials.rate_plan import needs_whole_epochs, plan_rank_steps
from iobench.trials.samples_in_flight import SampleFlow, sample_flow
from iobench.trials.training_settings import TrainingTrial
from iobench.trials.window import MAX_EXTRA_ROUNDS, MIN_EPOCHS, MIN_ROUNDS
from iobench.trials.window_rules import RateRule, choose_rule

SLOWEST_SAMPLES_PER_S = 100.0
"""The lowest rate that is assumed for a loader: one processor that decodes large photographs."""

_DURATION_PARAMS = frozenset({"seconds", "steps", "epochs", "evict"})
"""Parameters of a trial that change its duration. They are assumed not to change its rate."""

_START_S = {
    "disk": 0.5,
    "layout": 1.0,
    "object": 1.0,
    "null": 0.5,
    "mock": 0.5,
    "raw": 1.0,
    "tf-data": 5.0,
    "mxnet-record": 4.0,
}
"""Rough seconds to start a trial, by its loader, or by its kind if it has no loader."""

_OTHER_START_S = 3.0
"""Rough seconds to start any other trial, such as a trial of a loader of torch."""


class DurationContent(TypedDict):
    """The estimated duration of a trial as JSON values, for the forecast of a run.

    Attributes:
        least_s, likely_s, most_s: ``min_s``, ``likely_s`` and ``max_s`` of ``TrialDuration``.
        rate_rule: the rule with which the trial begins; None if it measures no loop.
    """

    least_s: float
    likely_s: float | None
    most_s: float
    rate_rule: RateRule | None


@dataclass(frozen=True, slots=True)
class TrialDuration:
    """The estimated duration of a trial. No time is longer than ``trial_timeout_s``.

    Attributes:
        min_s: the shortest time in seconds.
        likely_s: the likely time in seconds: the middle of the range if the rate was measured,
            otherwise the shortest time. None if neither a rate nor ``seconds`` are known.
        max_s: the time in seconds at the lowest assumed rate; ``trial_timeout_s`` if no rate can be
            assumed.
        rate_rule: the rule with which the trial begins; None if it measures no loop.
        problem: the reason why the trial will fail, and what to set; empty if no reason is known.
    """

    min_s: float
    likely_s: float | None
    max_s: float
    rate_rule: RateRule | None = None
    problem: str = ""

    def content(self) -> DurationContent:
        """The times and the rule, as JSON values."""
        return {
            "least_s": self.min_s,
            "likely_s": self.likely_s,
            "most_s": self.max_s,
            "rate_rule": self.rate_rule,
        }


@dataclass(frozen=True, slots=True)
class _SampleNeed:
    """The samples that a trial needs, in one process or in all its processes together.

    Attributes:
        rule: the rate rule with which the trial begins.
        rule_samples: the smallest number of samples that the rate rule itself needs.
        min_samples: the smallest number of samples that the trial needs. Except with the rule
            ``bounds``, it includes the minimum steps of the config.
        max_samples: the largest number of samples that the trial can need.
        overrun_samples: the largest number of samples that a trial reads after its ``seconds``.
        description: what ``rule_samples`` are, for a message.
        remedy: a change of the config that makes ``rule_samples`` smaller, for a message.
        give_up_share: the share of ``trial_timeout_s`` after which the trial ends if
            ``rule_samples`` have not been consumed.
    """

    rule: RateRule
    rule_samples: int
    min_samples: int
    max_samples: int
    overrun_samples: int
    description: str
    remedy: str
    give_up_share: float = GIVE_UP_SHARE

    def in_processes(self, processes: int) -> _SampleNeed:
        """The need of several processes that each read as many samples as this one."""
        description = self.description
        if processes > 1:
            description += f" in each of {processes} processes"
        return replace(
            self,
            rule_samples=self.rule_samples * processes,
            min_samples=self.min_samples * processes,
            max_samples=self.max_samples * processes,
            overrun_samples=self.overrun_samples * processes,
            description=description,
        )


@dataclass(frozen=True, slots=True)
class _RateRange:
    """The highest and the lowest assumed rate of a trial, or of a stage in it.

    Attributes:
        fastest: the highest rate in samples/s; infinite if nothing is known.
        slowest: the lowest rate in samples/s; 0 if nothing is known.
    """

    fastest: float
    slowest: float

    def limited_by(self, other: _RateRange) -> _RateRange:
        """The rates of two stages in a row: the slower stage limits both."""
        return _RateRange(min(self.fastest, other.fastest), min(self.slowest, other.slowest))


_UNKNOWN_DEVICE = _RateRange(math.inf, 0.0)
_UNKNOWN_LOADER = _RateRange(math.inf, SLOWEST_SAMPLES_PER_S)
_NO_LIMIT = _RateRange(math.inf, math.inf)
"""The rate of a loader or a consumer that does no work, so that its samples take no time."""


def rate_key(spec: TrialSpec) -> str:
    """A text that is equal for trials that differ only in ``_DURATION_PARAMS`` and repeats."""
    params = {key: value for key, value in spec.params.items() if key not in _DURATION_PARAMS}
    return json.dumps([spec.kind, params], sort_keys=True, default=str)


def estimate_duration(
    spec: TrialSpec,
    data: DataSummary | None,
    timeout_s: float,
    measured_per_s: float | None = None,
) -> TrialDuration:
    """Estimate the duration of a trial.

    Args:
        spec: the trial.
        data: the size of the data that the trial reads, or that limit its number of samples; None
            if it has no data.
        timeout_s: ``trial_timeout_s`` of the config, in seconds.
        measured_per_s: the measured samples/s of trials with the same ``rate_key``; None if no rate
            was measured.
    """
    start_s = _START_S.get(spec.params.get("loader", spec.kind), _OTHER_START_S)
    configured_s = 0.0
    if spec.kind == "loader":
        loader_trial = LoaderTrial.model_validate(spec.params)
        need = _need_of_loader(loader_trial, data)
        rates = _rates_of_loader(loader_trial, loader_trial.processes)
        if not loader_trial.epochs:
            configured_s = loader_trial.seconds or 0.0
    elif spec.kind == "train":
        training_trial = TrainingTrial.model_validate(spec.params)
        need = _need_of_training(training_trial, data)
        rates = _rates_of_training(training_trial)
    else:
        probe_s = min(float(spec.params.get("seconds", 0.0)) + start_s, timeout_s)
        return TrialDuration(probe_s, probe_s, probe_s)
    if measured_per_s is not None:
        rates = _RateRange(measured_per_s, measured_per_s)
    min_loop_s = max(configured_s, need.min_samples / rates.fastest)
    max_loop_s = _max_loop_s(need, rates, configured_s)
    min_s = min(start_s + min_loop_s, timeout_s)
    max_s = min(start_s + max_loop_s + _max_preloading_s(spec, data), timeout_s)
    likely_s: float | None = min_s
    if measured_per_s is not None:
        likely_s = (min_s + max_s) / 2
    elif not configured_s and math.isinf(rates.fastest):
        likely_s = None
    problem = _too_few_images(spec, data)
    if not problem:
        problem = _too_slow(spec, need, rates.fastest, timeout_s)
    return TrialDuration(min_s, likely_s, max_s, need.rule, problem)


def _max_loop_s(need: _SampleNeed, rates: _RateRange, configured_s: float) -> float:
    """The longest time of the loop in seconds; infinite if the lowest assumed rate is 0.

    It is the time to read the largest number of samples that the rate rule can need. If the
    configured time is longer, the loop goes on to the end of this time, and then to the end of an
    epoch or of some more rounds.

    Args:
        need: the samples that the trial needs.
        rates: the assumed rates of the loop.
        configured_s: the minimum time in the config, in seconds; 0 if there is none.
    """
    if rates.slowest <= 0:
        return math.inf
    max_s = need.max_samples / rates.slowest
    if max_s > configured_s:
        return max_s
    return configured_s + need.overrun_samples / rates.slowest


def _max_preloading_s(spec: TrialSpec, data: DataSummary | None) -> float:
    """The longest time to read all samples before the loop, into memory or to a local folder.

    The rate is assumed to be ``SLOWEST_SAMPLES_PER_S``. The time is 0 if the trial does not read
    its samples before the loop.
    """
    into_memory = spec.params.get("input") in PRELOADED_RUNGS
    to_folder = spec.params.get("access") == "file"
    if data is None or not (into_memory or to_folder):
        return 0.0
    return data.samples / SLOWEST_SAMPLES_PER_S


def _too_few_images(spec: TrialSpec, data: DataSummary | None) -> str:
    """The reason why a training loop cannot take a step; empty if no reason is known."""
    if spec.kind != "train" or data is None:
        return ""
    trial = TrainingTrial.model_validate(spec.params)
    ranks = _known_ranks(trial)
    if data.samples // ranks >= trial.batch_size:
        return ""
    return (
        f"{params_words(spec.kind, spec.params)}: {data.samples:,} images among "
        f"{counted(ranks, 'rank')} have no full batch of {trial.batch_size} for each: use more "
        "images or a smaller batch_size"
    )


def _too_slow(spec: TrialSpec, need: _SampleNeed, fastest_per_s: float, timeout_s: float) -> str:
    """The reason why a trial cannot end in time at its fastest rate; empty if it can.

    Args:
        spec: the trial.
        need: the samples that the trial needs.
        fastest_per_s: the highest assumed rate in samples/s.
        timeout_s: ``trial_timeout_s`` of the config, in seconds.
    """
    needed_s = need.rule_samples / fastest_per_s
    limit_s = need.give_up_share * timeout_s
    if needed_s <= limit_s:
        return ""
    return (
        f"{params_words(spec.kind, spec.params)}: {need.description} take at least "
        f"{rough_duration(needed_s)} at {fastest_per_s:,.0f} samples/s, but the trial ends after "
        f"{rough_duration(limit_s)}: set trial_timeout_s to "
        f"{math.ceil(needed_s / need.give_up_share):,} or more, or {need.remedy}"
    )


def _rates_of_loader(trial: LoopTrial, processes: int) -> _RateRange:
    """The rates of a loader in all its processes together."""
    if trial.loader == "mock" and trial.item_s:
        # Each worker of ``mock`` waits ``item_s`` for each sample.
        rate = max(1, trial.workers) / trial.item_s * processes
        return _RateRange(rate, rate)
    return _NO_LIMIT if trial.loader in ("null", "mock") else _UNKNOWN_LOADER


def _rates_of_training(trial: TrainingTrial) -> _RateRange:
    """The rates of a training loop on all its devices together."""
    ranks = _known_ranks(trial)
    preset = RATES.get(trial.preset or "")
    images_per_s = preset.samples_per_s if preset is not None else trial.images_per_s
    device_rates = _NO_LIMIT if trial.consumer == "null" else _UNKNOWN_DEVICE
    if images_per_s is not None:
        device_rates = _RateRange(images_per_s * ranks, images_per_s * ranks)
    if trial.input in ("synthetic", "copy"):
        return device_rates  # The loader gives no batches.
    return _rates_of_loader(trial, ranks).limited_by(device_rates)


def _known_ranks(trial: TrainingTrial) -> int:
    """The number of ranks; 1 if one process trains, or if it is unknown (``devices: all``)."""
    if trial.accelerators is not None:
        return trial.accelerators
    return trial.devices if isinstance(trial.devices, int) else 1


def _flow(trial: LoopTrial, data: DataSummary | None) -> tuple[SampleFlow, bool]:
    """The flow of samples through a loader, and whether the loader counts its reads.

    Only the batches of a loader that does not count its reads are known, not its read windows.

    Args:
        trial: the parameters of the trial.
        data: the size of the data; None if nothing is read.
    """
    # ``object_samples`` is the mean number of samples in a shard or file, rounded up.
    sample_bytes, object_samples = 1.0, 1
    if data is not None:
        sample_bytes = max(1.0, data.sample_bytes)
        object_samples = math.ceil(data.samples / max(1, data.objects))
    pattern = ReadPattern(max(1, trial.workers))
    compute_pattern = capabilities_of(trial.loader).read_pattern
    counts_reads = compute_pattern is not None
    if compute_pattern is not None:
        pattern = compute_pattern(trial, sample_bytes, object_samples)
    flow = sample_flow(
        pattern, batch_size=trial.batch_size, workers=trial.workers, prefetch=trial.prefetch
    )
    return flow, counts_reads


def _need_of_loader(trial: LoaderTrial, data: DataSummary | None) -> _SampleNeed:
    """The need of a trial of a loader, in all its processes together."""
    epoch_samples = data.samples // trial.processes if data is not None else None
    need = _need_of_process(
        trial,
        data,
        epoch_samples,
        epochs=max(MIN_EPOCHS, trial.epochs or 1),
        by_epochs=trial.epochs is not None or trial.access != DIRECT,
    )
    return need.in_processes(trial.processes)


def _need_of_training(trial: TrainingTrial, data: DataSummary | None) -> _SampleNeed:
    """The need of a training loop, on all its devices together.

    A loop with ``devices: all`` is treated as a loop on one device.
    """
    ranks = _known_ranks(trial)
    if trial.input in ("synthetic", "copy"):
        steps = trial.steps + 1  # The first step does not count.
        return _need_of_fixed_steps(1, steps, trial.batch_size).in_processes(ranks)
    epoch_samples = data.samples // ranks if data is not None else None
    if trial.accelerators is not None or ranks > 1:
        flow, _ = _flow(trial, data)
        full_batches: list[int] = []
        if epoch_samples is not None:
            # If there is no full batch, ``_too_few_images`` reports it.
            full_batches = [max(1, epoch_samples // trial.batch_size)] * ranks
        epochs, left_out, steps = plan_rank_steps(trial, flow, full_batches)
        need = _need_of_fixed_steps(epochs, left_out + steps, trial.batch_size)
        return need.in_processes(ranks)
    return _need_of_process(
        trial,
        data,
        epoch_samples,
        epochs=max(MIN_EPOCHS, trial.epochs or 1),
        by_epochs=trial.epochs is not None,
        steps=trial.steps,
    )


def _need_of_fixed_steps(epochs: int, steps: int, batch_size: int) -> _SampleNeed:
    """The need of a process whose number of steps is fixed before it begins.

    Args:
        epochs: the number of epochs.
        steps: the number of all steps in an epoch, also of the steps that do not count.
        batch_size: the number of samples in each step.
    """
    samples = epochs * steps * batch_size
    has_epochs = epochs > 1
    return _SampleNeed(
        "epochs" if has_epochs else "steady",
        rule_samples=samples,
        min_samples=samples,
        max_samples=samples,
        overrun_samples=0,
        description=f"{counted(epochs * steps, 'step')} of {batch_size:,} samples",
        remedy="use fewer images" if has_epochs else "set fewer steps",
        # With fixed steps a trial does not give up by itself. It is ended after its time limit.
        give_up_share=1.0,
    )


def _need_of_process(
    trial: LoopTrial,
    data: DataSummary | None,
    epoch_samples: int | None,
    *,
    epochs: int,
    by_epochs: bool,
    steps: int = 1,
) -> _SampleNeed:
    """The need of one process, whose trial ends when its rate is known.

    Args:
        trial: the parameters of the trial.
        data: the size of the data; None if nothing is read.
        epoch_samples: the number of samples that the process reads in an epoch; None if epochs have
            no end.
        epochs: the smallest number of epochs, if whole epochs count.
        by_epochs: whether the config requires whole epochs (``needs_whole_epochs``).
        steps: the smallest number of steps that count.
    """
    flow, counts_reads = _flow(trial, data)
    rule = choose_rule(
        flow,
        counts_reads=counts_reads,
        epoch_samples=epoch_samples,
        by_epochs=needs_whole_epochs(trial, by_epochs=by_epochs),
    )
    if rule == "steady" or epoch_samples is None:
        return _need_of_rounds(rule, flow, epoch_samples, min_samples=steps * trial.batch_size)
    # The first step of an epoch is not one of the steps that the config requires (``Minimum``).
    later_steps = max(1, epoch_samples // trial.batch_size - 1)
    needed_epochs = max(epochs, math.ceil(steps / later_steps))
    max_samples = needed_epochs * epoch_samples
    rule_samples, min_samples = epochs * epoch_samples, max_samples
    if rule == "bounds":
        # The trial may end within the first epoch. If both bounds do not agree by its end, whole
        # epochs count. The minimum leaves out the steps of the config, so it may be too low.
        rule_samples, min_samples = 0, min(MIN_ROUNDS * flow.round_samples, max_samples)
    return _SampleNeed(
        rule,
        rule_samples=rule_samples,
        min_samples=min_samples,
        max_samples=max_samples,
        overrun_samples=epoch_samples,
        description=f"{epochs} whole epochs of {epoch_samples:,} samples",
        remedy="use fewer images",
    )


def _need_of_rounds(
    rule: RateRule, flow: SampleFlow, epoch_samples: int | None, *, min_samples: int
) -> _SampleNeed:
    """The need of a process in which rounds count, not whole epochs.

    Args:
        rule: the rate rule with which the trial begins.
        flow: how samples flow through the loader.
        epoch_samples: the number of samples that the process reads in an epoch; None if epochs have
            no end.
        min_samples: the smallest number of samples that the minimum steps of the config need.
    """
    rounds_samples = MIN_ROUNDS * flow.round_samples
    counted_samples = max(rounds_samples, min_samples)
    extra_samples = MAX_EXTRA_ROUNDS * flow.round_samples
    epochs = 1
    if epoch_samples is not None:
        # Each epoch begins and ends with samples in flight, which do not count.
        counted_in_epoch = epoch_samples - 2 * flow.max_in_flight
        epochs = math.ceil(counted_samples / counted_in_epoch)
    uncounted_samples = 2 * epochs * flow.max_in_flight
    return _SampleNeed(
        rule,
        rule_samples=rounds_samples,
        min_samples=counted_samples,
        max_samples=counted_samples + uncounted_samples + extra_samples,
        overrun_samples=extra_samples,
        description=f"{MIN_ROUNDS} rounds of {flow.round_samples:,} samples",
        remedy="use fewer workers or smaller batches",
    )
