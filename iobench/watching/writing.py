"""What was watched, as a run directory: result, tables and report."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from iobench.analysis.analyse import summarised
from iobench.machine.environment import describe
from iobench.machine.sampling import Samples
from iobench.result import Result
from iobench.rundir import RunDirectory
from iobench.trial import Outcome, Trial, TrialSpec
from iobench.trial_log import trial_line
from iobench.watching.figures import KILLED, outcome, why_nothing
from iobench.watching.tally import Tally


def written(
    folder: Path,
    settings: Mapping[str, Any],
    loaders: Mapping[int, Mapping[str, Any]],
    tallies: Mapping[int, Tally],
    samples: Samples,
    ended: bool,
) -> str:
    """Write everything; the verdict. ``ended``: the script came to its end, or said so.

    Raises:
        StoreError: a file cannot be written.
    """
    result = Result(
        name=settings["name"],
        started=settings["started"],
        environment=describe({}),
        config={"watch": {key: settings[key] for key in ("per_s", "samplers")}},
    )
    directory = RunDirectory(folder)
    directory.begin(result)
    for number, loader in loaders.items():
        trial, found = _trial(loader, settings, tallies[number], samples, ended)
        result = result.with_trial(trial)
        directory.add(trial_line(trial, found.series, found.samples))
    result = summarised(result)
    directory.finish(result)
    return str(result.summary["verdict"])


def _trial(
    loader: Mapping[str, Any],
    settings: Mapping[str, Any],
    tally: Tally,
    samples: Samples,
    ended: bool,
) -> tuple[Trial, Outcome]:
    params: dict[str, Any] = {"loader": loader["name"]}
    if loader["batch_size"] is not None:
        params["batch_size"] = loader["batch_size"]
    if settings["rank"]["world_size"] > 1:
        params |= {key: settings["rank"][key] for key in ("rank", "world_size")}
    spec = TrialSpec("watch", params)
    trial = Trial(spec.id, spec.kind, spec.params, spec.repeat, "done")
    if tally.origin_s is None or not tally.steps:
        return replace(trial, status="skipped", reason=why_nothing(tally)), Outcome({})
    found = outcome(
        tally,
        samples,
        step_cost_s=settings["step_cost_s"],
        processors=os.cpu_count() or 1,
        notes=() if ended else (KILLED,),
    )
    # The wall clock's moment of one on the monotonic clock.
    started_s = time.time() - time.perf_counter() + tally.origin_s
    lasted_s = tally.ended_s - tally.origin_s
    return (
        replace(
            trial,
            metrics=found.metrics,
            started_s=round(started_s, 3),
            seconds=round(lasted_s, 3),
        ),
        found,
    )
