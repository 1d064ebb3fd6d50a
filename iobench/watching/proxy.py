"""A proxy of a loader that behaves like it and times every step of the loop over it.

A *pass* begins each time the loop calls ``iter`` on the loader. The log and the report call it an
epoch.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

from iobench.watching.batches import samples_in
from iobench.watching.prometheus import LiveFigures
from iobench.watching.replay import Replay
from iobench.watching.session import DEVICE_IDLE, END_OF_EPOCH, UNKNOWN_SAMPLES, StepLog

# Python looks up these methods on the class of an object, not on the object. Therefore the class of
# a proxy gets each of these methods that the class of the loader has.
_FORWARDED_METHODS = (
    "__len__",
    "__getitem__",
    "__contains__",
    "__call__",
    "__reversed__",
    "__length_hint__",
    "__enter__",
    "__exit__",
    "__bool__",
    "__add__",
    "__or__",
)
Loader = TypeVar("Loader")

# Names of the proxy's own attributes: the loader, the function that times a pass over it, and the
# current pass.
_LOADER, _TIME_EPOCH, _PASS = "_iobench_loader", "_iobench_timed", "_iobench_pass"

TimeEpoch: TypeAlias = Callable[[Callable[[], Iterator[Any]]], Any]
"""A function that times a pass over a loader.

Its argument is a function that begins the pass and returns the loader's iterator. It returns an
iterator over the same batches, which times each step.
"""

_MAX_PENDING_BATCHES = 1 << 16
"""The largest number of batches whose events are kept. If there are more, the events of the oldest
batch are dropped. Without this limit the events would fill the memory if the device hangs."""


class Watched:
    """A proxy of a loader. It has the attributes of the loader, and passes over it are timed.

    It is not an instance of the loader's class. Otherwise code that builds loaders again, such as
    ``accelerate.prepare``, would silently build a loader that is not watched.
    """

    def __init__(self, loader: Any, time_epoch: TimeEpoch) -> None:
        object.__setattr__(self, _LOADER, loader)
        object.__setattr__(self, _TIME_EPOCH, time_epoch)

    def __iter__(self) -> Any:
        time_epoch = object.__getattribute__(self, _TIME_EPOCH)
        return time_epoch(lambda: iter(unwrap_loader(self)))

    def __getattr__(self, name: str) -> Any:
        return getattr(unwrap_loader(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(unwrap_loader(self), name, value)

    def __dir__(self) -> list[str]:
        return dir(unwrap_loader(self))

    def __repr__(self) -> str:
        return f"watched {unwrap_loader(self)!r}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy or pickle the loader without the proxy. The copy is not watched."""
        return unwrap_loader, (unwrap_loader(self),)


class WatchedIterator(Watched):
    """A proxy of a generator or another iterator: ``next`` continues the current pass."""

    def __iter__(self) -> Any:
        current_pass = super().__iter__()
        object.__setattr__(self, _PASS, current_pass)
        return current_pass

    def __next__(self) -> Any:
        own_attributes = object.__getattribute__(self, "__dict__")
        current_pass = own_attributes.get(_PASS) or iter(self)
        try:
            return next(current_pass)
        except StopIteration:
            del own_attributes[_PASS]
            raise


def wrap_loader(
    loader: Loader,
    time_epoch: TimeEpoch,
    replay: Replay | None = None,
) -> Loader:
    """Wrap ``loader`` in a proxy that behaves like it and times every pass over it.

    Args:
        loader: the loader.
        time_epoch: times a pass over the loader.
        replay: the replay of the loader. The length of the proxy includes its added steps.
    """
    loader_class = type(loader)
    base = WatchedIterator if hasattr(loader_class, "__next__") else Watched
    methods: dict[str, Callable[..., Any]] = {}
    for name in _FORWARDED_METHODS:
        if hasattr(loader_class, name):
            methods[name] = _forwarding_method(name)
    if replay is not None and "__len__" in methods:
        methods["__len__"] = _length_with_replay(replay)
    proxy_class = type("Watched", (base,), methods)
    proxy: Loader = proxy_class(loader, time_epoch)
    return proxy


def unwrap_loader(loader: Any) -> Any:
    """The loader behind a proxy. A loader without a proxy is returned as it is."""
    if isinstance(loader, Watched):
        return object.__getattribute__(loader, _LOADER)
    return loader


def _forwarding_method(name: str) -> Callable[..., Any]:
    """The method of a proxy that calls the method ``name`` of the loader."""

    def method(self: Watched, *arguments: Any, **named: Any) -> Any:
        return getattr(unwrap_loader(self), name)(*arguments, **named)

    return method


def _length_with_replay(replay: Replay) -> Callable[..., int]:
    """The method ``__len__`` of a loader with a replay, which adds steps to an epoch."""

    def length(self: Watched) -> int:
        batches: int = unwrap_loader(self).__len__()
        return batches + replay.added_steps(batches)

    return length


