"""PURE. The pass mark of MLPerf Storage, for loops that emulate one of its workloads.

The rules are in the repository mlcommons/storage: Submission_guidelines.md (v2.0, sections 4, 6.6
and 7) and Rules.md (v3.0, sections 3.1.2 and 3.3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.loops import Loop
from iobench.analysis.repeats import is_number, median_of, metric_values
from iobench.consumers.accelerators import RATES, StorageWorkload
from iobench.machine.coldness import UNCACHED_MULTIPLE
from iobench.results.numbers import precise_percent, size
from iobench.results.result import Result
from iobench.results.wording import model_words

MIN_STEPS = 500
"""Minimum number of steps in an epoch."""

MIN_RUNS = 5
"""Minimum number of runs that count. One run before them is to warm up and does not count."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One rule of MLPerf Storage.

    Attributes:
        rule: the rule in words.
        measured: the value of the loop in words.
        is_met: whether the loop meets the rule; None if that is unknown.
    """

    rule: str
    measured: str
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class PassMark:
    """The requirements of MLPerf Storage for a loop that emulates one of its workloads.

    Attributes:
        group: the loop.
        device: the name of the rate, such as ``H100-mlperf``.
        model: the model of the workload.
        requirements: the pass mark first, then the other rules.
    """

    group: str
    device: str
    model: str
    requirements: tuple[Requirement, ...]

    @property
    def is_met(self) -> bool:
        """Whether all requirements are met."""
        return all(requirement.is_met for requirement in self.requirements)

    def as_dict(self) -> dict[str, Any]:
        """Return the requirements as ``result.json`` stores them."""
        return {**asdict(self), "is_met": self.is_met}


def pass_marks(result: Result, loops: Sequence[Loop]) -> Iterator[PassMark]:
    """Yield the requirements for each loop that emulates a workload of MLPerf Storage."""
    for loop in loops:
        rate = RATES.get(str(loop.params.get("preset")))
        if rate is None or rate.workload is None or not loop.trials:
            continue
        requirements = tuple(_requirements(result, loop, rate.workload))
        yield PassMark(loop.group, rate.name, model_words(rate.model), requirements)


def _requirements(result: Result, loop: Loop, workload: StorageWorkload) -> Iterator[Requirement]:
    """Yield the requirements for a loop, the pass mark first."""
    yield _utilisation(loop, workload)
    batch_size = loop.params.get("batch_size")
    yield Requirement(
        f"batches of {workload.batch_size} samples",
        f"batches of {batch_size}",
        batch_size == workload.batch_size,
    )
    yield _data(result, loop)
    yield _steps(loop)
    repeats = len(loop.trials)
    yield Requirement(
        f"a run to warm up, then {MIN_RUNS} runs that count",
        counted(repeats, "repeat"),
        repeats > MIN_RUNS,
    )


def _utilisation(loop: Loop, workload: StorageWorkload) -> Requirement:
    """Return the requirement that each run reaches the pass mark.

    If there are more than ``MIN_RUNS`` runs, the first run is to warm up and does not count.
    """
    trials = sorted(loop.trials, key=lambda trial: trial.repeat)
    runs = trials[1:] if len(trials) > MIN_RUNS else trials
    rule = f"accelerator utilisation (au_mlperf) of at least {workload.pass_mark * 100:.0f} %"
    shares = metric_values(runs, "au_mlperf")
    if not shares:
        return Requirement(rule, "unknown", None)
    lowest = min(shares)
    measured = f"{precise_percent(lowest)} in the worst run"
    return Requirement(rule, measured, lowest >= workload.pass_mark)


def _data(result: Result, loop: Loop) -> Requirement:
    """Return the requirement that the data are too large for the page cache of the hosts."""
    rule = f"data of at least {UNCACHED_MULTIPLE} times the memory of the hosts"
    objects = median_of(loop.trials, "objects")
    object_bytes = median_of(loop.trials, "mean_object_bytes")
    memory_bytes = result.environment.get("memory_bytes")
    if objects is None or object_bytes is None or not is_number(memory_bytes):
        return Requirement(rule, "unknown", None)
    data_bytes = objects * object_bytes
    measured = f"{size(data_bytes)} of data, {size(float(memory_bytes))} of memory"
    return Requirement(rule, measured, data_bytes >= UNCACHED_MULTIPLE * float(memory_bytes))


def _steps(loop: Loop) -> Requirement:
    """Return the requirement that an epoch has enough steps."""
    rule = f"at least {MIN_STEPS} steps in an epoch"
    steps = median_of(loop.trials, "steps")
    if steps is None:
        return Requirement(rule, "unknown", None)
    steps /= int(loop.params.get("epochs") or 1)
    return Requirement(rule, counted(round(steps), "step"), steps >= MIN_STEPS)
