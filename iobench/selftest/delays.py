"""Inject known delays into training loops; the ladder and the diagnosis must find them.

Delays are injected into fetch, decode, augmentation and copy: into each alone and into every pair.
The code of ``iobench run`` runs, summarises and diagnoses the loops.
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
from dataprep.adapters.augment import Augmentation
from iobench.analysis.analyse import summarised
from iobench.clock import Clock, Pauses
from iobench.consumers.protocol import Consumer
from iobench.errors import Unavailable
from iobench.extensions import made
from iobench.faults import Delay, FaultProxy, Match, Rule
from iobench.loaders.protocol import Loader, need_framework
from iobench.loaders.torch_loader import TorchLoader
from iobench.loops import opening, training, training_plan
from iobench.pixels import OfPixels
from iobench.result import Result
from iobench.selftest.known import NotRun
from iobench.selftest.store import SHARDS, memory_store
from iobench.stats import median
from iobench.trial import Context, Place, Trial, TrialSpec

Stage = Literal["copy", "augment", "decode", "fetch"]
Delays = Mapping[Stage, float]
"""Seconds per sample by which stages are slowed."""

_T = TypeVar("_T")

RUNGS: Mapping[Stage, str] = {
    "copy": "copy",
    "augment": "augment",
    "decode": "decode",
    "fetch": "store",
}
"""The rung of the ladder that each stage's delay must appear on."""

CODES: Mapping[Stage, str] = {
    "copy": "slow-copy",
    "augment": "slow-augmentation",
    "decode": "slow-decode",
    "fetch": "slow-store",  # no probe tells latency from bandwidth
}
"""The finding that names each stage."""

INPUTS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "store")
"""The rungs that are measured: all except ``cold``, since the disk's speed is not known."""

WITHIN = 0.10
"""The largest error of a measured delay, as a share of the injected one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The loops that are run, and their delays.

    Real work is short compared with the delays, since images are tiny and the store is in this
    process. The ladder without delays contains the same work, so that only noise remains; medians
    over rounds reduce it.

    Attributes:
        delays: seconds per sample for each stage, all different, so that one of a pair is larger.
        batch_size, device_s: samples in a step, and how long the device computes for them.
        steps: least number of steps that count. The rules of a rate ask for 20 rounds: 20 steps
            without workers, 40 steps with two.
        rounds: how often each case is run.
        more_rounds: how many more rounds a case gets at most if its rounds differ.
        workers: worker processes of the loops with prefetch.
        prefetch_factor: how many times as long delays are in those loops.
        slow_device_s: ``device_s`` of the loop whose device is slow.
        images: number of images drawn: an epoch in which all these steps fit, so that no loop
            needs several epochs with their starts.
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
    """List the cases: no delay, each stage alone, every pair."""
    chosen = [stages for count in (0, 1, 2) for stages in combinations(delays, count)]
    return [{stage: delays[stage] for stage in stages} for stages in chosen]


def name_of(case: Delays) -> str:
    """Name a case: ``decode and fetch``, or ``nothing``."""
    return " and ".join(case) or "nothing"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The rung that changed most among those without a delay, and its seconds per sample."""

    rung: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """One injected delay, and the results of the ladder and of the diagnosis.

    Attributes:
        case: all stages that were slowed.
        stage: the stage whose delay this row describes.
        rung: the rung that the delay must appear on.
        injected_s, recovered_s: the injected and the measured delay, seconds per sample.
        error: by how much the measured delay is too long, as a share of the injected one.
        elsewhere: the largest change of a rung without a delay.
        stray: that change as a share of the injected delay.
        findings: codes of the findings, the primary one first.
        code: the finding for this stage.
        primary: the finding that must be primary: that of the case's largest delay.
        named: whether ``code`` is among the findings and ``primary`` is first.
        ok: error and stray are at most a tenth, and ``named`` is true.
    """

    case: str
    stage: Stage
    rung: str
    injected_s: float
    recovered_s: float
    error: float
    elsewhere: Elsewhere
    stray: float
    findings: Sequence[str]
    code: str
    primary: str
    named: bool
    ok: bool


def recovered(
    case: Delays, parts: Mapping[str, float], without: Mapping[str, float], findings: Sequence[str]
) -> Iterator[Recovered]:
    """Compare each injected delay of a case with the measured one.

    Args:
        case: the injected delays.
        parts: seconds per sample that each rung adds.
        without: the same for the ladder without delays, since rungs contain real work too.
        findings: codes of the findings, the primary one first.
    """
    moved = {rung: parts[rung] - without[rung] for rung in without}
    injected = {RUNGS[stage] for stage in case}
    others = [Elsewhere(rung, change) for rung, change in moved.items() if rung not in injected]
    elsewhere = max(others, key=lambda other: abs(other.seconds))
    for stage, injected_s in case.items():
        primary = CODES[max(case, key=lambda stage: case[stage])]
        named = CODES[stage] in findings and findings[0] == primary
        error = moved[RUNGS[stage]] / injected_s - 1
        stray = elsewhere.seconds / injected_s
        yield Recovered(
            case=name_of(case),
            stage=stage,
            rung=RUNGS[stage],
            injected_s=injected_s,
            recovered_s=moved[RUNGS[stage]],
            error=error,
            elsewhere=elsewhere,
            stray=stray,
            findings=findings,
            code=CODES[stage],
            primary=primary,
            named=named,
            ok=named and max(abs(error), abs(stray)) <= WITHIN,
        )


