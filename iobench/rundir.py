"""RUN_DIR: config.yaml, result.json after every trial, tables and report at the end."""

from __future__ import annotations

import contextlib
import datetime
import errno
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataprep.errors import ConfigError, StoreError
from iobench.config import BenchConfig, dump
from iobench.errors import ResultError, RunConflict
from iobench.result import Result
from iobench.run_tables import all_series, read_series, series_table, trials_table
from iobench.summary import findings, summarise
from iobench.trial import Outcome

if TYPE_CHECKING:
    import pandas as pd

CONFIG, RESULT, TRIALS, SERIES = "config.yaml", "result.json", "trials.parquet", "series.parquet"
REPORT = "report.html"
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}


class RunDirectory:
    """The files of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._series: list[pd.DataFrame] = []

    @property
    def report(self) -> Path:
        """The HTML file."""
        return self.folder / REPORT

    def open(
        self, config: BenchConfig, environment: Mapping[str, Any], *, resume: bool
    ) -> Result | None:
        """Make the folder, or find the run in it that this one goes on with.

        Raises:
            RunConflict: it holds a run of another config or machine, or a run and ``resume`` is
                not set.
            ConfigError: the folder cannot be made, or not written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot make {self.folder}: {error.strerror}") from None
        self._try()
        if not (self.folder / RESULT).exists():
            self._write(CONFIG, dump(config).encode())
            return None
        found = read(self.folder)
        if found.config != config.model_dump(mode="json"):
            changed = ", ".join(_differences(found.config, config.model_dump(mode="json")))
            raise RunConflict(
                f"{self.folder} holds a run of another config ({changed} differ): "
                "choose another --output"
            )
        if differing := _other_machine(found.environment, environment):
            raise RunConflict(
                f"{self.folder} holds a run of another machine ({differing} differ): its figures "
                "do not belong beside these, choose another --output"
            )
        if not resume:
            raise RunConflict(
                f"{self.folder} holds a run already: --resume goes on with it, "
                "another --output begins anew"
            )
        # Without those of a trial that was stopped before it was in the result.
        kept = read_series(self.folder / SERIES, [trial.id for trial in found.trials])
        if kept is not None:
            self._series = [kept]
        return found

    def save(self, result: Result, trial: str = "", outcome: Outcome | None = None) -> None:
        """Replace ``result.json``, and the table of series by one with those of ``trial``.

        Raises:
            StoreError: they cannot be written.
        """
        if outcome is not None and outcome.series:
            self._series.append(series_table(trial, outcome.series))
            self._write(SERIES, all_series(self._series).to_parquet())
        self._write(RESULT, result.to_json())

    def finish(self, result: Result) -> None:
        """Everything, the report before the tables: it is what people wait for."""
        from iobench.report import render

        series = all_series(self._series)
        self.save(result)
        self._write(REPORT, render(result, series))
        self._write(TRIALS, trials_table(result.trials).to_parquet())
        self._write(SERIES, series.to_parquet())

    def _try(self) -> None:
        """A folder where nothing may be written is a wrong request; a full disk is not."""
        probe = self.folder / ".writable"
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            if error.errno in _REFUSED:
                raise ConfigError(f"cannot write in {self.folder}: {error.strerror}") from None

    def _write(self, name: str, data: bytes) -> None:
        partial = self.folder / f"{name}.partial"
        try:
            partial.write_bytes(data)
            partial.replace(self.folder / name)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise StoreError(f"cannot write {self.folder / name}: {error.strerror}") from None


def default_folder(name: str) -> Path:
    """``reports/NAME-20261121-143000``, in local time."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    return Path("reports") / f"{plain}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def read(folder: Path) -> Result:
    """The result in a run's folder.

    Raises:
        ResultError: there is none.
        SchemaTooNew: written by a newer version.
    """
    path = folder / RESULT
    try:
        return Result.from_json(path.read_bytes(), str(path))
    except OSError as error:
        raise ResultError(f"no run in {str(folder)!r}: {path}: {error.strerror}") from None


def redraw(folder: Path) -> Path:
    """Draw the report again from what is saved.

    Raises:
        ResultError: there is no run.
    """
    from iobench.report import render

    result = summarised(read(folder))
    directory = RunDirectory(folder)
    directory._write(REPORT, render(result, read_series(folder / SERIES)))
    return directory.report


def summarised(result: Result) -> Result:
    """With summary and findings of all its trials: a run that was killed has none, or old ones."""
    return replace(result, summary=summarise(result), findings=findings(result))


def _other_machine(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """In what, of all that figures depend on, two environments differ."""
    return ", ".join(_differences(_lasting(old), _lasting(new)))


def _lasting(environment: Mapping[str, Any]) -> dict[str, Any]:
    """What does not change from one day to the next, as the room on a disk does."""
    targets = environment.get("targets") or {}
    kinds = {label: target.get("file_system") for label, target in targets.items()}
    return {**environment, "targets": kinds}


def _differences(old: Any, new: Any, path: str = "") -> Sequence[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted({*old, *new})
        return [
            found
            for key in keys
            for found in _differences(
                old.get(key, ...), new.get(key, ...), f"{path}.{key}".lstrip(".")
            )
        ]
    return [] if old == new else [path]
