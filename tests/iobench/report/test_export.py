"""The export of trials, steps and readings as CSV, which any reader of CSV understands."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataprep.errors import StoreError
from iobench.results.result import Result, trial_line
from iobench.results.trial import Cold, Trial
from iobench.runner.run_folder import add_line, begin_log, run_csv, write_file, write_results
from tests.commandline import iobench

pytestmark = pytest.mark.slow

EMPTY = Result("n", "2026-11-21T12:00:00+00:00", {}, {})
ODD = 'a "b",\nc\r\nd;\té'


def trial(**metrics: Any) -> Trial:
    """Return a completed trial with these metrics."""
    params = {"loader": ODD, "data": "", "cache": "warm", "workers": 2, "batch_size": 1}
    return Trial("t/0", "loader", params, 0, "done", metrics)


def saved(folder: Path, *trials: Trial) -> Path:
    """Write the folder of a run that is still going on, which is returned."""
    folder.mkdir(exist_ok=True)
    result = replace(EMPTY, trials=trials)
    begin_log(folder, result)
    for trial in trials:
        add_line(folder, trial_line(trial, {"step_end_s": [0.5, 1.5]}, {}))
    return folder


def rows(data: bytes) -> list[dict[str, str]]:
    """Parse CSV with Python's own reader."""
    return list(csv.DictReader(io.StringIO(data.decode(), newline="")))


def test_values_survive_the_quotes(tmp_path: Path) -> None:
    """Texts keep line feeds, commas and quotes; lists are YAML, and odd bytes are escaped."""
    changed = replace(trial(notes=["a", ODD], odd="\udcff"), reason=ODD)
    (row,) = rows(run_csv(saved(tmp_path, changed)))
    assert row["params.loader"] == ODD
    assert row["reason"] == ODD
    assert row["metrics.odd"] == "\\udcff"
    assert row["metrics.notes"].startswith("[a, ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.text(max_size=20).filter(lambda text: "\0" not in text))
def test_any_name_survives(tmp_path: Path, name: str) -> None:
    """Names in any alphabet are exported unchanged."""
    changed = replace(trial(), params={"loader": name})
    (row,) = rows(run_csv(saved(tmp_path / "run", changed)))
    assert row["params.loader"] == name.encode(errors="backslashreplace").decode()


def test_whole_numbers_stay_whole(tmp_path: Path) -> None:
    """Whole numbers have no decimals, also if other values of the column are missing."""
    other = replace(trial(), id="t/1", params={"file_bytes": 2**40})
    first, second = rows(run_csv(saved(tmp_path, trial(x=0.1), other)))
    assert (first["params.workers"], second["params.workers"]) == ("2", "")
    assert second["params.file_bytes"] == str(2**40)
    assert first["metrics.x"] == "0.1"


def test_columns_are_those_of_the_parquet_file(tmp_path: Path) -> None:
    """The columns are those of ``trials.parquet``, in the same order."""
    cold = Cold("cold", "warm", 0.5)
    changed = replace(EMPTY, trials=(replace(trial(x=1.5), cold=cold), trial()))
    write_results(tmp_path, changed)
    parquet_table = pd.read_parquet(tmp_path / "trials.parquet")
    csv_table = pd.read_csv(io.BytesIO(run_csv(tmp_path)))
    assert list(csv_table) == list(parquet_table)
    assert "cold" not in parquet_table
    assert "metrics" not in parquet_table


def test_series(tmp_path: Path) -> None:
    """Each step is a row; a run without a training loop has the header only."""
    table_rows = rows(run_csv(saved(tmp_path, trial()), "series"))
    steps = [(row["trial"], row["step"], row["step_end_s"]) for row in table_rows]
    assert steps == [("t/0", "0", "0.5"), ("t/0", "1", "1.5")]
    begin_log(tmp_path, EMPTY)
    assert run_csv(tmp_path, "series") == b'"trial","step","step_end_s","wait_s","compute_s"\n'


def test_samples_have_a_row_a_reading(tmp_path: Path) -> None:
    """Missing readings are empty, and a run without readings has two columns."""
    folder = saved(tmp_path, trial())
    readings: dict[str, list[float | None]] = {"time_s": [0, 1], "cpu.user_share": [None, 0.5]}
    begin_log(folder, EMPTY)
    add_line(folder, trial_line(trial(), {}, readings))
    table_rows = rows(run_csv(folder, "samples"))
    shares = [(row["trial"], row["time_s"], row["cpu.user_share"]) for row in table_rows]
    assert shares == [("t/0", "0", ""), ("t/0", "1", "0.5")]
    begin_log(folder, EMPTY)
    assert run_csv(folder, "samples") == b'"trial","time_s"\n'


def test_a_run_without_a_trial(tmp_path: Path) -> None:
    """The table of a run without trials has its columns."""
    data = run_csv(saved(tmp_path))
    columns = b'"id","kind","repeat","status","reason","started_s","seconds","time_zero_s"\n'
    assert data == columns


class TestCommand:
    """``iobench export``."""

    def test_stdout_and_file_are_the_same(self, tmp_path: Path) -> None:
        """The bytes of the output and of a file are the same."""
        folder, file = saved(tmp_path / "run", trial()), tmp_path / "out.csv"
        done = iobench("export", folder)
        assert done.code == 0, done.err
        assert iobench("export", folder, "--output", file).code == 0
        assert file.read_bytes().decode() == done.out == run_csv(folder).decode()
        assert iobench("export", folder, "--series").out == run_csv(folder, "series").decode()
        assert iobench("export", folder, "--samples").out == run_csv(folder, "samples").decode()
        both = iobench("export", folder, "--series", "--samples")
        assert (both.code, "give only one" in both.err) == (2, True)

    def test_no_run(self, tmp_path: Path) -> None:
        """The error is one line, and no file is written."""
        done = iobench("export", tmp_path, "--output", tmp_path / "out.csv")
        assert done.code == 2
        assert "no run in" in done.complaints[0]
        assert list(tmp_path.iterdir()) == []

    def test_no_folder(self, tmp_path: Path) -> None:
        """The error says that there is no folder for the file."""
        folder = saved(tmp_path / "run", trial())
        done = iobench("export", folder, "--output", tmp_path / "none" / "out.csv")
        assert done.code == 2
        assert "no folder" in done.complaints[0]

    def test_a_folder_in_the_way(self, tmp_path: Path) -> None:
        """The error leaves no file beside the folder."""
        (tmp_path / "out.csv").mkdir()
        with pytest.raises(StoreError, match="cannot write"):
            write_file(tmp_path / "out.csv", b"")
        assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
