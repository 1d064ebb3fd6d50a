"""What there is to read at a place: whole shards, records by offset, small files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dataprep.dataset import Dataset, open_dataset
from dataprep.manifest import ShardEntry
from dataprep.sources.imagefolder import ImageFolder
from iobench.errors import TrialFailed
from iobench.image_files import image_files
from iobench.trial import Place


class Item(NamedTuple):
    """One read: ``bytes`` of an object from ``offset`` on, which hold ``samples``."""

    key: str
    offset: int
    bytes: int
    samples: int
    whole: bool


class Items(NamedTuple):
    """Reads in the order in which they are made; ``keys`` are all objects that they touch."""

    reads: Sequence[Item]
    keys: Sequence[str]

    def paths(self, place: Place) -> list[Path]:
        """The objects as files; none where the place is remote."""
        root = Path(place.uri).expanduser()
        return [] if place.is_remote else [root / key for key in self.keys]


def find_items(place: Place, access: str, *, at_most: int, seed: int) -> Items:
    """What ``access`` reads at a place: shards in their order, the others shuffled.

    Args:
        place: an output of ``dataprep shard``, or class folders for ``files``.
        access: ``shards``, ``records`` or ``files``.
        at_most: how many reads are listed.
        seed: of the order.

    Raises:
        TrialFailed: the place holds something else.
        DatasetError, SourceError: nothing can be read there.
    """
    finders: dict[str, Callable[[Place, int, int], Items]] = {
        "shards": _shards,
        "records": _records,
        "files": _files,
    }
    wanted = "files" if access == "files" else "shards"
    if place.holds != wanted:
        raise TrialFailed(f"{access} are read from {wanted}; this place holds {place.holds}")
    found = finders[access](place, at_most, seed)
    if not found.reads:
        raise TrialFailed(f"no {access} in {place.uri}")
    return found


def _shards(place: Place, at_most: int, seed: int) -> Items:
    _, shards = _dataset(place)
    reads = [Item(shard.key, 0, shard.bytes, shard.records, True) for shard in shards]
    return Items(reads[:at_most], [shard.key for shard in shards[:at_most]])


def _records(place: Place, at_most: int, seed: int) -> Items:
    dataset, shards = _dataset(place)
    chosen = np.random.default_rng(seed).permutation(len(dataset))[:at_most]
    rows = zip(*(column[chosen].tolist() for column in dataset.places[:3]), strict=True)
    reads = [Item(shards[shard].key, offset, length, 1, False) for shard, offset, length in rows]
    return Items(reads, [shard.key for shard in shards])


def _files(place: Place, at_most: int, seed: int) -> Items:
    found = image_files(ImageFolder(place.uri, place.store).list())
    chosen = np.random.default_rng(seed).permutation(len(found.names))[:at_most].tolist()
    names = [found.names[row] for row in chosen]
    sizes = found.sizes[chosen].tolist()
    reads = [Item(name, 0, size, 1, True) for name, size in zip(names, sizes, strict=True)]
    return Items(reads, names)


def _dataset(place: Place) -> tuple[Dataset, Sequence[ShardEntry]]:
    dataset = open_dataset(place.uri, place.split, options=place.store)
    return dataset, dataset.manifest.formats[dataset.format].shards
