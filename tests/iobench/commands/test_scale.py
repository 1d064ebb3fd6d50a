"""``iobench scale``."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from iobench.cli import app
from tests.iobench.scale.made import loader, run


def asked(folder: Path, *more: str) -> tuple[int, str]:
    """Exit code and what it prints, of a saved run."""
    (folder / "result.json").write_bytes(run(loader(10_000)).to_json())
    found = CliRunner().invoke(app, ["scale", str(folder), "--devices", "256", *more])
    return found.exit_code, found.output


def test_hosts_of_a_saved_run(tmp_path: Path) -> None:
    """In lines."""
    code, said = asked(tmp_path, "--images-per-s", "171000", "--devices-per-host", "8")
    assert code == 0
    assert "Wherever the data lie: 32 hosts, with 8 devices each." in said


def test_the_same_as_json(tmp_path: Path) -> None:
    """One object."""
    code, said = asked(tmp_path, "--images-per-s", "171000", "--json")
    assert code == 0
    assert json.loads(said)["images_per_s"] == 171_000


def test_without_a_rate_it_says_what_is_missing(tmp_path: Path) -> None:
    """The run had no training loop."""
    code, said = asked(tmp_path)
    assert code == 2
    assert "what a device consumes" in said
