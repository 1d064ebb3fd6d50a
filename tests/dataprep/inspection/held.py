"""Bytes that count how many of them are asked for."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.stores.memory import MemoryStore


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
        self.whole.append(key)
        return super().get(key)

    def get_range(self, key: str, offset: int, length: int) -> bytes:
        """Note the range."""
        self.ranges.append((key, offset, length))
        return super().get(key)[offset : offset + length]
