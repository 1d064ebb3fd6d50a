"""The example report is drawn by today's code, and README has its figures."""

import json
import re
import shutil
from pathlib import Path

from typer.testing import CliRunner

from iobench.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
LADDER = ROOT / "reports/examples/ladder"


def test_the_ladder_example_is_what_is_drawn_from_its_result(tmp_path: Path) -> None:
    """The committed page is what today's code draws from the result."""
    copy = shutil.copytree(LADDER, tmp_path / "ladder")
    drawn = copy / "report.html"
    drawn.unlink()
    assert CliRunner().invoke(app, ["report", str(copy)]).exit_code == 0
    advice = "draw it advice: iobench report reports/examples/ladder"
    assert drawn.read_text() == (LADDER / "report.html").read_text(), advice


def test_readme_gives_the_figures_of_the_ladder_example() -> None:
    """README has the figures of the example's verdict and of its first recommendation."""
    done = CliRunner().invoke(app, ["advise", str(LADDER), "--json"])
    content = json.loads(done.stdout)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert re.findall(r"gets \d+ % of what the device can consume", content["verdict"])[0] in readme
    first = content["recommendations"][0]
    assert f"{first['gain']['median']:.3g} times as fast" in readme
