"""One browser runs for all tests here, and a page keeps its complaints and its requests."""

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
    """A page with its complaints and its requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._complaints: list[str] = []
        self._requests: list[str] = []
        page.on("console", self._keep_complaint)
        page.on("pageerror", lambda error: self._complaints.append(str(error)))
        page.on("request", lambda request: self._requests.append(request.url))
        page.on("dialog", lambda dialog: self._complaints.append(dialog.message))

    def _keep_complaint(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self._complaints.append(message.text)

    def assert_quiet(self) -> None:
        """Assert that the page complained of nothing and requested nothing but the file itself."""
        assert self._complaints == []
        remote = [url for url in self._requests if not url.startswith(("file:", "data:"))]
        assert remote == []


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Yield one browser for all tests here."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Open]:
    """Yield a function that opens a page; all pages are closed after the test."""
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
