"""A watched loop on its page."""

from __future__ import annotations

from typing import Any

from iobench.report.model import Report, build
from iobench.report.model.shapes import Code, Table, Words
from iobench.result import Result
from iobench.summary import summarise
from tests.iobench.summary.made import one, result

FIGURES: dict[str, Any] = {
    "wait_share": 0.38,
    "samples_per_s": 412.0,
    "seconds": 60.0,
    "steps": 120,
    "epochs": 2,
    "time_to_first_batch_s": 1.5,
    "epoch_start_s": 1.2,
    "epoch_start_share": 0.02,
    "step_s_p50": 0.4,
    "notes": ["what the device could take was not measured"],
}


def page(*loops: dict[str, Any]) -> Report:
    """Of a run that watched these."""
    trials = [
        one("watch", {"loader": f"loader {place}"}, **loop) for place, loop in enumerate(loops)
    ]
    made = result(trials, watch={"per_s": 2.0})
    return build(Result(made.name, made.started, {}, made.config, made.trials, summarise(made)), {})


def test_the_first_screen_says_whether_it_is_starved() -> None:
    """The verdict, the share, the rate, the first batch; that there is no interval."""
    report = page(FIGURES)
    assert report.verdict.startswith("Your loop waits for data 38")
    assert [figure.name for figure in report.figures] == [
        "Waiting for data", "The loop gets, samples/s", "First batch", "Steps",
        "Time of these steps",
    ]  # fmt: skip
    assert {figure.interval for figure in report.figures} == {"1 repeat, no interval"}
    assert report.figures[0].leading
    assert report.figures[0].value.startswith("38")


def test_the_gpus_idle_time_stands_beside_the_hosts() -> None:
    """Both lead; they are never mixed."""
    first, second = page({**FIGURES, "device_wait_share": 0.1}).figures[:2]
    assert (first.name, second.name) == ("Waiting for data", "The GPU idle meanwhile")
    assert first.leading
    assert second.leading


def test_every_loader_has_a_column() -> None:
    """Figures that only some have are empty for the others."""
    sections = page(FIGURES, {"wait_share": 0.5, "seconds": 1.0}).sections
    (section,) = [part for part in sections if part.id == "watched"]
    table, words = section.blocks
    assert isinstance(table, Table)
    assert table.columns == ("figure", "loader 0", "loader 1")
    rates = {row[0].text: [entry.text for entry in row[1:]] for row in table.rows}
    assert rates["samples/s"] == ["412", ""]
    assert rates["epochs"] == ["2", ""]
    assert words == Words(("What the device could take was not measured.",), listed=True)


def test_how_it_was_done_is_no_config() -> None:
    """The script is its owner's: the page shows the line, and where to go on."""
    (section,) = [part for part in page(FIGURES).sections if part.id == "reproduce"]
    (code,) = [block for block in section.blocks if isinstance(block, Code)]
    assert "iobench.watch(loader" in code.text


def test_a_watch_without_batches_is_still_a_page() -> None:
    """It says that nothing was measured."""
    made = result([])
    assert build(Result("mine", made.started, {}, {"watch": {}}, ()), {}).figures == ()
