"""A buffer for one shard in one format. Records are appended in memory until the shard is stored.

A process reuses the memory of a stored shard for its next shards. New memory would be slow: the
kernel must clear its pages, and on a virtual machine the host must first provide them. This takes
longer than copying the records.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any, NamedTuple, SupportsIndex

from crc32c import crc32c

from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, Sample
from dataprep.output import keys
from dataprep.output.keys import MAX_SHARD_BYTES
from dataprep.output.receipt import StoredFile, StoredShard
from dataprep.stores import Buffer, Store
from dataprep.stores.locked_writes import LockCheck, no_lock, put_under_lock
from dataprep.stores.protocol import Uploads

_INITIAL_BYTES = MAX_SHARD_BYTES + 2**23
"""The memory of a buffer: a shard of the maximum size, and 8 MiB more.

The additional memory is for a shard that becomes larger than predicted.
"""


class Records(NamedTuple):
    """Encoded records that follow each other in a shard.

    Attributes:
        pieces: the bytes of all records, in pieces of any size.
        lengths: the length of each record, in bytes.
        crcs: the CRC-32C of each record.
    """

    pieces: list[Buffer]
    lengths: list[int]
    crcs: list[int]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickle the bytes as one piece, which is not copied again where PEP 574 is supported."""
        return Records, ([PickleBuffer(b"".join(self.pieces))], self.lengths, self.crcs)

    @classmethod
    def of(
        cls, record_format: RecordFormat, options: RecordOptions, samples: Sequence[Sample]
    ) -> Records:
        """Encode samples in a record format, in their order."""
        pieces = _Pieces()
        writer = record_format.writer(pieces, options)
        lengths, crcs = [], []
        for sample in samples:
            first_piece = len(pieces)
            _, length = writer.write(sample)
            lengths.append(length)
            crc = 0
            for piece in pieces[first_piece:]:
                crc = crc32c(piece, crc)
            crcs.append(crc)
        return cls(pieces, lengths, crcs)


class _Pieces(list[Buffer]):
    """A list of byte strings that has the method ``write`` of a file."""

    write = list.append


class ShardBuffer:
    """The records of one shard in one format. They are hashed as they are appended.

    The memory of a buffer is large enough for a shard of 128 MB, and grows if a shard is larger.

    Args:
        record_format: the format of the shard.
        store: where the shard will be stored.

    Attributes:
        format: the format of the shard.
        offsets: the position of each record in the shard, in bytes.
        lengths: the length of each record, in bytes.
        crcs: the CRC-32C of each record.
    """

    def __init__(self, record_format: RecordFormat, store: Store) -> None:
        self.format = record_format
        self.offsets: list[int] = []
        self.lengths: list[int] = []
        self.crcs: list[int] = []
        self._store = store
        self._memory = _free_memory.pop() if _free_memory else _map_memory(_INITIAL_BYTES)
        self._memory.seek(0)
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False) if isinstance(store, Uploads) else None

    def append(self, records: Records) -> None:
        """Append records to the shard."""
        offset = self._memory.tell()
        self._append_bytes(records.pieces, sum(records.lengths))
        self.lengths += records.lengths
        self.crcs += records.crcs
        for length in records.lengths:
            self.offsets.append(offset)
            offset += length

    def _append_bytes(self, pieces: Sequence[Buffer], total_bytes: int) -> None:
        """Append pieces, which have ``total_bytes`` in all, and hash them."""
        start = self._memory.tell()
        end = start + total_bytes
        if end > len(self._memory):
            larger = _map_memory(2 * end)  # doubled, so that bytes are rarely copied
            larger.write(memoryview(self._memory)[:start])
            self._memory = larger
        for piece in pieces:
            self._memory.write(piece)
        appended = memoryview(self._memory)[start:end]
        self._sha256.update(appended)
        if self._md5 is not None:
            self._md5.update(appended)

    def put(
        self,
        shard_identity: tuple[str, int, int],
        entries: Sequence[IndexEntry],
        check_lock: LockCheck = no_lock,
    ) -> StoredShard:
        """Append the trailer of the format, store the shard, and then store its indexes.

        The buffer cannot be used afterwards, because other shards reuse its memory.

        Args:
            shard_identity: the name of the split, the number of the shard, and the number of
                shards.
            entries: an index entry for each record, in the order of the records.
            check_lock: called before each write; raises LeaseLost if the run has lost its lock.

        Returns:
            The keys, sizes and hashes of the stored objects, for the receipt.

        Raises:
            LeaseLost: raised by ``check_lock``.
            StoreError: the shard or an index could not be stored.
        """
        name, trailer = self.format.name, self.format.trailer
        self._append_bytes([trailer], len(trailer))
        content = memoryview(self._memory)[: self._memory.tell()]
        key = keys.data(name, self.format.extension, *shard_identity)
        md5 = self._md5.digest() if self._md5 is not None else None
        info = put_under_lock(self._store, key, content, check_lock, md5)
        file = StoredFile(key, len(content), self._sha256.hexdigest(), info.etag)
        _free_memory.append(self._memory)  # the store does not need it any more
        indexes = []
        for extension, index in self.format.indexes(entries).items():
            index_key = keys.index(name, extension, *shard_identity)
            info = put_under_lock(self._store, index_key, index, check_lock)
            sha256 = hashlib.sha256(index).hexdigest()
            indexes.append(StoredFile(index_key, len(index), sha256, info.etag))
        return StoredShard(file, len(entries), tuple(indexes))


_free_memory: list[mmap.mmap] = []
"""The memory of stored shards, which the next buffers of this process take."""


def release() -> None:
    """Free the memory that this process keeps for its next shards."""
    _free_memory.clear()


def _map_memory(size_bytes: int) -> mmap.mmap:
    """Map anonymous memory. The kernel provides only the pages that are written to.

    Huge pages are not used. On a virtual machine whose host takes freed memory back, the first
    write to a huge page takes several times as long.
    """
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
