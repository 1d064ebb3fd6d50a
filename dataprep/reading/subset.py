"""Subsets of a split: check sample numbers, name a subset, and count its samples in shares."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError, DatasetError, ObjectNotFound
from dataprep.output import keys
from dataprep.output.manifest import Share
from dataprep.output.samples_table import StoredTable
from dataprep.output.snapshot import Snapshot
from dataprep.reading.query import Query
from dataprep.stores import location


@dataclass(frozen=True)
class DividedSubset:
    """A subset of a split whose shards are divided among hosts.

    Attributes:
        samples: how many samples of the subset each host's share has.
        fingerprint: the SHA-256 of the numbers that the samples of the subset have in the whole
            split.
    """

    samples: tuple[int, ...]
    fingerprint: str


def subset_of_shares(
    snapshot: Snapshot, split: str, share: Share, queries: Sequence[str], own_samples: int
) -> DividedSubset:
    """Return how many samples of a subset each host's share has.

    The samples are counted in a copy of the table of samples of the whole split. ``dataprep stage``
    has stored this copy with the share.

    Args:
        snapshot: reads the objects of the share.
        split: the name of the split.
        share: the share, whose entry in the manifest has the table of the whole split.
        queries: the conditions that select the subset, as in ``Dataset.where``.
        own_samples: the number of samples of the subset in this share.

    Raises:
        ConfigError: a query is not allowed, or names a column that does not exist.
        DatasetError: the table is missing or damaged, or does not have ``own_samples`` samples of
            the subset in this share.
        DatasetChanged: the split was written again since it was opened.
    """
    store, key = snapshot.store, keys.whole_samples(split)
    content = b""
    with snapshot.unchanged(), suppress(ObjectNotFound):
        content = store.get(key)
    if share.table is None or hashlib.sha256(content).hexdigest() != share.table.sha256:
        raise DatasetError(
            f"{location(store, key)}: missing or damaged: remove it, and run the same dataprep "
            "stage again"
        )
    divided = _divided_subset(StoredTable(store, split, content), share.shards, queries)
    matches = divided.samples[share.number]
    if matches != own_samples:
        raise DatasetError(
            f"{location(store, key)}: {matches:,} samples of this share match "
            f"{' and '.join(queries)!r}, and {own_samples:,} in {keys.samples(split)}; "
            "run dataprep verify"
        )
    return divided


def _divided_subset(
    table: StoredTable, shards_by_share: Sequence[Sequence[int]], queries: Sequence[str]
) -> DividedSubset:
    """Count the samples of each share that match all queries.

    Args:
        table: the table of samples of the whole split.
        shards_by_share: for each share, the numbers of its shards.
        queries: conditions as in ``Dataset.where``.

    Raises:
        ConfigError: a query is not allowed, or names a column that does not exist.
        DatasetError: the table is damaged.
    """
    schema = table.schema()
    parsed = [Query.parse(query, schema) for query in queries]
    columns = {"shard"}
    for query in parsed:
        columns.update(query.columns)
    frame = table.frame(sorted(columns), written=True)
    matches = np.ones(len(frame), np.bool_)
    for query in parsed:
        matches &= query.matches(frame[[*query.columns]])
    numbers = np.flatnonzero(matches)
    shard_of_match = frame["shard"].to_numpy()[numbers]
    counts = [int(np.isin(shard_of_match, shards).sum()) for shards in shards_by_share]
    return DividedSubset(tuple(counts), fingerprint(numbers))


def fingerprint(numbers: NDArray[np.int64]) -> str:
    """Return the SHA-256 of the numbers of a subset, which must be ascending, in hexadecimal."""
    return hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()


def sample_name(number: int, selected: NDArray[np.int64] | None) -> str:
    """Describe a sample for messages.

    Args:
        number: the number of the sample in its data set, which may be a subset.
        selected: the number in the split of each sample of a subset; None if the data set is no
            subset.
    """
    if selected is None:
        return f"sample {number:,}"
    return f"sample {number:,} of the subset, {selected[number]:,} of the split"


def sorted_numbers(numbers: Iterable[SupportsIndex], count: int, dataset: str) -> NDArray[np.int64]:
    """Check and sort the sample numbers that were given to ``Dataset.select``.

    Args:
        numbers: the sample numbers, in any order.
        count: the number of samples in the data set.
        dataset: a description of the data set for messages.

    Returns:
        The numbers, ascending: int64 of shape (samples,).

    Raises:
        ConfigError: there is no number, or a number is repeated, out of range or not whole.
    """
    values = _whole_numbers(numbers)
    if not len(values):
        raise ConfigError(f"select needs at least one number of a sample of {dataset}")
    out_of_range = values[(values < 0) | (values >= count)]
    if len(out_of_range):
        raise ConfigError(
            f"select: number {out_of_range[0]} is out of range: {dataset} has the numbers 0 to "
            f"{count - 1}"
        )
    ordered: NDArray[np.int64] = np.sort(values.astype(np.int64))
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        raise ConfigError(
            f"select: number {repeated[0]} is repeated: give each number once, for example with "
            "numpy.unique(numbers)"
        )
    return ordered


def _whole_numbers(numbers: Iterable[SupportsIndex]) -> NDArray[Any]:
    """Return the numbers as an array: of integers, or of Python's integers.

    Raises:
        ConfigError: some are not whole numbers, or are booleans.
    """
    if isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype.kind in "iu":
        return numbers
    try:
        listed = list(numbers)
        if any(isinstance(number, bool | np.bool_) for number in listed):
            raise ConfigError(
                "select takes numbers of samples, not booleans: give numpy.flatnonzero(mask)"
            )
        # Keep the integers of Python, because NumPy turns very large ones into floats.
        return np.array([operator.index(number) for number in listed], object)
    except TypeError as error:
        raise ConfigError(f"select takes whole numbers of samples: {error}") from None
