"""Memory in which shards grow, used again from shard to shard of a process.

Pages that are new have to be cleared by the kernel, and on a virtual machine first to be given by
the host: that takes longer than the copy into them.
"""

from __future__ import annotations

import contextlib
import mmap
from weakref import WeakValueDictionary

from dataprep.plan import MAX_SHARD_BYTES
from dataprep.stores import Buffer

_FIRST_BYTES = MAX_SHARD_BYTES + 2**23


class ShardMemory:
    """Bytes that are appended to, outside Python's heap, in huge pages where the system has them.

    A ``bytearray`` of a shard's size gets its memory anew for each shard, 4 KiB at a time, which
    takes four times as long as the copy into it.
    """

    def __init__(self) -> None:
        self._kept = _KEPT.setdefault("process", _Kept())
        self._map = self._kept.take()

    def __len__(self) -> int:
        return self._map.tell()

    def write(self, data: Buffer) -> None:
        """Append ``data``."""
        try:
            self._map.write(data)
        except ValueError:  # it would pass the end
            self._grow(len(self) + memoryview(data).nbytes)
            self._map.write(data)

    def view(self, start: int = 0, end: int | None = None) -> memoryview:
        """Bytes so far, or some of them."""
        return memoryview(self._map)[start : len(self) if end is None else end]

    def leave(self) -> None:
        """Leave the memory, and so what every ``view`` shows, to other shards: this one is over."""
        self._kept.maps.append(self._map)
        del self._map

    def _grow(self, least: int) -> None:
        larger = _mapped(max(least, 2 * len(self._map)))
        larger.write(self.view())
        self._map = larger


class _Kept:
    """Maps in which no shard grows at the moment, as long as there is one that grows in another.

    With those there are as many as there were shards at a time; an idle process keeps none.
    """

    def __init__(self) -> None:
        self.maps: list[mmap.mmap] = []

    def take(self) -> mmap.mmap:
        try:
            found = self.maps.pop()
        except IndexError:
            return _mapped(_FIRST_BYTES)
        found.seek(0)
        return found


_KEPT: WeakValueDictionary[str, _Kept] = WeakValueDictionary()


def _mapped(size: int) -> mmap.mmap:
    """Anonymous memory, of which only what is written to is taken."""
    found = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            found.madvise(mmap.MADV_HUGEPAGE)
    return found
