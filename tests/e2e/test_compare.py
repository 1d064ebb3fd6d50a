"""``iobench compare`` reads the files of a real run, as in a CI pipeline."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commandline import Finished, iobench

pytestmark = pytest.mark.slow


Changed = Callable[[str, Callable[[dict[str, Any]], None]], Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two small points with five repeats each, made by the real program."""
    folder = tmp_path_factory.mktemp("compare")
    config = folder / "config.yaml"
    grid = {"loader": ["mock"], "workers": 0, "seconds": 0.05, "batch_size": [2, 4]}
    values = {
        "name": "nightly",
        "repeats": 5,
        "data": {"folder": str(folder / "data")},
        "loaders": [{**grid, "item_s": 0.001}],
        "sampling": {"samplers": []},  # memory is a figure only of trials that last until a reading
    }
    config.write_text(yaml.safe_dump(values))
    iobench("run", config, "--output", folder / "run", code=0)
    return folder / "run"


@pytest.fixture
def changed(run: Path, tmp_path: Path) -> Changed:
    """A function that copies the run with changed content."""

    def copied(name: str, change: Callable[[dict[str, Any]], None]) -> Path:
        folder = tmp_path / name
        shutil.copytree(run, folder)
        path = folder / "result.json"
        content = json.loads(path.read_bytes())
        change(content)
        path.write_text(json.dumps(content))
        return folder

    return copied


@pytest.fixture
def new(changed: Changed) -> Path:
    """A copy of the run in which every rate is a tenth."""
    return changed("new", slower)


def slower(content: dict[str, Any]) -> None:
    """Reduce every rate to a tenth."""
    for trial in content["trials"]:
        trial["metrics"]["samples_per_s"] /= 10


def compare(*arguments: str | Path, code: int | None = None) -> Finished:
    """The arguments of ``iobench compare``."""
    return iobench("compare", *arguments, code=code)


def test_a_run_against_itself_is_exit_code_0(run: Path) -> None:
    """A run compared with itself has no changed figure: each ratio is 1, within its interval."""
    done = compare(run, run, "--json")
    assert (done.code, done.err) == (0, "")
    changes = done.one_object["changes"]
    assert {change["figure"] for change in changes} == {"samples_per_s", "time_to_first_batch_s"}
    assert len(changes) == 4
    assert all(change["low"] <= change["ratio"] == 1 <= change["high"] for change in changes)
    assert {change["verdict"] for change in changes} <= {"no evidence", "underpowered"}
    assert {c["figure"] for c in changes if c["decides"]} == {"samples_per_s"}


def test_a_regression_is_exit_code_1(run: Path, new: Path, tmp_path: Path) -> None:
    """The verdict is the first line, and on the page; in the other order it is an improvement.

    With a threshold above the change, the comparison ends with 0.
    """
    page = tmp_path / "page.html"
    done = compare(run, new, "--html", page, code=1)
    assert done.out.startswith("2 of 2 deciding figures worse by 5 % or more, 0 better")
    html = page.read_text()
    assert "2 of 2 deciding figures worse" in html
    for text in (done.out, html):
        assert "loader mock workers=0 batch=2" in text
    turned = compare(new, run, code=0)
    assert turned.out.startswith("0 of 2 deciding figures worse by 5 % or more, 2 better")
    assert compare(run, new, "--threshold", "95%").code == 0


def test_a_pipeline_compares_a_run_with_a_kept_file(run: Path, new: Path, tmp_path: Path) -> None:
    """The result of a good run can have any name, and is updated by copying the next result."""
    baseline = tmp_path / "baseline.json"
    for kept_run, code in ((run, 1), (new, 0)):
        shutil.copy(kept_run / "result.json", baseline)
        assert compare(new, "--against", baseline).code == code


def test_of_several_runs_the_newest_decides(run: Path, changed: Changed) -> None:
    """Runs are compared in order of time, and the newest one sets the exit code."""

    def slower_and_later(content: dict[str, Any]) -> None:
        slower(content)
        content["started"] = "2999-01-01T00:00:00+00:00"

    done = compare(run, changed("new", slower_and_later), run, code=1)
    assert "Medians of the base, then of 2 runs in the order of their time" in done.out


def test_unlike_machines_need_force(run: Path, changed: Changed) -> None:
    """Runs of different machines need --force, and the output then begins with the differences."""

    def on_another_machine(content: dict[str, Any]) -> None:
        content["environment"]["processors"] = 999

    new = changed("new", on_another_machine)
    assert "-> 999; --force" in compare(run, new).err
    done = compare(run, new, "--force", code=0)
    assert "Machines differ:" in done.out
    assert done.out.index("-> 999") < done.out.index("samples/s")


def test_a_run_of_the_former_rule_needs_force(run: Path, changed: Changed) -> None:
    """A run without the rule of its rates gives exit code 2, unless --force is given."""

    def earlier(content: dict[str, Any]) -> None:
        assert content.pop("rates") == "steady-state"

    old = changed("old", earlier)
    done = compare(old, run)
    assert (done.code, done.out) == (2, "")
    assert "measure old again with this version; --force" in done.err
    forced = compare(old, run, "--force", code=0)
    assert "The rates of old were measured by another rule" in forced.out
    assert compare(old, old).code == 0


def test_what_cannot_be_compared_is_exit_code_2(
    run: Path, changed: Changed, tmp_path: Path
) -> None:
    """Each incomparable case gives one clear error line and no traceback."""

    def longer(content: dict[str, Any]) -> None:
        for trial in content["trials"]:
            trial["params"]["seconds"] = 9.0

    def newer(content: dict[str, Any]) -> None:
        content["schema"] = 99

    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments, message in (
        ([changed("longer", longer)], "no figure in common"),
        ([changed("newer", newer)], "upgrade"),
        ([empty], "no run in"),
        ([run / "config.yaml"], "not the result of a run"),
        ([], "--against BASELINE"),
        ([run, "--threshold", "5"], "--threshold"),
        ([run, "--html", run / "result.json"], "ends in .html"),
    ):
        done = compare(run, *arguments)
        assert (done.code, done.out) == (2, "")
        (line,) = done.err.splitlines()
        assert message in line
