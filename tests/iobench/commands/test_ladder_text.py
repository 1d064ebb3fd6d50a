"""The ladder on a terminal."""

from __future__ import annotations

from dataclasses import replace

from iobench.analysis.loops import loops
from iobench.commands.ladder_text import text
from iobench.trial import Trial
from tests.iobench.analysis.made import COLD, GPU, UNPROVED, loop


def shown(trials: list[Trial]) -> str:
    """The tables."""
    return text([one.ladder_dict() for one in loops(trials)])


def test_a_table_a_loop() -> None:
    """A row a rung, a question mark where a part cannot be told, and what was not measured."""
    trials = [
        trial
        for source, rate in (("synthetic", 100), ("copy", 200 / 3), ("collate", 40))
        for trial in loop(source, rate, metrics=GPU)
    ]
    other = [*loop("synthetic", 100, group="b", repeats=1), *loop("warm", 50, group="b", repeats=1)]
    first, second = shown([*trials, *other]).split("\n\n")
    lines = first.splitlines()
    assert lines[0] == "g"
    assert lines[1].split() == ["rung", "s/1,000", "samples", "adds", "between", "share", "cache"]
    assert [line.split("  ")[0] for line in lines[2:5]] == [
        "device-resident",
        "+ copy to the device (not pinned)",
        "+ collate and inter-process",
    ]
    assert lines[4].split()[-7:][:2] == ["25", "10"]
    assert lines[5].startswith("not measured: augment, decode, warm, cold, store: not asked for")
    assert " ?" in second.splitlines()[3]


def test_what_a_reader_must_not_miss() -> None:
    """A part below 0 keeps its sign, an emulated device is called one; nothing is nothing."""
    first, *_, below, _ = shown([*loop("synthetic", 50), *loop("warm", 200 / 3)]).splitlines()
    assert first == "g (emulated)"
    assert " -5 " in below
    assert text([]) == ""


def test_the_last_column_says_what_was_shown_of_the_cache() -> None:
    """The share that came from storage; what was not proved; data that may stay in memory."""
    resident = replace(COLD, physical_ratio=0.98, cache_resident=True)
    for cold, said in (
        (resident, "cold 98 %, cache-resident"),
        (UNPROVED, "asked cold, not proved: half was resident"),
    ):
        lines = shown([*loop("synthetic", 90), *loop("cold", 50, cold=cold)]).splitlines()
        assert lines[3].endswith(said)
