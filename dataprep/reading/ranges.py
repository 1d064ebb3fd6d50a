"""Which byte ranges of shards are read for some records.

Records that are close to each other share a range: the bytes between them take less time than
another request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dataprep.stores import Store
from dataprep.stores.local import LocalStore

# A gap is read with its neighbours where another request would take longer.
_GAP_BYTES = 16 * 1024
_REMOTE_GAP_BYTES = 256 * 1024


@dataclass(slots=True)
class Range:
    """Part of a shard that contains some records.

    Attributes:
        shard: the number of the shard.
        start, stop: the first byte, and the byte after the last one.
        places: the positions of these records in the sequence that was asked for.
    """

    shard: int
    start: int
    stop: int
    places: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RecordPlaces:
    """The shard, the offset and the length of each record: int64 arrays of shape (len,)."""

    shards: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def ranges(self, numbers: Sequence[int], gap_bytes: int) -> list[Range]:
        """The ranges that contain these records, in the order of shard and offset.

        Records that are at most ``gap_bytes`` apart share a range.
        """
        wanted = []
        for place, number in enumerate(numbers):
            start = int(self.offsets[number])
            stop = start + int(self.lengths[number])
            wanted.append((int(self.shards[number]), start, stop, place))
        ranges: list[Range] = []
        for shard, start, stop, place in sorted(wanted):
            last = ranges[-1] if ranges else None
            if last is None or last.shard != shard or start - last.stop > gap_bytes:
                last = Range(shard, start, stop)
                ranges.append(last)
            last.stop = max(last.stop, stop)
            last.places.append(place)
        return ranges

    def most_read_bytes(self, gap_bytes: int) -> int:
        """The bytes that are read for a record, gaps included: the mean of the worst shard.

        The records are in the order of shard and offset.
        """
        ends = self.offsets + self.lengths
        gaps = self.offsets[1:] - ends[:-1]
        is_read = (self.shards[1:] == self.shards[:-1]) & (gaps <= gap_bytes)
        read_bytes = self.lengths.astype(np.int64)
        read_bytes[1:] += np.where(is_read, gaps, 0)
        counts = np.bincount(self.shards)
        sums = np.bincount(self.shards, read_bytes)
        return int(np.max(sums[counts > 0] / counts[counts > 0]))


def largest_gap_bytes(store: Store) -> int:
    """The most bytes between two records of ``store`` that are read together."""
    return _GAP_BYTES if isinstance(store, LocalStore) else _REMOTE_GAP_BYTES
