"""Whoever is told what is in hand is told all of it, in order, and may be anyone of them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import SourceChanged, UnreadableImage
from dataprep.image import ImagePolicy
from dataprep.in_hand import UNNOTED, InHand
from dataprep.job.journal import Journal
from dataprep.job.overdue import Overdue, Timer
from dataprep.outcomes import outcomes
from dataprep.sources import Located
from tests.dataprep.test_worker import Files, jpeg

FILES = {f"a/{shade}.JPEG": jpeg(shade) for shade in range(0, 200, 20)}
STEPS = ("reach", "reached", "take", "lay_down")


class Told:
    """Keeps what each thread tells."""

    def __init__(self) -> None:
        self.by_thread: dict[int, list[tuple[str, str]]] = defaultdict(list)

    def _note(self, step: str, name: str = "") -> None:
        self.by_thread[threading.get_ident()].append((step, name))

    def reach(self, name: str) -> None:
        """Note it."""
        self._note("reach", name)

    def reached(self) -> None:
        """Note it."""
        self._note("reached")

    def take(self, name: str) -> None:
        """Note it."""
        self._note("take", name)

    def lay_down(self) -> None:
        """Note it."""
        self._note("lay_down")


class Reading(Files):
    """Files of which some may not be read; ``concurrency`` reads at once."""

    def __init__(self, files: dict[str, bytes], concurrency: int) -> None:
        super().__init__(files)
        self.concurrency = concurrency

    def read(self, item: Located) -> bytes:
        """One file."""
        if not self.files[item.name]:
            raise UnreadableImage("permission denied")
        return super().read(item)


def located(files: dict[str, bytes]) -> list[Located]:
    """Each as planned."""
    return [Located(name, len(data)) for name, data in files.items()]


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("concurrency", [1, 4])
def test_every_read_and_every_conversion_is_told(concurrency: int, threads: int) -> None:
    """By the thread that does it, which has one in hand at a time; of failed ones as well."""
    files = {**FILES, "a/cut.JPEG": jpeg(7)[:100], "a/closed.JPEG": b""}
    told = Told()
    list(
        outcomes(Reading(files, concurrency), located(files), ImagePolicy(), threads, in_hand=told)
    )
    ends = {"reach": "reached", "take": "lay_down"}
    begun = []
    for steps in told.by_thread.values():
        assert len(steps) % 2 == 0
        for (step, name), (end, _) in zip(steps[::2], steps[1::2], strict=True):
            assert end == ends[step]
            begun.append((step, name))
    assert sorted(begun) == sorted((step, name) for step in ends for name in files)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_nothing_is_in_hand_after_an_error(concurrency: int) -> None:
    """What could not be read was laid down all the same."""
    told = Told()
    items = [*located(FILES), Located("a/0.JPEG", 1)]
    with pytest.raises(SourceChanged):
        list(outcomes(Reading(FILES, concurrency), items, ImagePolicy(), in_hand=told))
    for steps in told.by_thread.values():
        assert [step for step, _ in steps[1::2]].count("reached") == [
            step for step, _ in steps[::2]
        ].count("reach")


def test_a_read_is_told_before_its_bytes_are_asked_for() -> None:
    """A source whose native code crashes is found by it."""
    told = Told()

    class Looking(Files):
        def read(self, item: Located) -> bytes:
            """One file, which is in hand by now."""
            assert told.by_thread[threading.get_ident()][-1] == ("reach", item.name)
            return super().read(item)

    assert list(outcomes(Looking(FILES), located(FILES), ImagePolicy(), in_hand=told))


@contextmanager
def of_kind(kind: str, folder: Path) -> Iterator[InHand]:
    """Each that there is."""
    if kind == "journal":
        with Journal(folder / "in-hand" / "x") as journal:
            yield journal
    elif kind == "overdue":
        yield Overdue(600.0, Timer(lambda: 0.0, lambda seconds: None))
    else:
        yield UNNOTED


@pytest.mark.parametrize("kind", ["journal", "overdue", "unnoted"])
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.text())))
def test_any_of_them_takes_any_steps(
    tmp_path_factory: pytest.TempPathFactory, kind: str, steps: list[tuple[str, str]]
) -> None:
    """None of them is a reason that a job ends, in whatever order it is told."""
    with of_kind(kind, tmp_path_factory.mktemp("hand")) as in_hand:
        for step, name in steps:
            if step in ("reach", "take"):
                getattr(in_hand, step)(name)
            else:
                getattr(in_hand, step)()
