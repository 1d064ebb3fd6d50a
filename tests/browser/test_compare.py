"""Comparisons and trends in a real browser, opened from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iobench.comparing import Compared, compare_saved
from tests.browser.opened import DESKTOP, PHONE, inked_charts, opened
from tests.iobench.compare.saved_runs import (
    NOISY,
    STEADY,
    params,
    repeats,
    saved,
    scaled,
    stopped,
)
from tests.iobench.report.results import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

GOLDEN = Path(__file__).parents[1] / "golden" / "compare"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of two runs, of three, and of names that would be markup."""
    folder = tmp_path_factory.mktemp("comparisons")
    base, new, later = (GOLDEN / f"{name}.json" for name in ("base", "new", "later"))
    runs = []
    for name, factor in (("a", 1.0), ("b", 0.01)):
        trials = [
            *repeats(scaled(STEADY, factor), params(HOSTILE)),
            *repeats(NOISY, params(f"$$x$$ {HOSTILE}")),
            *stopped("failed", HOSTILE, loader=f"{HOSTILE}-{name}"),
        ]
        path = folder / f"{name}.json"
        path.write_bytes(saved(*trials, config={HOSTILE: name}).result.to_json())
        runs.append(path)
    made: dict[str, Compared] = {
        "comparison": compare_saved([base, new], None, 0.05),
        "trend": compare_saved([base, new, later], None, 0.05),
        "hostile": compare_saved(runs, None, 0.05),
    }
    for name, compared in made.items():
        compared.write_page(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["comparison", "trend", "hostile"])
def test_a_comparison_opens_without_a_complaint_or_a_request(
    chromium: Browser, pages: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    """Verdict in sight, differences above the ratios, every chart drawn, nothing too wide."""
    found = opened(chromium, pages[name], size)
    page = found.page
    assert page.locator("#verdict").is_visible()
    above, below = (page.locator(f"#{part}").bounding_box() for part in ("differences", "ratios"))
    assert above
    assert below
    assert above["y"] < below["y"]
    inked = inked_charts(page)
    assert len(inked) == page.locator("figure.chart").count() > 0
    assert all(pixels > 500 for pixels in inked), inked
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert page.locator("body img").count() == 0
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    page.context.close()
