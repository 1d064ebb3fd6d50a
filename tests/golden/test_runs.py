"""A run that the first version measured is read, summed up, drawn, exported and gone on with."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from iobench.analysis.analyse import summarised
from iobench.config import BenchConfig
from iobench.plan import trials
from iobench.preview import preview
from iobench.rundir import RunDirectory, read, redraw
from tests.commandline import iobench

GOLDEN = Path(__file__).parent / "run-schema-1"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of it."""
    folder = tmp_path / "old"
    shutil.copytree(GOLDEN, folder)
    return folder


def test_it_is_as_it_was_written() -> None:
    """Every value, whatever was added to the schema since."""
    content = json.loads((GOLDEN / "result.json").read_text())
    found = json.loads(read(GOLDEN).to_json())
    assert content["schema"] == 1
    for before, now in zip(content["findings"], found.pop("findings"), strict=True):
        assert {key: now[key] for key in before if key in now} == {
            key: before[key] for key in before if key in now
        }
    assert {key: found.get(key) for key in content} == {**content, "findings": None}
    kinds = {trial["kind"] for trial in content["trials"]}
    assert kinds == {"disk", "layout", "object", "loader", "train"}
    assert {trial["status"] for trial in content["trials"]} == {"done", "failed", "skipped"}


def test_it_is_summed_up() -> None:
    """With a verdict, and supplies of all that it measured."""
    summary = summarised(read(GOLDEN)).summary
    assert summary["verdict"]
    for part in ("training", "loaders", "disks", "layouts", "object_stores"):
        assert summary[part], part


def test_its_loops_are_ladders_of_three_rungs() -> None:
    """As far as they were measured; the rungs between were not there to be asked for."""
    entries = summarised(read(GOLDEN)).summary["ladder"]
    climbed = [[rung["rung"] for rung in entry["rungs"]] for entry in entries]
    assert climbed
    assert all(set(rungs) <= {"synthetic", "warm", "cold", "store"} for rungs in climbed)
    assert any(entry["stall"] for entry in entries)
    assert all("decode" in entry["not_measured"] for entry in entries)


def test_its_report_is_drawn(old: Path) -> None:
    """From the result and the series."""
    page = redraw(old).read_text()
    for word in ("tf-data", "mxnet-record", "AMD EPYC", "torch is not installed", "SIGKILL"):
        assert word in page


def test_it_is_exported(old: Path) -> None:
    """A row a trial."""
    done = iobench("export", old)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["id"] for row in rows] == [trial.id for trial in read(old).trials]


def test_its_config_is_still_one() -> None:
    """Whatever keys were added since stand at their defaults, and name the same trials."""
    result = read(GOLDEN)
    ids = {trial.id for trial in trials(BenchConfig.model_validate(result.config))}
    assert {trial.id for trial in result.trials if trial.status == "done"} <= ids


def test_it_is_gone_on_with(old: Path) -> None:
    """By the config that it had then: what is done is not to come again."""
    result = read(old)
    config = BenchConfig.model_validate(result.config)
    found = RunDirectory(old).open(config, result.environment, resume=True)
    assert found is not None
    assert found.trials == result.trials
    done = sum(trial.status == "done" for trial in result.trials)
    ahead = preview(config, resumed=old)
    assert ahead.before == done
    assert len(ahead.steps) == len(trials(config)) - done


def test_a_later_schema_is_refused_by_its_number(old: Path) -> None:
    """Not as something broken, and nothing is written."""
    path = old / "result.json"
    content = {**json.loads(path.read_text()), "schema": 2}
    path.write_text(json.dumps(content))
    for command in ("report", "export"):
        done = iobench(command, old)
        assert done.code == 2
        (line,) = done.complaints
        assert "schema 2; this version reads up to 1: upgrade dataprep-iobench" in line
    assert json.loads(path.read_text()) == content
    assert not (old / "report.html").exists()
