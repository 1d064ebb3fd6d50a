"""How far ahead of its consumer a sequential reader reads.

A reader requests windows of samples. Large windows hide the latency of a store and need few
requests. But the first batch arrives only when the first window is complete, and windows take
memory. Therefore the first window of a stream has one batch, and later windows grow while the
consumer takes samples fast enough. The order of the samples does not depend on the windows.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

WINDOW_BYTES = 16 * 2**20
"""Approximate size of the largest window that a sequential reader requests."""

WINDOWS_AT_ONCE = 2
"""Windows that a sequential reader requests from a remote store at the same time. The store is then
never idle between two requests."""

WINDOW_S = 1.0
"""Windows double while the consumer can take the doubled window within this time, in seconds. The
second window has the samples that the link delivers in this time."""

_MAX_EARLY_BATCHES = 4
"""Maximum number of batches in a window while the consumer has not taken any window, so that its
speed is not known."""

_REQUESTS_PER_WINDOW = 2
"""Windows also double while the consumer can take the doubled window within the time of this number
of requests."""


class ReadAhead(NamedTuple):
    """How far ahead of its consumer a sequential reader reads.

    Attributes:
        window_samples: samples in the largest window. They are read by one or a few range requests.
        windows_at_once: windows that are requested at the same time.
    """

    window_samples: int
    windows_at_once: int


def read_ahead(mean_bytes: float, *, is_remote: bool) -> ReadAhead:
    """Return how far ``Records.stream`` reads ahead at most.

    Windows are smaller at first. ``ReadCounter.windows`` returns the windows that are in use.

    Args:
        mean_bytes: the average bytes that are read for a record.
        is_remote: whether the records are in a remote store.
    """
    window_samples = math.ceil(WINDOW_BYTES / mean_bytes)
    return ReadAhead(window_samples, WINDOWS_AT_ONCE if is_remote else 1)


class GrowingWindows:
    """The sizes of the windows of one stream, in samples.

    There are three phases:

    - The first window has one batch. The time of its request shows how fast the link is.
    - Until the consumer has taken a window, the next windows have as many samples as the link
      delivers in ``WINDOW_S``, but at least one batch and at most ``_MAX_EARLY_BATCHES`` batches.
    - From then on, a window is twice as large as the last one if the consumer takes that many
      samples within ``WINDOW_S``, or within the time of ``_REQUESTS_PER_WINDOW`` requests if this
      time is longer. Remote stores need the longer time: while windows are small, the consumer
      mostly waits for requests, so that it takes few samples within ``WINDOW_S``.

    No window is larger than the limit. Windows never become smaller within a stream. The next
    stream of the same reader begins with one batch and continues with the size that this stream
    reached.

    Attributes:
        size: samples in the window that was requested last; 0 before the first request.
    """

    def __init__(
        self,
        batch_samples: int,
        limits: ReadAhead,
        *,
        earlier_size: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin a stream.

        Args:
            batch_samples: samples in the consumer's batch.
            limits: the largest window, and how many windows are requested at the same time.
            earlier_size: the size that the windows of the reader's last stream reached; 0 for its
                first stream.
            clock: returns the time in seconds.
        """
        self._earlier_size = earlier_size
        self._batch = min(batch_samples, limits.window_samples)
        self._limits = limits
        self._clock = clock
        self.size = 0
        self._taken_samples = 0
        # For each of the last windows: when the consumer took it, and how many samples it had
        # consumed by then. Windows that are requested at the same time often arrive together, so
        # the rate is measured over all of them.
        self._history = deque([(clock(), 0)], maxlen=limits.windows_at_once + 1)
        self._shortest_request_s = math.inf

    def next_size(self) -> int:
        """Return the samples of the next window. Call this once before each request."""
        if not self.size:
            self.size = self._batch
            return self.size
        self.size = max(self.size, self._earlier_size)
        if not self._taken_samples:
            # No request was shorter than that of the first window, which had one batch.
            delivered = int(self._batch * WINDOW_S / self._shortest_request_s)
            largest = min(self._limits.window_samples, _MAX_EARLY_BATCHES * self._batch)
            self.size = max(self.size, min(delivered, largest))
        elif 2 * self.size <= self._samples_in_allowed_time():
            self.size = min(2 * self.size, self._limits.window_samples)
        return self.size

    def note_arrival(self, seconds: float) -> None:
        """Note how many seconds the request of a window took. Any thread may call this."""
        self._shortest_request_s = min(self._shortest_request_s, max(seconds, 1e-9))

    def note_taken(self, samples: int) -> None:
        """Note that the consumer takes a window of ``samples`` samples now.

        It has consumed all earlier windows.
        """
        self._history.append((self._clock(), self._taken_samples))
        self._taken_samples += samples

    def _samples_in_allowed_time(self) -> float:
        """Return how many samples the consumer takes in the time that is allowed for a window."""
        begin_s, consumed_before = self._history[0]
        end_s, consumed = self._history[-1]
        if consumed == consumed_before:
            return 0.0
        allowed_s = WINDOW_S
        if self._shortest_request_s < math.inf:
            allowed_s = max(allowed_s, _REQUESTS_PER_WINDOW * self._shortest_request_s)
        samples_per_s = (consumed - consumed_before) / max(end_s - begin_s, 1e-9)
        return allowed_s * samples_per_s
