"""The tables of a run, for Parquet and CSV: trials, steps, readings of the machine, and spans."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from iobench.errors import ResultError
from iobench.results import badges
from iobench.results.trial import Span, Trial

TRIAL_COLUMNS = (
    *("id", "kind", "repeat", "status", "reason"),
    *("started_s", "seconds", "time_zero_s"),
)
"""The columns of a table of trials without rows. Other columns, such as ``params.workers``, depend
on the trials."""

SERIES_COLUMNS = ("trial", "step", "step_end_s", "wait_s", "compute_s")
"""The columns of a table of steps without rows. Other columns depend on the trials."""

SAMPLE_COLUMNS = ("trial", "time_s")
"""The columns of a table of readings without rows. Other columns depend on the samplers."""

SPAN_COLUMNS = ("trial", "track", "name", "begin_s", "seconds", "wait_s")
"""The columns of a table of spans: the id of the trial, and the attributes of ``Span``."""


def trials_table(trials: Iterable[Trial]) -> pd.DataFrame:
    """Return a row for each trial.

    Parameters, metrics and ``cold`` have columns with dotted names, such as ``params.workers``.
    """
    table = pd.json_normalize([_row(trial) for trial in trials])
    if len(table):
        return table
    return pd.DataFrame({name: [] for name in TRIAL_COLUMNS})


def series_table(trial: str, series: Mapping[str, Sequence[float | None]]) -> pd.DataFrame:
    """Return a row for each step of a trial.

    Args:
        trial: the id of the trial.
        series: the columns by name, with a value for each step.
    """
    table = pd.DataFrame({name: list(values) for name, values in series.items()})
    table.insert(0, "step", range(len(table)))
    table.insert(0, "trial", _text(trial))
    return table


def samples_table(trial: str, samples: Mapping[str, Sequence[float | None]]) -> pd.DataFrame:
    """Return a row for each reading of the machine during a trial, with NaN for missing values.

    Args:
        trial: the id of the trial.
        samples: the columns of the readings by name, with a value for each reading.
    """
    columns = {_text(name): list(values) for name, values in samples.items()}
    table = pd.DataFrame(columns, dtype="float64")
    table.insert(0, "trial", _text(trial))
    return table


def spans_table(trial: str, spans: Sequence[Span]) -> pd.DataFrame:
    """Return a row for each span of a trial: an epoch, a batch of a worker, or a step of a rank."""
    table = pd.DataFrame([asdict(span) for span in spans], columns=list(SPAN_COLUMNS[1:]))
    table.insert(0, "trial", _text(trial))
    return table


def spans_of(table: pd.DataFrame) -> dict[str, list[Span]]:
    """Return the spans of each trial that has any, by the id of the trial."""
    rows = table[list(SPAN_COLUMNS[1:])].itertuples(index=False, name=None)
    spans: dict[str, list[Span]] = {}
    for trial, row in zip(table["trial"], rows, strict=True):
        spans.setdefault(str(trial), []).append(Span(*row))
    return spans


def joined(tables: Sequence[pd.DataFrame], columns: Sequence[str] = SERIES_COLUMNS) -> pd.DataFrame:
    """Join the tables of all trials.

    Args:
        tables: the tables.
        columns: the columns of the result if there are no tables.
    """
    if tables:
        return pd.concat(tables, ignore_index=True)
    return pd.DataFrame({name: [] for name in columns})


def read_table(path: Path, columns: Sequence[str] = SERIES_COLUMNS) -> pd.DataFrame:
    """Read a table of steps, readings or spans from a Parquet file.

    Args:
        path: the path of the file. If it does not exist, the table has no rows.
        columns: the columns of a table without rows.

    Raises:
        ResultError: the file cannot be read.
    """
    import pyarrow.parquet as pq

    if not path.exists():
        return joined([], columns)
    try:
        # The path is given, because Arrow's threads release a Python file too late
        # (dataprep.output.samples_table).
        table: pd.DataFrame = pq.read_table(str(path)).to_pandas(use_threads=False)
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        why = " ".join(str(error).split())[:200]
        message = f"{path} cannot be read: {why}; remove the file to continue without it"
        raise ResultError(message) from None
    return table


def as_csv(table: pd.DataFrame) -> bytes:
    """Return the table as CSV in UTF-8, with a line feed at the end of each row.

    Numbers are not quoted. Whole numbers have no decimal point, although a column with gaps stores
    floats. All text is quoted, because Python does not quote a carriage return by itself.
    """
    with_integers = table.convert_dtypes()
    text = with_integers.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return str(text).encode()


def _row(trial: Trial) -> dict[str, Any]:
    """Return a trial as a row for ``json_normalize``, without keys for None and empty mappings."""
    content = asdict(trial)
    if content["hosts"]:
        del content["hosts"]["parts"]  # the figures of each host are in the result only
    badge = badges.trial_badge(trial.cold)
    if badge:
        content["cold"]["badge"] = badge
    return {key: _cell(value) for key, value in content.items() if value not in (None, {})}


def _cell(value: Any) -> Any:
    """Return a value of a trial as a value of a table.

    A mapping becomes several columns. A list becomes text, because Parquet has no type for a column
    of lists with different shapes.
    """
    if isinstance(value, dict) and value:
        return {_text(key): _cell(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, dict)):
        return yaml.safe_dump(value, default_flow_style=True).strip()
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """Escape lone surrogates as ``\\udcff``, because Parquet stores only UTF-8.

    Lone surrogates stand for bytes of a file name that are not UTF-8.
    """
    return value.encode(errors="backslashreplace").decode()
