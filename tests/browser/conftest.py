"""One browser for all tests here, and pages with what they complained of and asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
DESKTOP, PHONE = (1440, 900), (400, 844)


class Opened:
    """A page with what it complained of and what it asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._complaints: list[str] = []
        self._requests: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("request", lambda request: self._requests.append(request.url))
        page.on("dialog", lambda dialog: self._complaints.append(dialog.message))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._complaints.append(message.text)

    def assert_quiet(self) -> None:
        """It complained of nothing and requested nothing but the file itself."""
        assert self._complaints == []
        assert [url for url in self._requests if not url.startswith(("file:", "data:"))] == []


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser for all tests here."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Open]:
    """Opens a page as it is shown; all of them are closed after the test."""
    pages: list[Page] = []

    def show(path: Path, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Opened:
        context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        opened_page = Opened(context.new_page())
        pages.append(opened_page.page)
        opened_page.page.goto(path.as_uri())
        return opened_page

    yield show
    for page in pages:
        page.context.close()
