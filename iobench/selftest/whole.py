"""The ladder held against delays that are known: climbed, summarised and diagnosed as in a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from iobench.analysis.analyse import summarised
from iobench.clock import Clock, SystemClock
from iobench.errors import Unavailable
from iobench.loaders.protocol import need_framework
from iobench.result import Result
from iobench.selftest.bench import LOADER, Bench, bench
from iobench.selftest.cases import INPUTS, WITHIN, Case, Delays, Plan, Stage, cases
from iobench.selftest.others import Others
from iobench.selftest.prefetched import Prefetched, expected
from iobench.selftest.recovered import Recovered, recovered
from iobench.stats import median
from iobench.trial import Trial

CODES: Mapping[Stage, str] = {
    "copy": "slow-copy",
    "augment": "slow-augmentation",
    "decode": "slow-decode",
    "fetch": "slow-store-latency",
}
"""The finding that names each stage."""

_WITHOUT = Case(Delays()).name

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Injected:
    """What was found of delays.

    Attributes:
        rungs: seconds a sample of each rung where nothing is injected.
        ladder: a row for each delay, without prefetch.
        prefetch: a row for each loop with prefetch.
        others_share: of all processors' time, what other programs took meanwhile.
        not_run: what could not be measured here, and why.
    """

    rungs: Mapping[str, float] = field(default_factory=dict)
    ladder: Sequence[Recovered] = ()
    prefetch: Sequence[Prefetched] = ()
    others_share: float | None = None
    not_run: Sequence[tuple[str, str]] = ()

    @property
    def ok(self) -> bool:
        """Whether all that was run was found."""
        return all(row.ok for row in self.ladder) and all(row.ok for row in self.prefetch)

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "rungs_s": dict(self.rungs),
            "ladder": [row.as_dict() for row in self.ladder],
            "prefetch": [row.as_dict() for row in self.prefetch],
            "others_busy_share": self.others_share,
            "not_run": [{"name": name, "why": why} for name, why in self.not_run],
        }


def injected(
    note: Note,
    *,
    rounds: int | None = None,
    plan: Plan | None = None,
    clock: Clock | None = None,
) -> Injected:
    """Climb the ladder under every case, in ``rounds``; then loops with prefetch.

    On a clock that stands still, loops with prefetch are those of the mock loader: processes of
    their own share no such clock.
    """
    plan, clock = plan or Plan(), clock or SystemClock()
    plan = replace(plan, rounds=rounds or plan.rounds)
    try:
        need_framework("torch")
    except Unavailable as error:
        return Injected(not_run=[("delays", str(error))])
    with tempfile.TemporaryDirectory(prefix="iobench-selftest-") as folder:
        note("drawing images")
        with bench(plan, clock, Path(folder)) as made, Others() as others:
            trials = _climbed(made, note)
            rungs = _rungs(trials[_WITHOUT])
            loader = LOADER if isinstance(clock, SystemClock) else "mock"
            steps = _with_prefetch(made, rungs, loader, note)
    rows = [row for case in cases(plan.delays) for row in _rows(case, trials)]
    return Injected(rungs, rows, steps, others.share)


def _climbed(made: Bench, note: Note) -> dict[str, list[Trial]]:
    """Every rung under every case, once a round, so that what drifts is in all of them.

    The ladder without delays is climbed more often: every other is held against it.
    """
    plan = made.plan
    trials: dict[str, list[Trial]] = {}
    for number in range(plan.rounds):
        for case in _in_turn(plan):
            note(f"round {number + 1} of {plan.rounds}: {case.name} slowed")
            _climb(made, case, trials)
    for _ in range(plan.more_rounds):
        if not (unsettled := [case for case in cases(plan.delays) if _differ(case, trials)]):
            break
        for case in (Case(Delays()), *unsettled):
            note(f"rounds differ, one more: {case.name} slowed")
            _climb(made, case, trials)
    return trials


def _climb(made: Bench, case: Case, trials: dict[str, list[Trial]]) -> None:
    """One ladder more of a case."""
    before = trials.setdefault(case.name, [])
    repeat = len(before) // len(INPUTS)
    before += [made.run(case, source, repeat) for source in INPUTS]


def _differ(case: Case, trials: Mapping[str, Sequence[Trial]]) -> bool:
    """Whether any rung of a case lies further apart in its rounds than what is allowed of them.

    By how far apart alone, whatever was found: more rounds are no second chance.
    """
    if not case.stages:
        return False
    (ladder,) = _result(trials[case.name]).summary["ladder"]
    parts = [rung["part"] for rung in ladder["rungs"] if rung["part"]]
    apart_s: float = max(part["high"] - part["low"] for part in parts)
    return apart_s > 2 * WITHIN * min(case.delays[stage] for stage in case.stages)


def _in_turn(plan: Plan) -> Iterator[Case]:
    """The cases of a round; nothing is injected in between, again and again."""
    without, *others = cases(plan.delays)
    for place, case in enumerate(others):
        if place % plan.between == 0:
            yield without
        yield case


def _with_prefetch(
    made: Bench, rungs: Mapping[str, float], loader: str, note: Note
) -> list[Prefetched]:
    plan = made.plan
    found: dict[str, list[float]] = {}
    loops = list(_prefetched(plan))
    for repeat in range(plan.rounds):
        for name, case, device_s in loops:
            note(f"with prefetch, round {repeat + 1} of {plan.rounds}: {name} slowed")
            changed: dict[str, Any] = {"workers": plan.workers, "steps": plan.prefetch_steps}
            changed["images_per_s"] = plan.batch_size / device_s
            if loader == "mock":
                changed |= {"loader": loader, "item_s": case.delays.prepare_s}
            trial = made.run(case, "store", repeat, **changed)
            found.setdefault(name, []).append(_step_s(trial))
    rows = []
    for name, case, device_s in loops:
        slowest, seconds = expected(case, plan, rungs, device_s)
        rows.append(Prefetched(name, plan.workers, slowest, seconds, median(found[name])))
    return rows


def _prefetched(plan: Plan) -> Iterator[tuple[str, Case, float]]:
    """A slow device, each stage alone, and one stage on either side: names, and the device."""
    for case in cases(plan.delays.times(plan.prefetch_factor)):
        if not case.stages:
            yield "device", case, plan.slow_device_s
        elif len(case.stages) == 1 or case.stages == ("copy", "decode"):
            yield case.name, case, plan.device_s


def _step_s(trial: Trial) -> float:
    return float(trial.params["batch_size"] / trial.metrics["samples_per_s"])


def _rows(case: Case, trials: Mapping[str, Sequence[Trial]]) -> Iterator[Recovered]:
    result = _result(trials[case.name])
    found = sorted(result.findings, key=lambda finding: not finding.primary)
    without = _parts(_result(trials[_WITHOUT]))
    codes = [finding.code for finding in found] if any(one.primary for one in found) else []
    yield from recovered(case, _parts(result), without, codes, CODES)


def _result(trials: Sequence[Trial]) -> Result:
    """As a run would keep them, of a machine of which nothing is known.

    A loop without workers has too few of them where processors are idle, which is what would be
    said first: here it is asked for the stage.
    """
    return summarised(Result(name="selftest", started="", environment={}, config={}, trials=trials))


def _parts(result: Result) -> dict[str, float]:
    """Seconds a sample that each rung costs: medians of differences within rounds."""
    (ladder,) = result.summary["ladder"]
    return {rung["rung"]: rung["part"]["median"] for rung in ladder["rungs"] if rung["part"]}


def _rungs(trials: Sequence[Trial]) -> dict[str, float]:
    """Seconds a sample of each rung."""
    (ladder,) = _result(trials).summary["ladder"]
    return {rung["rung"]: rung["seconds_per_sample"]["median"] for rung in ladder["rungs"]}
