"""PURE. How many requests a job sends to an object store.

The counts follow ``job`` and ``stores.s3`` step by step: a stored object is a PUT and the HEAD
that confirms it, a listing is a request for each thousand keys. Billing knows two prices, so HEAD
counts as GET here, and LIST stands apart only because it is priced as PUT.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def of_source(entries: int, reads: int, *, listed: bool) -> Requests:
    """A source: listed once where that takes requests, then one GET an image."""
    return Requests(gets=reads) + (listing(entries) if listed else Requests())


def of_output(shards: Sequence[int], objects_a_shard: int, there: int, rule: PutRule) -> Requests:
    """A new job, straight through, in an output that has ``there`` keys already.

    Args:
        shards: of each split.
        objects_a_shard: shards of every format with their indexes, and the receipt.
        there: how many keys lie in the output beforehand.
        rule: how objects are stored.

    That a lock is renewed every minute is not counted: nobody knows yet for how long.
    """
    splits = len(shards)
    # HEAD bucket; each split's job file looked for twice; what lies there, for all and for each.
    total = Requests(gets=1 + 2 * splits) + listing(there) * (1 + splits)
    present = there + 1 + 2 * splits
    total += rule.stored() * (1 + 2 * splits)
    # A lock for each split: created, others looked for, checked before the job is written, read
    # when it is released; all of them checked before each table and each manifest.
    total += (rule.stored() + Requests(gets=2 + 2 * splits, lists=1)) * splits
    present += splits
    for count in shards:
        total += listing(present)
        total += rule.stored() * (count * objects_a_shard)
        # Before each receipt the lock is checked; in the end receipts are read.
        total += Requests(gets=2 * count) + rule.stored() * 2
        present += count * objects_a_shard + 2
    return total
