"""Choose the byte ranges of shards to read for a list of records.

Records that are close to each other share a range, because reading the bytes between them takes
less time than another request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dataprep.stores import Store
from dataprep.stores.local import LocalStore

# The largest gap between two records that share a range. A larger gap is skipped by another
# request. A request to a remote store takes longer, so that a larger gap is worth reading.
_LOCAL_GAP_BYTES = 16 * 1024
_REMOTE_GAP_BYTES = 256 * 1024


@dataclass(slots=True)
class Range:
    """Part of a shard that contains some records.

    Attributes:
        shard: the number of the shard.
        start: the first byte of the range.
        stop: the byte after the last byte of the range.
        positions: the positions of its records in the list of requested records.
    """

    shard: int
    start: int
    stop: int
    positions: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RecordLocations:
    """The location of each record of a data set: int64 arrays of shape (records,).

    Attributes:
        shards: the number of the record's shard in the data set.
        offsets: the first byte of the record in its shard.
        lengths: the size of the record in bytes.
    """

    shards: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def ranges(self, numbers: Sequence[int], gap_bytes: int) -> list[Range]:
        """Return the ranges that contain these records, in the order of shard and offset.

        Records that are at most ``gap_bytes`` apart share a range.

        Args:
            numbers: the numbers of the records, in any order. ``Range.positions`` refers to this
                list.
            gap_bytes: the largest gap between two records that is read.
        """
        records = []
        for position, number in enumerate(numbers):
            start = int(self.offsets[number])
            stop = start + int(self.lengths[number])
            records.append((int(self.shards[number]), start, stop, position))
        ranges: list[Range] = []
        for shard, start, stop, position in sorted(records):
            last = ranges[-1] if ranges else None
            if last is None or last.shard != shard or start - last.stop > gap_bytes:
                last = Range(shard, start, stop)
                ranges.append(last)
            last.stop = max(last.stop, stop)
            last.positions.append(position)
        return ranges

    def read_bytes_per_record(self, gap_bytes: int) -> int:
        """Return the mean bytes that are read for a record if all records are read in order.

        Each shard has a mean of its own, and the result is the largest. The bytes include the gap
        before a record, if the record shares a range with the one before it. The records must be in
        the order of shard and offset.
        """
        ends = self.offsets + self.lengths
        gaps = self.offsets[1:] - ends[:-1]
        shares_range = (self.shards[1:] == self.shards[:-1]) & (gaps <= gap_bytes)
        read_bytes = self.lengths.astype(np.int64)
        read_bytes[1:] += np.where(shares_range, gaps, 0)
        records_by_shard = np.bincount(self.shards)
        bytes_by_shard = np.bincount(self.shards, read_bytes)
        has_records = records_by_shard > 0
        return int(np.max(bytes_by_shard[has_records] / records_by_shard[has_records]))


def largest_gap_bytes(store: Store) -> int:
    """Return the largest gap, in bytes, between two records that share a range of this store."""
    return _LOCAL_GAP_BYTES if isinstance(store, LocalStore) else _REMOTE_GAP_BYTES
