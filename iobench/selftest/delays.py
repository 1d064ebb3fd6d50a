"""Inject known delays into training loops, and check that the ladder and the diagnosis find them.

Delays are injected into the stages fetch, decode, augment and copy. A *case* is a set of slowed
stages: no stage, each stage alone, and every pair of stages. The loops are run, summarised and
diagnosed by the same code as in ``iobench run``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, TypeVar
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
from iobench.results.trial import Context, Location, Trial, TrialSpec
from iobench.selftest.known_rates import NotRun
from iobench.selftest.memory_store import SHARDS, memory_store
from iobench.servers.fault_proxy import Delay, FaultProxy, Match, Rule
from iobench.trials import loader_opening, training_settings, training_trial

Stage = Literal["copy", "augment", "decode", "fetch"]
Delays = Mapping[Stage, float]
"""Seconds per sample by which each stage is slowed down."""

_T = TypeVar("_T")

RUNGS: Mapping[Stage, str] = {
    "copy": "copy",
    "augment": "augment",
    "decode": "decode",
    "fetch": "store",
}
"""The rung of the ladder on which the delay of each stage must appear."""

CODES: Mapping[Stage, str] = {
    "copy": "slow-copy",
    "augment": "slow-augmentation",
    "decode": "slow-decode",
    "fetch": "slow-store",  # Without a probe, latency and bandwidth cannot be distinguished.
}
"""The code of the finding about each stage."""

INPUTS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "store")
"""The measured rungs. ``cold`` is missing, since the speed of the disk is unknown."""

MAX_ERROR_SHARE = 0.10
"""The largest accepted error of a measured delay, as a share of the injected delay."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The loops that are run, and their delays.

    The real work of the loops takes little time compared with the delays, since images are tiny and
    the store is in this process. The ladder without delays has the same real work. Their difference
    therefore has only the delays and noise, and the medians over rounds reduce the noise.

    Attributes:
        delays: seconds per sample for each stage. They are all different, so that each pair has a
            larger delay.
        batch_size, device_s: the samples in a step, and the time that the device computes for them.
        steps: the minimum number of steps that count. The rules of a rate need 20 rounds: 20 steps
            without workers, 40 steps with two workers.
        rounds: how often each case is run.
        more_rounds: the largest number of additional rounds of a case whose rounds differ.
        workers: the number of workers of the loops with prefetch.
        prefetch_factor: the delays of the loops with prefetch, divided by ``delays``.
        slow_device_s: ``device_s`` of the loop with a slow device.
        images: the number of images. All steps of a loop fit into one epoch, so that no loop has
            the starts of further epochs.
    """

    delays: Delays = field(
        default_factory=lambda: {"copy": 0.024, "augment": 0.030, "decode": 0.040, "fetch": 0.068}
    )
    batch_size: int = 1
    device_s: float = 0.005
    steps: int = 20
    rounds: int = 3
    more_rounds: int = 2
    workers: int = 2
    prefetch_factor: float = 2.0
    slow_device_s: float = 0.060
    images: int = 64


def cases(delays: Delays) -> list[Delays]:
    """Return the cases: no delay, a delay of each stage alone, and of every pair of stages."""
    combined_stages = [stages for count in (0, 1, 2) for stages in combinations(delays, count)]
    return [{stage: delays[stage] for stage in stages} for stages in combined_stages]


def name_of(case: Delays) -> str:
    """Return the name of a case: ``decode and fetch``, or ``nothing``."""
    return " and ".join(case) or "nothing"


@dataclass(frozen=True, slots=True)
class RungChange:
    """The rung that has no delay but changed most, and its change in seconds per sample."""

    rung: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """One injected delay, and what the ladder and the diagnosis have found about it.

    Attributes:
        case: all slowed stages.
        stage: the stage with this delay.
        rung: the rung on which the delay must appear.
        injected_s: the injected delay, in seconds per sample.
        recovered_s: the measured delay, in seconds per sample.
        error: the measured delay minus the injected delay, as a share of the injected delay.
        elsewhere: the largest change of a rung without a delay.
        stray: this change as a share of the injected delay.
        findings: the codes of the findings, beginning with the primary finding.
        code: the code of the finding about this stage.
        primary: the expected code of the primary finding, which is about the stage with the largest
            delay of the case.
        named: whether ``code`` is among the findings, and ``primary`` is the first of them.
        ok: whether error and stray are at most a tenth, and ``named`` is true.
    """

    case: str
    stage: Stage
    rung: str
    injected_s: float
    recovered_s: float
    error: float
    elsewhere: RungChange
    stray: float
    findings: Sequence[str]
    code: str
    primary: str
    named: bool
    ok: bool


def compare_delays(
    case: Delays,
    costs: Mapping[str, float],
    costs_without_delays: Mapping[str, float],
    findings: Sequence[str],
) -> Iterator[Recovered]:
    """Compare each injected delay of a case with the measured delay.

    Args:
        case: the injected delays.
        costs: the seconds per sample that each rung adds.
        costs_without_delays: the seconds per sample that each rung adds in the ladder without
            delays. This is the time of the real work.
        findings: the codes of the findings, beginning with the primary finding.
    """
    changes = {
        rung: costs[rung] - cost_without_delays
        for rung, cost_without_delays in costs_without_delays.items()
    }
    slowed_rungs = {RUNGS[stage] for stage in case}
    other_changes = [
        RungChange(rung, change) for rung, change in changes.items() if rung not in slowed_rungs
    ]
    elsewhere = max(other_changes, key=lambda other: abs(other.seconds))
    for stage, injected_s in case.items():
        primary = CODES[max(case, key=lambda stage: case[stage])]
        named = CODES[stage] in findings and findings[0] == primary
        error = changes[RUNGS[stage]] / injected_s - 1
        stray = elsewhere.seconds / injected_s
        yield Recovered(
            case=name_of(case),
            stage=stage,
            rung=RUNGS[stage],
            injected_s=injected_s,
            recovered_s=changes[RUNGS[stage]],
            error=error,
            elsewhere=elsewhere,
            stray=stray,
            findings=findings,
            code=CODES[stage],
            primary=primary,
            named=named,
            ok=named and max(abs(error), abs(stray)) <= MAX_ERROR_SHARE,
        )


@dataclass(frozen=True, slots=True)
class Prefetched:
    """A loop with prefetch. Its step takes as long as the slower of two sides.

    One side is the workers, which fetch, decode and augment. The other side is the training
    process, which copies batches to the device and waits for the device.

    Attributes:
        case: the slowed stages, or ``device``.
        workers: the number of workers.
        slowest: the slower side: ``workers``, or ``copy and device``.
        expected_s: expected seconds per step.
        found_s: measured seconds per step.
        error: the measured time minus the expected time, as a share of the expected time.
        ok: whether the error is at most a tenth.
    """

    case: str
    workers: int
    slowest: str
    expected_s: float
    found_s: float
    error: float
    ok: bool


@dataclass(frozen=True, slots=True)
class Injected:
    """The results for all delays.

    Attributes:
        rungs_s: seconds per sample of each rung without delays.
        ladder: a row for each delay, without prefetch.
        prefetch: a row for each loop with prefetch.
        others_busy_share: share of the processors' time that other programs used meanwhile.
        not_run: measurements that were not possible, with the reasons.
    """

    rungs_s: Mapping[str, float] = field(default_factory=dict)
    ladder: Sequence[Recovered] = ()
    prefetch: Sequence[Prefetched] = ()
    others_busy_share: float | None = None
    not_run: Sequence[NotRun] = ()

    @property
    def ok(self) -> bool:
        """Whether all delays were found, and all steps took the expected time."""
        return all(row.ok for row in self.ladder) and all(row.ok for row in self.prefetch)


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
            changed: keys of the training loop that have other values than the defaults below.
        """
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
        params = next(
            point for point in training_settings.training_points(loop) if point["input"] == source
        )
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
    # The last of these times is the elapsed time. The others are processor times of this process
    # and of its children.
    *processor_s, elapsed_s = np.subtract(os.times(), times_before)
    own_share = float(sum(processor_s) / elapsed_s) / (psutil.cpu_count() or 1)
    others_share = max(0.0, psutil.cpu_percent() / 100 - own_share)
    rows: list[Recovered] = []
    for case in cases(plan.delays)[1:]:
        result = results[name_of(case)]
        costs = rung_medians(result, "part")
        costs_without_delays = rung_medians(results["nothing"], "part")
        rows += compare_delays(case, costs, costs_without_delays, finding_codes(result))
    return Injected(rungs_s, rows, prefetch, others_share)


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
                results[name] = summarised(
                    Result("selftest", "", {}, {}, [*earlier_trials, *trials])
                )
    return results


