"""A run before it begins: which trials are to come, and what they will take."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from iobench.config import BenchConfig
from iobench.forecast import Forecast, forecast
from iobench.others import clashes, others
from iobench.plan import trials
from iobench.result import Result, usable
from iobench.rundir import differing_machine, holds_run, read
from iobench.survey import survey
from iobench.trial import TrialSpec


def preview(
    config: BenchConfig,
    *,
    resumed: Path | None = None,
    like: Path | None = None,
    thorough: bool = True,
) -> Forecast:
    """What ``config`` will take, without touching anything.

    Args:
        config: what is asked for.
        resumed: the folder of a run that is gone on with: what is done there is not done again,
            and says how long the rest takes.
        like: the folder of another run, which says how long trials take.
        thorough: look at what takes minutes to look at, too (``survey``).

    Raises:
        ResultError: ``like`` holds no run.
        ConfigError: no such file of prices.
    """
    specs = trials(config)
    begun = read(resumed) if resumed is not None and holds_run(resumed) else None
    model = read(like) if like is not None else None
    to_come = _to_come(specs, begun)
    facts = survey(config, to_come, thorough=thorough)
    earlier = [trial for result in (model, begun) if result is not None for trial in result.trials]
    saved = [run for run in (like, resumed) if run is not None]
    with usable(*saved) if saved else contextlib.nullcontext():
        problems = (*facts.problems, *_unlike(model), *clashes(to_come))
        found = forecast(config, to_come, replace(facts, problems=problems), earlier)
    return replace(found, before=len(specs) - len(to_come), others=others(to_come))


def _to_come(specs: Sequence[TrialSpec], begun: Result | None) -> list[TrialSpec]:
    done = {trial.id for trial in begun.trials if trial.status == "done"} if begun else set()
    return [spec for spec in specs if spec.id not in done]


def _unlike(model: Result | None) -> list[str]:
    """A word where the run whose times are taken was another machine's."""
    if model is None:
        return []
    differing = differing_machine(model.environment)
    return [f"times are those of another machine ({differing} differ)"] if differing else []
