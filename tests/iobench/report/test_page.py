"""The page as text: embedded data, escaping, size, and that it depends on the result alone."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.report import render
from iobench.report.page import embedded_json
from iobench.result import Result
from tests.iobench.report import machines, results
from tests.iobench.report.results import Run

pytestmark = pytest.mark.slow

SHAPES = dict(results.shapes())


def embedded(page: str, name: str) -> Any:
    """The JSON of one of the page's data elements, as a browser would find its end."""
    match = re.search(rf'<script type="application/(\w+)" id="{name}">(.*?)</script', page, re.S)
    assert match
    packed = match[1] == "gzip"
    return json.loads(gzip.decompress(base64.b64decode(match[2])) if packed else match[2])


@pytest.mark.parametrize("name", SHAPES)
def test_any_run_gives_a_page_below_6_mb(name: str) -> None:
    """Whatever was measured or not, a page comes out, with the raw result in it."""
    run = SHAPES[name]
    page = render(run.result(), run.table())
    assert len(page) < 6e6
    text = page.decode()
    assert embedded(text, "result") == json.loads(run.result().to_json())


def test_1344_trials_of_every_kind_stay_below_6_mb_with_findings() -> None:
    """The largest run that is foreseen fits."""
    run = results.full()
    assert len(render(run.result(findings=results.FINDINGS), run.table())) < 6e6


def test_thousands_of_trials_stay_below_6_mb() -> None:
    """Long tables are cut and say so, result and charts are packed; nothing of them is lost."""
    run = Run()
    for target in range(12):
        run.disks(targets=((f"disk-{target}", 1000.0),))
    for group in range(9):
        run.training(f"loop-{group}", steps=600)
    while len(run.trials) < 5_000:
        run.loaders()
    result, table, readings = machines.timed(run, rows=3_000)
    page = render(result, table, readings)
    assert len(page) < 5e6  # room for sections to come, below the 6 MB of every page
    text = page.decode()
    assert embedded(text, "result") == json.loads(result.to_json())
    assert text.count('class="chart') == len(embedded(text, "charts")) > 10
    assert "The machine meanwhile" in text
    assert "rows; the raw result has all" in text


def test_a_watched_loop_is_a_page_below_6_mb() -> None:
    """The steps of its loaders, and the machine beneath them."""
    run = machines.watched([f"loader {n}" for n in range(8)], steps=4_000)
    result = machines.watched_result(run)
    page = render(result, run.table(), machines.readings(result.trials, rows=20_000))
    assert len(page) < 6e6
    text = page.decode()
    assert "Your loop over loader" in text
    charts = text.count('class="chart"')
    assert charts == text.count("<h3>Steps: ") * 8 <= 16
    assert "more charts" not in text


def test_a_run_with_readings_shows_the_machine_once_a_loop() -> None:
    """Names of samplers are text; charts are drawn of what is known."""
    page = render(*machines.timed(SHAPES["hostile"])).decode()
    assert len(re.findall(r"<script\b", page)) == 4
    assert "The machine meanwhile" in page
    assert page.count("<h3>Processors: ") == 1


def test_one_result_gives_one_page() -> None:
    """The same bytes whenever it is drawn, whatever was drawn before."""
    run = SHAPES["one-repeat"]
    first = render(run.result(), run.table())
    render(SHAPES["disks"].result(), None)
    assert render(run.result(), run.table()) == first


def test_a_saved_result_gives_the_page_of_the_run() -> None:
    """Nothing is in the page that is not in result.json."""
    run = SHAPES["one-repeat"]
    saved = Result.from_json(run.result().to_json(), "result.json")
    assert render(saved, run.table()) == render(run.result(), run.table())


def test_names_are_text_wherever_they_stand() -> None:
    """Markup in a name never opens an element: the page has its own scripts and no more."""
    run = SHAPES["hostile"]
    page = render(run.result(), run.table()).decode()
    assert len(re.findall(r"<script\b", page)) == 4
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_nothing_is_asked_of_a_network() -> None:
    """No element of the page names another address, and its policy forbids asking."""
    run = SHAPES["one-repeat"]
    page = render(run.result(), run.table()).decode()
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.search(r"https?://", markup)
    assert "default-src 'none'" in markup


def test_without_series_there_are_no_step_charts() -> None:
    """A run whose series are lost still has a page."""
    run = SHAPES["one-repeat"]
    assert b"Step time" in render(run.result(), run.table())
    assert b"Step time:" not in render(run.result(), None)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    )
)
def test_embedded_json_cannot_be_ended(value: object) -> None:
    """It reads back as it was, and holds no character that HTML would act upon."""
    text = str(embedded_json(value))
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)
