"""Targets: saved runs, what fio prints, series, and the commands that read them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import yaml

from iobench.cli import app as iobench_app
from iobench.config import load as load_config
from iobench.errors import IobenchError, TrialFailed
from iobench.plan import trials
from iobench.probes.disk import fio
from iobench.result import Result
from iobench.run_tables import read_series
from iobench.rundir import RunDirectory
from tests.reliability.hostile import mutations as m
from tests.reliability.hostile.fuzz import NAME, Target
from tests.reliability.hostile.outputs import command
from tests.reliability.hostile.tables import table_mutation

_GOLDEN = Path(__file__).parents[2] / "golden"
_ROOT = Path(tempfile.mkdtemp(prefix="hostile-", dir="/dev/shm"))
_RUN = _ROOT / "hostile-run"


def results() -> Sequence[bytes]:
    """Runs of earlier versions, few trials of each kind."""
    found = []
    for path in (_GOLDEN / "run-schema-1/result.json", _GOLDEN / "compare/base.json"):
        content = json.loads(path.read_text())
        kept: dict[str, int] = {}
        trials = []
        for trial in content["trials"]:
            kept[trial["kind"]] = kept.get(trial["kind"], 0) + 1
            if kept[trial["kind"]] <= 4 or trial["status"] != "done":
                trials.append(trial)
        found.append(json.dumps({**content, "trials": trials}).encode())
    return found


def trial_of(data: bytes, rng: Random) -> bytes:
    """One trial's part made hostile, or the whole."""
    try:
        content = json.loads(data)
        number = rng.randrange(len(content["trials"]))
        trial = json.dumps(content["trials"][number]).encode()
        content["trials"][number] = json.loads(m.json_tree(trial, rng))
        return json.dumps(content).encode()
    except (ValueError, LookupError, TypeError, RecursionError):
        return m.json_tree(data, rng)


def read_result(data: bytes) -> None:
    """What is read is written as the same."""
    found = Result.from_json(data, NAME)
    assert Result.from_json(found.to_json(), NAME) == found


def run_with(*arguments: str) -> Callable[[bytes], None]:
    """``iobench ARGUMENTS``; ``RUN`` is a folder with that result, ``BASE`` a sound one."""

    def read(data: bytes) -> None:
        _RUN.mkdir(exist_ok=True)
        (_RUN / "result.json").write_bytes(data)
        named = {
            "RUN": os.fspath(_RUN),
            "BASE": os.fspath(_GOLDEN / "compare/base.json"),
            "LATER": os.fspath(_GOLDEN / "compare/later.json"),
            "CONFIG": os.fspath(_ROOT / "config.yaml"),
        }
        try:
            command(*[named.get(part, part) for part in arguments], app=iobench_app)
        finally:
            (_RUN / "report.html").unlink(missing_ok=True)

    return read


def planned() -> Sequence[bytes]:
    """A run of the config that ``run_with`` names, as far as one trial."""
    config = _ROOT / "config.yaml"
    target = {"label": "disk", "path": os.fspath(_ROOT)}
    content = {"name": "hostile", "repeats": 2, "disk": {"targets": [target]}}
    config.write_text(yaml.safe_dump(content))
    told = json.loads(results()[0])
    specs = trials(load_config(config, {}))
    trial = next(one for one in told["trials"] if one["status"] == "done")
    made = {**trial, "id": specs[0].id, "kind": specs[0].kind, "params": dict(specs[0].params)}
    told["config"] = load_config(config, {}).model_dump(mode="json")
    return [json.dumps({**told, "trials": [made]}).encode(), *results()]


def redrawn(data: bytes) -> None:
    """A report of a sound run whose tables of steps and of readings are hostile."""
    for name in ("series.parquet", "samples.parquet"):
        _RUN.mkdir(exist_ok=True)
        (_RUN / name).write_bytes(data)
    try:
        run_with("report", "RUN")(results()[0])
    finally:
        for name in ("series.parquet", "samples.parquet"):
            (_RUN / name).unlink(missing_ok=True)


