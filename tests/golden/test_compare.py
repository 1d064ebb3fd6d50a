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
    assert said("base", "new", code=1) == (FOLDER / "two-runs.txt").read_text()


def test_a_trend_is_said_as_before_whatever_the_order() -> None:
    """The newest is better than the base: the regression before it is shown, and is over."""
    expected = (FOLDER / "trend.txt").read_text()
    assert said("base", "new", "later", code=0) == expected
    assert said("base", "later", "new", code=0) == expected
    assert "regression" in expected


def test_the_object_has_the_keys_it_had() -> None:
    """Pipelines read them; numbers to nine digits."""
    expected = json.loads((FOLDER / "two-runs.json").read_text())
    found = json.loads(said("base", "new", "--json", code=1))
    assert rounded(found) == rounded(expected)


@pytest.mark.parametrize("path", RUNS.values(), ids=RUNS)
def test_a_result_of_schema_1_is_read_and_written_as_it_was(path: Path) -> None:
    """Nothing in it is lost, and its trials are the same; parts that came later are empty."""
    stored = json.loads(path.read_bytes())
    written = json.loads(Result.from_json(path.read_bytes(), path.name).to_json())
    assert {key: written[key] for key in stored} == stored
    assert not any(value for key, value in written.items() if key not in stored)


def rounded(value: object) -> object:
    """Floats to nine digits."""
    if isinstance(value, dict):
        return {key: rounded(below) for key, below in value.items()}
    if isinstance(value, list):
        return [rounded(below) for below in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def test_the_page_of_comparisons_shows_what_is_said() -> None:
    """To the letter too."""
    page = (FOLDER.parents[2] / "docs" / "compare.md").read_text()
    assert f"```\n{(FOLDER / 'two-runs.txt').read_text()}```\n" in page
