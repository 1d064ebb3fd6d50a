"""Tests of ``python -m iobench.sidebyside``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from iobench.sidebyside import __main__ as command
from iobench.sidebyside.contest import Contender, Contest, Goal
from iobench.sidebyside.rounds import ContenderFailed
from iobench.sidebyside.workplace import Workplace

pytestmark = pytest.mark.slow

HERE = "tests.iobench.sidebyside.contenders"


def contests(place: Workplace) -> Iterator[Contest]:
    """One that ends, then one that fails."""
    good = Contender("ours", f"{HERE}:counted", {"amount": 3})
    yield Contest("good", "Good", "img", (good,), (Goal(5),))
    yield Contest("bad", "Bad", "img", (Contender("ours", f"{HERE}:failing"),))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, few: Path) -> Iterator[SimpleNamespace]:
    """The command with these contests, in a folder of its own."""
    monkeypatch.setattr(command, "POINTS", ("these",))
    monkeypatch.setattr(command, "import_module", lambda _: SimpleNamespace(contests=contests))
    monkeypatch.chdir(tmp_path)

    def main(*words: str) -> None:
        arguments = ["sidebyside", "--source", str(few), "--repeats", "2", "--to", "told", *words]
        monkeypatch.setattr("sys.argv", arguments)
        command.main()

    yield SimpleNamespace(main=main, told=tmp_path / "told")
    assert [path.name for path in tmp_path.iterdir()] == ["told"]


def test_chosen_contests_are_printed_and_written(
    run: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same table in both places, and every round beside the machine."""
    run.main("--only", "good")
    text = (run.told / "table.md").read_text()
    assert "| Good | img/s |  | at least 5 | 6 (6 to 6) | yes |" in text
    assert capsys.readouterr().out == f"{text}\n"
    raw = json.loads((run.told / "result.json").read_text())
    assert raw["machine"]
    assert [contest["name"] for contest in raw["contests"]] == ["good"]
    assert [one["amount"] for one in raw["contests"][0]["rounds"]["ours"]] == [3, 3]


def test_what_was_measured_before_a_failure_is_kept(run: SimpleNamespace) -> None:
    """An hour's work is not lost with its last contest."""
    with pytest.raises(ContenderFailed, match="out of paint"):
        run.main()
    raw = json.loads((run.told / "result.json").read_text())
    assert [contest["name"] for contest in raw["contests"]] == ["good"]


def test_no_path_of_the_machine_is_written(tmp_path: Path) -> None:
    """Two names stand for where it worked and for what it read."""
    place = Workplace(tmp_path / "bench-1", tmp_path / "mine", 10)
    told = {"shards": f"{place.root}/shards", "photos": str(place.photos)}
    contest = Contest("good", "Good", "img", (Contender("ours", f"{HERE}:counted", told),))
    text = command.raw([(contest, {"ours": []})], place)
    assert str(tmp_path) not in text
    (contender,) = json.loads(text)["contests"][0]["contenders"]
    assert contender["arguments"] == {"shards": "WORK/shards", "photos": "SOURCE"}
