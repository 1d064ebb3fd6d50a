"""What loops and loaders waited for until their first batch, on the page."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.report.charts import as_items
from iobench.report.model.drawings import Piles
from iobench.report.model.first_batch import section
from iobench.report.model.shapes import Chart, Table
from iobench.trial import Trial
from tests.iobench.summary.made import COLD, WARM, one, result

PARAMS = {"data": "shards@disk", "cache": "warm", "workers": 2, "batch_size": 64}
WHOLE = {"listing": 4.0, "worker_start": 2.0, "fetch": 1.0, "decode": 0.5, "rest": 0.5}


def loader(
    name: str, parts: dict[str, float], *, repeat: int = 0, whole_s: float = 8.0, workers: int = 2
) -> Trial:
    """A trial whose first batch has these parts."""
    told: dict[str, Any] = {f"first_batch_{part}_s": took_s for part, took_s in parts.items()}
    params = {**PARAMS, "loader": name, "workers": workers}
    return one("loader", params, repeat=repeat, time_to_first_batch_s=whole_s, cold=WARM, **told)


def loop(source: str, parts: dict[str, float]) -> Trial:
    """The same of a training loop."""
    told: dict[str, Any] = {f"first_batch_{part}_s": took_s for part, took_s in parts.items()}
    params = {"group": "net", "input": source, "loader": "torch-map"}
    return one("train", params, time_to_first_batch_s=8.0, cold=COLD, **told)


def blocks(*trials: Trial) -> tuple[Chart, Table]:
    """Of the section."""
    found = section(result(trials))
    assert found is not None
    chart, table = found.blocks
    assert isinstance(chart, Chart)
    assert isinstance(table, Table)
    return chart, table


def piles(chart: Chart) -> Piles:
    """What it draws."""
    assert isinstance(chart.drawing, Piles)
    return chart.drawing


def test_the_parts_stand_end_to_end() -> None:
    """In the order in which they pass, with the whole at their end."""
    chart, _ = blocks(loader("torch-map", WHOLE))
    (pile,) = piles(chart).rows
    assert [part.value for part in pile.parts] == list(WHOLE.values())
    assert pile.label == "torch-map · shards@disk, warm"
    assert pile.total == "8\u00a0s"
    assert pile.parts[0].tip.value == "4\u00a0s, 50.0\u00a0% of the whole"
    assert as_items([chart])


def test_medians_and_intervals_are_in_the_table() -> None:
    """Over the repeats of a point."""
    listing, fetch = (3.0, 5.0, 4.0), (0.5, 1.5, 1.0)
    trials = [
        loader("torch-map", {**WHOLE, "listing": one_s, "fetch": other_s}, repeat=repeat)
        for repeat, (one_s, other_s) in enumerate(zip(listing, fetch, strict=True))
    ]
    _, table = blocks(*trials)
    (row,) = table.rows
    found = dict(zip(table.columns, row, strict=True))
    assert found["listing"].text == "4\u00a0s"
    assert found["listing"].note == "3 to 5\u00a0s"
    assert found["first fetch"].note == "500\u00a0ms to 1.50\u00a0s"
    assert found["first batch"].raw == "8.0"
    assert found["loop or loader"].note == "warm, 3 repeats"


def test_what_is_not_told_is_said_to_be() -> None:
    """In the table, and of the rest in the chart; it is no part of no time."""
    chart, table = blocks(
        loader("mxnet-record", {"listing": 1.0, "rest": 7.0}), loader("other", {})
    )
    texts = {row[0].text: [entry.text for entry in row[2:]] for row in table.rows}
    assert texts == {
        "mxnet-record · shards@disk": ["1\u00a0s", *["not told apart"] * 3, "7\u00a0s"],
        "other · shards@disk": ["not told apart"] * 5,
    }
    (pile,) = piles(chart).rows
    assert len(pile.parts) == 2
    assert pile.parts[1].tip.interval == (
        "put together and handed over; worker start, first fetch, first decode not told apart"
    )


def test_a_part_of_no_time_is_no_part_that_is_not_told() -> None:
    """Nothing was decoded: 0 s."""
    _, table = blocks(loader("raw", {"listing": 1.0, "decode": 0.0, "rest": 7.0}))
    assert table.rows[0][5].text == "0\u00a0s"


def test_points_are_named_by_what_differs() -> None:
    """As far as they differ at all; loops by group and input."""
    _, table = blocks(
        loader("torch-map", WHOLE, workers=1), loader("raw", WHOLE, workers=4), loop("cold", WHOLE)
    )
    assert [row[0].text for row in table.rows] == [
        "cold: net", "torch-map · shards@disk · 1 worker", "raw · shards@disk · 4 workers",
    ]  # fmt: skip
    caches = ("cold 100 %", "warm", "warm")
    assert [row[0].note for row in table.rows] == [f"{cache}, 1 repeat" for cache in caches]


def test_what_waits_for_nothing_is_left_out() -> None:
    """Data on the device, and loaders that make nothing."""
    _, table = blocks(loop("synthetic", {}), loader("null", {}), loop("warm", WHOLE))
    assert [row[0].text for row in table.rows] == ["warm: net"]


def test_the_chart_has_the_longest() -> None:
    """Of many points, and says so; the table has them all."""
    trials = [loader("torch-map", {"rest": 1.0 + n}, whole_s=1.0 + n, workers=n) for n in range(20)]
    chart, table = blocks(*trials)
    assert chart.title == "What the first batch waits for: the 12 longest of 20"
    assert [pile.parts[0].value for pile in piles(chart).rows] == [20.0 - n for n in range(12)]
    assert len(table.rows) == 20


@pytest.mark.parametrize("trials", [(), (loader("torch-map", {}),), (loop("synthetic", {}),)])
def test_runs_without_parts_have_no_section(trials: tuple[Trial, ...]) -> None:
    """Older ones, and those whose loaders tell nothing."""
    assert section(result(trials)) is None
