"""The ladder on the page: a waterfall, a table, and what was not measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.ladder import RUNGS
from iobench.report.model import build
from iobench.report.model.drawings import Waterfall
from iobench.report.model.ladder import section
from iobench.report.model.shapes import Chart, Section, Table, Words
from iobench.result import Result
from iobench.summary import summarise
from iobench.trial import Trial
from tests.iobench.summary.made import UNPROVED, loop, result
from tests.iobench.summary.test_ladder import climbed


def summed(*parts: list[Trial]) -> Result:
    """A run of these, with its summary."""
    made = result([trial for part in parts for trial in part])
    return replace(made, summary=summarise(made))


def drawn(*parts: list[Trial]) -> tuple[Waterfall, Section]:
    """The only waterfall of a run, and its section."""
    found = section(summed(*parts))
    assert found is not None
    (chart,) = (block for block in found.blocks if isinstance(block, Chart))
    assert isinstance(chart.drawing, Waterfall)
    return chart.drawing, found


def test_from_the_device_down_to_what_the_loop_got() -> None:
    """Each stretch begins where the rung above it ended; the last row is the whole."""
    fall, _ = drawn(climbed(*RUNGS[:-1]))
    ends = [10, 15, 25, 30, 70, 75, 100]
    assert [row.end for row in fall.rows] == pytest.approx([*ends, 100])
    assert [row.start for row in fall.rows] == pytest.approx([0, *ends[:-1], 0])
    assert [row.label for row in fall.rows][-2:] == ["+ read, cold", "what the loop got"]
    assert fall.rows[4].said.startswith("40.0 s, 40.0")
    assert not any(row.pale for row in fall.rows)


def test_the_store_stands_beside_the_local_read() -> None:
    """It begins where decoding ended; the table says with what it was compared."""
    fall, found = drawn(climbed(*RUNGS))
    store = fall.rows[-2]
    assert [store.start, store.end] == pytest.approx([70, 120])
    (table,) = (block for block in found.blocks if isinstance(block, Table))
    notes = [row[0].note for row in table.rows]
    assert notes == [*[""] * 7, "compared with decode"]


@given(st.lists(st.tuples(*[st.floats(0.01, 50)] * 4), min_size=1, max_size=6))
def test_whiskers_hold_their_ends(times: list[tuple[float, ...]]) -> None:
    """Whatever repeats say: nothing is clipped, and nothing lies outside of its interval."""
    inputs = ("synthetic", "decode", "warm", "cold")
    made = [
        trial
        for rung, seconds in zip(inputs, zip(*times, strict=True), strict=True)
        for trial in loop(rung, seconds)
    ]
    fall, _ = drawn(made)
    assert len(fall.rows) == 5
    for row in fall.rows:
        size = max(abs(row.low), abs(row.high), 1.0)
        assert row.low - 1e-9 * size <= row.end <= row.high + 1e-9 * size


def test_a_negative_part_reaches_back_and_an_untold_one_is_pale() -> None:
    """Six repeats that are faster with it; one repeat that tells nothing."""
    faster = [*loop("synthetic", [2.0] * 6), *loop("warm", [1.5] * 6)]
    fall, _ = drawn(faster)
    assert fall.rows[1].end < fall.rows[1].start
    assert not fall.rows[1].pale
    assert "\u22125" in fall.rows[1].said
    once, _ = drawn([*loop("synthetic", [2.0]), *loop("warm", [1.5])])
    assert once.rows[1].pale


def test_badges_and_what_is_missing() -> None:
    """How cold, whether emulated, and why a rung is not there."""
    parts = (
        climbed("synthetic", "copy", emulated=True),
        climbed("cold", emulated=True, cold=UNPROVED),
    )
    _, found = drawn(*parts)
    (chart,) = (block for block in found.blocks if isinstance(block, Chart))
    assert chart.title == "The ladder: g (emulated)"
    assert [badge.text for badge in chart.badges] == [
        "emulated",
        "asked cold, not proved: half was resident",
    ]
    (words,) = (block for block in found.blocks if isinstance(block, Words))
    assert words.lines == (
        "Not measured: collate, augment, decode, warm, store: not asked for (training.inputs).",
    )


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        (6, "96.9\u00a0% intervals of 6 repeats"),
        (3, "all of 3 repeats (no 95 % intervals)"),
        (1, "1 repeat, no intervals"),
    ],
)
def test_the_table_says_how_sure_it_is(repeats: int, said: str) -> None:
    """Once: below each figure stands what it may lie between."""
    _, found = drawn(climbed("synthetic", "cold", repeats=repeats))
    (table,) = (block for block in found.blocks if isinstance(block, Table))
    assert table.title == f"Rungs: g, {said}"
    notes = {entry.note for row in table.rows for entry in row[2:]}
    assert ("90.0 to 90.0" in notes) == (repeats > 1)


def test_nothing_to_climb() -> None:
    """One rung alone, no loop at all, and a result of a version without ladders."""
    assert section(summed(climbed("synthetic"))) is None
    assert section(summed([])) is None
    assert section(replace(summed(climbed("synthetic", "cold")), summary={})) is None


def test_a_loop_is_not_drawn_twice() -> None:
    """One alone stands in its ladder; several are compared in piles as well."""

    def titles(*parts: list[Trial]) -> list[str]:
        return [chart.title for chart in build(summed(*parts), {}).charts]

    alone = titles(climbed("synthetic", "warm", "cold"))
    assert "The ladder: g" in alone
    assert "Where the time goes" not in alone
    both = titles(climbed("synthetic", "cold"), climbed("synthetic", "cold", group="h"))
    assert {"The ladder: g", "The ladder: h", "Where the time goes"} <= set(both)


def broken() -> list[Any]:
    """Ladders that somebody else wrote."""
    return [[{}], ["x"], [{"stall": {"median": 1}}], [{"stall": {"median": 1}, "rungs": [{}]}]]


@pytest.mark.parametrize("stored", broken())
def test_a_broken_ladder_stops_no_page(stored: Any) -> None:
    """It is left out."""
    assert build(replace(summed([]), summary={"ladder": stored}), {}).sections
