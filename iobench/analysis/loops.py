"""PURE. Training loops: their rates by input, the loss and its parts, and the ladder.

All figures compare the times that a loop takes for the same number of samples:

- ``T1`` seconds if the samples are in the memory of the device,
- ``T3`` seconds if they come from a warm page cache,
- ``T2`` seconds if they come from the farthest location that was measured: a store, or else a disk,
  or else the page cache.

The loss is ``(T2 - T1) / T2``. It is the sum of the preparation stall ``(T3 - T1) / T2`` and the
fetch stall ``(T2 - T3) / T2`` (after Mohan et al., "Analyzing and mitigating data stalls in DNN
training", VLDB 2021). The two stalls are known only if samples came from a store or a disk, and
also from a warm page cache. Each ratio is taken between trials of one repeat, which ran shortly
after each other. The median over the repeats is the figure of the loop.

``iobench.analysis.step_parts`` divides the time of a step into its parts.
``iobench.analysis.loop_entries`` has the loops as ``result.json`` stores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from iobench.analysis.repeats import (
    Repeats,
    cold_label,
    data_name,
    median_of,
    rate_bounds,
    rate_of,
)
from iobench.data.settings import AS_FILES
from iobench.loaders.capabilities import capabilities_of
from iobench.results.statistics import Estimate, estimate, median
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
"""Inputs whose samples are read from storage or the page cache, the farthest location first."""

_NOT_REQUESTED = "not requested (training.inputs)"
"""The reason for a missing rung that the config does not ask for."""
_WITHOUT_RATE = "its rate cannot be determined"
"""The reason for a missing rung whose trials are complete, but have no rate."""
_NO_CONFIG: Mapping[str, Any] = MappingProxyType({})

_THREADS = re.compile(r"\bthreads?\b")
"""Finds the number of threads, which only the name of a CPU has: ``AMD EPYC, 2 threads``."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One training loop with all its inputs.

    Attributes:
        group: the name of the loop.
        inputs: completed trials by input. An input without a completed trial is left out.
        seconds: seconds per sample, by rung and repeat. The rungs are the inputs and ``START``.
        farthest: the first input of ``FARTHEST`` that has a completed trial. The loop's figures
            refer to it. None if there is none.
        ladder: the rungs of the loop, in seconds per sample.
        not_measured: the reason why a rung is missing, by rung.
        index: the index, from 0, of the loop's entry under ``training`` in the config of the run.
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
        """The completed trials of the farthest input; empty if there is no such input."""
        return self.inputs.get(self.farthest or "", ())

    @property
    def any_trial(self) -> Trial:
        """A trial of the farthest input, or else of the first input: it has the loop's settings."""
        trials = self.trials or next(iter(self.inputs.values()))
        return trials[0]

    @property
    def params(self) -> Params:
        """The parameters of ``any_trial``, among them the settings of the loop."""
        return self.any_trial.params

    @property
    def facts(self) -> Mapping[str, Any]:
        """The metrics of ``any_trial``. Some describe the loop: device, precision, emulated."""
        return self.any_trial.metrics

    @property
    def emulated(self) -> bool:
        """Whether the device is simulated: it sleeps for each step and computes nothing."""
        return bool(self.facts.get("emulated"))

    @property
    def devices(self) -> int:
        """The number of ranks, each of which has one device; 1 if the trial does not tell."""
        return int(self.facts.get("devices") or 1)

    @property
    def workers(self) -> int:
        """Loader workers of all ranks together.

        0 if the training process itself loads, or if the loader has no such setting.
        """
        workers_of_rank = self.params.get("workers")
        if not isinstance(workers_of_rank, int):
            return 0
        return workers_of_rank * self.devices

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU trains the model.

        Without the settings ``gpu`` and ``cpu`` of ``device``, the name of the device decides.
        False if the device is simulated or has no name.
        """
        device_name = str(self.facts.get("device") or "")
        requested = self.params.get("device")
        if self.emulated or requested == "cpu" or not device_name:
            return False
        return requested == "gpu" or not _THREADS.search(device_name)

    @property
    def on_processors(self) -> bool:
        """Whether the CPUs train the model, so that the workers compete with it for them.

        True also for a device that is not simulated and has no name.
        """
        return not self.emulated and not self.on_gpu

    @property
    def has_all_rungs(self) -> bool:
        """Whether ``iobench ladder`` can measure each stage of the input separately.

        The stages are separated by samples that the loader takes from host memory. This needs such
        a loader, batches of PyTorch and a single device.
        """
        holds_samples = capabilities_of(str(self.params.get("loader"))).holds_samples
        return self._takes_torch_batches and holds_samples and self.devices == 1

    @property
    def reads_files(self) -> bool:
        """Whether each sample is a file or an object of its own, not a record of a shard."""
        return data_name(self.params) in AS_FILES

    @property
    def hands_over_float32(self) -> bool:
        """Whether the loader hands over normalised float32 images, but could hand over uint8."""
        gives_uint8 = capabilities_of(str(self.params.get("loader"))).gives_uint8
        normalises = bool(self.params.get("normalise", True))
        return self._takes_torch_batches and gives_uint8 and normalises

    @property
    def label(self) -> str:
        """The proved state of the page cache with the farthest input, as ``Cold.label`` has it."""
        return cold_label(self.trials)

    @property
    def is_cache_resident(self) -> bool:
        """Whether the data of the farthest input may stay in the page cache between epochs."""
        return any(trial.cold is not None and trial.cold.cache_resident for trial in self.trials)

    def rate(self, source: str | None = None) -> Estimate | None:
        """Return samples/s of all devices together; None without a rate.

        Args:
            source: the input, which may be any rung but ``START``; None for the farthest input.
        """
        return rate_of(self.inputs.get(source or self.farthest or "", ()))

    def metric(self, name: str) -> float | None:
        """Return the median of a metric with the farthest input; None if it was not measured."""
        return median_of(self.trials, name)

    @property
    def device_rate(self) -> Estimate | None:
        """Samples/s of all devices together, with data in their own memory."""
        return self.rate("synthetic")

    @property
    def loss(self) -> Estimate | None:
        """``(T2 - T1) / T2``: the share of a step that is due to its input.

        It includes the time that the device loses because loading uses the same CPUs. None if no
        repeat has both the rate of the device and the rate with the farthest input.
        """
        return self._share_between("synthetic", self.farthest)

    @property
    def au_ceiling(self) -> Estimate | None:
        """``T1 / T2``, which is 1 - loss: the loop's rate as a share of the rate of its device.

        None if the loss is unknown.
        """
        device_s = self._seconds_of("synthetic")
        farthest_s = self._seconds_of(self.farthest)
        repeats = sorted(device_s.keys() & farthest_s.keys())
        shares = [device_s[repeat] / farthest_s[repeat] for repeat in repeats]
        return estimate(shares) if shares else None

    @property
    def preparation_stall(self) -> Estimate | None:
        """``(T3 - T1) / T2``; None if it was not measured separately from reading."""
        return self._share_between("synthetic", "warm") if self._separates_reading else None

    @property
    def fetch_stall(self) -> Estimate | None:
        """``(T2 - T3) / T2``; None if it was not measured separately from preparing."""
        return self._share_between("warm", self.farthest) if self._separates_reading else None

    @property
    def waiting(self) -> Estimate | None:
        """The share of a step in which the device waits for a batch, with the farthest input.

        It is the share that the loop spends in ``next()``. On a GPU it is at most the share in
        which the GPU is idle, because the GPU may still compute while the host waits. None if it
        was not measured.
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

        It is the share of the rung ``START``; None if the ladder lacks this rung. Reading from
        storage makes starts longer. This additional time belongs to the rungs of the storage.
        """
        for rung in self.ladder.rungs:
            if rung.rung == START:
                return rung.share
        return None

    @property
    def start_trials(self) -> Repeats:
        """The trials in which the starts of epochs were measured, for ``start_share``.

        Their input is the first rung that has a loader and reads from memory; empty without one.
        """
        return self.inputs.get(first_from_memory(list(self.inputs)) or "", ())

    @property
    def preparing_share(self) -> Estimate | None:
        """``preparation_stall`` without the starts of epochs, if these were measured."""
        if START not in self.seconds or not self._separates_reading:
            return self.preparation_stall
        return self._share_between(START, "warm")

    @property
    def loss_without_starts(self) -> Estimate | None:
        """The loss without the starts of epochs.

        If the starts were not measured, it is the whole loss, or the waiting if the loss is
        unknown.
        """
        if START in self.seconds:
            return self._share_between(START, self.farthest)
        return self.loss if self.loss is not None else self.waiting

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Lower and upper bound of the samples/s with the farthest input.

        None if this input has a rate, or no bounds.
        """
        return rate_bounds(self.trials) if self.rate() is None else None

    @property
    def _separates_reading(self) -> bool:
        """Whether a difference to the warm trials is the time of reading from storage alone.

        This is so if the farthest input is a disk or a store, and if no warm trial read from
        storage. It is also true without warm trials; then there is no difference to compute.
        """
        if self.farthest not in ("cold", "store"):
            return False
        for trial in self.inputs.get("warm", ()):
            cold = trial.cold
            # A warm trial has a reason ``why`` if some of its data were not in the page cache.
            if cold is not None and (cold.label != "warm" or cold.why):
                return False
        return True

    @property
    def _takes_torch_batches(self) -> bool:
        """Whether the consumer takes batches of PyTorch, as all but two consumers do."""
        return self.params.get("consumer") not in ("tensorflow", "mxnet")

    def _seconds_of(self, rung: str | None) -> Seconds:
        """Return the seconds per sample by repeat; empty for a rung without rates, or for None."""
        return self.seconds.get(rung or "", {})

    def _share_between(self, upper: str, lower: str | None) -> Estimate | None:
        """Return the difference of two rungs as a share of the time with the farthest input.

        Each share is computed within one repeat. None if no repeat has all three times.

        Args:
            upper: the rung nearer to the device.
            lower: the rung farther from the device; None if the loop has no farthest input.
        """
        upper_s, lower_s = self._seconds_of(upper), self._seconds_of(lower)
        farthest_s = self._seconds_of(self.farthest)
        shares = []
        for repeat in sorted(upper_s.keys() & lower_s.keys() & farthest_s.keys()):
            difference_s = lower_s[repeat] - upper_s[repeat]
            shares.append(difference_s / farthest_s[repeat])
        return estimate(shares) if shares else None

    def rung_words(self, rung: Rung) -> str:
        """Return the stage that a rung adds, such as ``+ decode``.

        If rungs above it are missing, it adds several stages: ``+ augment, decode``.
        """
        name = rung.rung
        stage = STAGES[name]
        if name == "copy" and self.on_processors:
            stage = "+ batch in host memory (CPU: no copy)"
        elif name == "copy":
            stage += " (pinned)" if self.params.get("pin_memory") else " (not pinned)"
        # A cold read takes the place of the warm read, so that it does not include that stage.
        included = [other for other in rung.skipped if other != "warm"]
        if not included:
            return stage
        return f"+ {', '.join(included)}, {stage.removeprefix('+ ')}"