@dataclass(frozen=True, slots=True)
class Prefetched:
    """One loop with prefetch: a step takes as long as its slowest side.

    Attributes:
        case: the slowed stages, or ``device``.
        workers: number of worker processes.
        slowest: ``workers``, which fetch, decode and augment, or ``copy and device``: the training
            process.
        expected_s, found_s: expected and measured seconds per step.
        error: by how much the step took too long, as a share.
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
        not_run: each measurement that was not possible, and why.
    """

    rungs_s: Mapping[str, float] = field(default_factory=dict)
    ladder: Sequence[Recovered] = ()
    prefetch: Sequence[Prefetched] = ()
    others_busy_share: float | None = None
    not_run: Sequence[NotRun] = ()

    @property
    def ok(self) -> bool:
        """Whether every delay was found."""
        return all(row.ok for row in self.ladder) and all(row.ok for row in self.prefetch)


def _late(pauses: Pauses, seconds: float, method: Callable[..., Any], *given: Any) -> Any:
    pauses.take(seconds)
    return method(*given)


def slow_down(owner: _T, method: str, clock: Clock, seconds: float) -> _T:
    """Slow down a method of an object, which loader workers can still pickle."""
    late = partial(_late, Pauses(clock), seconds, getattr(owner, method))
    object.__setattr__(owner, method, late)  # also if it is frozen
    return owner


@contextmanager
def slowed(case: Delays, clock: Clock, copy_s: float) -> Iterator[None]:
    """Slow down the trials of the ``with`` block: decoding, augmentation, and each step by a copy.

    Loaders and consumers are slowed down where the loops create them. No config can do this, so no
    measurement can contain such a delay by mistake.
    """

    def augmentation(plain: Augmentation) -> Augmentation:
        delay_s = case.get("augment", 0.0)
        if not isinstance(plain, OfPixels):  # pixels are not decoded
            delay_s += case.get("decode", 0.0)
        return slow_down(copy(plain), "part", clock, delay_s)

    def slow_loader(*arguments: Any) -> Loader:
        loader: Loader = made(*arguments)
        if isinstance(loader, TorchLoader):
            loader.put_around(augmentation)
        return loader

    def slow_consumer(*arguments: Any) -> Consumer:
        consumer: Consumer = made(*arguments)
        return slow_down(consumer, "step", clock, copy_s)

    with (
        mock.patch.object(opening, "made", slow_loader),
        mock.patch.object(training, "made", slow_consumer),
    ):
        yield


@dataclass(frozen=True, slots=True)
class Bench:
    """Shards on disk, the same shards on a store behind a proxy, and a clock."""

    plan: Plan
    clock: Clock
    places: Mapping[str, Place]
    proxy: FaultProxy

    def run(self, case: Delays, source: str, repeat: int, **changed: Any) -> Trial:
        """Run one trial with the delays of a case; ``changed`` are keys of a training loop."""
        usual = {
            "group": name_of(case),
            "consumer": "paced",
            "images_per_s": self.plan.batch_size / self.plan.device_s,
            "batch_size": self.plan.batch_size,
            "device": "cpu",
            "loader": "torch-map",  # requests a batch's samples side by side, and none ahead
            "data": "shards",
            "inputs": INPUTS,
            "workers": 0,
            "prefetch": 2,
            "image_size": 32,
            "steps": self.plan.steps,
        }
        loop = training_plan.Training.model_validate({**usual, **changed})
        params = next(point for point in training_plan.plan(loop) if point["input"] == source)
        # The requests of a batch wait at the same time. Tables and manifests are not delayed.
        delay = Delay(case.get("fetch", 0.0) * self.plan.batch_size)
        self.proxy.replace_rules([Rule(Match("GET", SHARDS), delay)])
        spec = TrialSpec("train", params, repeat)
        # Synthetic batches are on the device already.
        copied = 0 if source == "synthetic" else self.plan.batch_size
        context = Context(self.places, self.clock, lambda done, unit: None)
        with slowed(case, self.clock, case.get("copy", 0.0) * copied):
            found = training.run(spec, context)
        return Trial(
            spec.id, spec.kind, params, repeat, "done", metrics=found.metrics, cold=found.cold
        )


