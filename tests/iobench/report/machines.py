"""Readings of a machine that was never there, and a loop that was watched on it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pandas as pd

from iobench.result import Result
from iobench.run_tables import samples_table
from iobench.rundir import summarised
from iobench.samplers.recorder import Samples
from iobench.trial import Trial, TrialSpec
from iobench.watching.figures import outcome
from iobench.watching.tally import Tally
from tests.iobench.report.results import ENVIRONMENT, HOSTILE, Run

GREATEST = {
    **{f"cpu.{name}_share": 0.5 for name in ("user", "system", "iowait", "steal")},
    **{f"tree.{name}_cores": 8.0 for name in ("user", "system")},
    **{f"disk.{name}_bytes_per_s": 2e9 for name in ("read", "written")},
    **{f"network.{name}_bytes_per_s": 1e9 for name in ("received", "sent", "loopback")},
    **{f"page-cache.{name}_bytes": 6e10 for name in ("cached", "dirty")},
    **{f"gpu.{number}_utilisation_share": 1.0 for number in range(8)},
    **{f"gpu.{number}_memory_bytes": 8e10 for number in range(8)},
    **{f"gpu.{number}_power_w": 700.0 for number in range(8)},
}


def readings(trials: Sequence[Trial], rows: int = 200, per_s: float = 2.0) -> pd.DataFrame:
    """For each of them, from before its first batch on; one sampler of somebody else's."""
    drawn = random.Random(11)
    tables = []
    for trial in trials:
        columns = {
            name: [drawn.uniform(0, most) for _ in range(rows)] for name, most in GREATEST.items()
        }
        columns[f"{HOSTILE}.$$x$$"] = [1.0] * rows
        times = [number / per_s - 3 for number in range(rows)]
        tables.append(samples_table(trial.id, {"time_s": times, **columns}))
    return pd.concat(tables, ignore_index=True)


def timed(run: Run, rows: int = 200) -> tuple[Result, pd.DataFrame, pd.DataFrame]:
    """A run with training loops as it is written now: its steps have times, its loops readings."""
    table = run.table()
    assert table is not None
    table["time_s"] = table["step_end_s"] + 1.5
    result = run.result()
    loops = [trial for trial in result.trials if trial.kind == "train" and trial.repeat == 0]
    return result, table, readings(loops, rows)


def watched(names: Sequence[str] = ("train", "validation"), steps: int = 2_000) -> Run:
    """A script that watched loaders of these names: result, steps and readings."""
    drawn = random.Random(5)
    run = Run("mine", repeats=1)
    for name in names:
        tally, now_s = Tally(), 1000.0
        for step in range(steps):
            wait_s, work_s = drawn.expovariate(20), drawn.uniform(0.05, 0.06)
            tally.add((step // 500, now_s, now_s + wait_s, now_s + wait_s + work_s, 32.0))
            now_s += wait_s + work_s
        notes = ("no series of GPUs: nvidia-ml-py is not installed",)
        found = outcome(tally, Samples({}, 0.003, notes), step_cost_s=4e-6)
        spec = TrialSpec("watch", {"loader": name})
        run.trials.append(
            Trial(spec.id, spec.kind, spec.params, 0, "done", found.metrics, seconds=now_s - 1000)
        )
        run.series.append(pd.DataFrame({"trial": spec.id, **found.series}))
    return run


def watched_result(run: Run) -> Result:
    """As its companion saves it."""
    started = "2026-11-21T14:35:00+00:00"
    made = Result("mine", started, ENVIRONMENT, {"watch": {"per_s": 2.0}}, tuple(run.trials))
    return summarised(made)
