"""The folder of a run: write its files, lock it, and read it again.

``config.yaml`` is written first. When a trial ends, a line is added to the log ``trials.jsonl``.
All other files are written at the end of the run. The log is kept, so it has all trials also if the
run is killed while these files are written.
"""

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

from dataprep.errors import ConfigError, StoreError
from dataprep.message_text import counted
from iobench.analysis.analyse import summarised
from iobench.config.benchmark import BenchConfig, dump
from iobench.errors import ResultError, RunConflict
from iobench.report.trace import SavedRun, Trace, trace_of
from iobench.results.result import (
    LOG,
    RESULT,
    Columns,
    Result,
    RunLog,
    errors_naming,
    read_log,
    read_result,
    run_line,
    trial_line,
)
from iobench.results.tables import (
    SAMPLE_COLUMNS,
    SPAN_COLUMNS,
    as_csv,
    joined,
    read_table,
    samples_table,
    series_table,
    spans_of,
    spans_table,
    trials_table,
)
from iobench.results.trial import Span
from iobench.runner.run_differences import differing_config, machine_differences

Table: TypeAlias = Literal["trials", "series", "samples"]
"""A table of a run that can be exported (see ``run_csv``)."""

CONFIG, TRIALS, SERIES = "config.yaml", "trials.parquet", "series.parquet"
SAMPLES, SPANS = "samples.parquet", "spans.parquet"
REPORT = "report.html"
SCRATCH = ".scratch"
"""The name of the folder below the run folder for the files of the trial that is running."""

_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
_RANK = re.compile(r"rank-([0-9]{1,6})")
"""The name of the folder of a rank within the folder of a watched job."""
_KINDS_WITH_RATE_RULE = {"loader", "train"}
"""Kinds of trials whose rates follow the rule that ``Result.rates`` names."""


def new_run_id() -> str:
    """A new id for a run: the time in UTC and 32 random bits."""
    return f"{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


def open_run(
    folder: Path,
    config: BenchConfig,
    environment: Mapping[str, Any],
    *,
    resume: bool,
    hosts: int = 1,
) -> Result | None:
    """Write the config of a run. If the folder holds a run to continue, return that run.

    The returned run has the present config. It has a ``run_id`` also if an older version, which
    made no ids, has saved it.

    Args:
        folder: the folder of the run.
        config: the config of the run.
        environment: the description of this machine.
        resume: whether a run in the folder may be continued.
        hosts: the number of hosts of the run, 1 or more.

    Returns:
        The saved run to continue; None if the folder holds no run.

    Raises:
        RunConflict: the folder holds a run that cannot be continued, since it has another config,
            machine or number of hosts, or rates by an earlier rule. Or the folder holds a run, and
            ``resume`` is not set.
        ResultError: the run in the folder is damaged.
        SchemaTooNew: a newer version wrote the run in the folder.
        StoreError: the config cannot be written.
    """
    if not holds_run(folder):
        write_file(folder / CONFIG, dump(config).encode())
        return None
    saved = read(folder)
    _check_same_run(saved, folder, config, environment, hosts)
    if not resume:
        raise RunConflict(
            f"{folder} already holds a run: continue it with --resume, or use another --output to "
            "start again"
        )
    with errors_naming(folder):
        summarised(saved)  # If the run is damaged, fail now and not at the end of the new trials.
    shutil.rmtree(folder / SCRATCH, ignore_errors=True)  # A killed run may have left it.
    write_file(folder / CONFIG, dump(config).encode())
    return replace(
        saved,
        config=config.model_dump(mode="json"),
        run_id=saved.run_id or new_run_id(),  # Runs of older versions have no id.
    )


def _check_same_run(
    saved: Result, folder: Path, config: BenchConfig, environment: Mapping[str, Any], hosts: int
) -> None:
    """Check that new trials can be added to a saved run.

    Args:
        saved: the run.
        folder: its folder, for messages.
        config: the config of the new trials.
        environment: the description of this machine.
        hosts: the number of hosts that measure the new trials.

    Raises:
        RunConflict: the run has another config, machine or number of hosts, or rates by an earlier
            rule.
        ResultError: the run is damaged.
    """
    if saved.run_id and not _RUN_ID.fullmatch(saved.run_id):
        raise ResultError(
            f"{folder}: {saved.run_id!r} is not a run_id: the run was changed by hand"
        )
    with errors_naming(folder):
        config_keys = differing_config(saved.config, config)
        machine_keys = machine_differences(saved.environment, environment)
    if config_keys:
        raise RunConflict(
            f"{folder} holds a run of another config ({config_keys} differ): choose another "
            "--output"
        )
    if machine_keys:
        raise RunConflict(
            f"{folder} holds a run of another machine ({machine_keys} differ): choose another "
            "--output"
        )
    saved_hosts = max(1, len(saved.hosts))
    if saved_hosts != hosts:
        raise RunConflict(
            f"{folder} holds a run on {counted(saved_hosts, 'host')}, but this run is on {hosts}: "
            "choose another --output"
        )
    if not saved.rates and any(trial.kind in _KINDS_WITH_RATE_RULE for trial in saved.trials):
        raise RunConflict(
            f"{folder} holds rates of an earlier version, which counted samples that had been "
            "fetched before the clock started; new rates cannot be added to them: choose another "
            "--output"
        )


