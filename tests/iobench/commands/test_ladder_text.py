"""The ladder on a terminal."""

from __future__ import annotations

from iobench.commands.ladder_text import text
from iobench.summary.ladder import ladders
from tests.iobench.summary.made import UNPROVED, loop
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


def test_what_was_not_proved_cold_is_not_called_so() -> None:
    """In the last column."""
    trials = [*climbed("synthetic", "warm"), *climbed("cold", cold=UNPROVED)]
    lines = text(ladders(trials)).splitlines()
    assert [line.split("%")[-1].strip() for line in lines[3:5]] == [
        *("warm", "asked cold, not proved: warm")
    ]
