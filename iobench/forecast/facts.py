"""PURE. What is known before a run begins: of its data, its stores, its machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dataprep.prices import Price
from iobench.forecast.bounds import Bounds

OWN_SERVER = "the run's own server"


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """An object store. ``server`` is one that is not Amazon's, or empty.

    ``price`` is None where none is known; ``prices`` says where it comes from.
    """

    server: str = ""
    price: Price | None = None
    prices: str = ""

    @property
    def is_amazon(self) -> bool:
        """Whether its requests are billed."""
        return not self.server


@dataclass(frozen=True, slots=True)
class DataFacts:
    """What data of one name hold: samples, bytes and objects of one format.

    ``store`` is the name of the object store that has them, empty for a disk. ``all_bytes`` and
    ``all_objects`` are those of every format, with indexes: what is copied. ``made``: they lie
    there, and nothing was estimated.
    """

    samples: Bounds
    bytes: Bounds
    objects: Bounds
    all_bytes: Bounds
    all_objects: Bounds
    store: str = ""
    made: bool = False

    @property
    def sample_bytes(self) -> Bounds:
        """Mean size of a sample."""
        return _each(self.bytes, self.samples)

    @property
    def object_bytes(self) -> Bounds:
        """Mean size of a shard, or of a file."""
        return _each(self.bytes, self.objects)


@dataclass(frozen=True, slots=True)
class Photographs:
    """What images are made of: how many, of how many bytes.

    ``listed``: they are there and were counted. ``drawn``: they are drawn first.
    """

    count: Bounds
    bytes: Bounds
    listed: bool = False
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """All of it. ``data`` by name (``shards@disk``), ``stores`` by ``store/LABEL`` and ``bucket``.

    ``processors`` is how many convert images, ``gpus`` how many a loop on all of them would find,
    where one is asked for; ``problems`` says what could not be looked at.
    """

    data: Mapping[str, DataFacts] = field(default_factory=dict)
    stores: Mapping[str, StoreFacts] = field(default_factory=dict)
    photographs: Photographs | None = None
    processors: int = 1
    gpus: int = 0
    problems: tuple[str, ...] = ()


def _each(amount: Bounds, of: Bounds) -> Bounds:
    """A mean of two that are known together: never below 0, open where the amount is."""
    low = amount.low / of.high if of.high else 0.0
    high = None if amount.high is None else amount.high / max(of.low, 1.0)
    return Bounds(low, high)
