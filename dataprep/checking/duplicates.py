"""Find samples with equal content within a split, or in two splits.

Two samples have equal content if their source files have the same SHA-256.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from dataprep.errors import ConfigError, ManifestMissing, ObjectNotFound
from dataprep.message_text import counted
from dataprep.output import keys
from dataprep.output.samples_table import StoredTable
from dataprep.reading.splits import splits_in
from dataprep.stores import Store, StoreOptions, open_store

COMPARED_COLUMNS = ("source", "label", "status", "source_sha256")
"""The columns of the table of samples that the comparison needs."""

_MAX_NAMED_SAMPLES = 3  # in a line of text


@dataclass(frozen=True, slots=True)
class DuplicateSample:
    """A sample of a group.

    Attributes:
        source: the escaped name of its source file.
        label: its 0-based label.
    """

    source: str
    label: int


@dataclass(frozen=True, slots=True)
class Group:
    """Samples with equal content.

    Attributes:
        sha256: the SHA-256 of the source files.
        labels_differ: whether the samples have different labels.
        samples: the samples of the split.
        others: the samples of the other split; empty if one split is compared with itself.
    """

    sha256: str
    labels_differ: bool
    samples: Sequence[DuplicateSample]
    others: Sequence[DuplicateSample]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of samples with equal content.

    Attributes:
        split: the split whose samples are compared.
        against: the other split; None if the samples of ``split`` are compared with each other.
        pairs: the number of pairs of equal samples: of two samples of ``split``, or of a sample of
            ``split`` and a sample of ``against``.
        samples: the number of samples of ``split`` that belong to a group.
        groups: all groups.
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
        example = conflicts[0] if conflicts else self.groups[0]
        equal_samples = [*example.samples, *example.others]
        names = [
            f"{sample.source} ({sample.label})" for sample in equal_samples[:_MAX_NAMED_SAMPLES]
        ]
        return f"{text}, such as {' = '.join(names)}"

    def as_dict(self) -> dict[str, Any]:
        """The content for ``--json``, with every group."""
        return asdict(self)


def duplicates_within(split: str, table: pd.DataFrame) -> Duplicates:
    """Find samples with equal content in one split.

    ``table`` has the columns ``COMPARED_COLUMNS``.
    """
    written = _written(table)
    duplicates = _by_content(written[written["source_sha256"].duplicated(keep=False)])
    groups = [_group(sha256, samples, []) for sha256, samples in duplicates.items()]
    pairs = sum(math.comb(len(group.samples), 2) for group in groups)
    sample_count = sum(len(group.samples) for group in groups)
    return Duplicates(split, None, pairs, sample_count, groups)


def duplicates_between(
    split: str, table: pd.DataFrame, against: str, other_table: pd.DataFrame
) -> Duplicates:
    """Find samples of ``split`` whose content is also in the split ``against``.

    Both tables have the columns ``COMPARED_COLUMNS``.
    """
    written = _written(table)
    other_written = _written(other_table)
    is_shared = written["source_sha256"].isin(other_written["source_sha256"])
    shared = _by_content(written[is_shared])
    others = _by_content(other_written[other_written["source_sha256"].isin(shared)])
    groups = [_group(sha256, samples, others[sha256]) for sha256, samples in shared.items()]
    pairs = sum(len(group.samples) * len(group.others) for group in groups)
    sample_count = sum(len(group.samples) for group in groups)
    return Duplicates(split, against, pairs, sample_count, groups)


def leakage(
    output: str | os.PathLike[str],
    split: str | None,
    against: str,
    *,
    options: StoreOptions | None = None,
) -> tuple[Duplicates, ...]:
    """Find samples of a split whose content is also in the split ``against``.

    Only the tables of samples of these splits are read.

    Args:
        output: the path or URI of the output.
        split: the name of a split; by default, all splits except ``against``.
        against: the name of the other split.
        options: endpoint, profile and other options of the store.

    Raises:
        ConfigError: the split would be compared with itself, or there is no other split.
        ManifestMissing: a split does not exist or is not complete, so that it has no table.
        DatasetError: a table is damaged.
    """
    store = open_store(output, options)
    splits = [split] if split else [name for name in splits_in(store) if name != against]
    if not splits or split == against:
        raise ConfigError(f"--against {against}: there is no other split to compare it with")
    other_table = _table(store, against)
    return tuple(
        duplicates_between(name, _table(store, name), against, other_table) for name in splits
    )


def _table(store: Store, split: str) -> pd.DataFrame:
    """Read the columns of a split's table of samples that the comparison needs."""
    try:
        return StoredTable.fetch(store, split).frame(COMPARED_COLUMNS)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no {keys.samples(split)} in {store.uri!r}: split {split!r} does not exist or is not "
            "complete"
        ) from None


def _written(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of samples that were written and have a SHA-256."""
    return table[(table["status"] == "written") & table["source_sha256"].notna()]


def _group(sha256: str, samples: list[DuplicateSample], others: list[DuplicateSample]) -> Group:
    """Return a group of samples with equal content, and compare their labels."""
    labels = {sample.label for sample in samples + others}
    return Group(sha256, len(labels) > 1, samples, others)


def _by_content(table: pd.DataFrame) -> dict[str, list[DuplicateSample]]:
    """The samples of a table by the SHA-256 of their content."""
    samples: dict[str, list[DuplicateSample]] = {}
    rows = zip(table["source_sha256"], table["source"], table["label"], strict=True)
    for sha256, source, label in rows:
        samples.setdefault(sha256, []).append(DuplicateSample(source, int(label)))
    return samples
