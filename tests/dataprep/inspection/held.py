"""Bytes that count how many of them are asked for."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Versioned


class Held:
    """A buffer to be read by offset."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.bytes_read = 0

    def read(self, offset: int, length: int) -> bytes:
        """As a file would."""
        found = self._data[offset : offset + length]
        self.bytes_read += len(found)
        return found


class Counting(MemoryStore):
    """A store that notes what is asked of it, as a remote one would be asked."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.ranges: list[tuple[str, int, int]] = []
        self.whole: list[str] = []
        self.on_get: Callable[[str], None] | None = None

    def get(self, key: str) -> bytes:
        """Note the key."""
        return self.get_versioned(key).data

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Note the range."""
        return self.get_versioned(key, offset, length).data

    def get_versioned(self, key: str, offset: int = 0, length: int | None = None) -> Versioned:
        """Note which."""
        if length is None:
            self.whole.append(key)
        else:
            self.ranges.append((key, offset, length))
        return super().get_versioned(key, offset, length)
