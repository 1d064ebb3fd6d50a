"""Comparisons in a real browser, opened from a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iobench.comparing import compare_saved
from tests.browser.opened import DESKTOP, PHONE, opened
from tests.iobench.analysis.made import loop, run
from tests.iobench.analysis.test_recommend import ONE_WORKER
from tests.iobench.report.test_page import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recommendation that was followed, in runs whose names would be markup."""
    folder = tmp_path_factory.mktemp("comparison")
    new = run(loop("synthetic", 2000, workers=2), loop("warm", 1390, workers=2))
    paths = []
    for name, result in (("base", run(ONE_WORKER)), ("new", new)):
        path = folder / f"{name}.json"
        path.write_bytes(replace(result, name=HOSTILE).to_json())
        paths.append(path)
    compare_saved(paths, None, 0.05).write_page(folder / "page.html")
    return folder / "page.html"


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_comparison_opens_without_a_complaint_or_a_request(
    chromium: Browser, page_of_two: Path, size: tuple[int, int]
) -> None:
    """Predicted and found beside each other; nothing too wide."""
    found = opened(chromium, page_of_two, size)
    page = found.page
    assert page.get_by_text("Predicted:").is_visible()
    assert page.get_by_text("Found:").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert page.locator("body img").count() == 0
    assert found.complaints == []
    assert found.network == []
    page.context.close()
