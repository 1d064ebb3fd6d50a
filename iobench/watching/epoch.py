"""One pass over a loader, batch by batch, each timed: all that runs inside somebody's loop."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

STEP_FIELDS = ("epoch", "called_s", "got_s", "ended_s", "samples")
"""Of a record, five doubles: which epoch; when the batch was asked for, when it was there, when
the next one was asked for; its samples, NaN where they cannot be told, -1 where the epoch ended
instead of a batch."""

UNKNOWN, NO_BATCH = float("nan"), -1.0


class Recording(Protocol):
    """Takes what an epoch notes."""

    def step(self, record: tuple[float, float, float, float, float]) -> None:
        """One step that ended, as ``STEP_FIELDS`` has it."""
        ...

    def asking(self, epoch: int, called_s: float) -> None:
        """The loop asks for a batch: work that was handed to a device before is under way."""
        ...

    def given(self) -> None:
        """The loop has the batch."""
        ...

    def settle(self) -> None:
        """The epoch ended."""
        ...


class Epoch:
    """An iterator around one of the loader's: the same batches, errors and attributes.

    A step begins when its batch is asked for and ends when the next one is. The last batch of a
    loop that is left by ``break`` has no end, and is in no figure.
    """

    __slots__ = (
        *("_asked_s", "_called_s", "_clock", "_count", "_got_s", "_inner", "_number"),
        *("_open", "_recording", "_samples"),
    )

    def __init__(
        self,
        make: Callable[[], Iterator[Any]],
        number: int,
        recording: Recording,
        count: Callable[[Any], float],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock, self._count, self._recording = clock, count, recording
        self._number = number
        # Making the iterator starts workers: its time belongs to the first batch.
        self._asked_s: float | None = clock()
        self._inner = make()
        self._got_s: float | None = None
        self._called_s = self._samples = 0.0
        self._open = True

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Any:
        called_s = self._clock()
        recording = self._recording
        got_s, self._got_s = self._got_s, None
        if got_s is not None:
            recording.step((self._number, self._called_s, got_s, called_s, self._samples))
        if self._asked_s is not None:
            called_s, self._asked_s = self._asked_s, None
        recording.asking(self._number, called_s)
        try:
            batch = next(self._inner)
        except StopIteration:
            if self._open:
                now_s = self._clock()
                recording.step((self._number, called_s, now_s, now_s, NO_BATCH))
                recording.settle()
                self._open = False
            raise
        got_s = self._clock()
        recording.given()
        self._called_s, self._samples = called_s, self._count(batch)
        self._got_s = got_s  # last: of a step that Ctrl-C comes into nothing is recorded
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __length_hint__(self) -> int:
        return operator.length_hint(self._inner)
