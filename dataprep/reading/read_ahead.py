"""How far ahead of its consumer a sequential reader reads: little at first, then what is taken.

A reader requests windows of samples. Large windows hide the latency of a store and need few
requests. But the first batch comes only when the first window is complete, and windows take
memory. So a stream begins with a batch, and its windows double while the consumer takes samples
fast enough. The order of the samples never depends on the windows.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

WINDOW_BYTES = 16 * 2**20
"""Size of the largest window that a sequential reader requests."""
WINDOWS_AT_ONCE = 2
"""Windows that a sequential reader requests from a remote store at the same time."""
WINDOW_S = 1.0
"""Windows grow while the consumer takes a whole one within this time."""
_SECOND_BATCHES = 4
"""Batches of a window before the consumer has taken any, at most."""
_REQUESTS_PER_WINDOW = 2
"""Windows also grow while the consumer takes a whole one within this many requests."""


class ReadAhead(NamedTuple):
    """How far ahead of its consumer a sequential reader reads.

    Attributes:
        window_samples: samples that arrive together, in one or a few range requests.
        windows_at_once: windows that are requested at the same time.
    """

    window_samples: int
    windows_at_once: int


def read_ahead(mean_bytes: float, *, is_remote: bool) -> ReadAhead:
    """The most that ``Records.stream`` reads ahead, for records of ``mean_bytes``.

    What it really uses is counted by ``ReadCounter.windows``.
    """
    return ReadAhead(math.ceil(WINDOW_BYTES / mean_bytes), WINDOWS_AT_ONCE if is_remote else 1)


class GrowingWindows:
    """The sizes of the windows of one stream, in samples.

    The first window has a batch. How long it took says what the link delivers: until the consumer
    has taken a window, the next ones have as much as the link delivers in ``WINDOW_S``, but at most
    ``_SECOND_BATCHES`` batches. Then a window is twice as large as the one before, if the consumer
    took that much within ``WINDOW_S`` or within two requests, whichever is longer: a
    consumer that waits for a store far away takes little before the windows are large. The rate at
    which samples are taken is that of the slower of the store and the consumer. Windows never
    become smaller within a stream. The next stream of a reader goes on with their size after its
    first batch.

    Attributes:
        size: samples of the window that was requested last.
    """

    def __init__(
        self,
        batch_samples: int,
        most: ReadAhead,
        *,
        earlier_size: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._earlier_size = earlier_size
        self._batch = min(batch_samples, most.window_samples)
        self._most = most
        self._clock = clock
        self.size = 0
        self._taken = 0
        # When the consumer took a window, and the samples that it had consumed by then. Windows
        # that are requested at the same time often arrive together, so the rate is measured over
        # all of them.
        self._history = deque([(clock(), 0)], maxlen=most.windows_at_once + 1)
        self._shortest_s = math.inf

    def next_size(self) -> int:
        """The size of the window that is requested next."""
        if not self.size:
            self.size = self._batch
            return self.size
        self.size = max(self.size, self._earlier_size)
        if not self._taken:
            delivered = int(self._batch * WINDOW_S / self._shortest_s)
            at_most = min(self._most.window_samples, _SECOND_BATCHES * self._batch)
            self.size = max(self.size, min(delivered, at_most))
        elif 2 * self.size <= self._taken_within_a_window():
            self.size = min(2 * self.size, self._most.window_samples)
        return self.size

    def arrived(self, seconds: float) -> None:
        """Note how long the request of a window took; threads may call this."""
        self._shortest_s = min(self._shortest_s, max(seconds, 1e-9))

    def taken(self, samples: int) -> None:
        """Note that the consumer gets a window now: it has consumed those before."""
        self._history.append((self._clock(), self._taken))
        self._taken += samples

    def _taken_within_a_window(self) -> float:
        """Samples that the consumer takes in the time in which it may take a window."""
        begin_s, consumed_before = self._history[0]
        end_s, consumed = self._history[-1]
        if consumed == consumed_before:
            return 0.0
        allowed_s = WINDOW_S
        if self._shortest_s < math.inf:
            allowed_s = max(allowed_s, _REQUESTS_PER_WINDOW * self._shortest_s)
        samples_per_s = (consumed - consumed_before) / max(end_s - begin_s, 1e-9)
        return allowed_s * samples_per_s