def training_loops(trials: Iterable[Trial], config: Mapping[str, Any] = _NO_CONFIG) -> list[Loop]:
    """Return every loop that has a completed trial, in the order of their first trials.

    Args:
        trials: the trials of a run, in the order of its config.
        config: the config of the run, for ``Loop.index``. Without it, each loop counts as an entry.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.kind == "train":
            groups.setdefault(str(trial.params.get("group", "")), []).append(trial)
    entries = _entries_of_loops(config)
    loops = []
    for position, (group, members) in enumerate(groups.items()):
        index = entries[position] if position < len(entries) else position
        loop = _loop(group, members, index)
        if loop.inputs:
            loops.append(loop)
    return loops


def _entries_of_loops(config: Mapping[str, Any]) -> list[int]:
    """Return the index of its entry under ``training`` for each loop of a config, in their order.

    An entry with several numbers of devices or accelerators describes as many loops.
    """
    entries = []
    for index, entry in enumerate(config.get("training") or ()):
        loops = 1
        for key in ("devices", "accelerators"):
            if isinstance(entry.get(key), list | tuple):
                loops = len(set(entry[key]))
        entries += [index] * loops
    return entries


def leading_loop(loops: Sequence[Loop]) -> Loop | None:
    """Return the loop that the verdict is about: the first whose loss is known, else the first.

    None if there are no loops.
    """
    for loop in loops:
        if loop.loss is not None:
            return loop
    return loops[0] if loops else None


def median_by_rank(trials: Repeats, metric: str) -> list[float]:
    """Return each rank's median over repeats of a metric that has a value for each rank.

    The result is in the order of the ranks. Repeats without the metric are left out, and so are
    ranks that some of the other repeats lack. It is empty if no repeat has the metric.
    """
    values_of_repeats = [trial.metrics[metric] for trial in trials if trial.metrics.get(metric)]
    values_by_rank = zip(*values_of_repeats, strict=False)
    return [median(values) for values in values_by_rank]


def _loop(group: str, trials: Sequence[Trial], index: int) -> Loop:
    """Return the loop of a group of trials.

    Args:
        group: the name of the loop.
        trials: its trials with all inputs, completed or not; at least one.
        index: the index of its entry under ``training`` in the config.
    """
    by_input: dict[str, list[Trial]] = {}
    for trial in trials:
        by_input.setdefault(str(trial.params.get("input")), []).append(trial)
    inputs: dict[str, Repeats] = {}
    for name, members in by_input.items():
        done = [trial for trial in members if trial.status == "done"]
        if done:
            inputs[name] = done
    seconds = _seconds_by_rung(inputs)
    measured_ladder = ladder(seconds)
    measured_rungs = {rung.rung for rung in measured_ladder.rungs}
    loader = str(trials[0].params.get("loader", ""))
    not_measured = {}
    for rung in RUNGS:
        if rung not in measured_rungs:
            not_measured[rung] = _why_missing(rung, by_input.get(rung, ()), loader)
    reading_inputs = [source for source in FARTHEST if source in inputs]
    return Loop(
        group=group,
        inputs=inputs,
        seconds=seconds,
        farthest=reading_inputs[0] if reading_inputs else None,
        ladder=measured_ladder,
        not_measured=not_measured,
        index=index,
    )


def _seconds_by_rung(inputs: Mapping[str, Repeats]) -> dict[str, Seconds]:
    """Return the seconds per sample, by rung and repeat. The rungs are the inputs and ``START``.

    Args:
        inputs: completed trials by input.
    """
    measured = {name: _seconds_by_repeat(repeats) for name, repeats in inputs.items()}
    from_memory = inputs.get(first_from_memory(list(inputs)) or "", ())
    return with_starts(measured, _start_seconds_by_repeat(from_memory))


def _why_missing(rung: str, trials: Sequence[Trial], loader: str) -> str:
    """Return why a rung was not measured.

    Args:
        rung: the rung.
        trials: its trials, none of which has a rate; empty if the config did not ask for it.
        loader: the loader of the loop.
    """
    reasons = []
    for trial in trials:
        is_done = trial.status == "done"
        reasons.append(_WITHOUT_RATE if is_done else f"{trial.status}: {trial.reason}")
    if reasons:
        return "; ".join(dict.fromkeys(reasons))
    if rung not in PIPELINE_RUNGS and not capabilities_of(loader).holds_samples:
        return f"loader {loader} has three rungs: synthetic, warm, cold or store"
    return _NOT_REQUESTED


def _seconds_by_repeat(trials: Repeats) -> dict[int, float]:
    """Return the seconds per sample by repeat, without repeats that have no rate."""
    rates = {trial.repeat: trial.metrics.get("samples_per_s") for trial in trials}
    return {repeat: 1 / float(rate) for repeat, rate in rates.items() if rate}


def _start_seconds_by_repeat(trials: Repeats) -> dict[int, float]:
    """Return the seconds per sample that were spent in starts of epochs, by repeat.

    Repeats without this share or without a rate are left out. It is empty for results of earlier
    versions, whose rates left the starts out.
    """
    starts = {}
    for trial in trials:
        share = trial.metrics.get("epoch_start_share")
        rate = trial.metrics.get("samples_per_s")
        if share is not None and rate:
            starts[trial.repeat] = float(share) / float(rate)
    return starts
