"""Runs that were saved long ago are read and compared as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from iobench.cli import app
from iobench.result import Result

FOLDER = Path(__file__).parent / "compare"
RUNS = {name: FOLDER / f"{name}.json" for name in ("base", "new", "later")}


def said(*arguments: str, code: int) -> str:
    """What the command prints of the saved runs, and how it ends."""
    paths = [str(RUNS[each]) if each in RUNS else each for each in arguments]
    done = CliRunner().invoke(app, ["compare", *paths])
    assert done.exit_code == code, done.output
    return done.stdout


def test_two_runs_are_said_as_before() -> None:
    """To the letter."""
    assert said("base", "new", "--force", code=1) == (FOLDER / "two-runs.txt").read_text()


def test_the_newest_decides_whatever_the_order() -> None:
    """Runs are put in order of time."""
    first, second = (
        said(*order, "--force", code=0)
        for order in (("base", "new", "later"), ("base", "later", "new"))
    )
    assert first == second


@pytest.mark.parametrize("path", RUNS.values(), ids=RUNS)
def test_a_result_of_schema_1_is_read_and_written_as_it_was(path: Path) -> None:
    """Nothing in it is lost, and its trials are the same; parts that came later are empty."""
    stored = json.loads(path.read_bytes())
    written = json.loads(Result.from_json(path.read_bytes(), path.name).to_json())
    assert {key: written[key] for key in stored} == stored
    assert not any(value for key, value in written.items() if key not in stored)


def test_the_page_of_comparisons_shows_what_is_said() -> None:
    """To the letter too."""
    page = (FOLDER.parents[2] / "docs" / "compare.md").read_text()
    assert f"```\n{(FOLDER / 'two-runs.txt').read_text()}```\n" in page
