"""PURE. Training loops: their rates by input, the loss and its parts, the ladder, and scaling.

The same number of samples takes

- ``T1`` seconds if the samples are in the memory of the device,
- ``T3`` seconds if they come from a warm page cache,
- ``T2`` seconds if they come from the farthest location that was measured: a disk or a store.

The loss is ``(T2 - T1) / T2``. It is the sum of the preparation stall ``(T3 - T1) / T2`` and the
fetch stall ``(T2 - T3) / T2`` (after Mohan et al., "Analyzing and mitigating data stalls in DNN
training", VLDB 2021). Each ratio is taken between trials of one repeat, which ran shortly after
each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iobench.analysis.repeats import (
    Repeats,
    cold_label,
    data_name,
    estimate_as_dict,
    estimate_of,
    median_of,
    metric_values,
    rate_bounds,
    rate_of,
)
from iobench.data.settings import AS_FILES
from iobench.loaders.capabilities import capabilities_of
from iobench.results.badges import badge_with_reason
from iobench.results.statistics import Estimate, estimate
from iobench.results.trial import Params, Trial
from iobench.trials.ladder import (
    PIPELINE_RUNGS,
    RUNGS,
    STAGES,
    START,
    Ladder,
    Rung,
    Seconds,
    first_from_memory,
    ladder,
    with_starts,
)

Source = Literal["warm", "cold", "store"]
"""Where samples are read from: the warm page cache, a disk (with a cold page cache), or a store."""

FARTHEST: tuple[Source, ...] = ("store", "cold", "warm")
"""Inputs that read samples, the farthest location first."""

_WORK_PARAMS = ("image_size", "augment", "normalise", "colour_jitter", "pca_noise")
_START_METRICS = ("time_to_first_batch_s", "epoch_start_s", "epoch_start_share")
_NOT_REQUESTED = "not requested (training.inputs)"
"""The reason for a missing rung that the config does not ask for."""
_THREADS = re.compile(r"\bthreads?\b")


@dataclass(frozen=True, slots=True)
class Loop:
    """One training loop with all its inputs.

    Attributes:
        group: the name of the loop.
        inputs: completed trials by input.
        seconds: seconds for a sample, by rung and repeat. The rungs are the inputs and ``START``.
        farthest: the measured input whose samples come from farthest away. The loop's figures refer
            to it. None if no measured input reads samples.
        ladder: the rungs of the loop, in seconds for a sample.
        not_measured: the reasons why rungs are missing, by rung.
        index: the index of the loop under ``training`` in the config.
    """

    group: str
    inputs: Mapping[str, Repeats]
    seconds: Mapping[str, Seconds]
    farthest: Source | None
    ladder: Ladder
    not_measured: Mapping[str, str]
    index: int

    @property
    def trials(self) -> Repeats:
        """The trials of the farthest input."""
        return self.inputs.get(self.farthest or "", ())

    @property
    def any_trial(self) -> Trial:
        """A trial of the farthest input, or else of any input: it has the loop's settings."""
        trials = self.trials or next(iter(self.inputs.values()))
        return trials[0]

    @property
    def params(self) -> Params:
        """The settings of the loop."""
        return self.any_trial.params

    @property
    def facts(self) -> Mapping[str, Any]:
        """The metrics that describe the loop: device, precision, emulated."""
        return self.any_trial.metrics

    @property
    def emulated(self) -> bool:
        """Whether the device is simulated: it sleeps for each step and computes nothing."""
        return bool(self.facts.get("emulated"))

    @property
    def devices(self) -> int:
        """The number of ranks."""
        return int(self.facts.get("devices") or 1)

    @property
    def workers(self) -> int:
        """Loader workers of all ranks; 0 if the training process itself loads."""
        workers_of_rank = self.params.get("workers")
        if not isinstance(workers_of_rank, int):
            return 0
        return workers_of_rank * self.devices

    @property
    def on_gpu(self) -> bool:
        """Whether a real GPU computes."""
        device_name = str(self.facts.get("device") or "")
        requested = self.params.get("device")
        if self.emulated or requested == "cpu" or not device_name:
            return False
        # A CPU is described by its number of threads.
        return requested == "gpu" or not _THREADS.search(device_name)

    @property
    def on_processors(self) -> bool:
        """Whether the model is computed on the CPUs, which the workers use too."""
        return not self.emulated and not self.on_gpu

    @property
    def has_all_rungs(self) -> bool:
        """Whether ``iobench ladder`` can measure each stage of the input separately."""
        is_torch = self.params.get("consumer") not in ("tensorflow", "mxnet")
        holds_samples = capabilities_of(str(self.params.get("loader"))).holds_samples
        return is_torch and holds_samples and self.devices == 1

    @property
    def reads_files(self) -> bool:
        """Whether each sample is a file or an object."""
        return data_name(self.params) in AS_FILES

    @property
    def hands_over_float32(self) -> bool:
        """Whether the loader normalises images that it could hand over as uint8."""
        trains_in_torch = self.params.get("consumer") not in ("tensorflow", "mxnet")
        gives_uint8 = capabilities_of(str(self.params.get("loader"))).gives_uint8
        return trains_in_torch and gives_uint8 and bool(self.params.get("normalise", True))

    @property
    def label(self) -> str:
        """The proved state of the page cache: ``cold``, ``warm`` or ``direct``."""
        return cold_label(self.trials)

    @property
    def is_cache_resident(self) -> bool:
        """Whether the data may stay in memory."""
        return any(trial.cold is not None and trial.cold.cache_resident for trial in self.trials)

    def rate(self, source: str | None = None) -> Estimate | None:
        """Return samples/s with an input, by default the farthest; None without a rate."""
        return rate_of(self.inputs.get(source or self.farthest or "", ()))

    def metric(self, name: str) -> float | None:
        """Return the median of a metric with the farthest input; None if it was not measured."""
        return median_of(self.trials, name)

    @property
    def device_rate(self) -> Estimate | None:
        """Samples/s of the device with data in its own memory."""
        return self.rate("synthetic")

    @property
    def loss(self) -> Estimate | None:
        """``(T2 - T1) / T2``: the share of a step that is due to its input.

        It includes the time that the device loses because loading uses the same CPUs.
        """
        return self._share_between("synthetic", self.farthest)

    @property
    def au_ceiling(self) -> Estimate | None:
        """``T1 / T2``, which is 1 - loss."""
        device, farthest = self._seconds_of("synthetic"), self._seconds_of(self.farthest)
        shares = [device[n] / farthest[n] for n in sorted(device.keys() & farthest.keys())]
        return estimate(shares) if shares else None

    @property
    def preparation_stall(self) -> Estimate | None:
        """``(T3 - T1) / T2``; None if preparing and reading were not measured separately."""
        return self._share_between("synthetic", "warm") if self._is_split else None

    @property
    def fetch_stall(self) -> Estimate | None:
        """``(T2 - T3) / T2``; None if preparing and reading were not measured separately."""
        return self._share_between("warm", self.farthest) if self._is_split else None

    @property
    def waiting(self) -> Estimate | None:
        """The share of a step in which the device waits for a batch.

        It is the time that the loop spends in ``next()``. On a GPU it is at most the GPU's idle
        time, because the GPU may still compute while the host waits.
        """
        shares = []
        for trial in self.trials:
            wait_share = trial.metrics.get("wait_share")
            if wait_share is None:
                continue
            if self.on_gpu:
                idle_share = 1 - float(trial.metrics.get("au_mlperf") or 0.0)
                wait_share = min(wait_share, idle_share)
            shares.append(wait_share)
        return estimate(shares) if shares else None

    @property
    def start_share(self) -> Estimate | None:
        """The share of the time that the starts of epochs take, measured with data in memory.

        It is the share of the rung ``START``; None if the ladder lacks it. Reading from storage
        makes starts longer. This additional time belongs to the rungs of the storage.
        """
        for rung in self.ladder.rungs:
            if rung.rung == START:
                return rung.share
        return None

    @property
    def start_trials(self) -> Repeats:
        """The trials of ``start_share``."""
        return self.inputs.get(first_from_memory(list(self.inputs)) or "", ())

    @property
    def preparing_share(self) -> Estimate | None:
        """``preparation_stall`` without the starts of epochs."""
        if START not in self.seconds or not self._is_split:
            return self.preparation_stall
        return self._share_between(START, "warm")

    @property
    def loss_without_starts(self) -> Estimate | None:
        """The loss, or the waiting if the loss is unknown, without the starts of epochs."""
        if START in self.seconds:
            return self._share_between(START, self.farthest)
        return self.loss if self.loss is not None else self.waiting

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of the samples/s with the farthest input, if it has no rate."""
        return rate_bounds(self.trials) if self.rate() is None else None

    @property
    def _is_split(self) -> bool:
        """Whether preparing and reading were measured separately.

        This is so if the loop read from storage, and its warm trials read only from memory.
        """
        if self.farthest not in ("cold", "store"):
            return False
        for trial in self.inputs.get("warm", ()):
            cold = trial.cold
            if cold is not None and (cold.label != "warm" or cold.why):
                return False
        return True

    def _seconds_of(self, rung: str | None) -> Seconds:
        return self.seconds.get(rung or "", {})

    def _share_between(self, upper: str, lower: str | None) -> Estimate | None:
        """Return the difference of two rungs as a share of the time with the farthest input.

        Each share is computed within one repeat.

        Args:
            upper: the rung that takes less time.
            lower: the rung that takes more time.
        """
        upper_s, lower_s = self._seconds_of(upper), self._seconds_of(lower)
        farthest_s = self._seconds_of(self.farthest)
        repeats = sorted(upper_s.keys() & lower_s.keys() & farthest_s.keys())
        shares = [(lower_s[n] - upper_s[n]) / farthest_s[n] for n in repeats]
        return estimate(shares) if shares else None

    def as_dict(self) -> dict[str, Any]:
        """Return the loop as ``result.json`` stores it under ``training``."""
        params, facts = self.params, self.facts
        colds = [trial.cold for trial in self.trials if trial.cold is not None]
        entry: dict[str, Any] = {"group": self.group}
        for key in ("consumer", "model", "batch_size", "loader", "workers", *_WORK_PARAMS):
            entry[key] = params.get(key)
        for key in ("device", "devices", "precision"):
            entry[key] = facts.get(key)
        entry |= {
            "data": params.get("data", ""),
            "emulated": facts.get("emulated"),
            "input": self.farthest,
            "label": self.label,
            "badge": badge_with_reason(colds),
            "cold_proved": bool(self.trials) and self.label == "cold",
            "cache_resident": self.is_cache_resident,
            "consumes": estimate_as_dict(self.device_rate),
            "warm": estimate_as_dict(self.rate("warm")),
            "cold": estimate_as_dict(self.rate("cold")),
            "store": estimate_as_dict(self.rate("store")),
            "achieved": estimate_as_dict(self.rate()) if self.farthest else None,
            "achieved_between": self.bounds,
        }
        for metric in (*_START_METRICS, "au_mlperf", "au_mlperf_slowest"):
            entry[metric] = estimate_as_dict(estimate_of(self.trials, metric))
        return entry | {
            "au_ceiling": estimate_as_dict(self.au_ceiling),
            "stall_fraction": estimate_as_dict(self.loss),
            "waiting_fraction": estimate_as_dict(self.waiting),
            "preparation_stall": estimate_as_dict(self.preparation_stall),
            "fetch_stall": estimate_as_dict(self.fetch_stall),
        }

    def ladder_dict(self) -> dict[str, Any]:
        """Return the ladder as ``result.json`` stores it under ``ladder``, in seconds a sample."""
        entry: dict[str, Any] = {"group": self.group}
        for key in ("loader", "consumer", "workers", "pin_memory"):
            entry[key] = self.params.get(key)
        for key in ("device", "devices", "emulated"):
            entry[key] = self.facts.get(key)
        path = self.ladder.path
        return entry | {
            "rungs": [self._rung_dict(rung) for rung in self.ladder.rungs],
            "path": list(path),
            "farthest": path[-1] if path else None,
            "stall": estimate_as_dict(self.ladder.stall),
            "stall_share": estimate_as_dict(self.ladder.stall_share),
            "not_measured": dict(self.not_measured),
        }

    def _rung_dict(self, rung: Rung) -> dict[str, Any]:
        name = rung.rung
        trials = self.inputs.get(name, ())
        colds = [trial.cold for trial in trials if trial.cold is not None]
        return {
            "rung": name,
            "words": self.rung_words(rung),
            "input": first_from_memory(list(self.inputs)) if name == START else name,
            "samples_per_s": estimate_as_dict(rate_of(trials)),
            "seconds_per_sample": estimate_as_dict(rung.seconds),
            "label": cold_label(trials),
            "badge": badge_with_reason(colds),
            "above": rung.above,
            "within": list(rung.skipped),
            "part": estimate_as_dict(rung.cost),
            "share": estimate_as_dict(rung.share),
            "tells": rung.differs_from_zero,
        }

    def rung_words(self, rung: Rung) -> str:
        """Return the stage that a rung adds, such as ``+ decode``; several if rungs are missing."""
        name = rung.rung
        stage = STAGES[name]
        if name == "copy" and self.on_processors:
            stage = "+ batch in host memory (CPU: no copy)"
        elif name == "copy":
            stage += " (pinned)" if self.params.get("pin_memory") else " (not pinned)"
        included = [other for other in rung.skipped if other != "warm"]
        if not included:
            return stage
        return f"+ {', '.join(included)}, {stage.removeprefix('+ ')}"


def training_loops(trials: Iterable[Trial]) -> list[Loop]:
    """Return every loop that has a completed trial, in the order of the trials."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.kind == "train":
            groups.setdefault(str(trial.params.get("group", "")), []).append(trial)
    loops = []
    for index, (group, members) in enumerate(groups.items()):
        loop = _loop(group, members, index)
        if loop.inputs:
            loops.append(loop)
    return loops


