"""The report and a comparison open from a file in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from iobench.analysis.analyse import summarised
from iobench.cli.comparison_output import compare_saved
from iobench.report import render
from iobench.runner.run_folder import read, read_tables
from tests.browser.conftest import DESKTOP, PHONE, Open
from tests.iobench.analysis.made import loop, run
from tests.iobench.analysis.test_hosts import GETS, of_hosts, on_hosts
from tests.iobench.analysis.test_recommend import FAR_STORE, ONE_WORKER
from tests.iobench.report.test_page import HOSTILE, OLD

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return reports of several shapes, as files by name."""
    folder = tmp_path_factory.mktemp("reports")
    hostile = [*loop("synthetic", 2000, group=HOSTILE), *loop("warm", 900, group=HOSTILE)]
    on_three = on_hosts([*GETS, *FAR_STORE], (1.0, 0.7, 1.2))
    results = {
        "one worker": run(ONE_WORKER),
        "far store": run(FAR_STORE),
        "hostile": replace(run(hostile), name=HOSTILE),
        "empty": run(),
        "hosts": summarised(of_hosts(3, on_three)),
    }
    contents = {name: render(result) for name, result in results.items()}
    contents["old"] = render(summarised(read(OLD)), *read_tables(OLD))
    files = {name: folder / f"{name}.html" for name in contents}
    for name, path in files.items():
        path.write_bytes(contents[name])
    return files


@pytest.mark.smoke
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["old", "one worker", "far store", "hostile", "empty", "hosts"])
def test_a_report_opens_without_a_complaint_or_a_request(
    opened: Open, pages: dict[str, Path], name: str, size: tuple[int, int]
) -> None:
    """The verdict is in sight, nothing is too wide, and a desktop needs at most 5 screens."""
    opened_page = opened(pages[name], size)
    page = opened_page.page
    assert page.locator("h1").is_visible()
    assert page.locator("h1").bounding_box()["y"] < 200  # type: ignore[index]
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    top = page.evaluate("document.querySelector('#appendix').getBoundingClientRect().top")
    if size == DESKTOP:
        assert top <= 5 * size[1]
    assert page.locator("body img").count() == 0
    opened_page.assert_quiet()


def test_changes_and_accelerators_are_on_the_first_screen(
    opened: Open, pages: dict[str, Path]
) -> None:
    """Both can be read without scrolling."""
    page = opened(pages["one worker"]).page
    for text in (
        "Recommended changes, the largest gain first",
        "How many accelerators can be fed?",
        "1.60 times",
    ):
        box = page.get_by_text(text).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < DESKTOP[1], text


def test_a_link_opens_the_part_of_the_appendix(opened: Open, pages: dict[str, Path]) -> None:
    """The link to a term opens the details that hold it."""
    page = opened(pages["one worker"]).page
    assert not page.locator("#term-loss").is_visible()
    page.get_by_role("link", name="the loss", exact=True).click()
    page.locator("#term-loss").wait_for(state="visible")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(opened: Open, pages: dict[str, Path], scheme: str) -> None:
    """Text can be read in both colour schemes."""
    page = opened(pages["one worker"], scheme=scheme).page
    ink, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        ".map((c) => c.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 3)"
    )
    assert abs(ink - ground) > 150
    assert (ground < 100) == (scheme == "dark")


def test_paper_shows_the_appendix(opened: Open, pages: dict[str, Path]) -> None:
    """Parts that are closed on the screen are printed, dark on white."""
    page = opened(pages["one worker"], scheme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#findings").bounding_box()["height"] > 10  # type: ignore[index]
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_the_raw_result_can_be_downloaded(
    opened: Open, pages: dict[str, Path], tmp_path: Path
) -> None:
    """A link offers the result as a file."""
    page = opened(pages["one worker"]).page
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the raw result").click()
    assert download.value.suggested_filename == "result.json.gz"


@pytest.fixture(scope="module")
def page_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the comparison of a run and its recommended change; the names would be markup."""
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
    opened: Open, page_of_two: Path, size: tuple[int, int]
) -> None:
    """The predicted and the measured rate are shown, and nothing is too wide."""
    opened_page = opened(page_of_two, size)
    page = opened_page.page
    assert page.get_by_text("Predicted:").is_visible()
    assert page.get_by_text("Measured:").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert page.locator("body img").count() == 0
    opened_page.assert_quiet()
