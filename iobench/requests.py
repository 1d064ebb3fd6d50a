"""PURE. Numbers of requests to an object store.

A stored object is a PUT and the HEAD that confirms it, a listing is a request for each thousand
keys. Billing knows two prices: HEAD counts as GET; LIST, which is priced as PUT, is separate.
"""

from __future__ import annotations

from dataclasses import dataclass

KEYS_A_LISTING = 1_000


@dataclass(frozen=True, slots=True)
class Requests:
    """Numbers of requests by price: ``gets`` has HEAD as well, ``puts`` the parts of uploads."""

    puts: int = 0
    gets: int = 0
    lists: int = 0

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.puts + other.puts, self.gets + other.gets, self.lists + other.lists)

    def __mul__(self, times: int) -> Requests:
        return Requests(self.puts * times, self.gets * times, self.lists * times)


@dataclass(frozen=True, slots=True)
class PutRule:
    """How an object is stored: in one request below ``multipart_from_bytes``, else in parts.

    ``reads_back`` is for encryption whose ETag confirms nothing: the object is read again.
    """

    multipart_from_bytes: int
    part_bytes: int
    reads_back: bool = False

    def stored(self, size_bytes: int = 0) -> Requests:
        """One object stored and confirmed."""
        parts = -(-size_bytes // self.part_bytes)
        puts = 1 if size_bytes < self.multipart_from_bytes else parts + 2
        return Requests(puts=puts, gets=2 if self.reads_back else 1)


def listing(keys: int) -> Requests:
    """All of ``keys`` listed; an empty place takes a request too."""
    return Requests(lists=max(1, -(-keys // KEYS_A_LISTING)))