class DeviceIdle:
    """Measures how long a GPU was idle because its batch had not arrived.

    When the loop requests a batch, an event is appended to the queue of the GPU. When the batch has
    arrived, another event is appended. The first event passes when the GPU has done all work that
    was queued before the request. Then the GPU is idle until the second event passes. The loop
    never waits for the GPU, since events are read after they have passed.
    """

    def __init__(self, cuda: Any, loader: int, log: StepLog) -> None:
        """Measure in the current stream of the thread that iterates.

        Args:
            cuda: the module ``torch.cuda``.
            loader: the number of the loader.
            log: receives a record for each batch.
        """
        self._cuda, self._loader, self._log = cuda, loader, log
        # For each batch: the time of its request, and the events of its request and arrival.
        self._pending: deque[tuple[float, Any, Any]] = deque(maxlen=_MAX_PENDING_BATCHES)

    def mark(self) -> Any:
        """Record an event now."""
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def add(self, called_s: float, requested: Any) -> None:
        """Add a batch that has arrived.

        Args:
            called_s: the time of its request.
            requested: the event that was recorded at its request.
        """
        self._pending.append((called_s, requested, self.mark()))
        self.settle()

    def settle(self) -> None:
        """Record the idle time of the batches whose events have passed, in their order."""
        while self._pending:
            called_s, requested, arrived = self._pending[0]
            if not arrived.query():
                return
            idle_s = requested.elapsed_time(arrived) / 1e3  # from milliseconds
            self._log.add((self._loader, 0, called_s, idle_s, 0, DEVICE_IDLE), called_s)
            # The batch is removed last. If Ctrl-C comes before, the batch is recorded twice, and
            # the reader drops the duplicate.
            self._pending.popleft()


class TimedEpoch:
    """An iterator over a loader that times each step of the loop.

    It has the batches, errors and attributes of the loader's own iterator. A step lasts from the
    request for its batch to the next request. If a loop ends with ``break``, its last step has no
    end, and is not counted.

    Args:
        make_iterator: begins a pass over the loader, and returns its iterator.
        loader: the number of the loader.
        number: the number of the epoch, from 0.
        log: receives a record for each step, and for the end of the epoch.
        batch_size: samples in a batch; None to read them from each batch.
        idle: measures the idle time of a GPU; None to measure none.
        replay: the replay of the loader; None if no batch is repeated.
        live: the figures for Prometheus; None if none are served.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        make_iterator: Callable[[], Iterator[Any]],
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
        # Making the iterator starts workers. This time counts as waiting for the first batch.
        self._opened_s: float | None = clock()
        self._inner = make_iterator()
        # The request, the arrival and the samples of the current step.
        self._step: tuple[float, float, float] | None = None
        self._has_ended = False

    def __iter__(self) -> TimedEpoch:
        return self

    def __next__(self) -> Any:
        called_s = self._clock()
        step, self._step = self._step, None
        if step is not None:
            self._add(step[0], step[1], called_s, step[2])
            if self._live is not None:
                self._live.note_step_end(called_s - step[0])
        if self._opened_s is not None:
            called_s, self._opened_s = self._opened_s, None
        if self._live is not None:
            self._live.note_request(self._number, called_s)
        requested = None if self._idle is None else self._idle.mark()
        try:
            if self._replay is None:
                batch = next(self._inner)
            else:
                batch = self._replay.next(self._inner, self._number)
        except BaseException as error:
            self._note_no_batch(called_s, error)
            raise
        got_s = self._clock()
        if self._idle is not None:
            self._idle.add(called_s, requested)
        samples = samples_in(batch) if self._batch_size is None else self._batch_size
        if self._live is not None:
            is_repeated = self._replay is not None and self._replay.is_running
            self._live.note_batch(batch, samples, got_s, is_repeated=is_repeated)
        # This comes last, so that a step interrupted by Ctrl-C is not recorded.
        self._step = (called_s, got_s, UNKNOWN_SAMPLES if samples is None else samples)
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _note_no_batch(self, called_s: float, error: BaseException) -> None:
        """Note that the loader answered a request with the end of the epoch, or with an error."""
        if isinstance(error, StopIteration):
            self._end(called_s)
        if self._live is not None:
            self._live.note_no_batch(self._clock())

    def _end(self, called_s: float) -> None:
        """Record the end of the epoch, once."""
        if self._has_ended:
            return
        now_s = self._clock()
        self._add(called_s, now_s, now_s, END_OF_EPOCH)
        self._log.flush()
        if self._replay is not None:
            self._replay.epoch_ended()
        self._has_ended = True

    def _add(self, called_s: float, got_s: float, ended_s: float, samples: float) -> None:
        """Add a record to the log. ``STEP_FIELDS`` describes the arguments."""
        record = (self._loader, self._number, called_s, got_s, ended_s, samples)
        self._log.add(record, ended_s)
