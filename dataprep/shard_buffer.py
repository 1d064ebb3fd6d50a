"""One shard in one format, growing in memory until it is stored.

Memory is used again from shard to shard of a process: new pages have to be cleared by the kernel,
and on a virtual machine first to be given by the host, which takes longer than the copy into them.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Sequence

from crc32c import crc32c

from dataprep import keys
from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, Sample
from dataprep.plan import MAX_SHARD_BYTES
from dataprep.receipt import StoredFile, StoredShard
from dataprep.stores import Buffer, Store, leave

_FIRST_BYTES = MAX_SHARD_BYTES + 2**23


class ShardBuffer:
    """Records of one shard, at most 128 MB; the SHA-256 is taken while they are written.

    ``offsets``, ``lengths`` and ``crcs`` (CRC-32C) are those of the encoded records, in order.
    """

    def __init__(self, record_format: RecordFormat, options: RecordOptions) -> None:
        self.format = record_format
        self.offsets: list[int] = []
        self.lengths: list[int] = []
        self.crcs: list[int] = []
        self._memory = _Memory()
        self._record = _Record()
        self._writer = record_format.writer(self._record, options)
        self._bytes = 0
        self._sha256 = hashlib.sha256()

    def write(self, sample: Sample) -> None:
        """Append the record of one sample."""
        offset, length = self._writer.write(sample)
        record = self._record
        try:
            self._memory.write(record)
        except ValueError:  # mmap's, for bytes past its end
            self._memory.grow(self._bytes)
            self._memory.write(record)
        self._bytes = offset + length
        self.offsets.append(offset)
        self.lengths.append(length)
        self.crcs.append(crc32c(record))
        self._sha256.update(record)
        record.clear()

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
        content = self._memory.view[: self._bytes]
        key = keys.data(name, self.format.extension, *place)
        file = _put(store, key, content, self._sha256.hexdigest())
        self._memory.leave()
        indexes = tuple(
            _put(
                store,
                keys.index(name, extension, *place),
                index,
                hashlib.sha256(index).hexdigest(),
            )
            for extension, index in self.format.indexes(entries).items()
        )
        return StoredShard(file, len(entries), indexes)


def _put(store: Store, key: str, content: Buffer, sha256: str) -> StoredFile:
    leave.require()
    info = store.put(key, content)
    return StoredFile(key, len(content), sha256, info.etag)


class _Record(bytearray):
    """One record on its way to the memory: written, hashed and summed while the cache has it."""

    write = bytearray.extend


class _Memory:
    """Bytes outside Python's heap."""

    def __init__(self) -> None:
        self._use(_idle.pop() if _idle else _mapped(_FIRST_BYTES))
        self._map.seek(0)

    def _use(self, memory: mmap.mmap) -> None:
        self._map = memory
        self.view = memoryview(memory)
        self.write = memory.write  # without a call of Python's in between

    def grow(self, used: int) -> None:
        """Go on in a larger map, behind the ``used`` bytes of this one."""
        larger = _mapped(2 * len(self._map))
        larger.write(self.view[:used])
        self._use(larger)

    def leave(self) -> None:
        """Leave the memory, and what every view shows, to other shards."""
        _idle.append(self._map)
        del self._map, self.view, self.write


_idle: list[mmap.mmap] = []


def release() -> None:
    """Give the memory of finished shards back, when the last one is made."""
    _idle.clear()


def _mapped(size: int) -> mmap.mmap:
    """Anonymous memory, of which only what is written to is taken.

    In pages of usual size: huge ones take a virtual machine several times as long to get, where
    its host has to give them.
    """
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