def leading_loop(loops: Sequence[Loop]) -> Loop | None:
    """Return the loop that the verdict is about: the first whose loss is known, else the first."""
    for loop in loops:
        if loop.loss is not None:
            return loop
    return loops[0] if loops else None


def costliest_rung(loop: Loop) -> tuple[str, Estimate] | None:
    """Return the rung that costs most, with its share of the time.

    None if the ladder has no rung between the device and reading. None also if the costliest rung
    includes stages that were not measured separately.
    """
    path = loop.ladder.path
    if all(rung in (*PIPELINE_RUNGS, START) for rung in path):
        return None
    costliest: Rung | None = None
    share: Estimate | None = None
    for rung in loop.ladder.rungs:
        if rung.rung not in path or not rung.differs_from_zero or rung.share is None:
            continue
        if rung.share.median > (share.median if share is not None else 0.0):
            costliest, share = rung, rung.share
    if costliest is None or share is None or costliest.skipped:
        return None
    return costliest.rung, share


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a step: seconds a sample, and its share of the step."""

    name: str
    seconds: float
    share: float


def step_parts(loop: Loop) -> list[Part]:
    """Return the parts of a step with their times, from the device on; they add up to the step.

    The parts are the rungs of the ladder. A loop without a full ladder has the parts device,
    preparing and reading. A rung that was faster than the rung above it gets 0 seconds.
    """
    path = loop.ladder.path
    seconds = {}
    for rung in loop.ladder.rungs:
        if rung.rung in path:
            seconds[rung.rung] = rung.seconds.median
    if "synthetic" not in seconds:
        return []
    total_s, begin_s = seconds[path[-1]], 0.0
    if total_s <= 0:
        return []
    parts = []
    for name in path:
        end_s = min(max(seconds[name], begin_s), total_s)
        label = "device" if name == "synthetic" else _part_name(loop, name)
        parts.append(Part(label, end_s - begin_s, (end_s - begin_s) / total_s))
        begin_s = end_s
    return parts


def _part_name(loop: Loop, name: str) -> str:
    """Return ``decode`` if it was measured separately, ``prepare`` if with other parts."""
    within: tuple[str, ...] = ()
    for rung in loop.ladder.rungs:
        if rung.rung == name:
            within = rung.skipped
    if not within or set(within) == {"warm"}:
        return {"warm": "read", "cold": "storage"}.get(name, name)
    if name == "warm":
        return "prepare"
    return "input" if name in ("cold", "store") else name


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """A loop on one number of devices.

    Attributes:
        params: the parameters of the loop.
        devices: the number of devices.
        samples_per_s: the rate of all devices together.
        efficiency: the rate of a device as a share of its rate with the fewest devices, within
            repeats; None for the fewest devices.
    """

    params: Params
    devices: int
    samples_per_s: Estimate | None
    efficiency: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as ``result.json`` stores it."""
        return {
            "model": self.params.get("model"),
            "loader": self.params.get("loader"),
            "input": self.params.get("input"),
            "devices": self.devices,
            "samples_per_s": estimate_as_dict(self.samples_per_s),
            "efficiency": estimate_as_dict(self.efficiency),
        }