def _rounds_differ(case: Delays, result: Result) -> bool:
    """Return whether the rounds of any rung differ by more than the tolerance."""
    (ladder,) = result.summary["ladder"]
    costs = [rung["part"] for rung in ladder["rungs"] if rung["part"]]
    max_difference_s: float = max(cost["high"] - cost["low"] for cost in costs)
    return max_difference_s > 2 * MAX_ERROR_SHARE * min(case.values(), default=max_difference_s)


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
        yield Prefetched(
            name, plan.workers, slowest, expected_s, found_s, error, abs(error) <= MAX_ERROR_SHARE
        )


def expected_step(
    plan: Plan, case: Delays, device_s: float, without_s: Mapping[str, float]
) -> tuple[str, float]:
    """Return the slower side of a loop with prefetch, and its seconds per step.

    The seconds include the real work, which is taken from the ladder without delays.
    """
    copy_delay_s = case.get("copy", 0.0)
    worker_delay_s = sum(case.values()) - copy_delay_s
    worker_s = without_s["store"] - without_s["copy"] + worker_delay_s
    copy_s = without_s["copy"] - without_s["synthetic"] + copy_delay_s
    sides = {
        "workers": plan.batch_size * worker_s / plan.workers,
        "copy and device": plan.batch_size * copy_s + device_s,
    }
    slowest = max(sides, key=lambda side: sides[side])
    return slowest, sides[slowest]
