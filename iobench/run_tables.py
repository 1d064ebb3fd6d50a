"""Trials, series and samples of a run as tables, for Parquet and CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from iobench import badges
from iobench.errors import ResultError
from iobench.trial import Span, Trial

TRIAL_COLUMNS = (
    *("id", "kind", "repeat", "status", "reason"),
    *("started_s", "seconds", "time_zero_s"),
)
"""Columns of every row, beside those of ``params.``, ``metrics.`` and ``cold.``."""

SERIES_COLUMNS = ("trial", "step", "step_end_s", "wait_s", "compute_s")
SAMPLE_COLUMNS = ("trial", "time_s")
SPAN_COLUMNS = ("trial", "track", "name", "begin_s", "seconds", "wait_s")


def trials_table(trials: Iterable[Trial]) -> pd.DataFrame:
    """A row for each trial; params, metrics and coldness in columns of dotted names."""
    found = pd.json_normalize([_row(trial) for trial in trials])
    # Without trials the table has columns all the same.
    return found if len(found) else pd.DataFrame({name: [] for name in TRIAL_COLUMNS})


def series_table(trial: str, series: Mapping[str, Sequence[float | None]]) -> pd.DataFrame:
    """A row for each step of one trial."""
    table = pd.DataFrame({name: list(values) for name, values in series.items()})
    table.insert(0, "step", range(len(table)))
    table.insert(0, "trial", _text(trial))
    return table


def samples_table(trial: str, samples: Mapping[str, Sequence[float | None]]) -> pd.DataFrame:
    """A row for each reading of the machine during one trial; NaN for missing values."""
    named = {_text(name): list(values) for name, values in samples.items()}
    table = pd.DataFrame(named, dtype="float64")
    table.insert(0, "trial", _text(trial))
    return table


def spans_table(trial: str, spans: Sequence[Span]) -> pd.DataFrame:
    """A row for each epoch, batch of a worker, or step of a rank, of one trial."""
    table = pd.DataFrame([asdict(span) for span in spans], columns=list(SPAN_COLUMNS[1:]))
    table.insert(0, "trial", _text(trial))
    return table


def spans_of(table: pd.DataFrame) -> dict[str, list[Span]]:
    """The spans of each trial that has some."""
    rows = table[list(SPAN_COLUMNS[1:])].itertuples(index=False, name=None)
    spans: dict[str, list[Span]] = {}
    for trial, row in zip(table["trial"], rows, strict=True):
        spans.setdefault(str(trial), []).append(Span(*row))
    return spans


def all_series(
    tables: Sequence[pd.DataFrame], columns: Sequence[str] = SERIES_COLUMNS
) -> pd.DataFrame:
    """The tables of several trials as one; without tables it has ``columns`` and no rows."""
    empty = pd.DataFrame({name: [] for name in columns})
    return pd.concat(tables, ignore_index=True) if tables else empty


def read_series(path: Path, columns: Sequence[str] = SERIES_COLUMNS) -> pd.DataFrame:
    """The table in a file; without rows if there is no file.

    Raises:
        ResultError: it cannot be read.
    """
    import pyarrow.parquet as pq

    if not path.exists():
        return all_series([], columns)
    try:
        # By its path: Arrow's threads let go of a Python file too late (dataprep.samples).
        table: pd.DataFrame = pq.read_table(str(path)).to_pandas(use_threads=False)
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        why = " ".join(str(error).split())[:200]
        raise ResultError(f"{path} cannot be read: {why}; remove it to go on without") from None
    return table


def as_csv(table: pd.DataFrame) -> bytes:
    """The table as CSV: UTF-8, a line feed at the end of a row, quoted text, unquoted numbers.

    Whole numbers are written without a point, although a column with gaps stores floats. All text
    is quoted, since Python does not quote a carriage return by itself.
    """
    whole = table.convert_dtypes()
    text = whole.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return str(text).encode()


def _row(trial: Trial) -> dict[str, Any]:
    """A trial as a row, without keys for empty metrics or coldness."""
    content = asdict(trial)
    if content["hosts"]:  # the raw result has each host's figures
        del content["hosts"]["parts"]
    if shown := badges.trial_badge(trial.cold):
        content["cold"]["badge"] = shown
    return {key: _plain(value) for key, value in content.items() if value not in (None, {})}


def _plain(value: Any) -> Any:
    """Mappings become columns; lists of different shapes have no column type in Parquet."""
    if isinstance(value, dict) and value:
        return {_text(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, dict)):
        return yaml.safe_dump(value, default_flow_style=True).strip()
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """Escape lone surrogates as ``\\udcff``, since Parquet stores UTF-8 only."""
    return value.encode(errors="backslashreplace").decode()
