"""What watched loaders tell their companion."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iobench.watching.epoch import STEP_FIELDS
from iobench.watching.session import Session, Steps, counting, step_cost_s


class Heard:
    """A line that remembers."""

    def __init__(self) -> None:
        self.alive = True
        self.heads: list[Mapping[str, Any]] = []
        self.records: list[float] = []
        self.ended = False

    def send(self, head: Mapping[str, Any], doubles: bytes = b"") -> None:
        self.heads.append(head)
        self.records += array("d", doubles)

    def end(self, wait_s: float) -> bool:
        self.ended = True
        return True


class Idle:
    """A device of which one pair is known each time."""

    def asking(self, called_s: float) -> None:
        """Nothing."""

    def given(self) -> None:
        """Nothing."""

    def settled(self) -> bytes:
        return array("d", (1.0, 0.5)).tobytes()

    def forget(self, found: bytes) -> None:
        """Nothing."""


def watching(*loaders: Any, **options: Any) -> tuple[list[Any], Session, Heard]:
    """A session of these."""
    heard = Heard()
    session = Session(Path("mine"), heard)
    options = {"name": None, "batch_size": None, "idle": None, **options}
    return [session.watch(loader, **options) for loader in loaders], session, heard


def test_each_loader_is_told_with_its_name() -> None:
    """Names that are alike are numbered."""
    _, _, heard = watching([1], [2], (3,), batch_size=4)
    assert [(head["open"], head["name"]) for head in heard.heads] == [
        (0, "list"),
        (1, "list 2"),
        (2, "tuple"),
    ]
    assert {head["batch_size"] for head in heard.heads} == {4}


def test_every_step_arrives_by_the_end() -> None:
    """Those of an epoch that was left in the middle too."""
    (watched,), session, heard = watching([[1, 2], [3], [4, 5, 6]])
    assert list(watched) == [[1, 2], [3], [4, 5, 6]]
    for _ in zip(watched, range(2), strict=False):
        pass
    assert session.finish(1.0)
    assert heard.ended
    width = len(STEP_FIELDS)
    rows = [heard.records[i : i + width] for i in range(0, len(heard.records), width)]
    assert [(row[0], row[-1]) for row in rows] == [
        (0, 2), (0, 1), (0, 3), (0, -1), (1, 2), (1, 1),
    ]  # fmt: skip


def test_steps_are_sent_about_once_a_second() -> None:
    """Not one by one: that is a system call in somebody's loop."""
    heard = Heard()
    steps = Steps(heard, 3, None)
    for number in range(100):
        steps.step((0, number / 10, number / 10, number / 10, 1))
    assert len(heard.heads) == 10
    assert heard.heads[:2] == [{"steps": 3, "first": 0}, {"steps": 3, "first": 1}]


def test_a_dead_line_is_told_nothing() -> None:
    """In a forked worker, or after the report: nothing piles up either."""
    heard = Heard()
    heard.alive = False
    steps = Steps(heard, 0, None)
    steps.step((0, 0, 0, 0, 1))
    assert heard.heads == []
    assert len(steps._unsent[1]) == 0


def test_idle_times_go_along() -> None:
    """Where the device is watched."""
    heard = Heard()
    steps = Steps(heard, 2, Idle())  # type: ignore[arg-type]
    steps.settle()
    assert heard.heads == [{"idle": 2}]
    assert heard.records == [1.0, 0.5]


def test_samples_are_as_told_or_as_found() -> None:
    """Told ones are not looked for; what cannot be told is no number."""
    assert counting(32)(object()) == 32
    assert counting(None)([1, 2]) == 2
    assert math.isnan(counting(None)(object()))


def test_watching_has_a_cost_that_is_measured() -> None:
    """By the same code around nothing."""
    assert step_cost_s() > 0
