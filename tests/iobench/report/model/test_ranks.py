"""The ranks of a loop on its page."""

from __future__ import annotations

from typing import Any

from iobench.report.model import Report, build
from iobench.report.model.ranks import table
from iobench.report.model.shapes import Table
from iobench.report.model.supplies import demands_of
from iobench.result import Result
from iobench.summary import summarise
from tests.iobench.summary.made import loop, loops, result

RANKS: dict[str, Any] = {
    "devices": 2,
    "device": "2 x NVIDIA H100",
    "rank_wait_s": [0.010, 0.052],
    "rank_wait_share": [0.1, 0.52],
    "rank_step_s": [0.1, 0.1],
    "rank_compute_s": [0.09, 0.048],
    "rank_au_mlperf": [0.9, 0.48],
}


def page(*trials: Any) -> Report:
    """Of a run of these."""
    made = result([trial for part in trials for trial in part])
    return build(Result(made.name, made.started, {}, made.config, made.trials, summarise(made)), {})


def test_a_row_a_rank_of_each_input() -> None:
    """Medians over repeats; exact when copied."""
    trials = [*loop("synthetic", [4.0], **RANKS), *loop("warm", [4.0, 5.0, 6.0], **RANKS)]
    found = table(result(trials))
    assert found is not None
    assert found.columns[:4] == ("loop", "input", "cache", "rank")
    assert [tuple(entry.text for entry in row[1:4]) for row in found.rows] == [
        ("synthetic", "", "0"),
        ("synthetic", "", "1"),
        ("warm", "warm", "0"),
        ("warm", "warm", "1"),
    ]
    assert [entry.raw for entry in found.rows[3][4:]] == ["0.052", "0.52", "0.1", "0.048", "0.48"]
    assert [entry.text for entry in found.rows[3][4:6]] == ["52\u00a0ms", "52.0\u00a0%"]
    assert not found.folded


def test_one_device_has_none() -> None:
    """Nor have results of older versions."""
    assert table(result(loop("warm", [4.0]))) is None


def test_an_old_metric_that_is_missing_leaves_its_column_empty() -> None:
    """Whatever a later version adds."""
    told = {key: RANKS[key] for key in ("devices", "rank_wait_s", "rank_step_s")}
    found = table(result(loop("warm", [4.0], **told)))
    assert found is not None
    assert [entry.text for entry in found.rows[0][5:]] == ["", "100\u00a0ms", "", ""]


def test_the_page_speaks_of_all_devices() -> None:
    """In its figures and beside the loop; lists of ranks stand in their own table alone."""
    report = page(loops([4.0], [5.0], [6.0], **RANKS))
    assert "The devices consume" in [figure.name for figure in report.figures]
    tables = {
        block.title: block
        for section in report.sections
        for block in section.blocks
        if isinstance(block, Table)
    }
    assert "Ranks: means of a step, medians over repeats" in tables
    rates = tables["Rates, stalls and utilisations"]
    assert rates.rows[0][1].text == "LeNet on 2 x NVIDIA H100, float32"
    assert rates.rows[1][1].text == "raw, shards@disk, 2 workers of each rank"
    (trials,) = (one for title, one in tables.items() if title.startswith("Training ("))
    assert "devices" in trials.columns
    assert not any("rank" in column for column in trials.columns)


def test_a_loaders_supply_is_held_against_one_device() -> None:
    """Each of several has a loader of its own: together they take what several loaders give."""
    made = result(loops([4.0], [5.0], [6.0], **RANKS))
    (demand,) = demands_of(
        Result(made.name, made.started, {}, made.config, made.trials, summarise(made))
    )
    assert demand.found.median == 100 / 4.0 / 2
    assert (demand.found.low, demand.found.high) == (12.5, 12.5)
    assert demand.name.endswith("2 x NVIDIA H100, float32, each of 2")
