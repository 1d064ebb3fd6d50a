"""PURE. How long loaders and training loops will run, before they are made.

A trial ends when its rate is known (``iobench.loops.counted``), so its length depends on the rate
itself. A range is calculated from these assumptions:

- The least time is that of the fewest samples that the rule needs, at the rate of the device.
  A loader alone has no such limit: its least time is ``seconds``.
- The most time is that of the most samples that the rule can need, at
  ``SLOWEST_SAMPLES_PER_S``, or at the rate of the device if that is lower. Nothing is assumed
  about the rate of a real device: its trials take ``trial_timeout_s`` at most.
- A rate that an earlier run measured takes the place of both.
- Every trial has a start of ``start_s``. Data are not made, and the page cache is not filled.
  All samples are read, also where a warm trial reads a part that fits into memory.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from dataprep.counted import counted
from iobench.access import DIRECT
from iobench.consumers.accelerators import RATES
from iobench.ladder import HELD_RUNGS
from iobench.loaders.patterns import pattern_of
from iobench.loaders.protocol import ReadPattern
from iobench.loops.counted import (
    LEAST_EPOCHS,
    LEAST_ROUNDS,
    ROUNDS_TO_WAIT,
    Flow,
    Rule,
    flow_of,
    rule_of,
)
from iobench.loops.loader_grid import LoaderTrial, LoopTrial
from iobench.loops.opening import steps_of_ranks
from iobench.loops.training_plan import TrainingTrial
from iobench.numbers import rough_duration
from iobench.stored import Stored
from iobench.trial import GIVE_UP_SHARE, TrialSpec
from iobench.words import params_words

SLOWEST_SAMPLES_PER_S = 100.0
"""The lowest rate that is assumed of a loader: one processor that decodes large photographs."""

_LENGTHS = frozenset({"seconds", "steps", "epochs", "evict"})

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
"""By the loader, or by the kind of a trial without one."""

_OTHER_START_S = 3.0


@dataclass(frozen=True, slots=True)
class Length:
    """About how long a trial takes, in seconds; never more than ``trial_timeout_s``.

    Attributes:
        least_s: the least time.
        likely_s: the likely time; None if the rate is not known.
        most_s: the time at the slowest rate that is assumed; ``trial_timeout_s`` if nothing can be
            assumed.
        rate_rule: the rule that the trial begins with; None if it measures no loop.
        problem: the reason why the trial will fail, and what to set; empty if none is known.
    """

    least_s: float
    likely_s: float | None
    most_s: float
    rate_rule: Rule | None = None
    problem: str = ""

    def content(self) -> dict[str, Any]:
        """The times and the rule, as JSON values."""
        return {
            "least_s": self.least_s,
            "likely_s": self.likely_s,
            "most_s": self.most_s,
            "rate_rule": self.rate_rule,
        }


@dataclass(frozen=True, slots=True)
class _Need:
    """The samples that a trial reads, those of all its processes together.

    Attributes:
        rule: the rule that the trial begins with.
        rule_samples: what the rule itself needs at least.
        least, most: samples of the whole trial.
        more: samples by which a trial can exceed its ``seconds``.
        described: ``rule_samples`` in words.
        remedy: what makes ``rule_samples`` smaller.
        give_up_share: share of ``trial_timeout_s`` within which ``rule_samples`` must be read.
    """

    rule: Rule
    rule_samples: int
    least: int
    most: int
    more: int
    described: str
    remedy: str
    give_up_share: float = GIVE_UP_SHARE

    def times(self, processes: int) -> _Need:
        """The need of several processes that each read as much."""
        return _Need(
            self.rule,
            self.rule_samples * processes,
            self.least * processes,
            self.most * processes,
            self.more * processes,
            self.described + (f" in each of {processes} processes" if processes > 1 else ""),
            self.remedy,
            self.give_up_share,
        )


@dataclass(frozen=True, slots=True)
class _Rates:
    """Samples/s of a trial: ``best`` is infinite and ``slowest`` is 0 where nothing is known."""

    best: float
    slowest: float

    def and_then(self, later: _Rates) -> _Rates:
        """The rates of two stages in a row."""
        return _Rates(min(self.best, later.best), min(self.slowest, later.slowest))


_UNKNOWN_DEVICE = _Rates(math.inf, 0.0)
_UNKNOWN_LOADER = _Rates(math.inf, SLOWEST_SAMPLES_PER_S)
_NO_LIMIT = _Rates(math.inf, math.inf)


def rate_key(spec: TrialSpec) -> str:
    """The same for trials that differ only in their lengths and repeats."""
    params = {key: value for key, value in spec.params.items() if key not in _LENGTHS}
    return json.dumps([spec.kind, params], sort_keys=True, default=str)


def length_of(
    spec: TrialSpec, data: Stored | None, timeout_s: float, measured_per_s: float | None = None
) -> Length:
    """The length of a trial.

    Args:
        spec: the trial.
        data: the data that it reads, or whose number of samples limits it; None if there are none.
        timeout_s: ``trial_timeout_s``.
        measured_per_s: samples/s of an equal trial of another length; None if there is none.
    """
    start_s = _START_S.get(spec.params.get("loader", spec.kind), _OTHER_START_S)
    if spec.kind == "loader":
        loader = LoaderTrial.model_validate(spec.params)
        need, rates = _need_of_loader(loader, data), _rates_of_loader(loader, loader.processes)
        least_s = 0.0 if loader.epochs else loader.seconds or 0.0
    elif spec.kind == "train":
        loop = TrainingTrial.model_validate(spec.params)
        need, rates, least_s = _need_of_loop(loop, data), _rates_of_loop(loop), 0.0
    else:
        probe_s = min(float(spec.params.get("seconds", 0.0)) + start_s, timeout_s)
        return Length(probe_s, probe_s, probe_s)
    if measured_per_s is not None:
        rates = _Rates(measured_per_s, measured_per_s)
    shortest_s = start_s + max(least_s, need.least / rates.best)
    longest_s = start_s + _most_s(need, rates, least_s) + _before_s(spec, data)
    shortest_s, longest_s = min(shortest_s, timeout_s), min(longest_s, timeout_s)
    likely_s: float | None = shortest_s
    if measured_per_s is not None:
        likely_s = (shortest_s + longest_s) / 2
    elif not least_s and math.isinf(rates.best):
        likely_s = None
    return Length(
        shortest_s,
        likely_s,
        longest_s,
        need.rule,
        _too_few(spec, data) or _too_slow(spec, need, rates.best, timeout_s),
    )


def _most_s(need: _Need, rates: _Rates, least_s: float) -> float:
    """The time for the most samples, which can exceed the least time by an epoch or some rounds."""
    if rates.slowest <= 0:
        return math.inf
    most_s = need.most / rates.slowest
    return most_s if most_s > least_s else least_s + need.more / rates.slowest


def _before_s(spec: TrialSpec, data: Stored | None) -> float:
    """The time to read all samples once before the loop: into memory, or to a local folder."""
    is_read = spec.params.get("input") in HELD_RUNGS or spec.params.get("access") == "file"
    if data is None or not is_read:
        return 0.0
    return data.samples / SLOWEST_SAMPLES_PER_S


def _too_few(spec: TrialSpec, data: Stored | None) -> str:
    """The reason why a training loop has no step; empty if it has."""
    if spec.kind != "train" or data is None:
        return ""
    trial = TrainingTrial.model_validate(spec.params)
    ranks = _ranks(trial)
    if data.samples // ranks >= trial.batch_size:
        return ""
    return (
        f"{params_words(spec.kind, spec.params)}: {data.samples:,} images among "
        f"{counted(ranks, 'rank')} have no whole batch of {trial.batch_size} for each: give more "
        "images or a smaller batch_size"
    )


def _too_slow(spec: TrialSpec, need: _Need, best_per_s: float, timeout_s: float) -> str:
    """The reason why a trial cannot end in time at its best rate; empty if it can."""
    needed_s, limit_s = need.rule_samples / best_per_s, need.give_up_share * timeout_s
    if needed_s <= limit_s:
        return ""
    return (
        f"{params_words(spec.kind, spec.params)}: {need.described} take at least "
        f"{rough_duration(needed_s)} at {best_per_s:,.0f} samples/s, but the trial ends after "
        f"{rough_duration(limit_s)}: set trial_timeout_s to "
        f"{math.ceil(needed_s / need.give_up_share):,} or more, or {need.remedy}"
    )


def _rates_of_loader(trial: LoopTrial, processes: int) -> _Rates:
    if trial.loader == "mock" and trial.item_s:
        rate = max(1, trial.workers) / trial.item_s * processes
        return _Rates(rate, rate)
    return _NO_LIMIT if trial.loader in ("null", "mock") else _UNKNOWN_LOADER


def _rates_of_loop(trial: TrainingTrial) -> _Rates:
    ranks = _ranks(trial)
    preset = RATES.get(trial.preset or "")
    images_per_s = preset.samples_per_s if preset is not None else trial.images_per_s
    device = _NO_LIMIT if trial.consumer == "null" else _UNKNOWN_DEVICE
    if images_per_s is not None:
        device = _Rates(images_per_s * ranks, images_per_s * ranks)
    if trial.input in ("synthetic", "copy"):
        return device
    return _rates_of_loader(trial, ranks).and_then(device)


def _ranks(trial: TrainingTrial) -> int:
    """Processes that train together; 1 where only the machine knows their number."""
    if trial.accelerators is not None:
        return trial.accelerators
    return trial.devices if isinstance(trial.devices, int) else 1


def _flow(trial: LoopTrial, data: Stored | None) -> tuple[Flow, bool]:
    """The flow through the loader, and whether it counts what arrives."""
    sample_bytes, object_samples = 1.0, 1
    if data is not None:
        sample_bytes = max(1.0, data.sample_bytes)
        object_samples = math.ceil(data.samples / max(1, data.objects))
    pattern = pattern_of(trial.loader, trial, sample_bytes, object_samples)
    flow = flow_of(
        pattern or ReadPattern(max(1, trial.workers)),
        batch_size=trial.batch_size,
        workers=trial.workers,
        prefetch=trial.prefetch,
    )
    return flow, pattern is not None


def _need_of_loader(trial: LoaderTrial, data: Stored | None) -> _Need:
    share = data.samples // trial.processes if data is not None else None
    by_epochs = trial.epochs is not None or trial.access != DIRECT
    epochs = max(LEAST_EPOCHS, trial.epochs or 1)
    return _need(trial, data, share, epochs=epochs, by_epochs=by_epochs).times(trial.processes)


def _need_of_loop(trial: TrainingTrial, data: Stored | None) -> _Need:
    ranks = _ranks(trial)
    if trial.input in ("synthetic", "copy"):
        return _fixed(1, trial.steps + 1, trial.batch_size).times(ranks)
    share = data.samples // ranks if data is not None else None
    if trial.accelerators is not None or ranks > 1:
        flow, _ = _flow(trial, data)
        whole = [] if share is None else [max(1, share // trial.batch_size)] * ranks
        epochs, left_out, steps = steps_of_ranks(trial, flow, whole)
        return _fixed(epochs, left_out + steps, trial.batch_size).times(ranks)
    epochs = max(LEAST_EPOCHS, trial.epochs or 1)
    by_epochs = trial.epochs is not None
    return _need(trial, data, share, epochs=epochs, by_epochs=by_epochs, steps=trial.steps)


def _fixed(epochs: int, steps: int, batch_size: int) -> _Need:
    """A number of steps that is known beforehand."""
    samples = epochs * steps * batch_size
    described = f"{counted(epochs * steps, 'step')} of {batch_size:,} samples"
    rule: Rule = "epochs" if epochs > 1 else "steady"
    remedy = "take fewer steps"
    if epochs > 1:
        remedy = "take fewer images"
    return _Need(rule, samples, samples, samples, 0, described, remedy, give_up_share=1.0)


def _need(
    trial: LoopTrial,
    data: Stored | None,
    share: int | None,
    *,
    epochs: int,
    by_epochs: bool,
    steps: int = 1,
) -> _Need:
    """The need of one process, which reads ``share`` samples in an epoch."""
    flow, counts_reads = _flow(trial, data)
    by_epochs = by_epochs or trial.access == "file"
    rule = rule_of(flow, counts_reads=counts_reads, epoch_samples=share, by_epochs=by_epochs)
    rounds = LEAST_ROUNDS * flow.round_samples
    if rule != "steady" and share is not None:
        later_steps = max(1, share // trial.batch_size - 1)
        samples = max(epochs, math.ceil(steps / later_steps)) * share
        described = f"{epochs} whole epochs of {share:,} samples"
        if rule == "epochs":
            rule_samples = epochs * share
            return _Need(
                rule, rule_samples, samples, samples, share, described, "take fewer images"
            )
        # If both bounds do not agree within the first epoch, whole epochs count.
        return _Need(rule, 0, min(rounds, samples), samples, share, described, "take fewer images")
    counted_samples = max(rounds, steps * trial.batch_size)
    waiting = ROUNDS_TO_WAIT * flow.round_samples
    windows = 1
    if share is not None:
        # Each epoch begins and ends with samples that do not count.
        windows = math.ceil(counted_samples / (share - 2 * flow.most_in_flight))
    return _Need(
        rule,
        rounds,
        counted_samples,
        counted_samples + 2 * windows * flow.most_in_flight + waiting,
        waiting,
        f"{LEAST_ROUNDS} rounds of {flow.round_samples:,} samples",
        "take fewer workers or smaller batches",
    )
