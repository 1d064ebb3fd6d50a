"""The report in a real browser, opened from a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from iobench.report import render
from tests.browser.opened import DESKTOP, PHONE, inked_charts, opened
from tests.iobench.report import machines, results

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of every shape, as files."""
    folder = tmp_path_factory.mktemp("reports")
    made = {}
    for name, run in results.shapes():
        made[name] = folder / f"{name}.html"
        result = replace(run.result(), findings=results.FINDINGS)
        made[name].write_bytes(render(result, run.table()))
    for name in ("one-repeat", "hostile"):
        made[f"{name}-sampled"] = folder / f"{name}-sampled.html"
        page = render(*machines.timed(dict(results.shapes())[name]))
        made[f"{name}-sampled"].write_bytes(page)
    watched = machines.watched()
    result = machines.watched_result(watched)
    made["watched"] = folder / "watched.html"
    page = render(result, watched.table(), machines.readings(result.trials))
    made["watched"].write_bytes(page)
    return made


SAMPLED = ("watched", "one-repeat-sampled", "hostile-sampled")
SCREENS = [
    *(pytest.param(name, DESKTOP, id=f"{name}-desktop") for name in SAMPLED),
    pytest.param("watched", PHONE, id="watched-phone"),
    *(pytest.param(name, DESKTOP, id=f"{name}-desktop") for name, _ in results.shapes()),
    *(pytest.param(name, PHONE, id=f"{name}-phone") for name in ("full", "hostile", "emulated")),
]


@pytest.mark.parametrize(("name", "size"), SCREENS)
def test_a_report_opens_without_a_complaint_or_a_request(
    chromium: Browser, pages: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    """Verdict in sight, every chart drawn, nothing wider than the screen."""
    found = opened(chromium, pages[name], size)
    page = found.page
    assert page.locator("#verdict").is_visible()
    inked = inked_charts(page)
    assert len(inked) == page.locator("figure.chart").count()
    assert all(pixels > 500 for pixels in inked), inked
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert found.complaints == []
    assert [url for url in found.requests if not url.startswith(("file:", "data:"))] == []
    page.context.close()


@pytest.mark.smoke
def test_a_hostile_name_is_text(chromium: Browser, pages: dict[str, Path]) -> None:
    """On the page, in a chart's tooltip and in the embedded result."""
    found = opened(chromium, pages["hostile"])
    page = found.page
    assert page.locator("#verdict").inner_text() == f"The loop reads {results.HOSTILE} too slowly."
    assert page.locator(".name strong").inner_text().startswith(results.HOSTILE)
    assert page.locator("body img").count() == 0
    hover(page, "Every supply")
    assert "<img src=x onerror=alert(2)>" in tooltip(page)
    assert page.locator(".bk-Tooltip").locator("img, script").count() == 0
    stored = json.loads(page.locator("#result").inner_text())
    assert stored["name"] == results.hostile().name
    assert found.complaints == []
    page.context.close()


def hover(page: Page, title: str) -> None:
    """Point at the beginning of the first bar of a chart."""
    place = page.locator("figure.chart", has=page.get_by_text(title)).locator(".drawing").first
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box
    for step in range(30, int(box["height"]) - 40, 6):
        page.mouse.move(box["x"] + 20, box["y"] + step)
        if page.locator(".bk-Tooltip:visible").count():
            return


def tooltip(page: Page) -> str:
    """What it says; it lives in a shadow tree."""
    shown = page.locator(".bk-Tooltip:visible").first
    shown.wait_for()
    return str(shown.evaluate("element => element.shadowRoot.textContent"))


def test_hovering_gives_value_interval_repeats_and_cache(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    """All that qualifies a figure."""
    page = opened(chromium, pages["full"]).page
    hover(page, "Every supply")
    said = tooltip(page)
    assert all(word in said for word in ("samples/s", "interval", "96.9", "repeats", "warm")), said
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_and_charts_change_colours_together(
    chromium: Browser, pages: dict[str, Path], scheme: str
) -> None:
    """As the system asks at first, and the other way by the button."""
    page = opened(chromium, pages["one-repeat"], scheme=scheme).page
    colours = """() => [getComputedStyle(document.documentElement).getPropertyValue("--ink").trim(),
      getComputedStyle(document.body).color,
      ...new Set([...Bokeh.documents].flatMap((d) => [...d.all_models])
        .filter((m) => (m.tags || []).includes("text_color=ink"))
        .map((m) => m.text_color.value ?? m.text_color))]"""
    first = page.evaluate(colours)
    page.locator("#theme").click()
    second = page.evaluate(colours)
    assert len(first) == len(second) == 3
    assert first[0] == first[2]
    assert second[0] == second[2]
    assert not set(first) & set(second)
    page.context.close()


def test_a_table_is_copied_with_its_exact_values(chromium: Browser, pages: dict[str, Path]) -> None:
    """Tab-separated, from a file, where the clipboard may be refused."""
    page = opened(chromium, pages["one-repeat"]).page
    page.evaluate(
        "document.addEventListener('copy', () => { window.copied = getSelection().toString() "
        "|| document.activeElement.value; });"
        "Object.defineProperty(navigator, 'clipboard', { value: undefined });"
    )
    page.locator("#training .copy").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    rows = [line.split("\t") for line in page.evaluate("window.copied").split("\n")]
    run = dict(results.shapes())["one-repeat"]
    consumes = run.summary["training"][0]["consumes"]["median"]
    assert rows[0][0] == "figure"
    assert ["the device consumes, samples/s", repr(consumes)] in rows
    page.context.close()


@pytest.mark.parametrize("name", ["hostile", "many"])
def test_the_raw_result_can_be_downloaded(
    chromium: Browser, pages: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """As result.json, equal to what was saved; a long one is unpacked first."""
    page = opened(chromium, pages[name]).page
    kind = page.locator("#result").get_attribute("type")
    assert kind == ("application/gzip" if name == "many" else "application/json")
    page.locator("#download[href^=blob]").wait_for()
    with page.expect_download() as download:
        page.locator("#download").click()
    assert download.value.suggested_filename == "result.json"
    download.value.save_as(tmp_path / "result.json")
    saved = json.loads((tmp_path / "result.json").read_bytes())
    expected = replace(dict(results.shapes())[name].result(), findings=results.FINDINGS)
    assert saved == json.loads(expected.to_json())
    page.context.close()


def test_paper_is_light_with_every_chart_and_no_button(
    chromium: Browser, pages: dict[str, Path]
) -> None:
    """Charts are drawn anew in the page's light colours, folded tables are opened, and closed."""
    page = opened(chromium, pages["one-repeat"], scheme="dark").page
    folded = page.locator("details:not([open])").count()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme="dark")
    charts = page.locator("figure.chart").count()
    assert page.locator("svg.paper-only:visible").count() == charts
    assert page.locator("button:visible").count() == 0
    assert page.locator("details:not([open])").count() < folded
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    fills = page.evaluate(
        "[...document.querySelectorAll('svg.paper-only text')].map((t) => getComputedStyle(t).fill)"
        ".filter((fill) => fill !== 'none')"
    )
    assert fills
    assert all(sum(map(int, fill[4:-1].split(","))) < 480 for fill in set(fills)), set(fills)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("svg.paper-only").count() == 0
    assert page.locator("details:not([open])").count() == folded
    page.context.close()
