"""Contests run in rounds like those of ``python -m benchmarks``, with a table and a raw result."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as command
from benchmarks.contest import Contender, Contest, Rounds, table, worded
from benchmarks.rounds import ContenderFailed, missing, once, run_contest
from benchmarks.workplace import Workplace
from dataprep.drawn import draw_tree
from iobench.results.statistics import estimate

pytestmark = pytest.mark.slow
HERE = "tests.benchmarks.contenders"


def contender(name: str, function: str, **arguments: object) -> Contender:
    """Return a contender that runs a function of ``contenders``."""
    return Contender(name, f"{HERE}:{function}", arguments)


A, B = contender("a", "counted", amount=3), contender("b", "counted", amount=6)
BAD = contender("bad", "failing")


def test_rounds_take_turns() -> None:
    """Contenders take turns at being first, and each run has a process of its own."""
    notes: list[str] = []
    rounds = run_contest(Contest("speed", "Speed", "img", (A, B)), 3, notes.append).measured
    assert [note.split(": ")[1] for note in notes] == ["a", "b", "b", "a", "a", "b"]
    processes = [entry.others["process"] for runs in rounds.values() for entry in runs]
    assert len({*processes, os.getpid()}) == 7


def test_a_contender_has_the_cores_of_its_contest() -> None:
    """A contender has one core, and this process keeps its own."""
    before = os.sched_getaffinity(0)
    assert once(A, 1).others["cores"] == 1
    assert os.sched_getaffinity(0) == before


def test_a_peer_without_figures_has_its_reason_in_the_table() -> None:
    """The peer fails, is missing or cannot do the work.

    If ours fails, the contest fails.
    """
    needy = Contender("needy", f"{HERE}:failing", needs=("json", "sh", "no_such_module.part"))
    unable = Contender("unable", "", unable="it reads no S3")
    assert missing(needy) == ["no_such_module.part"]
    notes: list[str] = []
    contest = Contest("a", "A", "img", (A, BAD, needy, unable))
    rounds = run_contest(contest, 2, notes.append)
    assert set(rounds.measured) == {"a"}
    lines = table(contest, rounds).splitlines()
    assert [line.split(" | ")[:2] for line in lines[3:]] == [
        ["| bad", "RuntimeError: out of paint"],
        ["| needy", "not installed: no_such_module.part"],
        ["| unable", "it reads no S3"],
    ]
    assert sum("bad left out" in note and "out of paint" in note for note in notes) == 1
    with pytest.raises(ContenderFailed, match="out of paint"):
        run_contest(Contest("a", "A", "img", (BAD, A)), 1, notes.append)


NEEDY = Contender("needy", f"{HERE}:failing", needs=("no_such_module",))


@pytest.mark.parametrize("contenders", [(NEEDY,), (NEEDY, A)], ids=["alone", "with another"])
def test_the_contender_of_this_package_may_be_left_out(contenders: tuple[Contender, ...]) -> None:
    """The table has the reason, and the rates of the others without a ratio."""
    notes: list[str] = []
    contest = Contest("a", "A", "img", contenders)
    rounds = run_contest(contest, 2, notes.append)
    lines = [line.split(" | ") for line in table(contest, rounds).splitlines()[2:]]
    assert lines[0][:2] == ["| needy", "not installed: no_such_module"]
    if A in contenders:
        assert lines[1][:3] == ["| a", "6 (6 to 6)", ""]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Return the folder of six photographs in two classes."""
    return draw_tree(tmp_path / "photos", images=6, classes=2).root


def contests(location: Workplace) -> Iterator[Contest]:
    """Yield a contest that ends, then one that fails."""
    yield Contest("good", "Good", "img", (A, B))
    yield Contest("bad", "Bad", "img", (BAD,))


def test_the_command(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    photos: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It prints and writes the tables; what was measured before a failure is kept."""
    monkeypatch.setattr(command, "POINTS", ("these",))
    monkeypatch.setattr(command, "import_module", lambda _: SimpleNamespace(contests=contests))
    monkeypatch.chdir(tmp_path)
    arguments = ["benchmarks", "--source", str(photos), "--repeats", "2", "--to", "result"]
    monkeypatch.setattr("sys.argv", [*arguments, "--only", "good"])
    command.main()
    text = Path("result/table.md").read_text()
    assert "| a | 6 (6 to 6) |  |" in text
    assert "| b | 12 (12 to 12) | 0.5 (0.5 to 0.5) |" in text
    assert capsys.readouterr().out == f"{text}\n"
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(ContenderFailed, match="out of paint"):
        command.main()
    raw = json.loads(Path("result/result.json").read_text())
    assert raw["machine"]
    assert [contest["name"] for contest in raw["contests"]] == ["good"]
    assert [entry["amount"] for entry in raw["contests"][0]["rounds"]["a"]] == [3, 3]


def test_rounds_are_asked_for_or_the_contests_own(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    photos: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``--repeats`` comes before the number of a contest."""
    own = Contest("own", "Own", "img", (A,), repeats=2)
    monkeypatch.setattr(command, "POINTS", ("these",))
    monkeypatch.setattr(
        command, "import_module", lambda _: SimpleNamespace(contests=lambda location: [own])
    )
    monkeypatch.chdir(tmp_path)
    for requested, expected in (([], 2), (["--repeats", "1"], 1)):
        monkeypatch.setattr("sys.argv", ["benchmarks", "--source", str(photos), *requested])
        command.main()
        assert capsys.readouterr().err.count("own: a: ") == expected


def test_the_contest_of_loaders_runs_only_if_it_is_named(tmp_path: Path) -> None:
    """Its peers are in an environment of their own."""
    photos = draw_tree(tmp_path / "photos", images=6, classes=2).root
    workplace = Workplace(tmp_path, photos, 6)
    assert not [
        contest
        for contest in command._chosen(workplace, set())
        if contest.name.startswith("loaders")
    ]
    names = [contest.name for contest in command._chosen(workplace, {"loaders"})]
    assert names == ["loaders-disk", "loaders-s3"]
    assert [contest.name for contest in command._chosen(workplace, {"loaders-s3"})] == [
        "loaders-s3"
    ]


def test_no_path_of_the_machine_is_written(tmp_path: Path) -> None:
    """Two names replace the folder of work and the source."""
    workplace = Workplace(tmp_path / "bench-1", tmp_path / "mine", 10)
    arguments = {"shards": f"{workplace.root}/shards", "photos": str(workplace.photos)}
    contest = Contest("good", "Good", "img", (Contender("ours", f"{HERE}:counted", arguments),))
    text = command.raw([(contest, Rounds({"ours": []}))], workplace)
    assert str(tmp_path) not in text
    (written,) = json.loads(text)["contests"][0]["contenders"]
    assert written["arguments"] == {"shards": "WORK/shards", "photos": "SOURCE"}


@pytest.mark.parametrize(
    ("value", "text"),
    [(1234.5, "1,234"), (999.96, "1,000"), (999.4, "999"), (31.46, "31.5"), (0.8765, "0.876")],
)
def test_a_figure_has_three_digits_and_no_exponent(value: float, text: str) -> None:
    """Rates just below a thousand are rounded to a thousand."""
    assert worded(estimate([value])) == text
