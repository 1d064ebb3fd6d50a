"""Inject known delays into training loops; the ladder and the diagnosis must find them.

Delays are injected at fetch, decode, augmentation and copy: each alone, and every pair. The loops
are run, summarised and diagnosed by the code that does so in ``iobench run``.
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

import psutil

import dataprep
from dataprep.adapters.augment import Augmentation
from dataprep.sample import draw_tree
from iobench.analysis.analyse import summarised
from iobench.clock import Clock, Pauses
from iobench.consumers.protocol import Consumer
from iobench.errors import Unavailable
from iobench.faults import Delay, FaultProxy, Match, Rule
from iobench.loaders.protocol import Loader, need_framework
from iobench.loaders.torch_loader import TorchLoader
from iobench.loops import training, training_plan
from iobench.memory_s3 import MemoryS3
from iobench.pixels import OfPixels
from iobench.result import Result
from iobench.s3_server import signed_in
from iobench.stats import median
from iobench.trial import Around, Context, Place, Trial, TrialSpec

Stage = Literal["copy", "augment", "decode", "fetch"]
Delays = Mapping[Stage, float]
"""Seconds a sample that stages take longer."""

_T = TypeVar("_T")

RUNGS: Mapping[Stage, str] = {
    "copy": "copy",
    "augment": "augment",
    "decode": "decode",
    "fetch": "store",
}
"""The rung of the ladder on which the delay of each stage belongs."""

CODES: Mapping[Stage, str] = {
    "copy": "slow-copy",
    "augment": "slow-augmentation",
    "decode": "slow-decode",
    "fetch": "slow-store-latency",
}
"""The finding that names each stage."""

INPUTS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "store")
"""The rungs that are measured. Not ``cold``: how slow a disk is, is not known beforehand."""

WITHIN = 0.10
"""How far from an injected delay the measured one may be, as a share."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is run, and with which delays.

    Real work is small beside the delays: tiny images, and a store in this process. It is also in
    what they are compared with, so that only its noise is left. Long delays, few samples and
    medians over rounds keep noise small.

    Attributes:
        delays: of each stage, wherever a case injects it. No two are alike, so that one of a pair
            is the larger.
        batch_size, device_s: samples in a step, and how long the device computes for them.
        steps: of a loop without prefetch; the first does not count.
        rounds: how often every case is run.
        more_rounds: at most, of cases whose rounds differ.
        workers: of the loops with prefetch.
        prefetch_steps: of those; about as many do not count as batches are made ahead.
        prefetch_factor: how many times as long delays are there.
        slow_device_s: as ``device_s``, where it is the device that is slow.
        images: that are drawn; a loop reads each at most once.
    """

    delays: Delays = field(
        default_factory=lambda: {"copy": 0.050, "augment": 0.064, "decode": 0.080, "fetch": 0.150}
    )
    batch_size: int = 2
    device_s: float = 0.020
    steps: int = 4
    rounds: int = 3
    more_rounds: int = 2
    workers: int = 2
    prefetch_steps: int = 16
    prefetch_factor: float = 1.5
    slow_device_s: float = 0.150
    images: int = 60


def cases(delays: Delays) -> list[Delays]:
    """Nothing; each stage alone; every pair."""
    chosen = [stages for count in (0, 1, 2) for stages in combinations(delays, count)]
    return [{stage: delays[stage] for stage in stages} for stages in chosen]


def name_of(case: Delays) -> str:
    """Name a case: ``decode and fetch``, or ``nothing``."""
    return " and ".join(case) or "nothing"


def prepare_s(case: Delays) -> float:
    """Seconds a sample that a worker of a loader takes longer."""
    return sum(seconds for stage, seconds in case.items() if stage != "copy")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The rung without a delay that changed most, and by how many seconds a sample."""

    rung: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Recovered:
    """One injected delay, and what the ladder and the diagnosis found.

    Attributes:
        case: all stages that were slowed.
        stage: whose delay this row is about.
        rung: where it belongs.
        injected_s, recovered_s: seconds a sample.
        error: share of the delay by which what was recovered is too long.
        elsewhere: what changed where no delay belongs.
        stray: that, as a share of the delay.
        findings: codes of what the diagnosis found, the primary one first.
        code: the finding that names this stage.
        primary: the finding that must be the primary one: that of the case's largest delay.
        named: whether the diagnosis has ``code``, and begins with ``primary``.
        ok: error and stray are at most a tenth, and it is named.
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
    """Compare each delay of a case with what was found.

    Args:
        case: what was injected.
        parts: seconds a sample that each rung adds.
        without: the same of the ladder without delays: rungs hold real work as well.
        findings: codes of what the diagnosis found, the primary one first.
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
    """One loop whose workers prepare ahead: a step takes as long as its slowest stage.

    Attributes:
        case: what was slowed: stages, or the device.
        workers: processes that prepare.
        slowest: the workers together, who fetch, decode and augment; or the training process,
            which copies and lets the device compute.
        expected_s, found_s: seconds a step.
        error: share by which the step took too long.
        ok: whether that is at most a tenth.
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
    """What was found of delays.

    Attributes:
        rungs_s: seconds a sample of each rung where nothing is injected.
        ladder: a row for each delay, without prefetch.
        prefetch: a row for each loop with prefetch.
        others_busy_share: of all processors' time, what other programs took meanwhile.
        not_run: ``name`` of what could not be measured here, and ``why``.
    """

    rungs_s: Mapping[str, float] = field(default_factory=dict)
    ladder: Sequence[Recovered] = ()
    prefetch: Sequence[Prefetched] = ()
    others_busy_share: float | None = None
    not_run: Sequence[Mapping[str, str]] = ()

    @property
    def ok(self) -> bool:
        """Whether all that was run was found."""
        return all(row.ok for row in self.ladder) and all(row.ok for row in self.prefetch)


def _late(pauses: Pauses, seconds: float, method: Callable[..., Any], *given: Any) -> Any:
    pauses.take(seconds)
    return method(*given)


def slow_down(owner: _T, method: str, clock: Clock, seconds: float) -> _T:
    """Make a method of an object take longer. Workers of loaders can pickle the object."""
    late = partial(_late, Pauses(clock), seconds, getattr(owner, method))
    object.__setattr__(owner, method, late)  # also where it is frozen
    return owner


def slowed(case: Delays, clock: Clock, copy_s: float) -> Around:
    """Slow down decoding and augmentation in a trial, and each step by a copy."""

    def augmentation(plain: Augmentation) -> Augmentation:
        delay_s = case.get("augment", 0.0)
        if not isinstance(plain, OfPixels):  # which has nothing to decode
            delay_s += case.get("decode", 0.0)
        return slow_down(copy(plain), "part", clock, delay_s)

    def loader(made: Loader) -> Loader:
        if isinstance(made, TorchLoader):
            made.put_around(augmentation)
        return made

    def consumer(made: Consumer) -> Consumer:
        return slow_down(made, "step", clock, copy_s)

    return Around(loader, consumer)


@dataclass(frozen=True, slots=True)
class Bench:
    """Shards on a disk, the same on a store behind a proxy, and a clock."""

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
        # The requests of a batch wait at the same time; those of tables and manifests do not.
        delay = Delay(case.get("fetch", 0.0) * self.plan.batch_size)
        self.proxy.replace_rules([Rule(Match("GET", "/tfrecord/"), delay)])
        spec = TrialSpec("train", params, repeat)
        copied = 0 if source == "synthetic" else self.plan.batch_size  # that is on the device
        around = slowed(case, self.clock, case.get("copy", 0.0) * copied)
        context = Context(self.places, self.clock, lambda done, unit: None, around=around)
        found = training.run(spec, context)
        return Trial(
            spec.id, spec.kind, params, repeat, "done", metrics=found.metrics, cold=found.cold
        )


@contextmanager
def bench(plan: Plan, clock: Clock, folder: Path) -> Iterator[Bench]:
    """Draw images, shard them below ``folder``, and serve the shards as well."""
    images = draw_tree(folder / "images", images=plan.images, classes=2).root
    shards = str(folder / "shards")
    policy = dataprep.ImagePolicy(size=64)
    dataprep.shard(dataprep.ShardConfig(source=str(images), output=shards, image=policy))
    objects = MemoryS3()
    objects.fill("selftest", Path(shards))
    with signed_in(), FaultProxy(objects.answer, sleep=clock.sleep) as proxy:
        store = Place("s3://selftest", "shards", dataprep.StoreOptions(endpoint_url=proxy.url))
        places = {"shards@disk": Place(shards, "shards"), "shards@s3": store}
        yield Bench(plan, clock, places, proxy)


def injected(note: Callable[[str], None], plan: Plan, clock: Clock) -> Injected:
    """Measure the ladder under every case, in rounds; then loops with prefetch."""
    try:
        need_framework("torch")
    except Unavailable as error:
        return Injected(not_run=[{"name": "delays", "why": str(error)}])
    psutil.cpu_percent()  # counts from here
    before = os.times()
    with tempfile.TemporaryDirectory(prefix="iobench-selftest-") as folder:
        note("drawing images")
        with bench(plan, clock, Path(folder)) as made:
            results = climbed(made, note)
            rungs_s = medians(results["nothing"], "seconds_per_sample")
            prefetch = list(prefetched(made, rungs_s, note))
    after = os.times()
    own_s = sum(after[:4]) - sum(before[:4])
    own_share = own_s / (after.elapsed - before.elapsed) / (psutil.cpu_count() or 1)
    others_share = max(0.0, psutil.cpu_percent() / 100 - own_share)
    rows: list[Recovered] = []
    for case in cases(plan.delays)[1:]:
        found = results[name_of(case)]
        without = medians(results["nothing"], "part")
        rows += recovered(case, medians(found, "part"), without, codes(found))
    return Injected(rungs_s, rows, prefetch, others_share)


def climbed(made: Bench, note: Callable[[str], None]) -> dict[str, Result]:
    """Measure every rung under every case, once a round, so that drift is in all of them.

    Where rounds differ, more follow, whatever they found: they are no second chance.
    """
    results: dict[str, Result] = {}
    for repeat in range(made.plan.rounds + made.plan.more_rounds):
        for case in cases(made.plan.delays):
            name = name_of(case)
            if repeat < made.plan.rounds or _rounds_differ(case, results[name]):
                note(f"round {repeat + 1}: {name} slowed")
                before = results[name].trials if repeat else ()
                trials = [made.run(case, source, repeat) for source in INPUTS]
                results[name] = _result([*before, *trials])
    return results


def _result(trials: Sequence[Trial]) -> Result:
    """A result as a run would save it, on a machine of which nothing is known.

    Otherwise the diagnosis would begin with idle processors: the loops have no workers.
    """
    result = Result(name="selftest", started="", environment={}, config={}, trials=trials)
    return summarised(result)


def _rounds_differ(case: Delays, result: Result) -> bool:
    """Whether the rounds of any rung are further apart than the tolerance."""
    (ladder,) = result.summary["ladder"]
    parts = [rung["part"] for rung in ladder["rungs"] if rung["part"]]
    apart_s: float = max(part["high"] - part["low"] for part in parts)
    return apart_s > 2 * WITHIN * min(case.values(), default=apart_s)


def medians(result: Result, name: str) -> dict[str, float]:
    """Seconds a sample by rung: those of the rung, or its ``part``."""
    (ladder,) = result.summary["ladder"]
    return {rung["rung"]: rung[name]["median"] for rung in ladder["rungs"] if rung[name]}


def codes(result: Result) -> list[str]:
    """Codes of the findings, the primary one first; none where none is primary."""
    found = sorted(result.findings, key=lambda finding: not finding.primary)
    return [finding.code for finding in found if found[0].primary]


def prefetched(
    made: Bench, without_s: Mapping[str, float], note: Callable[[str], None]
) -> Iterator[Prefetched]:
    """Slow down the device, each stage, and one stage on either side of a loop with prefetch.

    ``without_s``: seconds a sample of the rungs without prefetch and without delays.
    """
    plan = made.plan
    longer = {stage: plan.prefetch_factor * seconds for stage, seconds in plan.delays.items()}
    for case in cases(longer):
        if len(case) == 2 and set(case) != {"copy", "decode"}:
            continue
        name = name_of(case) if case else "device"
        device_s = plan.device_s if case else plan.slow_device_s
        note(f"with prefetch: {name} slowed")
        loop = {"inputs": ["store"], "workers": plan.workers, "steps": plan.prefetch_steps}
        rate = plan.batch_size / device_s
        trials = [
            made.run(case, "store", repeat, images_per_s=rate, **loop)
            for repeat in range(plan.rounds)
        ]
        found_s = plan.batch_size / median([trial.metrics["samples_per_s"] for trial in trials])
        slowest, expected_s = expected(plan, case, device_s, without_s)
        error = found_s / expected_s - 1
        yield Prefetched(
            name, plan.workers, slowest, expected_s, found_s, error, abs(error) <= WITHIN
        )


def expected(
    plan: Plan, case: Delays, device_s: float, without_s: Mapping[str, float]
) -> tuple[str, float]:
    """The slowest side of a loop with prefetch, and its seconds a step, real work included."""
    work_s = without_s["store"] - without_s["copy"] + prepare_s(case)
    copy_s = without_s["copy"] - without_s["synthetic"] + case.get("copy", 0.0)
    sides = {
        "workers": plan.batch_size * work_s / plan.workers,
        "copy and device": plan.batch_size * copy_s + device_s,
    }
    slowest = max(sides, key=lambda side: sides[side])
    return slowest, sides[slowest]
