"""What was watched as a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from iobench.machine.sampling import Samples
from iobench.rundir import read, redraw
from iobench.watching.figures import KILLED
from iobench.watching.tally import Tally
from iobench.watching.writing import written
from tests.iobench.watching.test_tally import epoch, told

SETTINGS: dict[str, Any] = {
    "name": "mine",
    "started": "2026-11-22T12:00:00+00:00",
    "per_s": 2.0,
    "samplers": ["cpu"],
    "rank": {"rank": 1, "world_size": 2, "local": 1},
    "step_cost_s": 2e-6,
}
LOADERS = {
    0: {"open": 0, "name": "train", "batch_size": 4, "device": False},
    1: {"open": 1, "name": "validation", "batch_size": None, "device": False},
}
SAMPLES = Samples(
    {"time_s": [10.0, 12.0, 14.0, 16.0], "cpu.user_share": [0.5, 0.6, 0.7, 0.6]}, 0.002, ()
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a script whose validation never ran, and that was killed."""
    made = tmp_path_factory.mktemp("mine")
    tallies = {0: told(*epoch(0, 10.0, 30)), 1: Tally()}
    verdict = written(made, SETTINGS, LOADERS, tallies, SAMPLES, False)
    assert verdict == str(read(made).summary["verdict"])
    return made


def test_each_loader_is_a_trial(folder: Path) -> None:
    """One that gave no batch is skipped with a reason; ranks are told apart."""
    train, validation = read(folder).trials
    assert (train.kind, train.status, train.params["loader"]) == ("watch", "done", "train")
    assert (train.params["rank"], train.params["world_size"]) == (1, 2)
    assert train.params["batch_size"] == 4
    assert validation.status == "skipped"
    assert "no batch came through" in validation.reason
    assert "batch_size" not in validation.params


def test_an_end_without_a_word_is_said(folder: Path) -> None:
    """Beside the figures."""
    assert KILLED in read(folder).trials[0].metrics["notes"]


def test_the_tables_open_in_one_line(folder: Path) -> None:
    """A row a step, a row a reading, a row a loader."""
    steps = pd.read_parquet(folder / "series.parquet")
    readings = pd.read_parquet(folder / "samples.parquet")
    assert len(steps) == 29
    assert list(readings.columns) == ["trial", "time_s", "cpu.user_share"]
    assert list(readings["time_s"]) == [0, 2, 4, 6]
    assert list(pd.read_parquet(folder / "trials.parquet")["status"]) == ["done", "skipped"]


def test_the_report_can_be_drawn_again(folder: Path) -> None:
    """The same page, from what is saved."""
    before = (folder / "report.html").read_bytes()
    assert redraw(folder).read_bytes() == before
    assert b"Your loop waits for data 26" in before or b"Your loop waits" in before
