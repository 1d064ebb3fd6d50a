"""Find samples of equal content within a split and between splits, by SHA-256 of their sources."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from dataprep import keys
from dataprep.counted import counted
from dataprep.errors import ConfigError, ManifestMissing, ObjectNotFound
from dataprep.reading.splits import splits_in
from dataprep.samples import StoredTable
from dataprep.stores import Store, StoreOptions, open_store

COLUMNS = ("source", "label", "status", "source_sha256")
"""The columns of the table of samples that are compared."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Named:
    """A sample: its escaped source name and its 0-based label."""

    source: str
    label: int


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of equal content. ``others`` belong to the split that is compared."""

    sha256: str
    labels_differ: bool
    samples: Sequence[Named]
    others: Sequence[Named]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of equal samples: within ``split``, or in ``split`` and ``against``.

    ``pairs`` counts equal pairs, ``samples`` those of ``split`` that are in a group.
    """

    split: str
    against: str | None = None
    pairs: int = 0
    samples: int = 0
    groups: Sequence[Group] = ()

    def __str__(self) -> str:
        if not self.groups:
            return f"no leakage between {self.split} and {self.against}"
        count = counted(self.samples, "sample")
        text = f"{count} in {counted(len(self.groups), 'group')} of equal content"
        if self.against:
            text = f"leakage: {count} of {self.split} also in {self.against}"
        conflicts = [group for group in self.groups if group.labels_differ]
        if conflicts:
            text += f", {counted(len(conflicts), 'group')} with more than one label"
        example = [*conflicts, *self.groups][0]
        equal = [*example.samples, *example.others][:_SHOWN]
        names = [f"{named.source} ({named.label})" for named in equal]
        return f"{text}, such as {' = '.join(names)}"

    def as_dict(self) -> dict[str, Any]:
        """The content for ``--json``, with every group."""
        return asdict(self)


def within(split: str, table: pd.DataFrame) -> Duplicates:
    """Equal samples of one split; ``table`` has ``COLUMNS``."""
    written = _written(table)
    equal = _grouped(written[written["source_sha256"].duplicated(keep=False)])
    groups = [_group(sha256, samples, []) for sha256, samples in equal.items()]
    pairs = sum(math.comb(len(samples), 2) for samples in equal.values())
    return Duplicates(split, None, pairs, sum(map(len, equal.values())), groups)


def between(split: str, table: pd.DataFrame, against: str, other_table: pd.DataFrame) -> Duplicates:
    """Samples of ``split`` whose content is also in another split."""
    one, other = _written(table), _written(other_table)
    mine = _grouped(one[one["source_sha256"].isin(other["source_sha256"])])
    theirs = _grouped(other[other["source_sha256"].isin(mine)])
    groups = [_group(sha256, samples, theirs[sha256]) for sha256, samples in mine.items()]
    pairs = sum(len(group.samples) * len(group.others) for group in groups)
    return Duplicates(split, against, pairs, sum(map(len, mine.values())), groups)


def leakage(
    output: str | os.PathLike[str],
    split: str | None,
    against: str,
    *,
    options: StoreOptions | None = None,
) -> tuple[Duplicates, ...]:
    """Samples of a split, or of every other one, whose source file is also in ``against``.

    Reads the tables of samples of these splits and nothing else.

    Raises:
        ConfigError: the split would be compared with itself, or there is no other one.
        ManifestMissing: a split has no table: it does not exist or is not complete.
        DatasetError: a table is damaged.
    """
    store = open_store(output, options)
    splits = [split] if split else [name for name in splits_in(store) if name != against]
    if not splits or split == against:
        raise ConfigError(f"--against {against}: there is no other split to compare it with")
    other = _table(store, against)
    return tuple(between(name, _table(store, name), against, other) for name in splits)


def _table(store: Store, split: str) -> pd.DataFrame:
    try:
        return StoredTable.fetch(store, split).frame(COLUMNS)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no {keys.samples(split)} in {store.uri!r}: split {split!r} does not exist or is not "
            "complete"
        ) from None


def _written(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["status"] == "written") & table["source_sha256"].notna()]


def _group(sha256: str, samples: list[Named], others: list[Named]) -> Group:
    labels = {named.label for named in samples + others}
    return Group(sha256, len(labels) > 1, samples, others)


def _grouped(table: pd.DataFrame) -> dict[str, list[Named]]:
    groups: dict[str, list[Named]] = {}
    columns = [table[name] for name in ("source_sha256", "source", "label")]
    for sha256, source, label in zip(*columns, strict=True):
        groups.setdefault(sha256, []).append(Named(source, int(label)))
    return groups
