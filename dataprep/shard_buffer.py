"""One shard in one format, growing in memory until it is stored.

Memory is used again from shard to shard of a process: new pages have to be cleared by the kernel,
and on a virtual machine first to be given by the host, which takes longer than the copy into them.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any, NamedTuple, SupportsIndex

from crc32c import crc32c

from dataprep import keys
from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, Sample
from dataprep.keys import MAX_SHARD_BYTES
from dataprep.manifest import StoredFile, StoredShard
from dataprep.stores import Buffer, Store
from dataprep.stores.locked_writes import LockCheck, no_lock, put_under_lock
from dataprep.stores.protocol import Uploads

_FIRST_BYTES = MAX_SHARD_BYTES + 2**23


class Records(NamedTuple):
    """Encoded records that follow each other, and the length in bytes and CRC-32C of each.

    ``parts`` are their bytes, in pieces of any size.
    """

    parts: list[Buffer]
    lengths: list[int]
    crcs: list[int]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickle as one piece, not copied again where the receiver supports it (PEP 574)."""
        return Records, ([PickleBuffer(b"".join(self.parts))], self.lengths, self.crcs)

    @classmethod
    def of(
        cls, record_format: RecordFormat, options: RecordOptions, samples: Sequence[Sample]
    ) -> Records:
        """Encode samples."""
        sink = _Sink()
        writer = record_format.writer(sink, options)
        lengths, crcs = [], []
        for sample in samples:
            first = len(sink)
            lengths.append(writer.write(sample)[1])
            crc = 0
            for part in sink[first:]:
                crc = crc32c(part, crc)
            crcs.append(crc)
        return cls(sink, lengths, crcs)


class _Sink(list[Buffer]):
    write = list.append


class ShardBuffer:
    """Records of one shard, hashed while they are appended. Planned for 128 MB; grows beyond.

    ``offsets``, ``lengths`` and ``crcs`` (CRC-32C) are those of the encoded records, in order.
    """

    def __init__(self, record_format: RecordFormat, store: Store) -> None:
        self.format = record_format
        self._store = store
        self.offsets: list[int] = []
        self.lengths: list[int] = []
        self.crcs: list[int] = []
        self._memory = _idle.pop() if _idle else _mapped(_FIRST_BYTES)
        self._memory.seek(0)
        self._sha256 = hashlib.sha256()
        self._md5 = hashlib.md5(usedforsecurity=False) if isinstance(store, Uploads) else None

    def append(self, records: Records) -> None:
        """Append records."""
        start = self._memory.tell()
        self._add(records.parts, sum(records.lengths))
        self.lengths += records.lengths
        self.crcs += records.crcs
        for length in records.lengths:
            self.offsets.append(start)
            start += length

    def _add(self, parts: Sequence[Buffer], size: int) -> None:
        """Append bytes, ``size`` in all, and hash them."""
        start = self._memory.tell()
        end = start + size
        if end > len(self._memory):
            larger = _mapped(2 * end)
            larger.write(memoryview(self._memory)[:start])
            self._memory = larger
        for part in parts:
            self._memory.write(part)
        added = memoryview(self._memory)[start:end]
        self._sha256.update(added)
        if self._md5 is not None:
            self._md5.update(added)

    def put(
        self,
        place: tuple[str, int, int],
        entries: Sequence[IndexEntry],
        check_lock: LockCheck = no_lock,
    ) -> StoredShard:
        """End the shard with its trailer, store it, and then the files that index it.

        Its memory is given to other shards.
        ``place`` is split, shard, shards; ``entries`` are those of the records, in order.
        ``check_lock`` is asked before each object is written.

        Raises:
            LeaseLost: by ``check_lock``: another run has taken over.
            StoreError: it could not be stored.
        """
        name, trailer = self.format.name, self.format.trailer
        self._add([trailer], len(trailer))
        content = memoryview(self._memory)[: self._memory.tell()]
        key = keys.data(name, self.format.extension, *place)
        md5 = self._md5.digest() if self._md5 is not None else None
        info = put_under_lock(self._store, key, content, check_lock, md5)
        file = StoredFile(key, len(content), self._sha256.hexdigest(), info.etag)
        _idle.append(self._memory)
        indexes = []
        for extension, index in self.format.indexes(entries).items():
            index_key = keys.index(name, extension, *place)
            info = put_under_lock(self._store, index_key, index, check_lock)
            sha256 = hashlib.sha256(index).hexdigest()
            indexes.append(StoredFile(index_key, len(index), sha256, info.etag))
        return StoredShard(file, len(entries), tuple(indexes))


_idle: list[mmap.mmap] = []


def release() -> None:
    """Free the memory that is kept for further shards."""
    _idle.clear()


def _mapped(size: int) -> mmap.mmap:
    """Anonymous memory, of which only what is written to is taken.

    Huge pages are not used: on a virtual machine whose host takes freed memory back, the first
    write to them takes several times as long.
    """
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
