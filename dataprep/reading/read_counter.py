"""Count the samples and bytes that arrive from storage, in one process and all of its forks.

A measurement needs both ends of a loader: what arrived from storage, and what the training loop
consumed. ``Dataset.count_reads`` returns a counter, which every reader of the data set then uses.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from typing import NamedTuple

import numpy as np

_ENTRY = struct.Struct("<qq")  # samples, bytes


class ReadTotals(NamedTuple):
    """``samples`` that have arrived from storage, and the ``bytes`` that were read for them."""

    samples: int = 0
    bytes: int = 0

    def since(self, earlier: ReadTotals) -> ReadTotals:
        """The samples and bytes that have arrived since ``earlier``."""
        return ReadTotals(self.samples - earlier.samples, self.bytes - earlier.bytes)


class ReadCounter:
    """A counter that forked processes and threads share without a lock.

    Each read appends 16 bytes to a file in memory. The file is opened for appending, so that
    entries of several processes do not mix (open(2), O_APPEND), and a process that is killed
    leaves no lock behind. Reading the totals takes time in proportion to the new entries.
    """

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("dataprep-reads")
        flags = fcntl.fcntl(self._descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self._descriptor, fcntl.F_SETFL, flags | os.O_APPEND)
        self._position = 0
        self._totals = ReadTotals()
        self._lock = threading.Lock()

    def add(self, samples: int, size: int) -> None:
        """Count ``samples`` that have arrived, and the bytes that were read for them."""
        os.write(self._descriptor, _ENTRY.pack(samples, size))

    def totals(self) -> ReadTotals:
        """Everything that has arrived so far, in this process and in its forks."""
        with self._lock:
            new_bytes = os.fstat(self._descriptor).st_size - self._position
            if new_bytes > 0:
                entries = os.pread(self._descriptor, new_bytes, self._position)
                samples, size = np.frombuffer(entries, np.int64).reshape(-1, 2).sum(axis=0).tolist()
                self._position += len(entries)
                self._totals = ReadTotals(self._totals.samples + samples, self._totals.bytes + size)
            return self._totals

    def __del__(self) -> None:
        os.close(self._descriptor)
