"""PURE. Numbers of requests to an object store.

A stored object is a PUT and the HEAD that confirms it, a listing is a request for each thousand
keys. Billing knows two prices: HEAD counts as GET; LIST, which is priced as PUT, is separate.
"""

from __future__ import annotations

from dataclasses import dataclass

KEYS_A_LISTING = 1_000


@dataclass(frozen=True, slots=True)
class Requests:
    """Numbers of requests by price: ``gets`` has HEAD as well."""

    puts: int = 0
    gets: int = 0
    lists: int = 0

    def __add__(self, other: Requests) -> Requests:
        return Requests(self.puts + other.puts, self.gets + other.gets, self.lists + other.lists)

    def __mul__(self, times: int) -> Requests:
        return Requests(self.puts * times, self.gets * times, self.lists * times)


STORED = Requests(puts=1, gets=1)
"""An object stored and confirmed."""


def listing(keys: int) -> Requests:
    """All of ``keys`` listed; an empty place takes a request too."""
    return Requests(lists=max(1, -(-keys // KEYS_A_LISTING)))