def device_scaling(loops: Sequence[Loop]) -> list[ScalingRow]:
    """Return a row for each number of devices of a loop that was measured with several numbers."""
    groups: dict[str, dict[int, Repeats]] = {}
    for loop in loops:
        for source, trials in loop.inputs.items():
            params = {
                name: value
                for name, value in trials[0].params.items()
                if name not in ("devices", "group")
            }
            key = json.dumps({**params, "input": source}, sort_keys=True)
            groups.setdefault(key, {})[loop.devices] = trials
    rows = []
    for by_devices in groups.values():
        if len(by_devices) > 1:
            fewest = min(by_devices)
            for devices in sorted(by_devices):
                trials = by_devices[devices]
                efficiency = None
                if devices != fewest:
                    efficiency = _scaling_efficiency(trials, devices, by_devices[fewest], fewest)
                rows.append(ScalingRow(trials[0].params, devices, rate_of(trials), efficiency))
    return rows


def _scaling_efficiency(
    trials: Repeats, devices: int, base: Repeats, base_devices: int
) -> Estimate | None:
    """Return the rate of a device as a share of its rate in ``base``, within repeats."""
    base_rates = {trial.repeat: trial.metrics.get("samples_per_s") for trial in base}
    ratios = []
    for trial in trials:
        rate, base_rate = trial.metrics.get("samples_per_s"), base_rates.get(trial.repeat)
        if rate and base_rate:
            ratios.append((rate / devices) / (base_rate / base_devices))
    return estimate(ratios) if ratios else None