@contextmanager
def bench(plan: Plan, clock: Clock, folder: Path) -> Iterator[Bench]:
    """Draw images, shard them below ``folder``, and serve the shards over HTTP too."""
    policy = dataprep.ImagePolicy(size=64)
    with memory_store(folder, plan.images, policy, clock) as store:
        places = {"shards@disk": store.disk, "shards@s3": store.remote}
        yield Bench(plan, clock, places, store.proxy)


def injected(note: Callable[[str], None], plan: Plan, clock: Clock) -> Injected:
    """Measure the ladder for every case in rounds, then the loops with prefetch."""
    try:
        need_framework("torch")
    except Unavailable as error:
        return Injected(not_run=[NotRun("delays", str(error))])
    psutil.cpu_percent()  # counts from here
    before = os.times()
    with tempfile.TemporaryDirectory(prefix="iobench-selftest-") as folder:
        note("drawing images")
        with bench(plan, clock, Path(folder)) as made:
            results = climbed(made, note)
            rungs_s = medians(results["nothing"], "seconds_per_sample")
            prefetch = list(prefetched(made, rungs_s, note))
    spent = np.subtract(os.times(), before)  # by this process and its children; the last: elapsed
    own_share = float(sum(spent[:4]) / spent[4]) / (psutil.cpu_count() or 1)
    others_share = max(0.0, psutil.cpu_percent() / 100 - own_share)
    rows: list[Recovered] = []
    for case in cases(plan.delays)[1:]:
        found = results[name_of(case)]
        without = medians(results["nothing"], "part")
        rows += recovered(case, medians(found, "part"), without, codes(found))
    return Injected(rungs_s, rows, prefetch, others_share)


def climbed(made: Bench, note: Callable[[str], None]) -> dict[str, Result]:
    """Measure every rung for every case once per round, so that drift affects all of them.

    A case whose rounds differ gets more rounds, whether its results are right or wrong.
    """
    results: dict[str, Result] = {}
    for repeat in range(made.plan.rounds + made.plan.more_rounds):
        for case in cases(made.plan.delays):
            name = name_of(case)
            if repeat < made.plan.rounds or _rounds_differ(case, results[name]):
                note(f"round {repeat + 1}: {name} slowed")
                before = results[name].trials if repeat else ()
                trials = [made.run(case, source, repeat) for source in INPUTS]
                # With an environment, the diagnosis would start with idle processors, because the
                # loops have no workers.
                results[name] = summarised(Result("selftest", "", {}, {}, [*before, *trials]))
    return results


def _rounds_differ(case: Delays, result: Result) -> bool:
    """Whether the rounds of any rung differ by more than the tolerance."""
    (ladder,) = result.summary["ladder"]
    parts = [rung["part"] for rung in ladder["rungs"] if rung["part"]]
    apart_s: float = max(part["high"] - part["low"] for part in parts)
    return apart_s > 2 * WITHIN * min(case.values(), default=apart_s)


def medians(result: Result, name: str) -> dict[str, float]:
    """Return a figure of each rung in seconds per sample: of the rung itself, or its ``part``."""
    (ladder,) = result.summary["ladder"]
    return {rung["rung"]: rung[name]["median"] for rung in ladder["rungs"] if rung[name]}


def codes(result: Result) -> list[str]:
    """List the codes of the findings, the primary one first; none if none is primary."""
    found = sorted(result.findings, key=lambda finding: not finding.primary)
    return [finding.code for finding in found if found[0].primary]


def prefetched(
    made: Bench, without_s: Mapping[str, float], note: Callable[[str], None]
) -> Iterator[Prefetched]:
    """Slow down loops with prefetch: the device, each stage, and one stage on both sides.

    ``without_s``: seconds per sample of the rungs without prefetch and without delays.
    """
    plan = made.plan
    longer = {stage: plan.prefetch_factor * seconds for stage, seconds in plan.delays.items()}
    for case in cases(longer):
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
        trials = [made.run(case, "store", repeat, **loop) for repeat in range(plan.rounds)]
        found_s = plan.batch_size / median([trial.metrics["samples_per_s"] for trial in trials])
        slowest, expected_s = expected(plan, case, device_s, without_s)
        error = found_s / expected_s - 1
        yield Prefetched(
            name, plan.workers, slowest, expected_s, found_s, error, abs(error) <= WITHIN
        )


def expected(
    plan: Plan, case: Delays, device_s: float, without_s: Mapping[str, float]
) -> tuple[str, float]:
    """Return the slowest side of a loop with prefetch and its seconds per step, with real work."""
    delay_s = case.get("copy", 0.0)
    work_s = without_s["store"] - without_s["copy"] + sum(case.values()) - delay_s
    copy_s = without_s["copy"] - without_s["synthetic"] + delay_s
    sides = {
        "workers": plan.batch_size * work_s / plan.workers,
        "copy and device": plan.batch_size * copy_s + device_s,
    }
    slowest = max(sides, key=lambda side: sides[side])
    return slowest, sides[slowest]
