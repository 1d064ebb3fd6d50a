"""The folder of a run: config.yaml, a line of trials.jsonl for each trial, the rest at the end."""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pandas as pd
from pydantic import ValidationError

from dataprep.counted import counted
from dataprep.errors import ConfigError, StoreError
from iobench.analysis.analyse import summarised
from iobench.config import BOUNDS, BenchConfig, dump
from iobench.errors import ResultError, RunConflict
from iobench.machine.environment import describe
from iobench.result import (
    LOG,
    RESULT,
    Columns,
    Logged,
    Result,
    read_log,
    read_result,
    run_line,
    trial_line,
    usable,
)
from iobench.run_tables import (
    SAMPLE_COLUMNS,
    SPAN_COLUMNS,
    all_series,
    as_csv,
    read_series,
    samples_table,
    series_table,
    spans_of,
    spans_table,
    trials_table,
)
from iobench.trace import SavedRun, Trace, trace_of
from iobench.trial import Span

Table: TypeAlias = Literal["trials", "series", "samples"]

CONFIG, TRIALS, SERIES = "config.yaml", "trials.parquet", "series.parquet"
SAMPLES, SPANS = "samples.parquet", "spans.parquet"
REPORT = "report.html"
SCRATCH = ".scratch"
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
_RANK = re.compile(r"rank-([0-9]{1,6})")
"""The folder of a rank within that of a watched job."""
# Disks that are not measured come and go, and the governor of processors changes.
_PASSING = {"disks", "governor"}
_WITH_RATES = {"loader", "train"}
"""Kinds of trials whose rates follow the rule that ``Result.rates`` names."""
_LASTING_OF_TARGETS = {"file_system", "kind", "device", "read_ahead_kb"}


def new_run_id() -> str:
    """A name that no other run has: the time in UTC, and 32 random bits."""
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def open_run(
    folder: Path,
    config: BenchConfig,
    environment: Mapping[str, Any],
    *,
    resume: bool,
    hosts: int = 1,
) -> Result | None:
    """Write the config of a run; returns the run in the folder that it continues, if any.

    Raises:
        RunConflict: it holds a run of another config, machine or number of hosts, a run whose
            rates follow the rule of an earlier version, or a run and ``resume`` is not set.
        ResultError: what it holds is damaged.
        StoreError: the folder cannot be written.
    """
    if not holds_run(folder):
        write_file(folder / CONFIG, dump(config).encode())
        return None
    found = read(folder)
    if found.run_id and not _RUN_ID.fullmatch(found.run_id):
        raise ResultError(f"{folder}: {found.run_id!r} is no run_id: the run was changed by hand")
    with usable(folder):
        changed = differing_config(found.config, config)
        differing = _other_machine(found.environment, environment)
    if changed:
        raise RunConflict(
            f"{folder} holds a run of another config ({changed} differ): choose another --output"
        )
    if differing:
        raise RunConflict(
            f"{folder} holds a run of another machine ({differing} differ): choose another --output"
        )
    if (earlier_hosts := max(1, len(found.hosts))) != hosts:
        raise RunConflict(
            f"{folder} holds a run on {counted(earlier_hosts, 'host')}, and this one is on "
            f"{hosts}: choose another --output"
        )
    if not found.rates and any(trial.kind in _WITH_RATES for trial in found.trials):
        raise RunConflict(
            f"{folder} holds rates of an earlier version, which counted samples that had been "
            "fetched before the clock started; new rates cannot be added to them: choose another "
            "--output"
        )
    if not resume:
        raise RunConflict(
            f"{folder} holds a run already: --resume goes on with it, another --output begins anew"
        )
    with usable(folder):
        summarised(found)  # fails now rather than after hours of measuring
    shutil.rmtree(folder / SCRATCH, ignore_errors=True)  # of a run that was killed
    write_file(folder / CONFIG, dump(config).encode())
    return replace(
        found,
        config=config.model_dump(mode="json"),
        run_id=found.run_id or new_run_id(),  # a run of an older version has none
    )


