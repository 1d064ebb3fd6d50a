"""Runs of earlier versions are read, summarised, drawn, exported, compared and continued."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from iobench.analysis.analyse import summarised
from iobench.config.benchmark import BenchConfig
from iobench.config.plan import trials
from iobench.errors import RunConflict
from iobench.results.result import Result
from iobench.runner.forecast import forecast
from iobench.runner.run_folder import begin_log, open_run, read, redraw
from tests.commandline import iobench

GOLDEN = Path(__file__).parent / "run-schema-1"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy of the run of an earlier version."""
    folder = tmp_path / "old"
    shutil.copytree(GOLDEN, folder)
    return folder


def test_it_is_as_it_was_written() -> None:
    """Every value is read as it was written, whatever was added to the schema since then."""
    content = json.loads((GOLDEN / "result.json").read_text())
    text = json.loads(read(GOLDEN).to_json())
    assert content["schema"] == 1
    for before, after in zip(content["findings"], text.pop("findings"), strict=True):
        assert {key: after[key] for key in before if key in after} == {
            key: before[key] for key in before if key in after
        }
    assert {key: text.get(key) for key in content} == {**content, "findings": None}
    kinds = {trial["kind"] for trial in content["trials"]}
    assert kinds == {"disk", "layout", "object", "loader", "train"}
    assert {trial["status"] for trial in content["trials"]} == {"done", "failed", "skipped"}


def test_it_is_summed_up() -> None:
    """The run is summarised with a verdict and with every rate that it measured.

    Its training loops have three rungs, because there were no others at that time.
    """
    summary = summarised(read(GOLDEN)).summary
    assert summary["verdict"]
    for part in ("training", "loaders", "disks", "layouts", "object_stores"):
        assert summary[part], part
    climbed = [{rung["rung"] for rung in entry["rungs"]} for entry in summary["ladder"]]
    assert climbed
    assert all(rungs <= {"synthetic", "warm", "cold", "store"} for rungs in climbed)
    assert any(entry["stall"] for entry in summary["ladder"])
    assert all("decode" in entry["not_measured"] for entry in summary["ladder"])


def test_its_report_is_drawn(old: Path) -> None:
    """The report is drawn from the result and the series. The export has a row for each trial."""
    page = redraw(old).read_text()
    for word in ("tf-data", "mxnet-record", "AMD EPYC", "torch is not installed", "SIGKILL"):
        assert word in page
    done = iobench("export", old, code=0)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [row["id"] for row in rows] == [trial.id for trial in read(old).trials]


def test_rates_of_the_former_rule_are_not_continued(old: Path) -> None:
    """The config still names the same trials, but new rates would have another meaning."""
    result = read(old)
    config = BenchConfig.model_validate(result.config)
    ids = {trial.id for trial in trials(config)}
    assert {trial.id for trial in result.trials if trial.status == "done"} <= ids
    with pytest.raises(RunConflict, match="rates of an earlier version"):
        open_run(old, config, result.environment, resume=True)


def test_a_run_without_rates_is_continued(old: Path) -> None:
    """Trials of probes mean the same in every version, so that none is repeated."""
    result = read(old)
    probes = [trial for trial in result.trials if trial.kind in ("disk", "object", "layout")]
    begin_log(old, replace(result, trials=probes))
    config = BenchConfig.model_validate(result.config)
    continued = open_run(old, config, result.environment, resume=True)
    assert continued is not None
    assert [trial.id for trial in continued.trials] == [trial.id for trial in probes]
    done = sum(trial.status == "done" for trial in probes)
    ahead = forecast(config, resumed=old)
    assert ahead.measured_before == done
    assert len(ahead.planned) == len(trials(config)) - done


def test_a_later_schema_is_refused_by_its_number(old: Path) -> None:
    """A later schema is refused by its number, not as a damaged file, and nothing is written."""
    path = old / "result.json"
    content = {**json.loads(path.read_text()), "schema": 2}
    path.write_text(json.dumps(content))
    for command in ("report", "export"):
        done = iobench(command, old, code=2)
        (line,) = done.complaints
        assert "schema 2; this version reads up to 1: upgrade dataprep-iobench" in line
    assert json.loads(path.read_text()) == content
    assert not (old / "report.html").exists()


COMPARED = GOLDEN.parent / "compare"
RUNS = {name: COMPARED / f"{name}.json" for name in ("base", "new", "later")}


def printed(*arguments: str, code: int) -> str:
    """What the command prints about the saved runs, and its exit code."""
    done = iobench("compare", *(RUNS.get(argument, argument) for argument in arguments), code=code)
    return done.out


def test_two_runs_are_said_as_before() -> None:
    """The text of the comparison has not changed, and the documentation shows some of its lines."""
    text = printed("base", "new", "--force", code=0)
    assert text == (COMPARED / "two-runs.txt").read_text()
    page = (COMPARED.parents[2] / "docs" / "compare.md").read_text()
    shown_text = "The loop" + page.partition("```\nThe loop")[2].partition("```")[0]
    assert set(shown_text.splitlines()) - {"  ..."} <= set(text.splitlines())


def test_the_newest_decides_whatever_the_order() -> None:
    """Runs are sorted by time, so that the newest one decides."""
    first, second = (
        printed(*order, "--force", code=0)
        for order in (("base", "new", "later"), ("base", "later", "new"))
    )
    assert first == second


@pytest.mark.parametrize("path", RUNS.values(), ids=RUNS)
def test_a_result_of_schema_1_is_read_and_written_as_it_was(path: Path) -> None:
    """No value and no trial of the file is lost. Parts that were added later are empty."""
    content = json.loads(path.read_bytes())
    written = json.loads(Result.from_json(path.read_bytes(), path.name).to_json())
    assert {key: written[key] for key in content} == content
    assert not any(value for key, value in written.items() if key not in content)
