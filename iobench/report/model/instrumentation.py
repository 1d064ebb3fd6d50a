"""PURE. What measuring cost: a step's own clock, and reading the machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iobench.diagnosis.instrumentation import AT_MOST
from iobench.report.model.numbers import is_number, percent, seconds
from iobench.report.model.shapes import Section, Words
from iobench.result import Result
from iobench.stats import median
from iobench.trial import Trial


def section(result: Result) -> Section | None:
    """A line on steps and one on sampling; none of runs that did not measure it."""
    done = [trial for trial in result.trials if trial.status == "done"]
    lines = [line for line in (_steps(done), _sampling(done)) if line]
    if not lines:
        return None
    return Section("instrumentation", "What measuring cost", (Words(tuple(lines)),))


def _steps(trials: Iterable[Trial]) -> str:
    timed = [trial for trial in trials if _number(trial, "harness_share") is not None]
    if not timed:
        return ""
    cost_s = median([_number(trial, "harness_step_s") or 0.0 for trial in timed])
    shares = [_number(trial, "harness_share") or 0.0 for trial in timed]
    return f"Instrumentation: {seconds(cost_s)} a step, {_range(shares)} of a step."


def _sampling(trials: Iterable[Trial]) -> str:
    shares = [
        share for trial in trials if (share := _number(trial, "sampling_core_share")) is not None
    ]
    if not shares:
        return ""
    return (
        f"Sampling the machine: {_range(shares)} of one core, in another process than the loop’s."
    )


def _range(shares: Sequence[float]) -> str:
    """The median; where trials differ also the worst of them, which is to be below 1 %."""
    middle, worst = median(shares), max(shares)
    said = percent(middle)
    if len(shares) > 1:
        said += f" (the median of {len(shares)} trials; at most {percent(worst)})"
    return said if worst <= AT_MOST else f"{said}, above the 1 % that is aimed at,"


def _number(trial: Trial, metric: str) -> float | None:
    value = trial.metrics.get(metric)
    return float(value) if is_number(value) else None
