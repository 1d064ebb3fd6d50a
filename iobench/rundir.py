"""RUN_DIR: config.yaml, a line in trials.jsonl for each trial, all else at the end."""

from __future__ import annotations

import contextlib
import datetime
import errno
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from dataprep.errors import ConfigError, StoreError
from iobench.analysis.analyse import summarised
from iobench.config import BOUNDS, BenchConfig, dump
from iobench.errors import ResultError, RunConflict
from iobench.machine.environment import describe
from iobench.result import RESULT, Result, read_result, usable
from iobench.run_tables import (
    SAMPLE_COLUMNS,
    all_series,
    read_series,
    samples_table,
    series_table,
    trials_table,
)
from iobench.trial_log import LOG, Columns, Logged, read_log

if TYPE_CHECKING:
    import pandas as pd

CONFIG, TRIALS, SERIES = "config.yaml", "trials.parquet", "series.parquet"
SAMPLES = "samples.parquet"
REPORT = "report.html"
SCRATCH = ".scratch"
# Disks that nothing is measured on come and go; a processor's governor is of the moment.
_PASSING = {"disks", "governor"}
_LASTING_OF_TARGETS = {"file_system", "kind", "device", "read_ahead_kb"}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}


class RunDirectory:
    """The files of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

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
            ResultError: what it holds is damaged.
            ConfigError: the folder cannot be made, or not written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot make {self.folder}: {error.strerror}") from None
        self._try()
        if not holds_run(self.folder):
            self._write(CONFIG, dump(config).encode())
            return None
        found = read(self.folder)
        with usable(self.folder):
            changed = _changed(found.config, config)
            differing = _other_machine(found.environment, environment)
        if changed:
            raise RunConflict(
                f"{self.folder} holds a run of another config ({changed} differ): "
                "choose another --output"
            )
        if differing:
            raise RunConflict(
                f"{self.folder} holds a run of another machine ({differing} differ): its figures "
                "do not belong beside these, choose another --output"
            )
        if not resume:
            raise RunConflict(
                f"{self.folder} holds a run already: --resume goes on with it, "
                "another --output begins anew"
            )
        with usable(self.folder):
            summarised(found)  # before hours are spent on what could not be told in the end
        self._sweep()  # of a run that was killed
        self._write(CONFIG, dump(config).encode())
        return replace(found, config=config.model_dump(mode="json"))

    def begin(self, result: Result) -> None:
        """Start the log, with what is kept of a run before: the trials of ``result``.

        Raises:
            StoreError: it cannot be written.
        """
        series, samples = (_columns(table) for table in read_tables(self.folder))
        self._write(LOG, b"".join(Logged(result, series, samples).lines()))
        (self.folder / RESULT).unlink(missing_ok=True)  # it is of the run before

    def add(self, line: bytes) -> None:
        """Append a line of ``iobench.trial_log`` to the log.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            with (self.folder / LOG).open("ab") as log:
                log.write(line)
        except OSError as error:
            raise StoreError(f"cannot write {self.folder / LOG}: {error.strerror}") from None

    def finish(self, result: Result) -> None:
        """Everything, the report before the tables: it is what people wait for."""
        from iobench.report import render

        series, samples = read_tables(self.folder)
        self._write(RESULT, result.to_json())
        self._write(REPORT, render(result, series, samples))
        self._write(TRIALS, trials_table(result.trials).to_parquet())
        self._write(SERIES, series.to_parquet())
        self._write(SAMPLES, samples.to_parquet())

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder in it for what a trial leaves on a disk: gone afterwards, however the
        trial has ended.

        Raises:
            StoreError: it cannot be made.
        """
        folder = (self.folder / SCRATCH).absolute()
        self._sweep()
        try:
            folder.mkdir()
        except OSError as error:
            raise StoreError(f"cannot make {folder}: {error.strerror}") from None
        try:
            yield folder
        finally:
            self._sweep()

    def _sweep(self) -> None:
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)

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


def holds_run(folder: Path) -> bool:
    """Whether there is a run, finished or not."""
    return (folder / RESULT).exists() or (folder / LOG).exists()


def read(folder: Path) -> Result:
    """The result in a run's folder; of one that was stopped, what it has logged.

    Raises:
        ResultError: there is none.
        SchemaTooNew: written by a newer version.
    """
    if (folder / LOG).exists() and not (folder / RESULT).exists():
        return _logged(folder).result
    return read_result(folder / RESULT, folder)


def read_tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row a step of each loop, and a row a reading of the machine during each trial.

    Raises:
        ResultError: they are damaged.
    """
    if (folder / LOG).exists():
        logged = _logged(folder)
        steps = [series_table(trial, columns) for trial, columns in logged.series.items()]
        readings = [samples_table(trial, columns) for trial, columns in logged.samples.items()]
        return all_series(steps), all_series(readings, SAMPLE_COLUMNS)
    series, samples = read_series(folder / SERIES), read_series(folder / SAMPLES)
    return (
        all_series([]) if series is None else series,
        all_series([], SAMPLE_COLUMNS) if samples is None else samples,
    )


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
    """Draw the report again from what is saved.

    Raises:
        ResultError: there is no run.
    """
    from iobench.report import render

    directory = RunDirectory(folder)
    directory._write(REPORT, render(summarised(read(folder)), *read_tables(folder)))
    return directory.report


def differing_machine(environment: Mapping[str, Any]) -> str:
    """In what the machine of another run differs from this one; empty where it does not.

    File systems are left out: another run may have had other targets.
    """
    ours, theirs = ({**one, "targets": {}} for one in (describe({}), environment))
    return _other_machine(theirs, ours)


def _changed(old: Mapping[str, Any], config: BenchConfig) -> str:
    """Keys in which the config of a run differs from one that is to go on with it.

    A key that is newer than the run had its default then. Keys that bound a run and are no part
    of what it measures may change.
    """
    try:
        then = BenchConfig.model_validate(old).model_dump(mode="json")
    except ValidationError:  # of a version with other keys
        then = dict(old)
    now = config.model_dump(mode="json")
    return ", ".join(_differences(_measuring(then), _measuring(now)))


def _measuring(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in BOUNDS}


def _other_machine(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """In what, of all that figures depend on, two environments differ.

    What one of them does not tell at all says nothing: an older version did not look for it, or
    a metadata service did not answer this time.
    """
    return ", ".join(_differences(*_shared(_lasting(old), _lasting(new))))


def _lasting(environment: Mapping[str, Any]) -> dict[str, Any]:
    """What does not change from one day to the next, as the room on a disk does."""
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


def _shared(old: Any, new: Any, within: str = "") -> tuple[Any, Any]:
    """Both without keys that only one of them has; a library more or less does count."""
    if isinstance(old, dict) and isinstance(new, dict) and within != "libraries":
        pairs = {key: _shared(old[key], new[key], key) for key in old if key in new}
        return (
            {key: pair[0] for key, pair in pairs.items()},
            {key: pair[1] for key, pair in pairs.items()},
        )
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        items = [_shared(*pair, within) for pair in zip(old, new, strict=True)]
        return [item[0] for item in items], [item[1] for item in items]
    return old, new


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