def median_by_rank(trials: Repeats, metric: str) -> list[float]:
    """Return the median over repeats of a metric that has a value for each rank."""
    repeats = [trial.metrics[metric] for trial in trials if trial.metrics.get(metric)]
    return [estimate(list(values)).median for values in zip(*repeats, strict=False)]


def is_scattered(trials: Repeats, metric: str = "samples_per_s") -> bool:
    """Return whether the largest repeat is more than 1.5 times the smallest of three or more."""
    values = metric_values(trials, metric)
    return len(values) > 2 and min(values) > 0 and max(values) > 1.5 * min(values)


def _loop(group: str, trials: Sequence[Trial], index: int) -> Loop:
    """Return the loop of a group of trials.

    Args:
        group: the name of the loop.
        trials: its trials with all inputs, completed or not.
        index: its index under ``training`` in the config.
    """
    by_input: dict[str, list[Trial]] = {}
    for trial in trials:
        by_input.setdefault(str(trial.params.get("input")), []).append(trial)
    inputs: dict[str, Repeats] = {}
    for name, members in by_input.items():
        done = [trial for trial in members if trial.status == "done"]
        if done:
            inputs[name] = done
    measured = {name: _seconds_by_repeat(repeats) for name, repeats in inputs.items()}
    from_memory = inputs.get(first_from_memory(list(inputs)) or "", ())
    seconds = with_starts(measured, _start_seconds_by_repeat(from_memory))
    rungs = ladder(seconds)
    loader = str(trials[0].params.get("loader", ""))
    measured_rungs = {rung.rung for rung in rungs.rungs}
    not_measured = {}
    for name in RUNGS:
        if name not in measured_rungs:
            not_measured[name] = _why_missing(name, by_input.get(name, ()), loader)
    farthest = next((source for source in FARTHEST if source in inputs), None)
    return Loop(group, inputs, seconds, farthest, rungs, not_measured, index)


def _why_missing(rung: str, trials: Sequence[Trial], loader: str) -> str:
    """Return why a rung was not measured."""
    reasons = dict.fromkeys(f"{trial.status}: {trial.reason}" for trial in trials)
    if reasons:
        return "; ".join(reasons)
    if rung not in PIPELINE_RUNGS and not capabilities_of(loader).holds_samples:
        return f"loader {loader} has three rungs: synthetic, warm, cold or store"
    return _NOT_REQUESTED


def _seconds_by_repeat(trials: Repeats) -> dict[int, float]:
    """Return the seconds for a sample by repeat."""
    rates = {trial.repeat: trial.metrics.get("samples_per_s") for trial in trials}
    return {repeat: 1 / float(rate) for repeat, rate in rates.items() if rate}


def _start_seconds_by_repeat(trials: Repeats) -> dict[int, float]:
    """Return the seconds for a sample that were spent in starts of epochs, by repeat.

    Empty for results of earlier versions, whose rates left the starts out.
    """
    starts = {}
    for trial in trials:
        share = trial.metrics.get("epoch_start_share")
        rate = trial.metrics.get("samples_per_s")
        if share is not None and rate:
            starts[trial.repeat] = float(share) / float(rate)
    return starts
