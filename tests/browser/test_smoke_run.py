"""``iobench run configs/bench/smoke.yaml`` measures all, and its report opens in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iobench.analysis.gain_words import result_lines
from tests.browser.conftest import Open
from tests.commandline import Finished, iobench

pytestmark = pytest.mark.browser

CONFIG = Path(__file__).parents[2] / "configs" / "bench" / "smoke.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the run."""
    return tmp_path_factory.mktemp("smoke")


@pytest.fixture(scope="module")
def finished(folder: Path) -> Finished:
    """Run the command on real disks, real S3 over HTTP and a real training loop; return its end."""
    pytest.importorskip("torch")
    settings = {
        "repeats": "1",
        "data.images": "200",
        "data.folder": str(folder / "data"),
        "disk.targets": f"[{{label: here, path: {folder}}}]",
    }
    options = [part for pair in settings.items() for part in ("--set", "=".join(pair))]
    return iobench("run", CONFIG, "--output", folder / "run", *options)


def test_it_ends_with_a_verdict_and_a_report(finished: Finished, folder: Path) -> None:
    """Every trial is done, and the verdict and the report's path are printed."""
    assert (finished.code, finished.complaints) == (0, []), finished.err
    *message, report = finished.out.splitlines()
    assert message[0].startswith("The loop gets ")
    assert report == str(folder / "run" / "report.html")
    result = json.loads((folder / "run" / "result.json").read_text())
    assert {trial["status"] for trial in result["trials"]} == {"done"}
    assert {trial["kind"] for trial in result["trials"]} == {
        *("disk", "layout", "object", "loader", "train")
    }
    assert message == result_lines(result["summary"])


def test_the_report_opens(opened: Open, finished: Finished, folder: Path) -> None:
    """The verdict is in sight, charts are drawn, and there is no complaint and no request."""
    opened_page = opened(folder / "run" / "report.html")
    page = opened_page.page
    verdict = page.locator("h1").inner_text().replace("\N{NO-BREAK SPACE}", " ")
    assert verdict == finished.out.splitlines()[0]
    assert page.get_by_text("Recommended changes, the largest gain first").is_visible()
    assert page.get_by_text("How many accelerators can be fed?").is_visible()
    assert page.locator("svg").count() > 2
    opened_page.assert_quiet()
    assert (folder / "run" / "report.html").stat().st_size < 1e6