def begin_log(folder: Path, result: Result) -> None:
    """Start the log with the trials of ``result``, which are those of a continued run.

    Raises:
        StoreError: it cannot be written.
    """
    series, samples = (_columns(table) for table in read_tables(folder))
    spans = read_spans(folder)
    lines = [
        trial_line(
            trial, series.get(trial.id, {}), samples.get(trial.id, {}), spans.get(trial.id, ())
        )
        for trial in result.trials
    ]
    write_file(folder / LOG, b"".join([run_line(result), *lines]))
    (folder / RESULT).unlink(missing_ok=True)  # of the continued run


def add_line(folder: Path, line: bytes) -> None:
    """Append a line of ``iobench.result`` to the log.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        with (folder / LOG).open("ab") as log:
            log.write(line)
    except OSError as error:
        raise StoreError(f"cannot write {folder / LOG}: {error.strerror}") from None


def write_results(folder: Path, result: Result) -> None:
    """Write result, report and tables; the report before the tables, since people wait for it."""
    from iobench.report import render

    series, samples = read_tables(folder)
    spans = [spans_table(trial, of_trial) for trial, of_trial in read_spans(folder).items()]
    write_file(folder / RESULT, result.to_json())
    write_file(folder / REPORT, render(result, series, samples))
    write_file(folder / TRIALS, trials_table(result.trials).to_parquet())
    write_file(folder / SERIES, series.to_parquet())
    write_file(folder / SAMPLES, samples.to_parquet())
    write_file(folder / SPANS, all_series(spans, SPAN_COLUMNS).to_parquet())


@contextlib.contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """An empty folder for the files of a trial; it is removed afterwards, also after an error.

    Raises:
        OSError: it cannot be made.
    """
    scratch = (folder / SCRATCH).absolute()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        StoreError: it cannot be written.
    """
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise StoreError(f"cannot write {path}: {error.strerror}") from None


@contextlib.contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Make ``folder``, and keep other runs out of it for the ``with`` block.

    The folder itself is locked (flock(2)), which leaves no file and ends with the process. On a
    file system without locks other runs are not kept out.

    Raises:
        RunConflict: another run is at work there.
        ConfigError: the folder cannot be made, or not written.
    """
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ConfigError(f"cannot write in {folder}: {error.strerror}") from None
    with contextlib.ExitStack() as stack:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunConflict(
                f"another run is at work in {folder}: wait until it has ended, or choose another "
                "--output"
            ) from None
        except OSError:
            pass  # no locks here, or no permission to read: writing reports errors
        yield


def default_folder(name: str) -> Path:
    """``reports/NAME-20261121-143000``, in local time."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    return Path("reports") / f"{plain}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def holds_run(folder: Path) -> bool:
    """Whether there is a run, finished or not."""
    return (folder / RESULT).exists() or (folder / LOG).exists()


def read(folder: Path) -> Result:
    """The result in a run's folder; if the run was stopped, what it has logged.

    Raises:
        ResultError: there is none.
        SchemaTooNew: written by a newer version.
    """
    if (folder / LOG).exists() and not (folder / RESULT).exists():
        return _logged(folder).result
    return read_result(folder / RESULT, folder)


