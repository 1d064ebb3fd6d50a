"""The objects that trials read and write, all below one prefix.

Objects to read are named by their size and number, so that the next trial finds them. Their
bytes are random: nothing on the way can make them smaller or fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataprep.ordered import in_order
from dataprep.stores import Store

PREFIX = "iobench-probe/"
WARM_UP = PREFIX + "warm-up"

_MOST_OBJECTS = 64
_MOST_WRITTEN = 256
_RANGES = 16
_RANGED_BYTES = 64 * 10**6
_PAYLOADS = 4
_IN_MEMORY_BYTES = 64 * 10**6


@dataclass(frozen=True, slots=True)
class Objects:
    """``count`` objects of ``bytes`` each, below the prefix."""

    bytes: int
    count: int

    def key(self, number: int) -> str:
        """Which object a request reads: one after the other, again and again."""
        return f"{self.prefix}{number % self.count:05d}"

    @property
    def prefix(self) -> str:
        """What their keys begin with, and no others."""
        return f"{PREFIX}read/{self.bytes}/"


def to_get(object_bytes: int, pool_bytes: int) -> Objects:
    """Objects to read whole: up to 64 of them and ``pool_bytes`` together, at least one."""
    return Objects(object_bytes, max(1, min(_MOST_OBJECTS, pool_bytes // object_bytes)))


def to_range(length: int, pool_bytes: int) -> Objects:
    """Objects to read ranges of: 16 times as large as a range, or 64 MB where that is less."""
    wanted = max(length, min(_RANGES * length, _RANGED_BYTES, pool_bytes))
    return to_get(wanted, pool_bytes)


def offset(number: int, object_bytes: int, length: int) -> int:
    """Where the range of a request begins: spread evenly, never two neighbours in a row."""
    # Multiples of the golden ratio, modulo 1, fill an interval evenly (Weyl).
    return int((number * 0.6180339887498949) % 1 * (object_bytes - length + 1))


def written_key(operation: str, stream: int, turn: int, ring: int) -> str:
    """What a stream stores in its ``turn``; after ``ring`` keys it overwrites its own."""
    return f"{PREFIX}{operation}/{stream:05d}-{turn % ring:05d}"


def ring(object_bytes: int, pool_bytes: int, connections: int) -> int:
    """How many keys each stream may write: 256 and ``pool_bytes`` over all, at least one."""
    return max(1, min(_MOST_WRITTEN, pool_bytes // object_bytes) // connections)


def content(object_bytes: int, number: int) -> bytes:
    """Random bytes, always the same."""
    import numpy as np

    return np.random.default_rng([object_bytes, number]).bytes(object_bytes)


def payloads(object_bytes: int) -> Sequence[bytes]:
    """What to write in turn: up to four, so that equal bytes do not follow each other."""
    count = max(1, min(_PAYLOADS, _IN_MEMORY_BYTES // object_bytes))
    return [content(object_bytes, number) for number in range(count)]


def provide(store: Store, objects: Objects) -> None:
    """Put those of ``objects`` that are not there yet."""
    there = {info.key for info in store.list(objects.prefix) if info.bytes == objects.bytes}
    missing = [number for number in range(objects.count) if objects.key(number) not in there]
    threads = max(1, min(8, _IN_MEMORY_BYTES // objects.bytes))

    def put(number: int) -> None:
        store.put(objects.key(number), content(objects.bytes, number))

    for _ in in_order(put, missing, threads):
        pass


def provide_warm_up(store: Store) -> None:
    """Put the one byte that connections are opened with."""
    if not any(info.key == WARM_UP for info in store.list(WARM_UP)):
        store.put(WARM_UP, b"0")
