"""Save the pictures of the documentation: ``python -m tests.screenshots``.

The report is that of the ladder example, and the page about a data set shows drawn photos.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import dataprep
from dataprep.drawn import draw_tree
from tests.browser.conftest import CHROMIUM, FLAGS

ROOT = Path(__file__).parents[1]
REPORT = ROOT / "reports/examples/ladder/report.html"


def main() -> None:
    """Save the first screen of a report and of the page about a data set."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.chdir(folder)  # the page shows the output by a short path
        draw_tree(Path("photos"), images=400, classes=12)
        image = dataprep.ImagePolicy(size=256)
        dataprep.shard(dataprep.ShardConfig(source="photos", output="shards", image=image))
        page = Path("page.html").resolve()
        dataprep.inspect("shards", html=page, images=24)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        screen = browser.new_page(viewport={"width": 1200, "height": 760})
        for path, name in ((REPORT, "report.png"), (page, "data-set.jpg")):
            screen.goto(path.as_uri())
            screen.screenshot(path=ROOT / f"docs/{name}")


if __name__ == "__main__":
    main()