def begin_log(folder: Path, result: Result) -> None:
    """Start the log of a run. It begins with the trials that ``result`` already has.

    The series, readings and spans of these trials are copied from the files of the earlier run.

    Raises:
        ResultError: a table of the earlier run is damaged.
        StoreError: the log cannot be written.
    """
    steps_table, readings_table = read_tables(folder)
    series_by_trial = _columns_by_trial(steps_table)
    samples_by_trial = _columns_by_trial(readings_table)
    spans_by_trial = read_spans(folder)
    lines = [run_line(result)]
    for trial in result.trials:
        series, samples = series_by_trial.get(trial.id, {}), samples_by_trial.get(trial.id, {})
        lines.append(trial_line(trial, series, samples, spans_by_trial.get(trial.id, ())))
    write_file(folder / LOG, b"".join(lines))
    # The result of the earlier run is out of date. Without this file, readers take the log.
    (folder / RESULT).unlink(missing_ok=True)


def add_line(folder: Path, line: bytes) -> None:
    """Append a line (``run_line`` or ``trial_line``) to the log.

    Raises:
        StoreError: the log cannot be written.
    """
    try:
        with (folder / LOG).open("ab") as log:
            log.write(line)
    except OSError as error:
        raise StoreError(f"cannot write {folder / LOG}: {error.strerror}") from None


def write_results(folder: Path, result: Result) -> None:
    """Write the result, the report and the tables of a run.

    The series, readings and spans of the trials come from the log. The report is written before the
    tables, because users wait for it.

    Raises:
        ResultError: the log cannot be read.
        StoreError: a file cannot be written.
    """
    from iobench.report import render

    series, samples = read_tables(folder)
    spans = [spans_table(trial_id, spans) for trial_id, spans in read_spans(folder).items()]
    write_file(folder / RESULT, result.to_json())
    write_file(folder / REPORT, render(result, series, samples))
    write_file(folder / TRIALS, trials_table(result.trials).to_parquet())
    write_file(folder / SERIES, series.to_parquet())
    write_file(folder / SAMPLES, samples.to_parquet())
    write_file(folder / SPANS, joined(spans, SPAN_COLUMNS).to_parquet())


@contextlib.contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """Make an empty folder for the files of a trial, and remove it after the ``with`` block.

    Raises:
        OSError: the folder cannot be made.
    """
    scratch = (folder / SCRATCH).absolute()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_file(path: Path, data: bytes) -> None:
    """Write a file, under a temporary name at first. If this fails, the old file is unchanged.

    Raises:
        StoreError: the file cannot be written.
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
    """Make a folder, and lock it against other runs for the ``with`` block.

    The folder itself is locked (flock(2)), so the lock needs no file, and it ends with the process.
    On a file system without locks, two runs can use the same folder at the same time.

    Raises:
        RunConflict: another run uses the folder.
        ConfigError: the folder cannot be made or written.
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
                f"another run uses {folder}: wait until it has ended, or choose another --output"
            ) from None
        except OSError:
            # The file system has no locks, or the folder may be written but not read.
            pass
        yield


def default_folder(name: str) -> Path:
    """The folder of a run without ``--output``: ``reports/NAME-20261121-143000``, in local time.

    Args:
        name: the name of the config. In the path, other characters than letters, digits, dots,
            hyphens and underscores are replaced.
    """
    plain_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    return Path("reports") / f"{plain_name}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def holds_run(folder: Path) -> bool:
    """Whether a folder holds a run. The run may be incomplete."""
    return (folder / RESULT).exists() or (folder / LOG).exists()


