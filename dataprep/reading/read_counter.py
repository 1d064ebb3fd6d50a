"""Count the samples and bytes that arrive from storage, in one process and all of its forks.

Readers also report the sizes of the windows in which they read ahead, because windows grow.

To measure a loader, compare the samples that arrived from storage with those that the training loop
consumed. ``Dataset.count_reads`` returns a counter, which readers of the data set then use.
"""

from __future__ import annotations

import itertools
import os
import threading
from typing import NamedTuple

from dataprep.machine.shared_rows import SharedRows

# A row for a read has three numbers: 0, samples, and bytes. A row for a window has the number of
# its stream, its samples, and the windows that are requested at the same time.
_READ = 0  # the first number of a row for a read


class ReadTotals(NamedTuple):
    """What has arrived from storage.

    Attributes:
        samples: samples that have arrived.
        bytes: bytes that were read for them.
        window_samples: samples in the largest window of the streams that are being read; 0 if
            nothing is read in windows. Windows grow at the beginning of an epoch.
    """

    samples: int = 0
    bytes: int = 0
    window_samples: int = 0

    def since(self, earlier: ReadTotals) -> ReadTotals:
        """Return the samples and bytes that have arrived since ``earlier``."""
        return self._replace(
            samples=self.samples - earlier.samples, bytes=self.bytes - earlier.bytes
        )


class WindowsInUse(NamedTuple):
    """How far ahead the streams of all readers read.

    Attributes:
        window_samples: samples in the largest window of the streams that are being read; 0 if no
            stream is being read.
        windows_at_once: windows that the stream with this window requests at the same time.
        largest_samples: samples in the largest window so far, including streams that have ended.
    """

    window_samples: int = 0
    windows_at_once: int = 1
    largest_samples: int = 0


class ReadCounter:
    """Counts samples and bytes. Forked processes and threads can add to it without a lock.

    ``Dataset.count_reads`` returns it. Each read appends a row of 32 bytes to a file in memory, so
    that a process that is killed leaves no lock behind (``SharedRows``). Reading the totals takes
    time in proportion to the new rows.

    Example:
        >>> dataset = dataprep.open("out")
        >>> counter = dataset.count_reads()
        >>> batches = dataprep.to_torch(dataset, iterable=True, batch_size=8)
        >>> images, labels = next(iter(batches))
        >>> counter.totals().samples >= 8
        True
    """

    def __init__(self) -> None:
        self._rows = SharedRows("dataprep-reads", "q")
        self._rows_in_totals = 0
        self._totals = ReadTotals()
        self._windows: dict[int, tuple[int, int]] = {}  # samples and windows at once, by stream
        self._largest_samples = 0
        self._lock = threading.Lock()

    def add(self, samples: int, size: int) -> None:
        """Count samples that have arrived, and the bytes that were read for them.

        Args:
            samples: the number of samples.
            size: the number of bytes.
        """
        self._rows.append(_READ, samples, size)

    def totals(self) -> ReadTotals:
        """Return the samples and bytes that have arrived in this process and in its forks."""
        with self._lock:
            self._add_new_rows()
            window_samples, _ = max(self._windows.values(), default=(0, 1))
            return self._totals._replace(window_samples=window_samples)

    def windows(self) -> WindowsInUse:
        """Return how far ahead readers in this process and in its forks read at this moment."""
        with self._lock:
            self._add_new_rows()
            samples, at_once = max(self._windows.values(), default=(0, 1))
            return WindowsInUse(samples, at_once, self._largest_samples)

    def add_window(self, stream: int, samples: int, at_once: int) -> None:
        """Note the size of the windows of a stream from now on.

        Args:
            stream: a number above 0 that no other stream has, in this process and in its forks.
            samples: samples in a window; 0 if the stream has ended.
            at_once: windows that are requested at the same time.
        """
        self._rows.append(stream, samples, at_once)

    def _add_new_rows(self) -> None:
        """Add the rows that were appended since the last call to the totals and windows."""
        rows = self._rows.rows(self._rows_in_totals)
        self._rows_in_totals += len(rows)
        is_read = rows[:, 0] == _READ
        samples, size = rows[is_read, 1:].sum(axis=0).tolist()
        self._totals = ReadTotals(self._totals.samples + samples, self._totals.bytes + size)
        for stream, window_samples, at_once in rows[~is_read].tolist():
            if window_samples:
                self._windows[stream] = window_samples, at_once
                self._largest_samples = max(self._largest_samples, window_samples)
            else:
                self._windows.pop(stream, None)


class StreamReport:
    """Reports the windows of one stream to a ``ReadCounter``."""

    _numbers = itertools.count()

    def __init__(self, counter: ReadCounter) -> None:
        self._counter = counter
        # A fork continues ``_numbers`` where its parent was. The process id, in the upper bits,
        # makes the numbers of their streams different.
        self._stream = os.getpid() << 32 | next(self._numbers) + 1
        self._reported = 0

    def window(self, samples: int, at_once: int) -> None:
        """Report the size of the window that is requested now, if it has changed."""
        if samples != self._reported:
            self._counter.add_window(self._stream, samples, at_once)
            self._reported = samples

    def end(self) -> None:
        """Report that the stream has ended."""
        if self._reported:
            self._counter.add_window(self._stream, 0, 0)
