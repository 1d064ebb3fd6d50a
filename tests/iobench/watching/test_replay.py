"""A replay hands out batches again, and loses none of the loader's."""

from __future__ import annotations

import os
import sys
from collections import namedtuple
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.watching.batches import in_new_containers
from iobench.watching.proxy import TimedEpoch, wrap_loader
from iobench.watching.replay import Replay, ReplaySettings, wait_for_device
from tests.iobench.watching.logged import MemoryLog

Pair = namedtuple("Pair", "images labels")
FEW = ReplaySettings(batches=3, steps=40, warm_up=5)
"""Batches 5, 6 and 7 are repeated in the steps 9 to 48 of the first epoch."""


class Watched:
    """A watched loader of whole numbers, with a replay, and what it announced."""

    def __init__(self, loader: Any, settings: ReplaySettings = FEW) -> None:
        self.said: list[str] = []
        self.log = MemoryLog()
        self.replay = Replay(settings, 0, self.log, announce=self.said.append)
        self._epochs = iter(range(1000))
        self.loader: Any = wrap_loader(loader, self._epoch, self.replay)

    def _epoch(self, make: Any) -> TimedEpoch:
        return TimedEpoch(make, 0, next(self._epochs), self.log, replay=self.replay)


def repeated(settings: ReplaySettings = FEW) -> list[int]:
    """The batches of the replay of a loader that counts."""
    first = settings.warm_up
    return [first + number % settings.batches for number in range(settings.steps)]


def test_the_loop_goes_on_with_the_next_batch_of_the_loader() -> None:
    """Once in the life of a watched loader: the second epoch is the loader's alone."""
    watched = Watched(range(20))
    assert list(watched.loader) == [*range(8), *repeated(), *range(8, 20)]
    assert list(watched.loader) == list(range(20))
    assert watched.said == [
        "replay: steps 9 to 48 of this epoch train on the same 3 batches again and again, to "
        "measure the loop without its loader; after step 48 it goes on with the loader's next batch"
    ]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 20), st.integers(1, 4))
def test_no_batch_is_lost(batches: int, kept: int, warm_up: int, epochs: int) -> None:
    """However long epochs are: the loader's batches in order, and at most one replay.

    The length of each epoch is what ``len`` said when it began.
    """
    settings = ReplaySettings(kept, 40, warm_up)
    watched = Watched(range(batches), settings)
    replays = 0
    for _ in range(epochs):
        length = len(watched.loader)
        taken_batches = []
        for batch in watched.loader:
            taken_batches.append((batch, watched.replay.is_running))
            assert len(watched.loader) == length
        assert [batch for batch, is_repeated in taken_batches if not is_repeated] == list(
            range(batches)
        )
        assert len(taken_batches) == length
        replays += sum(is_repeated for _, is_repeated in taken_batches)
        assert len(watched.loader) in (batches, batches + 40)
    assert replays == (40 if batches * epochs >= warm_up + kept else 0)
    assert len(watched.said) == bool(replays)


def test_a_generator_is_repeated_through_next() -> None:
    """An endless one, which a loop takes by ``next``."""
    watched = Watched(iter(range(1000)))
    taken_batches = [next(watched.loader) for _ in range(50)]
    assert taken_batches == [*range(8), *repeated(), 8, 9]


def test_a_replay_in_an_epoch_that_is_left_does_not_go_on() -> None:
    """The next epoch has its own batches, and its own length."""
    watched = Watched(range(20))
    for step, _ in enumerate(watched.loader):
        if step == 20:
            break
    second = iter(watched.loader)
    assert len(watched.loader) == 20
    assert list(second) == list(range(20))
    assert not watched.replay.is_running


def test_a_replay_that_is_cancelled_does_not_begin() -> None:
    """A notebook that has ended the measurement trains on no repeated data."""
    watched = Watched(range(20))
    watched.replay.cancel()
    assert len(watched.loader) == 20
    assert list(watched.loader) == list(range(20))
    assert not watched.said


def test_a_replay_that_has_begun_is_not_cancelled() -> None:
    """All ranks of a job make equal numbers of steps."""
    watched = Watched(range(20))
    taken_batches = []
    for batch in watched.loader:
        taken_batches.append(batch)
        if len(taken_batches) == 12:
            watched.replay.cancel()
    assert len(taken_batches) == 60