def read(folder: Path) -> Result:
    """Read the result of a run. If the run has not ended properly, the result comes from its log.

    Raises:
        ResultError: the folder holds no run, or a damaged one.
        SchemaTooNew: a newer version wrote it.
    """
    if (folder / LOG).exists() and not (folder / RESULT).exists():
        return _read_log_of(folder).result
    return read_result(folder / RESULT, folder)


def read_tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read two tables of a run: the steps of its loops, and the readings of the machine.

    If the run has a log, the tables are made from it. Only a run that has no log is read from its
    Parquet files.

    Raises:
        ResultError: the log or a table is damaged.
    """
    if (folder / LOG).exists():
        logged = _read_log_of(folder)
        steps = [series_table(trial, columns) for trial, columns in logged.series.items()]
        readings = [samples_table(trial, columns) for trial, columns in logged.samples.items()]
        return joined(steps), joined(readings, SAMPLE_COLUMNS)
    return read_table(folder / SERIES), read_table(folder / SAMPLES, SAMPLE_COLUMNS)


def read_spans(folder: Path) -> Mapping[str, Sequence[Span]]:
    """Read the spans of a run, by the ids of its trials.

    The spans are epochs, batches of workers, and steps of ranks. A run of an earlier version has no
    spans.

    Raises:
        ResultError: the log or the table of spans is damaged.
    """
    if (folder / LOG).exists():
        return _read_log_of(folder).spans
    return spans_of(read_table(folder / SPANS, SPAN_COLUMNS))


def run_trace(folder: Path) -> Trace:
    """The trace of a run, which may be incomplete.

    If ``folder`` has the folders of watched ranks (``rank-0`` and so on), the trace has all ranks.

    Raises:
        ResultError: the folder holds no run, or the run cannot be read.
        SchemaTooNew: a newer version wrote it.
    """
    folders = [folder]
    if not holds_run(folder):
        folders = _rank_folders(folder) or [folder]
    runs = []
    for run_folder in folders:
        result = read(run_folder)
        series, samples = read_tables(run_folder)
        runs.append(SavedRun(result, series, samples, read_spans(run_folder)))
    return trace_of(runs)


def _rank_folders(folder: Path) -> list[Path]:
    """The folders of watched ranks that hold a run, in the order of the ranks."""
    folders_by_rank = {}
    for path in folder.glob("rank-*"):
        match = _RANK.fullmatch(path.name)
        if match and holds_run(path):
            folders_by_rank[int(match[1])] = path
    return [folders_by_rank[rank] for rank in sorted(folders_by_rank)]


def run_csv(folder: Path, table: Table = "trials") -> bytes:
    """A table of a run as CSV, with the columns of the Parquet file. The run may be incomplete.

    Args:
        folder: the folder of the run.
        table: ``trials`` for a row for each trial, ``series`` for a row for each step of training
            loops, ``samples`` for a row for each reading of the machine.

    Raises:
        ResultError: the folder holds no run, or the table cannot be read.
        SchemaTooNew: a newer version wrote it.
    """
    result = read(folder)
    if table == "trials":
        return as_csv(trials_table(result.trials))
    series, samples = read_tables(folder)
    return as_csv(series if table == "series" else samples)


def _read_log_of(folder: Path) -> RunLog:
    """Read the log of a run.

    Raises:
        ResultError: the log cannot be read, or is damaged.
    """
    path = folder / LOG
    try:
        return read_log(path.read_bytes(), str(path))
    except OSError as error:
        raise ResultError(f"cannot read {path}: {error.strerror}") from None


def _columns_by_trial(table: pd.DataFrame) -> dict[str, Columns]:
    """The columns of a table by the id of the trial, without the columns ``trial`` and ``step``.

    Columns that have no value in any row of a trial are left out: they belong to other trials.
    """
    without_steps = table.drop(columns=["step"], errors="ignore")
    columns_by_trial: dict[str, Columns] = {}
    for trial_id, group in without_steps.groupby("trial", sort=False):
        rows = group.drop(columns="trial")
        columns_by_trial[str(trial_id)] = {
            str(name): rows[name].tolist() for name in rows.columns if rows[name].notna().any()
        }
    return columns_by_trial


def redraw(folder: Path) -> Path:
    """Draw the report of a saved run again, and return its path.

    Raises:
        ResultError: the folder holds no run, or the run cannot be read.
        SchemaTooNew: a newer version wrote it.
    """
    from iobench.report import render

    # The result is read first: its error says more than that of a table that cannot be read.
    result = summarised(read(folder))
    series, samples = read_tables(folder)
    write_file(folder / REPORT, render(result, series, samples))
    return folder / REPORT
