"""Tests of iobench.sidebyside.rounds."""

from __future__ import annotations

import os

import pytest

from iobench.sidebyside.contest import Contender, Contest
from iobench.sidebyside.rounds import ContenderFailed, missing, once, run_contest

pytestmark = pytest.mark.slow

HERE = "tests.iobench.sidebyside.contenders"


def contender(name: str, function: str, **arguments: object) -> Contender:
    """A function of ``contenders``."""
    return Contender(name, f"{HERE}:{function}", arguments)


def test_rounds_take_turns() -> None:
    """Every contender runs once a round, another one first each time, in processes of its own."""
    contest = Contest(
        "speed",
        "Speed",
        "img",
        (contender("a", "counted", amount=3), contender("b", "counted", amount=5)),
    )
    notes: list[str] = []
    rounds = run_contest(contest, 3, notes.append)
    assert [note.split(": ")[1] for note in notes] == ["a", "b", "b", "a", "a", "b"]
    assert {name: [one.amount for one in runs] for name, runs in rounds.items()} == {
        "a": [3, 3, 3],
        "b": [5, 5, 5],
    }
    processes = [one.others["process"] for runs in rounds.values() for one in runs]
    assert len({*processes, os.getpid()}) == 7


def test_a_contest_may_say_its_own_number_of_rounds() -> None:
    """What is the same each time runs once."""
    contest = Contest("a", "A", "img", (contender("a", "counted", amount=1),), repeats=1)
    assert len(run_contest(contest, 6, lambda _: None)["a"]) == 1


def test_contenders_that_take_turns_share_a_process() -> None:
    """A fresh one each round, in which the first measures all."""
    contenders = (contender("a", "both", amount=2), contender("b", "both", amount=2))
    contest = Contest("speed", "Speed", "img", contenders, together=True)
    notes: list[str] = []
    rounds = run_contest(contest, 2, notes.append)
    assert notes[:2] == ["speed: a: 4.0 img/s", "speed: b: 8.0 img/s"]
    assert {name: [one.amount for one in runs] for name, runs in rounds.items()} == {
        "a": [2, 2],
        "b": [4, 4],
    }
    processes = [[one.others["process"] for one in runs] for runs in rounds.values()]
    assert processes[0] == processes[1]
    assert processes[0][0] != processes[0][1]


def test_processors() -> None:
    """A contender is held to the cores of its contest, and this process is not."""
    before = os.sched_getaffinity(0)
    assert once(contender("a", "counted", amount=1), 1).others["cores"] == 1
    assert os.sched_getaffinity(0) == before


def test_a_peer_that_fails_is_left_out_and_said() -> None:
    """Ours must not fail; a peer is no longer run after its first failure."""
    good, bad = contender("good", "counted", amount=1), contender("bad", "failing")
    notes: list[str] = []
    rounds = run_contest(Contest("a", "A", "img", (good, bad)), 2, notes.append)
    assert set(rounds) == {"good"}
    assert sum("bad left out" in note and "out of paint" in note for note in notes) == 1
    with pytest.raises(ContenderFailed, match="out of paint"):
        run_contest(Contest("a", "A", "img", (bad, good)), 1, notes.append)


def test_what_a_contender_needs() -> None:
    """Modules and programs; what lacks is named, and the contender left out."""
    needy = Contender("x", f"{HERE}:failing", needs=("json", "sh", "no_such_module", "os.nothing"))
    assert missing(needy) == ["no_such_module", "os.nothing"]
    notes: list[str] = []
    first = contender("a", "counted", amount=1)
    assert set(run_contest(Contest("a", "A", "img", (first, needy)), 1, notes.append)) == {"a"}
    assert "no_such_module, os.nothing not installed" in notes[0]
