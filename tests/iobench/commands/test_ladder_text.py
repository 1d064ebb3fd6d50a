"""The ladder on a terminal."""

from __future__ import annotations

from dataclasses import replace

from iobench.commands.ladder_text import text
from iobench.summary.ladder import ladders
from tests.iobench.summary.made import COLD, UNPROVED, loop
from tests.iobench.summary.test_ladder import climbed


def test_a_table_a_loop() -> None:
    """A row a rung, a question mark where a part cannot be told, and what was not measured."""
    trials = [
        *climbed("synthetic", "copy", "collate"),
        *climbed("synthetic", "warm", repeats=1, group="other"),
    ]
    first, other = text(ladders(trials)).split("\n\n")
    assert first.splitlines() == [
        "g",
        "rung                               s/1,000 samples  adds   between   share  cache",
        "device-resident                                 10",
        "+ copy to the device (not pinned)               15     5    5 to 5  20.0 %",
        "+ collate and inter-process                     25    10  10 to 10  40.0 %",
        "not measured: augment, decode, warm, cold, store: not asked for (training.inputs)",
    ]
    assert other.splitlines()[3].split()[-6:] == ["75", "65", "?", "86.7", "%", "warm"]


def test_what_a_reader_must_not_miss() -> None:
    """A part below 0 keeps its sign, an emulated device is called one; nothing is nothing."""
    faster = [*loop("synthetic", [2.0] * 6, emulated=True), *loop("warm", [1.5] * 6)]
    first, _, _, below, *_ = text(ladders(faster)).splitlines()
    assert first == "g (emulated)"
    assert below.split()[-8:] == ["15", "-5", "-5", "to", "-5", "-33.3", "%", "warm"]
    assert text([]) == ""


def test_the_last_column_says_what_was_shown_of_the_cache() -> None:
    """The share that came from storage, the least of all repeats; what was not proved; and data
    that later epochs may have from memory."""
    resident = replace(COLD, physical_ratio=0.98, cache_resident=True)
    cold = climbed("synthetic", "warm"), climbed("cold", cold=resident)
    doubted = climbed("synthetic", "warm"), climbed("cold", cold=UNPROVED)
    for trials, said in (
        (cold, "cold 98 %, cache-resident"),
        (doubted, "asked cold, not proved"),
    ):
        lines = text(ladders([trial for part in trials for trial in part])).splitlines()
        assert [line.split("%", 1)[-1].strip() for line in lines[3:5]] == ["warm", said]
