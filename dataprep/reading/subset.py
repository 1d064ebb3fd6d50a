"""The numbers of the samples of a subset: how they are checked, named, shown and divided."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError
from dataprep.reading.query import Query
from dataprep.samples import StoredTable


@dataclass(frozen=True)
class DividedSubset:
    """A subset of a split of which each host has a share.

    Attributes:
        samples: how many samples of the subset each share has.
        fingerprint: the SHA-256 of the numbers of all its samples in the whole split.
    """

    samples: tuple[int, ...]
    fingerprint: str


def divided_subset(
    table: StoredTable, shards: Sequence[Sequence[int]], queries: Sequence[str]
) -> DividedSubset:
    """The samples that match all of these queries, counted in each share.

    Args:
        table: the table of samples of the whole split.
        shards: the numbers of the shards of each share.
        queries: as ``Dataset.where`` takes them.

    Raises:
        ConfigError: a query is not allowed, or names a column that does not exist.
        DatasetError: the table is damaged.
    """
    schema = table.schema()
    parsed = [Query.parse(query, schema) for query in queries]
    columns = {"shard", *(column for query in parsed for column in query.columns)}
    frame = table.frame(sorted(columns), written=True)
    matches = np.ones(len(frame), np.bool_)
    for query in parsed:
        matches &= query.matches(frame[[*query.columns]])
    numbers = np.flatnonzero(matches)
    shard_of_match = frame["shard"].to_numpy()[numbers]
    counts = [int(np.isin(shard_of_match, share).sum()) for share in shards]
    return DividedSubset(tuple(counts), fingerprint(numbers))


def fingerprint(numbers: NDArray[np.int64]) -> str:
    """The SHA-256 of the ascending numbers of a subset."""
    return hashlib.sha256(numbers.astype("<i8").tobytes()).hexdigest()


def sample_name(number: int, selected: NDArray[np.int64] | None) -> str:
    """A sample in messages; of a subset, by the numbers ``selected``, also in the split."""
    if selected is None:
        return f"sample {number:,}"
    return f"sample {number:,} of the subset, {selected[number]:,} of the split"


def sorted_numbers(numbers: Iterable[SupportsIndex], count: int, dataset: str) -> NDArray[np.int64]:
    """The numbers of some of ``count`` samples, ascending.

    Raises:
        ConfigError: there are none, one is repeated or out of range, or is not a whole number.
    """
    values = _whole_numbers(numbers)
    if not len(values):
        raise ConfigError(f"select needs at least one number of a sample of {dataset}")
    out_of_range = values[(values < 0) | (values >= count)]
    if len(out_of_range):
        raise ConfigError(
            f"select was given number {out_of_range[0]}: {dataset} has the numbers 0 to {count - 1}"
        )
    ordered: NDArray[np.int64] = np.sort(values.astype(np.int64))
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated):
        raise ConfigError(
            f"select was given number {repeated[0]} more than once: give each sample once, for "
            "example numpy.unique(numbers)"
        )
    return ordered


def _whole_numbers(numbers: Iterable[SupportsIndex]) -> NDArray[Any]:
    """An array of integers, of Python or of NumPy. Raises ConfigError."""
    if isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype.kind in "iu":
        return numbers
    try:
        listed = list(numbers)
        if any(isinstance(number, bool | np.bool_) for number in listed):
            raise ConfigError(
                "select takes numbers of samples, not booleans: give numpy.flatnonzero(mask)"
            )
        # Python's integers, because NumPy makes floats of very large ones.
        return np.array([operator.index(number) for number in listed], object)
    except TypeError as error:
        raise ConfigError(f"select takes whole numbers of samples: {error}") from None
