"""Parts of one object, read as they are asked for, in blocks."""

from __future__ import annotations

from collections import deque

from dataprep.stores import Store

BLOCK_BYTES = 4096
"""The least that is read at once: with it come the next record's header and first fields."""

_KEPT_BLOCKS = 3  # a record is looked at before and after its image, and then at its image


class Ranges:
    """Bytes of one object by offset; reading forwards, each request serves several reads.

    Attributes:
        size: of the object, in bytes.
        requests: how many were made.
        bytes_read: how many bytes came.
    """

    def __init__(self, store: Store, key: str, size: int, block_bytes: int = BLOCK_BYTES) -> None:
        self._store = store
        self._key = key
        self._block_bytes = block_bytes
        self._blocks: deque[tuple[int, bytes]] = deque(maxlen=_KEPT_BLOCKS)
        self.size = size
        self.requests = 0
        self.bytes_read = 0

    def read(self, offset: int, length: int) -> bytes:
        """``length`` bytes from ``offset``; fewer only where the object ends."""
        length = max(0, min(length, self.size - offset))
        if not length:
            return b""
        for start, block in self._blocks:
            if start <= offset and offset + length <= start + len(block):
                return block[offset - start : offset - start + length]
        wanted = min(max(length, self._block_bytes), self.size - offset)
        block = self._store.get_range(self._key, offset, wanted)
        self.requests += 1
        self.bytes_read += len(block)
        self._blocks.append((offset, block))
        return block[:length]
