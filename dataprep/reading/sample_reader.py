"""Read the samples of a data set: one by one, shard by shard, or in the byte ranges of a subset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from crc32c import crc32c

from dataprep.errors import CorruptRecord
from dataprep.formats import RecordFormat, RecordOptions, Sample
from dataprep.formats.protocol import Buffer, RawRecord
from dataprep.output.snapshot import Snapshot
from dataprep.reading.ranges import Range, RecordLocations, largest_gap_bytes
from dataprep.reading.sample_rows import SampleRows, wrong_checksum
from dataprep.reading.subset import sample_name
from dataprep.stores import location
from dataprep.threaded_map import in_order

if TYPE_CHECKING:
    from dataprep.reading.dataset import Shard

_SHARDS_AHEAD = 4
"""Shards that iteration fetches before they are needed."""

_RANGES_AHEAD = 16
"""Byte ranges that iteration over a subset fetches before they are needed."""

_MAX_BYTES_AHEAD = 128 * 2**20
"""Maximum memory for shards or ranges that are fetched ahead, unless two large shards need more."""


class SampleReader:
    """Reads the records of a data set, compares them with their checksums, and decodes them.

    Samples and shards have their numbers in the data set, which are the numbers *in the part* of
    ``split_part``.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        record_format: RecordFormat,
        options: RecordOptions,
        rows: SampleRows,
    ) -> None:
        """Create a reader. It reads nothing yet.

        Args:
            snapshot: reads the objects of the split.
            record_format: the format of the records.
            options: the options with which the records were written.
            rows: the places and the checksums of the records. After the data set was closed
                (``rows.state``), reading raises DatasetError.
        """
        self._snapshot = snapshot
        self._record_format = record_format
        self._options = options
        self._rows = rows
        self._require_open = rows.state.require_open

    def sample(self, number: int) -> Sample:
        """Read one sample by a range request. ``number`` must be from 0 to the last number.

        Raises:
            CorruptRecord: the record is damaged.
            DatasetChanged: the split was written again since it was opened.
        """
        key, offset, length = self._rows.place(number)
        self._require_open()
        data = self._snapshot.get_range(key, offset, length)
        return self._decoded_alone(data, number)

    def samples_of_shards(self, shards: Sequence[Shard]) -> Iterator[Sample]:
        """Yield all samples of shards. Shards are fetched whole, and before they are needed.

        Raises:
            CorruptRecord: a record is damaged, or a shard does not have all its records.
            DatasetChanged: the split was written again since it was opened.
        """
        fetched = in_order(
            self._fetch, shards, _SHARDS_AHEAD, weight=_shard_bytes, budget=_memory_budget(shards)
        )
        with closing(fetched) as contents:
            for shard in shards:
                # The data set may have been closed after this shard was fetched.
                self._require_open()
                # Hold no reference to the bytes of a shard, so that their memory is freed early.
                yield from self._samples_in(next(contents), shard)

    def samples_of_subset(self, shards: Sequence[Shard]) -> Iterator[Sample]:
        """Yield the samples of a subset in some of its shards. Only their byte ranges are fetched.

        Raises:
            CorruptRecord: a record is damaged.
            DatasetChanged: the split was written again since it was opened.
        """
        places = self._rows.places
        fetched = in_order(
            self._fetch_range,
            self._ranges(shards),
            _RANGES_AHEAD,
            weight=_range_bytes,
            budget=_memory_budget(shards),
        )
        with closing(fetched) as contents:
            for shard, byte_range, data in contents:
                for position in byte_range.positions:
                    self._require_open()
                    number = shard.samples[position]
                    start = int(places.offsets[number]) - byte_range.start
                    record = memoryview(data)[start : start + int(places.lengths[number])]
                    yield self._decoded_alone(record, number)

    def _ranges(self, shards: Sequence[Shard]) -> Iterator[tuple[Shard, Range]]:
        """Yield the byte ranges that contain the samples of shards, each with its shard."""
        places = self._rows.places
        records = RecordLocations(places.shards, places.offsets, places.lengths)
        gap_bytes = largest_gap_bytes(self._snapshot.store)
        for shard in shards:
            for byte_range in records.ranges(shard.samples, gap_bytes):
                yield shard, byte_range

    def _fetch(self, shard: Shard) -> bytes:
        self._require_open()
        return self._snapshot.get(shard.key)

    def _fetch_range(self, shard_and_range: tuple[Shard, Range]) -> tuple[Shard, Range, bytes]:
        """Return a shard, one of its byte ranges, and the bytes of the range."""
        shard, byte_range = shard_and_range
        self._require_open()
        length = byte_range.stop - byte_range.start
        data = self._snapshot.get_range(shard.key, byte_range.start, length)
        return shard, byte_range, data

    def _samples_in(self, data: bytes, shard: Shard) -> Iterator[Sample]:
        """Yield the samples of a shard whose bytes are ``data``."""
        name = location(self._snapshot.store, shard.key)
        records = 0
        for record in self._record_format.read(data, name):
            records += 1
            if records > len(shard):
                break
            record_name = f"{name}: record {records - 1}"
            if self._rows.checksums is not None:
                encoded = memoryview(data)[record.offset : record.offset + record.length]
                self._require_checksum(encoded, shard.samples[records - 1], record_name)
            yield self._decoded(record, record_name, record.offset)
        # If a shard was cut between two records, or records were appended, no record is damaged.
        if records != len(shard):
            raise CorruptRecord(
                f"{name}: it does not have the {len(shard):,} records that the manifest lists; "
                "run dataprep verify"
            )

    def _decoded_alone(self, data: Buffer, number: int) -> Sample:
        """Return the sample of an encoded record that was read without its neighbours."""
        key, offset, _ = self._rows.place(number)
        name = location(self._snapshot.store, key)
        sample = sample_name(number, self._rows.part.selected_samples)
        records = list(self._record_format.read(data, f"{name} at {offset}"))
        if len(records) != 1:
            raise CorruptRecord(
                f"{name}: {len(records)} records at byte {offset}, expected {sample}; "
                "run dataprep verify"
            )
        self._require_checksum(data, number, f"{name}: {sample}")
        return self._decoded(records[0], f"{name}: {sample}", offset)

    def _require_checksum(self, record: Buffer, number: int, name: str) -> None:
        """Raise CorruptRecord if a record does not have the checksum in the table of samples."""
        checksums = self._rows.checksums
        if checksums is not None and crc32c(record) != checksums[number]:
            raise wrong_checksum(name)

    def _decoded(self, record: RawRecord, name: str, offset: int) -> Sample:
        """Return the sample of a record.

        The sample has a copy of the image, so that it can be pickled and does not keep the bytes of
        the shard in memory.
        """
        try:
            sample = self._record_format.decode(record.payload, self._options)
        except CorruptRecord as error:
            raise CorruptRecord(f"{name} at byte {offset}: {error}", offset=offset) from None
        return replace(sample, image=bytes(sample.image))


def _shard_bytes(shard: Shard) -> int:
    return shard.bytes


def _range_bytes(shard_and_range: tuple[Shard, Range]) -> int:
    _, byte_range = shard_and_range
    return byte_range.stop - byte_range.start


def _memory_budget(shards: Sequence[Shard]) -> int:
    """Return how many bytes may be fetched ahead: enough for two of the largest shards."""
    largest_bytes = max((shard.bytes for shard in shards), default=0)
    return max(_MAX_BYTES_AHEAD, 2 * largest_bytes)
