"""``iobench cost``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from iobench.cli import app
from iobench.config import BenchConfig
from tests.iobench.cost.made import run, trained
from tests.iobench.summary.made import result


def saved(folder: Path, config: dict[str, Any]) -> None:
    """A run with a loop at half of what its device consumes."""
    made = run(*trained("synthetic", 1_000), *trained("cold", 500))
    (folder / "result.json").write_bytes(replace(made, config=config).to_json())


def asked(folder: Path, *more: str) -> tuple[int, str]:
    """Exit code and what it prints, of a saved run."""
    saved(folder, BenchConfig().model_dump(mode="json"))
    found = CliRunner().invoke(app, ["cost", str(folder), *more])
    return found.exit_code, found.output


def test_a_saved_run_with_the_files_prices(tmp_path: Path) -> None:
    """By the type of the machine, which is told."""
    code, said = asked(tmp_path, "--instance", "g5.xlarge", "--samples", "3600000")
    assert code == 0
    assert "shards@disk, cold: $2.01 an epoch, $181.08 to 90 epochs" in said
    assert "g5.xlarge in us-east-1, as of 2026-07-20" in said


def test_an_own_price_as_json(tmp_path: Path) -> None:
    """Of a few epochs."""
    code, said = asked(
        tmp_path, "--instance-usd-per-h", "3", "--epochs", "2", "--samples", "3600000", "--json"
    )
    assert code == 0
    (row,) = json.loads(said)["rows"]
    assert (row["usd"], row["usd_to_epochs"]) == (6.0, 12.0)


def test_a_run_that_keeps_no_cost_can_be_priced_without_keys(tmp_path: Path) -> None:
    """What is missing is named."""
    (tmp_path / "result.json").write_bytes(result([]).to_json())
    found = CliRunner().invoke(app, ["cost", str(tmp_path)])
    assert found.exit_code == 2
    assert "no training loop read stored data" in found.output


def test_a_loop_that_is_none_of_the_run_is_a_wrong_request(tmp_path: Path) -> None:
    """Its name is told."""
    code, said = asked(tmp_path, "--group", "nope")
    assert code == 2
    assert "no training loop is called 'nope'" in said


def test_a_watched_script_has_no_config_to_price(tmp_path: Path) -> None:
    """It is refused by name."""
    saved(tmp_path, {"watch": {}})
    found = CliRunner().invoke(app, ["cost", str(tmp_path)])
    assert found.exit_code == 2
    assert "its config is none that iobench run of this version takes" in found.output
