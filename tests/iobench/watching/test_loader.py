"""A watched loader behaves like the loader itself, and each step over it is timed."""

from __future__ import annotations

import copy
import math
import pickle
import tracemalloc
import types
from collections import UserDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.watching.batches import samples_in
from iobench.watching.proxy import DeviceIdle, TimedEpoch, unwrap_loader, wrap_loader
from iobench.watching.session import DEVICE_IDLE, END_OF_EPOCH, UNKNOWN_SAMPLES, StepLog
from tests.iobench.watching.logged import MemoryLog

START_S, WAIT_S, WORK_S = 3.0, 0.25, 0.5
IMAGES, LABELS = np.zeros((7, 8, 8, 3)), np.zeros(7)
ONE = np.zeros((8, 9, 3))
Pair = namedtuple("Pair", "images labels")
MXNET = types.SimpleNamespace(data=[IMAGES], label=[LABELS], pad=2)


class Sampler:
    """A sampler as torch's distributed one."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Note the epoch."""
        self.epoch = epoch


class Loader:
    """A loader with the attributes of torch's."""

    def __init__(self) -> None:
        self.sampler, self.batch_size = Sampler(), 4

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return index * 2

    def __iter__(self) -> Iterator[int]:
        yield from range(3)


class Passes:
    """Counts the passes over a loader, and does not change them."""

    def __init__(self) -> None:
        self.begun = 0

    def __call__(self, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        self.begun += 1
        return make()


def test_it_is_to_its_users_the_loader() -> None:
    """Attributes can be read, called, set and listed, and no others are there."""
    loader = Loader()
    watched: Any = wrap_loader(loader, Passes())
    watched.sampler.set_epoch(7)
    watched.batch_size = 8
    watched.note = "x"
    assert (loader.sampler.epoch, loader.batch_size, loader.note) == (7, 8, "x")  # type: ignore[attr-defined]
    assert "sampler" in dir(watched)
    with pytest.raises(AttributeError, match="'Loader' object has no attribute 'absent'"):
        _ = watched.absent
    assert (len(watched), watched[3], bool(watched)) == (3, 6, True)
    assert not hasattr(watched, "__next__")
    assert not hasattr(wrap_loader((n for n in range(2)), Passes()), "__len__")
    assert repr(wrap_loader([1, 2], Passes())) == "watched [1, 2]"


def test_iterating_twice_is_two_passes() -> None:
    """Each pass is made by the loader itself."""
    passes = Passes()
    watched = wrap_loader(Loader(), passes)
    assert (list(watched), list(watched), passes.begun) == ([0, 1, 2], [0, 1, 2], 2)


def test_an_iterator_stays_one() -> None:
    """``next`` goes on with the same pass, by itself or by ``iter``."""
    passes = Passes()
    watched = wrap_loader(iter(range(4)), passes)
    assert [next(watched), next(watched)] == [0, 1]
    assert passes.begun == 1
    assert next(iter(watched)) == 2
    assert list(watched) == [3]
    with pytest.raises(StopIteration):
        next(watched)


def test_copies_are_of_the_loader_alone() -> None:
    """A copy in a worker process is not watched, and a loader is wrapped once."""
    loader = Loader()
    watched = wrap_loader(loader, Passes())
    assert type(pickle.loads(pickle.dumps(watched))) is Loader
    assert type(copy.deepcopy(watched)) is Loader
    assert unwrap_loader(watched) is unwrap_loader(loader) is loader


class Pass:
    """An epoch of ``batches`` batches: opening takes ``START_S``, each batch ``WAIT_S``."""

    def __init__(self, batches: int, broken_at: int | None = None, number: int = 0) -> None:
        self.clock, self.log = VirtualClock(), MemoryLog()

        def loaded() -> Iterator[list[int]]:
            for index in range(batches):
                self.clock.sleep(WAIT_S)
                if index == broken_at:
                    raise OSError("shard 7")
                yield [0] * (10 + index)
            self.clock.sleep(WAIT_S)

        def opened() -> Iterator[list[int]]:
            self.clock.sleep(START_S)
            return loaded()

        self.epoch = TimedEpoch(opened, 7, number, self.log, clock=self.clock.now_s)

    def trained(self, most: float = math.inf) -> list[int]:
        """Run a loop over the epoch, left after ``most`` batches; return their samples."""
        samples: list[int] = []
        for batch in self.epoch:
            samples.append(len(batch))
            if len(samples) >= most:
                break
            self.clock.sleep(WORK_S)
        return samples

    def samples(self) -> list[float]:
        """Return the samples of each record."""
        return [record[-1] for record in self.log.records()]


def test_a_step_is_its_wait_and_its_work() -> None:
    """The first step also waits for the workers to start, and the end of the epoch is a wait."""
    batches = Pass(3, number=4)
    assert batches.trained() == [10, 11, 12]
    step_s = WAIT_S + WORK_S
    first_end_s = START_S + step_s
    second_end_s = first_end_s + step_s
    third_end_s = second_end_s + step_s
    epoch_end_s = third_end_s + WAIT_S
    assert batches.log.records() == [
        (7, 4, 0.0, START_S + WAIT_S, first_end_s, 10),
        (7, 4, first_end_s, first_end_s + WAIT_S, second_end_s, 11),
        (7, 4, second_end_s, second_end_s + WAIT_S, third_end_s, 12),
        (7, 4, third_end_s, epoch_end_s, epoch_end_s, END_OF_EPOCH),
    ]
    assert next(batches.epoch, "no more") == "no more"
    assert len(batches.log.records()) == 4


def test_a_loop_that_is_left_has_no_end_of_its_last_step() -> None:
    """The time of the last step is unknown, so it has no record."""
    batches = Pass(5)
    assert batches.trained(most=3) == [10, 11, 12]
    assert batches.samples() == [10, 11]


def test_errors_of_the_loader_come_through() -> None:
    """The step before the error has a record, and the failed one has none."""
    batches = Pass(5, broken_at=2)
    with pytest.raises(OSError, match="shard 7"):
        batches.trained()
    assert batches.samples() == [10, 11]


def test_samples_are_as_given_or_as_found() -> None:
    """A given batch size is used, and else the samples are counted or marked as unknown."""
    log = MemoryLog()
    for size in (None, 32):
        list(TimedEpoch(lambda: iter([[1, 2], 3.5]), 0, 0, log, batch_size=size))
    counted = [2, UNKNOWN_SAMPLES, END_OF_EPOCH]
    given_size = [32, 32, END_OF_EPOCH]
    assert [record[-1] for record in log.records()] == [*counted, *given_size]


def test_it_is_an_iterator_with_the_attributes_of_the_one_within() -> None:
    """``iter`` returns it, and it has the attributes of the loader's own iterator."""

    class Own:
        length = 5

        def __iter__(self) -> Own:
            return self

        def __next__(self) -> int:
            raise StopIteration

    epoch = TimedEpoch(Own, 0, 0, MemoryLog())
    assert iter(epoch) is epoch
    assert epoch.length == 5
    with pytest.raises(AttributeError, match="absent"):
        _ = epoch.absent


def test_a_step_stays_in_memory_for_a_second_only() -> None:
    """Of 20,000 steps of 1 ms, the records of one second (48 kB) are kept, and not all 960 kB."""
    clock, log = VirtualClock(), StepLog(len)

    def batches() -> Iterator[list[int]]:
        for _ in range(20_000):
            clock.sleep(0.001)
            yield [1]

    tracemalloc.start()
    try:
        for _ in TimedEpoch(batches, 0, 0, log, clock=clock.now_s):
            pass
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 200_000


class FakeCuda:
    """A stream of a GPU: work takes time, and an event is reached when all before it is done."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock, self.busy_until_s = clock, 0.0

    def compute(self, seconds: float) -> None:
        """Hand over work, which begins when all earlier work is done."""
        self.busy_until_s = max(self.busy_until_s, self.clock.now_s()) + seconds

    def Event(self, enable_timing: bool) -> FakeEvent:  # noqa: N802
        assert enable_timing
        return FakeEvent(self)


class FakeEvent:
    """An event in such a stream."""

    def __init__(self, stream: FakeCuda) -> None:
        self._stream, self._reached_s = stream, 0.0

    def record(self) -> None:
        self._reached_s = max(self._stream.busy_until_s, self._stream.clock.now_s())

    def query(self) -> bool:
        return self._stream.clock.now_s() >= self._reached_s

    def elapsed_time(self, other: FakeEvent) -> float:
        return (other._reached_s - self._reached_s) * 1e3


def idle_times(wait_s: float, computes_s: float) -> list[tuple[float, float]]:
    """Return when the device was idle and for how long, in seconds.

    The loop waits ``wait_s`` for each of four batches while the device computes ``computes_s``.
    """
    clock, log = VirtualClock(), MemoryLog()
    stream = FakeCuda(clock)
    idle = DeviceIdle(stream, 0, log)

    def batches() -> Iterator[int]:
        for _ in range(4):
            clock.sleep(wait_s)
            yield 1

    for _ in TimedEpoch(batches, 0, 0, log, idle=idle, clock=clock.now_s):
        stream.compute(computes_s)
    clock.sleep(100)
    idle.settle()
    return [(record[2], record[3]) for record in log.records() if record[-1] == DEVICE_IDLE]


def test_a_device_is_idle_once_it_is_done() -> None:
    """Only the part of a wait in which the device has nothing to compute is idle."""
    assert idle_times(wait_s=1.0, computes_s=1.5) == [(0, 1.0), (1, 0), (2, 0), (3, 0)]
    assert idle_times(wait_s=1.0, computes_s=0.25)[1:] == [(1, 0.75), (2, 0.75), (3, 0.75)]


@pytest.mark.parametrize(
    ("batch", "samples"),
    [
        (IMAGES, 7),
        ((IMAGES, LABELS), 7),
        ([IMAGES, LABELS], 7),
        (Pair(IMAGES, LABELS), 7),
        ({"image": IMAGES, "label": LABELS}, 7),
        (UserDict(image=IMAGES), 7),
        ((np.float32(1), LABELS), 7),
        (((IMAGES, IMAGES), LABELS), 7),
        ([{"data": IMAGES, "label": LABELS}], 7),
        (MXNET, 5),
        ([ONE, ONE[:4]], 8),
        ([(ONE, 1), (ONE, 2), (ONE, 3)], 3),
        ([{"image": ONE}, {"image": ONE}], 2),
        (((ONE, ONE, ONE), ({}, {}, {})), 3),
        ([b"jpeg", b"jpeg"], 2),
        ((["a", "b", "c"], [0, 1, 2]), 3),
        ([], 0),
        (3.5, None),
        ("text", None),
        (None, None),
        (np.float32(1), None),
        ({}, None),
        (object(), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_in(batch: Any, samples: int | None) -> None:
    """Batches of the frameworks are counted; an unknown batch is not guessed."""
    assert samples_in(batch) == samples


def containers_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw a list, a tuple or a mapping of such values."""
    return st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner)


LEAVES = st.none() | st.integers() | st.text() | st.binary()


@given(st.recursive(LEAVES, containers_of))
def test_anything_is_taken(batch: Any) -> None:
    """A batch of an unknown kind never stops a user's training."""
    samples = samples_in(batch)
    assert samples is None or samples >= 0


class Nested:
    """A batch like torch's nested tensors, which raise when their shape is read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Raise an error."""
        raise RuntimeError("no sizes")


def test_an_odd_batch_is_unknown() -> None:
    """Batches that contain themselves, raise, or have an unknown shape are not counted."""
    batch: dict[str, Any] = {}
    batch["self"] = batch
    for odd in (batch, [Nested()], types.SimpleNamespace(shape=(None, 3))):
        assert samples_in(odd) is None
