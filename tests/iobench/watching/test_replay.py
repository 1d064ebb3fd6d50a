"""A replay hands out batches again, and loses none of the loader's batches."""

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
    """A watched loader of whole numbers with a replay, and its announcements."""

    def __init__(self, loader: Any, settings: ReplaySettings = FEW) -> None:
        self.messages: list[str] = []
        self.log = MemoryLog()
        self.replay = Replay(settings, 0, self.log, announce=self.messages.append)
        self._epochs = iter(range(1000))
        self.loader: Any = wrap_loader(loader, self._epoch, self.replay)

    def _epoch(self, make: Any) -> TimedEpoch:
        return TimedEpoch(make, 0, next(self._epochs), self.log, replay=self.replay)


def repeated(settings: ReplaySettings = FEW) -> list[int]:
    """Return the repeated batches of a loader that yields 0, 1, 2 and so on."""
    first = settings.warm_up
    return [first + number % settings.batches for number in range(settings.steps)]


def test_the_loop_goes_on_with_the_next_batch_of_the_loader() -> None:
    """The replay takes place once for a watched loader, so the second epoch is as usual."""
    watched = Watched(range(20))
    assert list(watched.loader) == [*range(8), *repeated(), *range(8, 20)]
    assert list(watched.loader) == list(range(20))
    assert watched.messages == [
        "replay: steps 9 to 48 of this epoch train on the same 3 batches again and again, to "
        "measure the loop without its loader; after step 48 it goes on with the loader's next batch"
    ]


@given(st.integers(1, 40), st.integers(1, 5), st.integers(1, 20), st.integers(1, 4))
def test_no_batch_is_lost(batches: int, kept: int, warm_up: int, epochs: int) -> None:
    """Each epoch has all batches of the loader in order, and there is at most one replay.

    The length of an epoch is the result of ``len`` at its begin.
    """
    settings = ReplaySettings(kept, 40, warm_up)
    watched = Watched(range(batches), settings)
    replays = 0
    for _ in range(epochs):
        length = len(watched.loader)
        consumed = []
        for batch in watched.loader:
            consumed.append((batch, watched.replay.is_running))
            assert len(watched.loader) == length
        new_batches = [batch for batch, is_repeated in consumed if not is_repeated]
        assert new_batches == list(range(batches))
        assert len(consumed) == length
        replays += sum(is_repeated for _, is_repeated in consumed)
        assert len(watched.loader) in (batches, batches + 40)
    assert replays == (40 if batches * epochs >= warm_up + kept else 0)
    assert len(watched.messages) == bool(replays)


def test_a_generator_is_repeated_through_next() -> None:
    """Batches of an endless generator, which a loop takes by ``next``, are repeated."""
    watched = Watched(iter(range(1000)))
    consumed = [next(watched.loader) for _ in range(50)]
    assert consumed == [*range(8), *repeated(), 8, 9]


def test_a_replay_in_an_epoch_that_is_left_does_not_go_on() -> None:
    """The next epoch has its own batches and its own length."""
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
    assert not watched.messages


def test_a_replay_that_has_begun_is_not_cancelled() -> None:
    """All ranks of a job must make equal numbers of steps."""
    watched = Watched(range(20))
    consumed = []
    for batch in watched.loader:
        consumed.append(batch)
        if len(consumed) == 12:
            watched.replay.cancel()
    assert len(consumed) == 60


def test_a_forked_process_repeats_nothing() -> None:
    """A worker that goes through a watched loader gets the loader's batches only."""
    watched = Watched(range(20))
    child = os.fork()
    if not child:
        os._exit(0 if list(watched.loader) == list(range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_passes_side_by_side_have_their_own_batches() -> None:
    """Only the pass that reaches the replay repeats batches."""
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
    """Entries that a loop removes are there when the batch comes again."""

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
    assert "train on the same 3 batches" in watched.messages[0]


def test_arrays_are_the_ones_of_the_loader() -> None:
    """Tensors on a device and in pinned memory are not copied."""
    arrays = [np.full(4, number) for number in range(20)]
    watched = Watched([{"images": array} for array in arrays])
    consumed = [batch["images"] for batch in watched.loader]
    assert all(consumed[8 + step] is arrays[5 + step % 3] for step in range(40))


class Changed:
    """A tensor that counts its changes, as torch's do."""

    def __init__(self, values: list[int], version: int = 0) -> None:
        self.values, self._version = values, version

    def double(self) -> None:
        """Double the values in place."""
        self.values = [value * 2 for value in self.values]
        self._version += 1


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_a_loop_that_changes_its_batches_in_place_gets_copies(kind: str) -> None:
    """Each copy is as the loader made the batch, and the message says that copies are used."""
    watched = Watched([np.full(4, 1.0) if kind == "array" else Changed([1]) for _ in range(20)])
    for batch in watched.loader:
        if kind == "array":
            assert batch.tolist() == [1.0] * 4
            batch *= 2
        else:
            assert batch.values == [1]
            batch.double()
    assert "train on copies of the same 3 batches" in watched.messages[0]


def test_batches_that_cannot_be_copied_are_not_repeated() -> None:
    """A loop that changes such batches in place has no replay."""

    class Fixed(Changed):
        def __deepcopy__(self, memo: Any) -> Fixed:
            raise TypeError("no copies")

    watched = Watched([Fixed([1]) for _ in range(20)])
    consumed = []
    for batch in watched.loader:
        batch.double()
        consumed.append(batch)
    assert len(consumed) == 20
    assert watched.messages == [
        "no replay: the loop changes its batches in place, and they cannot be copied "
        "(TypeError: no copies)"
    ]


def test_errors_of_the_loader_come_through_after_the_replay() -> None:
    """An error is raised at the same batch as without a replay."""

    def batches() -> Iterator[int]:
        yield from range(8)
        raise OSError("shard 7")

    watched = Watched(batches())
    passed = iter(watched.loader)
    assert [next(passed) for _ in range(48)] == [*range(8), *repeated()]
    with pytest.raises(OSError, match="shard 7"):
        next(passed)


def test_kept_batches_are_given_up_after_the_replay() -> None:
    """Batches are released, since they may be large and on a device."""

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
    """A script on CPUs must not begin to use a GPU, and one without torch has none."""
    waits: list[bool] = []
    cuda = SimpleNamespace(is_initialized=lambda: is_used, synchronize=lambda: waits.append(True))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    wait_for_device()
    monkeypatch.delitem(sys.modules, "torch")
    wait_for_device()
    assert len(waits) == is_used


def test_the_device_is_waited_for_where_a_part_of_the_replay_begins_or_ends() -> None:
    """The log has the moments at which the device was done, since the host may be ahead of it."""
    clock, log = VirtualClock(), MemoryLog()
    wait_ends_s = []

    def wait() -> None:
        clock.sleep(0.5)
        wait_ends_s.append(clock.now_s())

    replay = Replay(FEW, 0, log, wait=wait, clock=clock.now_s)
    for _ in TimedEpoch(lambda: iter(range(20)), 0, 0, log, replay=replay, clock=clock.now_s):
        clock.sleep(1.0)
    marks = [record for record in log.records() if record[-1] == -4.0]
    assert [mark[2] for mark in marks] == wait_ends_s
    assert [mark[3] for mark in marks] == [0, 20, 30, 40]
    assert [mark[4] for mark in marks] == [40] * 4
