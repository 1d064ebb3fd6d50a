"""A report opened in a browser, with what it complained of and what it asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DESKTOP, PHONE = (1440, 900), (400, 844)


class Opened:
    """A page with what it complained of and what it asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    @property
    def network(self) -> list[str]:
        """Requests that are not of the file itself."""
        return [url for url in self.requests if not url.startswith(("file:", "data:"))]


def opened(
    browser: Browser, path: Path, size: tuple[int, int] = DESKTOP, scheme: str = "light"
) -> Opened:
    """The page as it is shown."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    found = Opened(context.new_page())
    found.page.goto(path.as_uri())
    return found
