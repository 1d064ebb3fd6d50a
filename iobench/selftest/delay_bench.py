"""Run training loops with injected delays, on shards on disk and on a store in memory.

The loops are run, summarised and diagnosed by the same code as in ``iobench run``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
import psutil

import dataprep
from dataprep.reading.augment import Augmentation
from iobench.analysis.analyse import summarised
from iobench.clock import Clock, Pauses
from iobench.consumers.protocol import Consumer
from iobench.data.pixels import PixelAugmentation
from iobench.errors import Unavailable
from iobench.loaders.frameworks import need_framework
from iobench.loaders.protocol import Loader
from iobench.loaders.torch_loader import TorchLoader
from iobench.plug_ins import create
from iobench.results.result import Result
from iobench.results.statistics import median
from iobench.results.trial import Context, Location, Params, Trial, TrialSpec
from iobench.selftest.delays import (
    INPUTS,
    MAX_ERROR_SHARE,
    Delays,
    Injected,
    Plan,
    Prefetched,
    Recovered,
    cases,
    compare_delays,
    expected_step,
    name_of,
)
from iobench.selftest.known_rates import NotRun
from iobench.selftest.memory_store import SHARDS, memory_store
from iobench.servers.fault_proxy import Delay, FaultProxy, Match, Rule
from iobench.trials import loader_opening, training_settings, training_trial

_T = TypeVar("_T")


def _delayed_call(
    pauses: Pauses, seconds: float, method: Callable[..., Any], *arguments: Any
) -> Any:
    """Pause, then call a method."""
    pauses.pause(seconds)
    return method(*arguments)


def slow_down(owner: _T, method: str, clock: Clock, seconds: float) -> _T:
    """Slow down a method of an object. Workers of a loader can still pickle the object."""
    delayed = partial(_delayed_call, Pauses(clock), seconds, getattr(owner, method))
    object.__setattr__(owner, method, delayed)  # This also works for frozen objects.
    return owner


@contextmanager
def slowed(case: Delays, clock: Clock, copy_s: float) -> Iterator[None]:
    """Slow down decoding, augmentation and copies in the trials of the ``with`` block.

    Loaders and consumers are replaced where the loops create them. No key of a config can do this,
    so that a real measurement cannot have such a delay by mistake.

    Args:
        case: the delays in seconds per sample.
        clock: the clock of the delays.
        copy_s: the seconds of a copy, by which each step is slowed down.
    """

    def augmentation(plain: Augmentation) -> Augmentation:
        delay_s = case.get("augment", 0.0)
        if not isinstance(plain, PixelAugmentation):  # pixels are not decoded
            delay_s += case.get("decode", 0.0)
        return slow_down(copy(plain), "part", clock, delay_s)

    def slow_loader(*arguments: Any) -> Loader:
        loader: Loader = create(*arguments)
        if isinstance(loader, TorchLoader):
            loader.wrap_augmentation(augmentation)
        return loader

    def slow_consumer(*arguments: Any) -> Consumer:
        consumer: Consumer = create(*arguments)
        return slow_down(consumer, "step", clock, copy_s)

    with (
        mock.patch.object(loader_opening, "create", slow_loader),
        mock.patch.object(training_trial, "create", slow_consumer),
    ):
        yield


@dataclass(frozen=True, slots=True)
class DelayBench:
    """Runs loops with delays, over shards on disk and the same shards on a store."""

    plan: Plan
    clock: Clock
    locations: Mapping[str, Location]
    proxy: FaultProxy

    def run(self, case: Delays, source: str, repeat: int, **changed: Any) -> Trial:
        """Run one trial with the delays of a case.

        Args:
            case: the delays.
            source: the input of the training loop.
            repeat: the number of the repeat.
            changed: keys of the training loop with other values than in ``_params``.
        """
        params = self._params(case, source, **changed)
        # The requests of a batch wait at the same time, so each gets the delay of the whole batch.
        # Requests for tables and manifests are not delayed.
        delay = Delay(case.get("fetch", 0.0) * self.plan.batch_size)
        self.proxy.replace_rules([Rule(Match("GET", SHARDS), delay)])
        spec = TrialSpec("train", params, repeat)
        # Synthetic batches are on the device already, and are not copied.
        copied_samples = 0 if source == "synthetic" else self.plan.batch_size
        context = Context(self.locations, self.clock, lambda done, unit: None)
        with slowed(case, self.clock, case.get("copy", 0.0) * copied_samples):
            outcome = training_trial.run(spec, context)
        return Trial(
            spec.id, spec.kind, params, repeat, "done", metrics=outcome.metrics, cold=outcome.cold
        )

    def _params(self, case: Delays, source: str, **changed: Any) -> Params:
        """The parameters of a training loop with one input, as ``iobench run`` plans them."""
        defaults = {
            "group": name_of(case),
            "consumer": "paced",
            "images_per_s": self.plan.batch_size / self.plan.device_s,
            "batch_size": self.plan.batch_size,
            "device": "cpu",
            # It requests the samples of a batch at the same time, and no sample in advance.
            "loader": "torch-map",
            "data": "shards",
            "inputs": INPUTS,
            "workers": 0,
            "prefetch": 2,
            "image_size": 32,
            "steps": self.plan.steps,
        }
        loop = training_settings.Training.model_validate({**defaults, **changed})
        params_by_input = {
            params["input"]: params for params in training_settings.training_points(loop)
        }
        return params_by_input[source]


@contextmanager
def bench(plan: Plan, clock: Clock, folder: Path) -> Iterator[DelayBench]:
    """Draw images, make shards of them below ``folder``, and also serve the shards over HTTP."""
    policy = dataprep.ImagePolicy(size=64)
    with memory_store(folder, plan.images, policy, clock) as store:
        locations = {"shards@disk": store.disk, "shards@s3": store.remote}
        yield DelayBench(plan, clock, locations, store.proxy)


def injected(note: Callable[[str], None], plan: Plan, clock: Clock) -> Injected:
    """Measure the ladder for every case in rounds, then the loops with prefetch."""
    try:
        need_framework("torch")
    except Unavailable as error:
        return Injected(not_run=[NotRun("delays", str(error))])
    psutil.cpu_percent()  # The next call returns the share of the time from here on.
    times_before = os.times()
    with tempfile.TemporaryDirectory(prefix="iobench-selftest-") as folder:
        note("drawing images")
        with bench(plan, clock, Path(folder)) as test_bench:
            results = measure_ladders(test_bench, note)
            rungs_s = rung_medians(results["nothing"], "seconds_per_sample")
            prefetch = list(measure_prefetch(test_bench, rungs_s, note))
    others_share = _others_busy_share(times_before)
    rows: list[Recovered] = []
    for case in cases(plan.delays)[1:]:
        result = results[name_of(case)]
        costs = rung_medians(result, "part")
        costs_without_delays = rung_medians(results["nothing"], "part")
        rows += compare_delays(case, costs, costs_without_delays, finding_codes(result))
    return Injected(rungs_s, rows, prefetch, others_share)


def _others_busy_share(times_before: os.times_result) -> float:
    """Return the share of the processors' time that other programs have used.

    Args:
        times_before: the result of ``os.times`` at the last call of ``psutil.cpu_percent``. The
            share is of the time since then.
    """
    # The last of these times is the elapsed time. The others are processor times of this process
    # and of its children.
    *processor_s, elapsed_s = np.subtract(os.times(), times_before)
    own_share = float(sum(processor_s) / elapsed_s) / (psutil.cpu_count() or 1)
    return max(0.0, psutil.cpu_percent() / 100 - own_share)


def measure_ladders(test_bench: DelayBench, note: Callable[[str], None]) -> dict[str, Result]:
    """Measure every rung of every case once per round, so that a drift affects all of them equally.

    A case whose rounds differ gets more rounds. This does not depend on whether its results are
    right.
    """
    results: dict[str, Result] = {}
    for repeat in range(test_bench.plan.rounds + test_bench.plan.more_rounds):
        for case in cases(test_bench.plan.delays):
            name = name_of(case)
            if repeat < test_bench.plan.rounds or _rounds_differ(case, results[name]):
                note(f"round {repeat + 1}: {name} slowed")
                earlier_trials = results[name].trials if repeat else ()
                trials = [test_bench.run(case, source, repeat) for source in INPUTS]
                # The result has no environment. With the number of processors, the diagnosis would
                # begin with idle processors, because the loops have no workers.
                result = Result("selftest", "", {}, {}, [*earlier_trials, *trials])
                results[name] = summarised(result)
    return results


def _rounds_differ(case: Delays, result: Result) -> bool:
    """Return whether the rounds of any rung differ by more than the tolerance.

    The tolerance is the accepted error of the smallest delay, upwards and downwards. The case
    without a delay has no tolerance: its rounds differ if they are not all equal.
    """
    (ladder,) = result.summary["ladder"]
    costs = [rung["part"] for rung in ladder["rungs"] if rung["part"]]
    max_difference_s: float = max(cost["high"] - cost["low"] for cost in costs)
    smallest_delay_s = min(case.values(), default=max_difference_s)
    return max_difference_s > 2 * MAX_ERROR_SHARE * smallest_delay_s


def rung_medians(result: Result, name: str) -> dict[str, float]:
    """Return the median of a figure of each rung, in seconds per sample.

    ``name`` is ``seconds_per_sample`` for the whole time, or ``part`` for the time that the rung
    adds.
    """
    (ladder,) = result.summary["ladder"]
    return {rung["rung"]: rung[name]["median"] for rung in ladder["rungs"] if rung[name]}


def finding_codes(result: Result) -> list[str]:
    """Return the codes of the findings, beginning with the primary finding; empty without one."""
    findings = sorted(result.findings, key=lambda finding: not finding.primary)
    if not findings or not findings[0].primary:
        return []
    return [finding.code for finding in findings]


def measure_prefetch(
    test_bench: DelayBench, without_s: Mapping[str, float], note: Callable[[str], None]
) -> Iterator[Prefetched]:
    """Slow down loops with prefetch: the device, each stage alone, and one stage on each side.

    Args:
        test_bench: runs the loops.
        without_s: seconds per sample of the rungs, without prefetch and without delays.
        note: prints progress.
    """
    plan = test_bench.plan
    delays = {stage: plan.prefetch_factor * seconds for stage, seconds in plan.delays.items()}
    for case in cases(delays):
        if len(case) == 2 and set(case) != {"copy", "decode"}:
            continue
        name = name_of(case) if case else "device"
        device_s = plan.device_s if case else plan.slow_device_s
        note(f"with prefetch: {name} slowed")
        loop = {
            "inputs": ["store"],
            "workers": plan.workers,
            "images_per_s": plan.batch_size / device_s,
        }
        trials = [test_bench.run(case, "store", repeat, **loop) for repeat in range(plan.rounds)]
        found_s = plan.batch_size / median([trial.metrics["samples_per_s"] for trial in trials])
        slowest, expected_s = expected_step(plan, case, device_s, without_s)
        error = found_s / expected_s - 1
        ok = abs(error) <= MAX_ERROR_SHARE
        yield Prefetched(name, plan.workers, slowest, expected_s, found_s, error, ok)
