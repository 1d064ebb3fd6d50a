"""A folder for a watched run, that no other run has."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
from pathlib import Path

from dataprep.errors import ConfigError
from iobench.watching.ranks import Rank

CLAIM = ".iobench-watch"
"""Stands in the folder until its report does."""

_OURS = (
    *(CLAIM, "config.yaml", "result.json", "report.html"),
    *("trials.parquet", "series.parquet", "samples.parquet"),
)


def default_folder() -> Path:
    """``reports/watch-20261121-143000``, in local time."""
    return Path("reports") / f"watch-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def claimed(wanted: Path, rank: Rank) -> Path:
    """``wanted``, or ``wanted-2`` and so on where a run's files are there already; absolute.

    Of a job of several processes each gets ``rank-N`` within it. Other files may be there.

    Raises:
        ConfigError: it cannot be made, or nothing can be written there.
    """
    for number in itertools.count(1):
        base = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        folder = (base / f"rank-{rank.rank}" if rank.world_size > 1 else base).absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any((folder / name).exists() for name in _OURS):
                continue
            os.close(os.open(folder / CLAIM, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError as error:
            if folder.is_dir():
                continue  # another process was quicker
            raise ConfigError(f"{error.filename} is a file: name another folder") from None
        except OSError as error:
            raise ConfigError(f"cannot write in {folder}: {error.strerror}") from None
        return folder
    raise AssertionError("itertools.count ends")


def released(folder: Path) -> None:
    """The report is there, or will never be."""
    with contextlib.suppress(OSError):
        (folder / CLAIM).unlink()
