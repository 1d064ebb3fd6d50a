"""A proxy of a loader that behaves like it and times every step of the loop over it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from iobench.watching.batches import samples_in
from iobench.watching.live import LiveFigures
from iobench.watching.replay import Replay
from iobench.watching.session import IDLE, NO_BATCH, UNKNOWN, StepLog

# Methods that Python looks up on the class. The proxy has only those that the loader has.
_FORWARDED = (
    *("__len__", "__getitem__", "__contains__", "__call__", "__reversed__", "__length_hint__"),
    *("__enter__", "__exit__", "__bool__", "__add__", "__or__"),
)
Loader = TypeVar("Loader")

_LOADER, _TIMED, _PASS = "_iobench_loader", "_iobench_timed", "_iobench_pass"
_MOST_EVENTS = 1 << 16  # a device that hangs must not take all memory


class Watched:
    """A proxy: its attributes are those of the loader; passes over it are timed.

    It is no instance of the loader's class, since code that rebuilds loaders
    (``accelerate.prepare``) would silently build one that is not watched.
    """

    def __init__(self, loader: Any, timed: Callable[[Callable[[], Iterator[Any]]], Any]) -> None:
        object.__setattr__(self, _LOADER, loader)
        object.__setattr__(self, _TIMED, timed)

    def __iter__(self) -> Any:
        return object.__getattribute__(self, _TIMED)(lambda: iter(unwatched(self)))

    def __getattr__(self, name: str) -> Any:
        return getattr(unwatched(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(unwatched(self), name, value)

    def __dir__(self) -> list[str]:
        return dir(unwatched(self))

    def __repr__(self) -> str:
        return f"watched {unwatched(self)!r}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies, and pickles for other processes, are the loader alone."""
        return unwatched, (unwatched(self),)


class WatchedIterator(Watched):
    """A proxy of a generator or another iterator: ``next`` continues the current pass."""

    def __iter__(self) -> Any:
        begun = super().__iter__()
        object.__setattr__(self, _PASS, begun)
        return begun

    def __next__(self) -> Any:
        own = object.__getattribute__(self, "__dict__")
        begun = own.get(_PASS) or iter(self)
        try:
            return next(begun)
        except StopIteration:
            del own[_PASS]
            raise


def proxied(
    loader: Loader,
    timed: Callable[[Callable[[], Iterator[Any]]], Any],
    replay: Replay | None = None,
) -> Loader:
    """Wrap ``loader``; ``timed`` gets a function that begins a pass, and returns the iterator.

    The length includes the steps that ``replay`` adds to the epoch.
    """
    kind = type(loader)
    base = WatchedIterator if hasattr(kind, "__next__") else Watched
    methods = {name: _forwarded(name) for name in _FORWARDED if hasattr(kind, name)}
    if replay is not None and "__len__" in methods:
        methods["__len__"] = _longer(replay)
    proxy: Loader = type("Watched", (base,), methods)(loader, timed)
    return proxy


def unwatched(loader: Any) -> Any:
    """The loader behind a proxy; other loaders as they are."""
    return object.__getattribute__(loader, _LOADER) if isinstance(loader, Watched) else loader


def _forwarded(name: str) -> Callable[..., Any]:
    def method(self: Watched, *arguments: Any, **named: Any) -> Any:
        return getattr(unwatched(self), name)(*arguments, **named)

    return method


def _longer(replay: Replay) -> Callable[..., int]:
    """``__len__`` of a loader some of whose batches are repeated."""

    def length(self: Watched) -> int:
        batches: int = unwatched(self).__len__()
        return batches + replay.added_steps(batches)

    return length


class DeviceIdle:
    """Measures how long a GPU was idle because its batch had not arrived.

    One event is recorded when a batch is requested, after all work that is queued, and one when the
    batch has arrived. The stream is idle from the first event until the second. Nothing is
    synchronised: events are read after they have passed.
    """

    def __init__(self, cuda: Any, loader: int, log: StepLog) -> None:
        """Use the current stream of ``cuda`` (torch's module), in the thread that iterates."""
        self._cuda, self._loader, self._log = cuda, loader, log
        self._pairs: deque[tuple[float, Any, Any]] = deque(maxlen=_MOST_EVENTS)

    def mark(self) -> Any:
        """Record an event now."""
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def add(self, called_s: float, asked: Any) -> None:
        """Add a batch that has arrived; ``called_s`` and ``asked`` are of its request."""
        self._pairs.append((called_s, asked, self.mark()))
        self.settle()

    def settle(self) -> None:
        """Record the idle time of all batches whose events have passed."""
        while self._pairs and self._pairs[0][2].query():
            called_s, asked, given = self._pairs[0]
            idle_s = asked.elapsed_time(given) / 1e3  # milliseconds
            self._log.add((self._loader, 0, called_s, idle_s, 0, IDLE), called_s)
            self._pairs.popleft()  # last: after Ctrl-C it is recorded again


class Epoch:
    """An iterator with the batches, errors and attributes of the loader's own iterator.

    A step lasts from the request for its batch to the next request. The last step of a loop that is
    left by ``break`` has no end and is not counted.
    """

    def __init__(
        self,
        make: Callable[[], Iterator[Any]],
        loader: int,
        number: int,
        log: StepLog,
        *,
        batch_size: int | None = None,
        idle: DeviceIdle | None = None,
        replay: Replay | None = None,
        live: LiveFigures | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._loader, self._number, self._log = loader, number, log
        self._batch_size, self._idle, self._clock = batch_size, idle, clock
        self._replay, self._live = replay, live
        if replay is not None:
            replay.epoch_begins()
        # Making the iterator starts workers; its time counts as waiting for the first batch.
        self._asked_s: float | None = clock()
        self._inner = make()
        self._step: tuple[float, float, float] | None = None
        self._open = True

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        called_s = self._clock()
        step, self._step = self._step, None
        if step is not None:
            self._add(step[0], step[1], called_s, step[2])
            if self._live is not None:
                self._live.step_ended(called_s - step[0])
        if self._asked_s is not None:
            called_s, self._asked_s = self._asked_s, None
        if self._live is not None:
            self._live.requested(self._number, called_s)
        asked = None if self._idle is None else self._idle.mark()
        try:
            if self._replay is None:
                batch = next(self._inner)
            else:
                batch = self._replay.next(self._inner, self._number)
        except StopIteration:
            self._end(called_s)
            raise
        got_s = self._clock()
        if self._idle is not None:
            self._idle.add(called_s, asked)
        samples = samples_in(batch) if self._batch_size is None else self._batch_size
        if self._live is not None:
            is_repeated = self._replay is not None and self._replay.is_running
            self._live.arrived(batch, samples, got_s, is_repeated=is_repeated)
        # Last, so that a step interrupted by Ctrl-C is not recorded.
        self._step = (called_s, got_s, UNKNOWN if samples is None else samples)
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _end(self, called_s: float) -> None:
        """Record the end of the epoch, once."""
        if not self._open:
            return
        now_s = self._clock()
        self._add(called_s, now_s, now_s, NO_BATCH)
        self._log.flush()
        if self._replay is not None:
            self._replay.epoch_ended()
        if self._live is not None:
            self._live.ended(now_s)
        self._open = False

    def _add(self, called_s: float, got_s: float, ended_s: float, samples: float) -> None:
        record = (self._loader, self._number, called_s, got_s, ended_s, samples)
        self._log.add(record, ended_s)
