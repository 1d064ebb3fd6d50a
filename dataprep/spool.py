"""One shard in one format, growing in memory until it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from crc32c import crc32c

from dataprep import keys
from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, RecordWriter, Sample
from dataprep.receipt import Row, StoredFile, StoredShard
from dataprep.shard_memory import ShardMemory
from dataprep.stores import Buffer, Store, leave


class Spool:
    """One shard growing in memory, at most 128 MB of it."""

    def __init__(self, record_format: RecordFormat, options: RecordOptions) -> None:
        self.format = record_format
        self._label_offset = options.label_offset
        self._memory = ShardMemory()
        self._writer: RecordWriter = record_format.writer(self._memory, options)

    def write(self, sample: Sample) -> tuple[int, int, int]:
        """Offset, length and CRC-32C of the encoded record."""
        offset, length = self._writer.write(sample)
        return offset, length, crc32c(self._memory.view(offset, offset + length))

    def put(self, store: Store, place: tuple[str, int, int], rows: Sequence[Row]) -> StoredShard:
        """Put the shard, then the files that index it, and give its memory away.

        ``place`` is split, shard, shards.

        Raises:
            StoreError: it could not be stored.
            LeaseLost: another run may write there by now.
        """
        name = self.format.name
        entries = [
            IndexEntry(
                row.number,
                row.label + self._label_offset,
                *row.records[name][:2],
                row.source,
                row.values or (),
            )
            for row in rows
            if row.records
        ]
        data_key = keys.data(name, self.format.extension, *place)
        file = _put(store, data_key, self._memory.view())
        self._memory.leave()
        indexes = tuple(
            _put(store, keys.index(name, extension, *place), content)
            for extension, content in self.format.indexes(entries).items()
        )
        return StoredShard(file, len(entries), indexes)


def _put(store: Store, key: str, content: Buffer) -> StoredFile:
    leave.require()
    info = store.put(key, content)
    return StoredFile(
        key, memoryview(content).nbytes, hashlib.sha256(content).hexdigest(), info.etag
    )
