"""One shard in one format, growing in memory until it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from crc32c import crc32c

from dataprep import keys
from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, RecordWriter, Sample
from dataprep.receipt import StoredFile, StoredShard
from dataprep.shard_memory import ShardMemory
from dataprep.stores import Buffer, Store, leave


class ShardBuffer:
    """Records of one shard, at most 128 MB.

    ``offsets``, ``lengths`` and ``crcs`` (CRC-32C) are those of the encoded records, in order.
    """

    def __init__(self, record_format: RecordFormat, options: RecordOptions) -> None:
        self.format = record_format
        self._memory = ShardMemory()
        self._writer: RecordWriter = record_format.writer(self._memory, options)
        self.offsets: list[int] = []
        self.lengths: list[int] = []
        self.crcs: list[int] = []

    def write(self, sample: Sample) -> None:
        """Append the record of one sample."""
        offset, length = self._writer.write(sample)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.crcs.append(crc32c(self._memory.view(offset, offset + length)))

    def put(
        self, store: Store, place: tuple[str, int, int], entries: Sequence[IndexEntry]
    ) -> StoredShard:
        """Store the shard, then the files that index it, and give its memory to other shards.

        ``place`` is split, shard, shards; ``entries`` are those of the records, in order.

        Raises:
            StoreError: it could not be stored.
            LeaseLost: another run may be writing there.
        """
        name = self.format.name
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