def read_tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table of the steps of each loop, and one of the readings of the machine during trials.

    Raises:
        ResultError: they are damaged.
    """
    if (folder / LOG).exists():
        logged = _logged(folder)
        steps = [series_table(trial, columns) for trial, columns in logged.series.items()]
        readings = [samples_table(trial, columns) for trial, columns in logged.samples.items()]
        return all_series(steps), all_series(readings, SAMPLE_COLUMNS)
    return read_series(folder / SERIES), read_series(folder / SAMPLES, SAMPLE_COLUMNS)


def read_spans(folder: Path) -> Mapping[str, Sequence[Span]]:
    """The epochs, batches of workers and steps of ranks, by the id of their trial.

    Empty for a run of an earlier version.

    Raises:
        ResultError: they are damaged.
    """
    if (folder / LOG).exists():
        return _logged(folder).spans
    return spans_of(read_series(folder / SPANS, SPAN_COLUMNS))


def run_trace(folder: Path) -> Trace:
    """The trace of a run, also of one that was killed.

    If ``folder`` holds the folders of watched ranks, ``rank-0`` and so on, it is that of all ranks.

    Raises:
        ResultError: there is no run, or it cannot be read.
        SchemaTooNew: written by a newer version.
    """
    folders = [folder]
    if not holds_run(folder):
        ranks = {
            int(match[1]): path
            for path in folder.glob("rank-*")
            if (match := _RANK.fullmatch(path.name)) and holds_run(path)
        }
        folders = [ranks[rank] for rank in sorted(ranks)] or folders
    runs = []
    for each in folders:
        result = read(each)
        series, samples = read_tables(each)
        runs.append(SavedRun(result, series, samples, read_spans(each)))
    return trace_of(runs)


def run_csv(folder: Path, table: Table = "trials") -> bytes:
    """A table of a run, also of one that was killed, with the columns of its Parquet file.

    It has a row for each trial, for each step of training loops (``series``), or for each reading
    of the machine (``samples``).

    Raises:
        ResultError: there is no run, or its table cannot be read.
        SchemaTooNew: written by a newer version.
    """
    result = read(folder)
    if table == "trials":
        return as_csv(trials_table(result.trials))
    series, samples = read_tables(folder)
    return as_csv(series if table == "series" else samples)


def _logged(folder: Path) -> Logged:
    path = folder / LOG
    try:
        return read_log(path.read_bytes(), str(path))
    except OSError as error:
        raise ResultError(f"cannot read {path}: {error.strerror}") from None


def _columns(table: pd.DataFrame) -> dict[str, Columns]:
    """The columns of each trial."""
    plain = table.drop(columns=["step"], errors="ignore")
    return {
        str(trial): {
            str(name): rows[name].tolist() for name in rows.columns if rows[name].notna().any()
        }
        for trial, group in plain.groupby("trial", sort=False)
        for rows in [group.drop(columns="trial")]
    }


def redraw(folder: Path) -> Path:
    """Draw the report of a saved run again.

    Raises:
        ResultError: there is no run.
    """
    from iobench.report import render

    write_file(folder / REPORT, render(summarised(read(folder)), *read_tables(folder)))
    return folder / REPORT


def differing_machine(environment: Mapping[str, Any]) -> str:
    """Keys in which the machine of another run differs from this one; empty if none.

    File systems do not count, since the other run may have other targets.
    """
    ours, theirs = ({**one, "targets": {}} for one in (describe({}), environment))
    return _other_machine(theirs, ours)


def differing_config(old: Mapping[str, Any], config: BenchConfig) -> str:
    """Keys in which the config of a run differs from the one that is to continue it.

    Keys that are newer than the run count as their default. Keys that do not change what is
    measured (``BOUNDS``) may differ.
    """
    try:
        then = BenchConfig.model_validate(old).model_dump(mode="json")
    except ValidationError:  # of a version with other keys
        then = dict(old)
    now = config.model_dump(mode="json")
    found = _differences(then, now)
    return ", ".join(key for key in found if key.partition(".")[0] not in BOUNDS)


def _other_machine(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Keys in which two environments differ, of those that figures depend on.

    Keys that only one of them has do not count: an older version did not look for them, or a
    metadata service did not answer this time.
    """
    return ", ".join(_differences(_lasting(old), _lasting(new), shared=True))


def _lasting(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The environment without what changes from day to day, such as free space."""
    found = {key: value for key, value in environment.items() if key not in _PASSING}
    targets = environment.get("targets") or {}
    found["targets"] = {
        label: {key: value for key, value in target.items() if key in _LASTING_OF_TARGETS}
        for label, target in targets.items()
    }
    if "gpus" in found:
        found["gpus"] = [
            {key: value for key, value in gpu.items() if not key.endswith(".current")}
            for gpu in environment["gpus"] or ()
        ]
    return found


def _differences(old: Any, new: Any, path: str = "", *, shared: bool = False) -> list[str]:
    """Dotted keys whose values differ.

    ``shared``: without keys that only one side has; a library more or less does count.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        both = shared and path != "libraries"
        found = []
        for key in sorted(old.keys() & new.keys() if both else old.keys() | new.keys()):
            inner = f"{path}.{key}".lstrip(".")
            found += _differences(old.get(key, ...), new.get(key, ...), inner, shared=shared)
        return found
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = zip(old, new, strict=True)
        return [path] if any(_differences(*pair, shared=shared) for pair in pairs) else []
    return [] if old == new else [path]