def gone_on_with(data: bytes) -> None:
    """A run as ``--resume`` finds it, before anything is measured."""
    _RUN.mkdir(exist_ok=True)
    (_RUN / "result.json").write_bytes(data)
    config = load_config(_ROOT / "config.yaml", {})
    RunDirectory(_RUN).open(config, json.loads(results()[0])["environment"], resume=True)


def reports() -> Sequence[bytes]:
    """As fio 3 prints it, cut to what is read."""
    percentile = {
        "50.000000": 1000,
        "90.000000": 2000,
        "95.000000": 2500,
        "99.000000": 3000,
        "99.900000": 4000,
    }
    side = {
        "io_bytes": 4096000,
        "total_ios": 1000,
        "runtime": 500,
        "clat_ns": {"percentile": percentile},
    }
    job = {"error": 0, "read": side, "write": side}
    return [json.dumps({"fio version": "fio-3.33", "jobs": [job]}).encode()]


def read_fio(data: bytes) -> None:
    """Its figures, or what it said."""
    done = subprocess.CompletedProcess(["fio"], 0, data.decode("utf-8", "replace"), "")
    params: dict[str, Any] = {"operation": "read"}
    moved = fio._moved(fio._report(done), params, None)
    assert moved.bytes >= 0
    assert moved.operations > 0
    assert all(seconds >= 0 for seconds in moved.latency_s.values())


def series() -> Sequence[bytes]:
    """Of a golden run."""
    return [(_GOLDEN / "run-schema-1/series.parquet").read_bytes()]


def small_series() -> Sequence[bytes]:
    """A few rows of it."""
    table = pd.read_parquet(io.BytesIO(series()[0])).head(5)
    sink = io.BytesIO()
    table.to_parquet(sink)
    return [sink.getvalue()]


def read_table(data: bytes) -> None:
    """A table of steps, by trial."""
    path = _ROOT / NAME
    path.write_bytes(data)
    read_series(path, ["a"])


def targets() -> list[Target]:
    """All of them."""
    family, own = "benchmarks", ("iobench/",)
    # A run that lacks what a question is about is sound: what lacks is said in place of an answer.
    lacks = "cannot be told: give |: not to be told"
    mutate, place = m.stacked(trial_of, m.json_tree), f"hostile|config|{lacks}"
    commands = (
        ("report", ("report", "RUN"), 200),
        ("compare", ("compare", "BASE", "RUN"), 40),
        ("compare of three", ("compare", "BASE", "LATER", "RUN", "--force"), 60),
        ("compare --against", ("compare", "RUN", "--against", "RUN", "--json"), 40),
        ("advise", ("advise", "RUN"), 40),
        ("cost", ("cost", "RUN", "--instance-usd-per-h", "1", "--samples", "1000"), 20),
        ("scale", ("scale", "RUN", "--devices", "8"), 20),
        ("export", ("export", "RUN"), 20),
    )
    words = "fio|" + NAME
    ahead = (
        ("run --dry-run --like", ("run", "CONFIG", "--dry-run", "--like", "RUN")),
        ("run --dry-run --resume", ("run", "CONFIG", "--dry-run", "--resume", "--output", "RUN")),
    )
    return [
        Target("result", family, results, mutate, read_result, own),
        Target(
            "fio",
            family,
            reports,
            m.stacked(m.json_tree),
            read_fio,
            own,
            words,
            (TrialFailed, OSError),
        ),
        Target(
            "series",
            family,
            small_series,
            m.stacked(table_mutation),
            read_table,
            own,
            NAME,
            (IobenchError,),
        ),
        *(
            Target(
                f"iobench {name}", family, results, mutate, run_with(*told), own, place, cost=cost
            )
            for name, told, cost in commands
        ),
        *(
            Target(f"iobench {name}", family, planned, mutate, run_with(*told), own, place, cost=30)
            for name, told in ahead
        ),
        Target("run to resume", family, planned, mutate, gone_on_with, own, place, cost=30),
        Target(
            "tables of a report",
            family,
            small_series,
            m.stacked(table_mutation),
            redrawn,
            own,
            place,
            cost=200,
        ),
    ]