def test_a_forked_process_repeats_nothing() -> None:
    """A worker that goes through a watched loader has its own use for the batches."""
    watched = Watched(range(20))
    child = os.fork()
    if not child:
        os._exit(0 if list(watched.loader) == list(range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_passes_side_by_side_have_their_own_batches() -> None:
    """Only the pass that reaches the replay repeats; a second one goes through the loader."""
    watched = Watched(range(60))
    first, second = iter(watched.loader), iter(watched.loader)
    pairs = list(zip(first, second, strict=False))
    assert [batch for _, batch in pairs] == list(range(60))


@pytest.mark.parametrize(
    "batch",
    [
        {"images": [1, 2], "labels": [3]},
        [[1, 2], [3]],
        ([1, 2], [3]),
        Pair([1, 2], [3]),
        [{"images": [1, 2], "labels": ([3],)}],
    ],
    ids=lambda batch: type(batch).__name__,
)
def test_a_loop_may_take_its_batches_apart(batch: Any) -> None:
    """Entries that it removes are there when the batch comes again."""

    def batches() -> Iterator[Any]:
        for _ in range(20):
            yield in_new_containers(batch)

    class Loader:
        def __iter__(self) -> Iterator[Any]:
            return batches()

    watched = Watched(Loader())
    for own_batch in watched.loader:
        assert own_batch == batch
        assert type(own_batch) is type(batch)
        if isinstance(own_batch, (dict, list)):
            own_batch.clear()
    assert "train on the same 3 batches" in watched.said[0]


def test_arrays_are_the_ones_of_the_loader() -> None:
    """Tensors on a device and in pinned memory stay there, and nothing is copied."""
    arrays = [np.full(4, number) for number in range(20)]
    watched = Watched([{"images": array} for array in arrays])
    taken_batches = [batch["images"] for batch in watched.loader]
    assert all(taken_batches[8 + step] is arrays[5 + step % 3] for step in range(40))


class Changed:
    """torch's tensors count their changes."""

    def __init__(self, values: list[int], version: int = 0) -> None:
        self.values, self._version = values, version

    def double(self) -> None:
        self.values = [value * 2 for value in self.values]
        self._version += 1


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_a_loop_that_changes_its_batches_in_place_gets_copies(kind: str) -> None:
    """Each time as the loader made them; the message says that they are copies."""
    watched = Watched([np.full(4, 1.0) if kind == "array" else Changed([1]) for _ in range(20)])
    for batch in watched.loader:
        if kind == "array":
            assert batch.tolist() == [1.0] * 4
            batch *= 2
        else:
            assert batch.values == [1]
            batch.double()
    assert "train on copies of the same 3 batches" in watched.said[0]


def test_batches_that_cannot_be_copied_are_not_repeated() -> None:
    """A loop that changes them in place goes on as it would without a replay."""

    class Fixed(Changed):
        def __deepcopy__(self, memo: Any) -> Fixed:
            raise TypeError("no copies")

    watched = Watched([Fixed([1]) for _ in range(20)])
    taken_batches = []
    for batch in watched.loader:
        batch.double()
        taken_batches.append(batch)
    assert len(taken_batches) == 20
    assert watched.said == [
        "no replay: the loop changes its batches in place, and they cannot be copied "
        "(TypeError: no copies)"
    ]


def test_errors_of_the_loader_come_through_after_the_replay() -> None:
    """They are raised where the loader raises them."""

    def batches() -> Iterator[int]:
        yield from range(8)
        raise OSError("shard 7")

    watched = Watched(batches())
    passed = iter(watched.loader)
    assert [next(passed) for _ in range(48)] == [*range(8), *repeated()]
    with pytest.raises(OSError, match="shard 7"):
        next(passed)


def test_kept_batches_are_given_up_after_the_replay() -> None:
    """They may be large, and on a device."""

    class Batch:
        alive = 0

        def __init__(self) -> None:
            Batch.alive += 1

        def __del__(self) -> None:
            Batch.alive -= 1

    watched = Watched(Batch() for _ in range(20))
    for _ in range(49):
        next(watched.loader)
    assert Batch.alive <= 2


@pytest.mark.parametrize("is_used", [True, False])
def test_torchs_gpu_is_waited_for_if_it_is_used(
    is_used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script on CPUs must not begin to use a GPU; one without torch has none."""
    waited: list[bool] = []
    cuda = SimpleNamespace(is_initialized=lambda: is_used, synchronize=lambda: waited.append(True))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    wait_for_device()
    monkeypatch.delitem(sys.modules, "torch")
    wait_for_device()
    assert waited == [True] * is_used


def test_the_device_is_waited_for_where_a_part_of_the_replay_begins_or_ends() -> None:
    """The host may be ahead of its device: these are the moments that the log has."""
    clock, log, waited = VirtualClock(), MemoryLog(), []

    def wait() -> None:
        clock.sleep(0.5)
        waited.append(clock.now_s())

    replay = Replay(FEW, 0, log, wait=wait, clock=clock.now_s)
    for _ in TimedEpoch(lambda: iter(range(20)), 0, 0, log, replay=replay, clock=clock.now_s):
        clock.sleep(1.0)
    marks = [record for record in log.records() if record[-1] == -4.0]
    assert [(record[2], record[3], record[4]) for record in marks] == [
        (waited[0], 0, 40),
        (waited[1], 20, 40),
        (waited[2], 30, 40),
        (waited[3], 40, 40),
    ]
