"""A report opened in a browser, with what it complained of and what it asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

DESKTOP, PHONE = (1280, 900), (390, 844)

# Chart pixels that are neither clear nor the page's: what was drawn.
INKED = """() => [...document.querySelectorAll(".drawing")].map((place) => {
  const find = (root) => [...root.querySelectorAll("*")].flatMap((element) => [
    ...(element instanceof HTMLCanvasElement ? [element] : []),
    ...(element.shadowRoot ? find(element.shadowRoot) : []),
  ]);
  return Math.max(0, ...find(place).map((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let inked = 0;
    for (let i = 3; i < data.length; i += 4) inked += data[i] > 0;
    return inked;
  }));
})"""


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


def opened(
    browser: Browser, path: Path, size: tuple[int, int] = DESKTOP, scheme: str = "light"
) -> Opened:
    """The page when all its charts are drawn."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    found = Opened(context.new_page())
    found.page.goto(path.as_uri())
    found.page.wait_for_selector("html[data-ready]")
    return found


def inked_charts(page: Page) -> list[int]:
    """How many pixels each chart has drawn."""
    found: list[int] = page.evaluate(INKED)
    return found
