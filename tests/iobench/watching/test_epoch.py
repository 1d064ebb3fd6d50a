"""One pass over a loader, on a clock that only moves where somebody works."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from iobench.clock import VirtualClock
from iobench.watching.epoch import Epoch

START_S, WAIT_S, WORK_S = 3.0, 0.25, 0.5


class Noted:
    """Everything that an epoch says."""

    def __init__(self) -> None:
        self.records: list[tuple[float, ...]] = []
        self.said: list[str] = []

    def step(self, record: tuple[float, ...]) -> None:
        self.records.append(record)

    def asking(self, epoch: int, called_s: float) -> None:
        self.said.append("asking")

    def given(self) -> None:
        self.said.append("given")

    def settle(self) -> None:
        self.said.append("settle")


class Pass:
    """An epoch of so many batches: opening takes ``START_S``, each batch ``WAIT_S``."""

    def __init__(self, batches: int, broken_at: int | None = None, number: int = 0) -> None:
        self.clock, self.noted = VirtualClock(), Noted()

        def loaded() -> Iterator[int]:
            for index in range(batches):
                self.clock.sleep(WAIT_S)
                if index == broken_at:
                    raise OSError("shard 7")
                yield index
            self.clock.sleep(WAIT_S)

        def opened() -> Iterator[int]:
            self.clock.sleep(START_S)
            return loaded()

        count: Callable[[Any], float] = lambda batch: 10 + batch  # noqa: E731
        self.epoch = Epoch(opened, number, self.noted, count, self.clock.now_s)

    def trained(self, most: float = math.inf) -> list[int]:
        """A loop over it, left by ``break`` after so many batches."""
        seen = []
        for batch in self.epoch:
            seen.append(batch)
            if len(seen) >= most:
                break
            self.clock.sleep(WORK_S)
        return seen


def test_a_step_is_its_wait_and_its_work() -> None:
    """The first waits for the workers to start as well; the end of the epoch is waited for too."""
    made = Pass(3, number=4)
    assert made.trained() == [0, 1, 2]
    step_s = WAIT_S + WORK_S
    first_s = START_S + step_s
    assert made.noted.records == [
        (4, 0.0, START_S + WAIT_S, first_s, 10),
        (4, first_s, first_s + WAIT_S, first_s + step_s, 11),
        (4, first_s + step_s, first_s + step_s + WAIT_S, first_s + 2 * step_s, 12),
        (4, first_s + 2 * step_s, *[first_s + 2 * step_s + WAIT_S] * 2, -1),
    ]


def test_a_loop_that_is_left_has_no_end_of_its_last_step() -> None:
    """Nobody knows how long it worked on that batch."""
    made = Pass(5)
    assert made.trained(most=3) == [0, 1, 2]
    assert [record[-1] for record in made.noted.records] == [10, 11]


def test_errors_of_the_loader_come_through() -> None:
    """The step before has ended; the one that failed is in no figure."""
    made = Pass(5, broken_at=2)
    with pytest.raises(OSError, match="shard 7"):
        made.trained()
    assert [record[-1] for record in made.noted.records] == [10, 11]


def test_the_end_is_told_once() -> None:
    """Whoever asks again is told again that there is no more."""
    made = Pass(1)
    made.trained()
    before = list(made.noted.records)
    assert next(made.epoch, "no more") == "no more"
    assert made.noted.records == before
    assert made.noted.said == ["asking", "given", "asking", "settle", "asking"]


def test_it_is_an_iterator_with_the_attributes_of_the_one_within() -> None:
    """``iter`` of it is itself; what the loader's own iterator offers is there."""

    class Own:
        length = 5

        def __iter__(self) -> Own:
            return self

        def __next__(self) -> int:
            raise StopIteration

        def __length_hint__(self) -> int:
            return 5

    epoch = Epoch(Own, 0, Noted(), lambda batch: 1)
    assert iter(epoch) is epoch
    assert epoch.length == 5
    assert epoch.__length_hint__() == 5
    with pytest.raises(AttributeError, match="absent"):
        _ = epoch.absent
