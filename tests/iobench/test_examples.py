"""An example report is drawn again with today's code."""

import json
import re
import shutil
from pathlib import Path

from typer.testing import CliRunner

from iobench.cli import app

ROOT = Path(__file__).resolve().parents[2]


def test_the_ladder_example_is_what_is_drawn_from_its_result(tmp_path):
    committed = ROOT / "reports/examples/ladder"
    copy = shutil.copytree(committed, tmp_path / "ladder")
    drawn = copy / "report.html"
    drawn.unlink()
    assert CliRunner().invoke(app, ["report", str(copy)]).exit_code == 0
    again = "draw it again: iobench report reports/examples/ladder"
    assert drawn.read_text() == (committed / "report.html").read_text(), again


def test_readme_gives_the_figures_of_the_ladder_example():
    done = CliRunner().invoke(app, ["advise", str(ROOT / "reports/examples/ladder"), "--json"])
    said = json.loads(done.stdout)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert re.findall(r"gets \d+ % of what the device can consume", said["verdict"])[0] in readme
    first = said["recommendations"][0]
    assert f"{first['gain']['median']:.3g} times as fast" in readme
