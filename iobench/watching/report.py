"""Write the report of a watched run: a trial for each loader, in the folder of the run."""

from __future__ import annotations

import timeit
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from iobench.analysis.analyse import summarised
from iobench.clock import since_1970_s
from iobench.errors import Unavailable
from iobench.machine.environment import describe
from iobench.machine.sampling import Samples
from iobench.results.result import STEADY_STATE, Result, trial_line
from iobench.results.trial import Outcome, Params, Trial, TrialSpec
from iobench.runner.run_folder import add_line, begin_log, write_results
from iobench.watching.figures import outcome, read_step_log
from iobench.watching.proxy import TimedEpoch
from iobench.watching.session import StepLog, WatchedLoader, WatchSettings

KILLED = "the script ended without notice: steps of its last second may be missing"
"""The note of a report whose script has not announced its end."""

_CALIBRATION_STEPS = 2_000
"""The number of steps of each pass that ``step_cost_s`` measures."""


def write(
    folder: Path,
    settings: WatchSettings,
    loaders: Sequence[WatchedLoader],
    records: bytes,
    samples: Samples,
    *,
    announced_end: bool,
) -> str:
    """Write the run folder: result, tables and report. Returns the verdict.

    Args:
        folder: the run folder.
        settings: the settings of the run.
        loaders: the watched loaders, in the order of their numbers.
        records: the log of steps.
        samples: the readings of the machine.
        announced_end: whether the script has announced its end. If not, it may have been killed.

    Raises:
        StoreError: a file cannot be written.
    """
    config = {"watch": {"per_s": settings.per_s, "samplers": list(settings.samplers)}}
    result = Result(settings.name, settings.started, describe({}), config, rates=STEADY_STATE)
    begin_log(folder, result)
    table, cost_s = read_step_log(records), step_cost_s()
    notes = () if announced_end else (KILLED,)
    for number, loader in enumerate(loaders):
        loop, reason = Outcome({}), ""
        try:
            loop = outcome(
                table,
                number,
                samples,
                step_cost_s=cost_s,
                notes=notes,
                replay_batches=loader.replay,
            )
        except Unavailable as error:
            reason = str(error)
        trial = _trial(_params(settings, loader), loop, reason)
        result = result.with_trial(trial)
        add_line(folder, trial_line(trial, loop.series, loop.samples, loop.spans))
    result = summarised(result)
    write_results(folder, result)
    return str(result.summary["verdict"])


def _trial(params: Params, loop: Outcome, reason: str) -> Trial:
    """The trial of a loader.

    Args:
        params: its parameters.
        loop: the figures of the loop.
        reason: why the loop has no figures; empty if it has them.
    """
    spec = TrialSpec("watch", params)
    if reason:
        return Trial(spec.id, spec.kind, params, spec.repeat, "skipped", reason=reason)
    _, ended_s = loop.counted_s or (0.0, 0.0)
    begun_s = since_1970_s(loop.origin_s or 0.0)
    return Trial(
        spec.id,
        spec.kind,
        params,
        spec.repeat,
        "done",
        metrics=loop.metrics,
        started_s=round(begun_s, 3),
        seconds=round(ended_s, 3),
        time_zero_s=begun_s,
    )


def _params(settings: WatchSettings, loader: WatchedLoader) -> Params:
    """The parameters of the trial of a loader. Unknown values are left out.

    The rank is only a parameter if the job has several processes.
    """
    params: dict[str, str | int] = {}
    if loader.loader:
        params["loader"] = loader.loader
    if loader.batch_size:
        params["batch_size"] = loader.batch_size
    if settings.world_size > 1:
        params["rank"] = settings.rank
        params["world_size"] = settings.world_size
    return params


def step_cost_s() -> float:
    """The seconds that watching adds to a step.

    This is the difference between a watched and a plain pass over a list. Each pass is measured
    three times, and the shortest time counts, since other work on the machine only adds time.
    """
    batches = [([0] * 32, [0] * 32)] * _CALIBRATION_STEPS

    def watched_pass() -> None:
        # A deque of length 0 takes all items of an iterator, and keeps none.
        deque(TimedEpoch(lambda: iter(batches), 0, 0, StepLog(len)), 0)

    watched_s = min(timeit.repeat(watched_pass, number=1, repeat=3))
    plain_s = min(timeit.repeat(lambda: deque(batches, 0), number=1, repeat=3))
    return max(0.0, watched_s - plain_s) / _CALIBRATION_STEPS
