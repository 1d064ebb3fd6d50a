"""A run's trials, series or samples as CSV."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dataprep.errors import StoreError
from iobench.errors import ResultError
from iobench.run_tables import trials_table
from iobench.rundir import read, read_tables

if TYPE_CHECKING:
    import pandas as pd


def trials_csv(folder: Path) -> bytes:
    """A row a trial, with the columns of ``trials.parquet``; also of a run that was killed.

    Raises:
        ResultError: there is no run.
        SchemaTooNew: written by a newer version.
    """
    return _csv(trials_table(read(folder).trials))


def series_csv(folder: Path) -> bytes:
    """A row a step of each training loop, as in ``series.parquet``.

    Raises:
        ResultError: there is no run, or its table cannot be read.
    """
    read(folder)
    return _csv(read_tables(folder)[0])


def samples_csv(folder: Path) -> bytes:
    """A row a reading of the machine, as in ``samples.parquet``.

    Raises:
        ResultError: there is no run, or its table cannot be read.
    """
    read(folder)
    return _csv(read_tables(folder)[1])


def write(path: Path, data: bytes) -> None:
    """The file anew, whole or not at all.

    Raises:
        ResultError: its folder is not there.
        StoreError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except FileNotFoundError:
        raise ResultError(f"no folder {str(path.parent)!r} to write {path.name} to") from None
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise StoreError(f"cannot write {path}: {error.strerror}") from None


def _csv(table: pd.DataFrame) -> bytes:
    """UTF-8, a line feed at the end of a row; text is quoted, numbers are not.

    Whole numbers are written as such, although a column with gaps holds them as floats. Quotes
    where they are needed would not do: Python leaves a carriage return without them.
    """
    whole = table.convert_dtypes()
    text = whole.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return str(text).encode()
