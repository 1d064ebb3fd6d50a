"""Order the samples of a job, and choose the samples of the validation split.

Keyed BLAKE2b hashes of the names (RFC 7693) decide the order and the splits. The result depends
only on the seed and the names, not on the version of a random generator. If a sample is added, the
other samples keep their relative order, and at most one other sample, of the same class, changes
its split. If whole containers are chosen for the validation split, at most one other container
changes its split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import ConfigError
from dataprep.name_encoding import CODEC
from dataprep.sources import Listing
from dataprep.sources.protocol import Integers


def shuffled(names: Sequence[str], rows: Integers, seed: int) -> Integers:
    """Return ``rows`` in the order of the seeded hashes of their names."""
    return _in_hash_order(names, rows, seed, b"order")


def in_source_order(listing: Listing, rows: Integers) -> Integers:
    """Return ``rows`` in the order of the source."""
    if listing.order is None:
        return rows
    return listing.order[np.isin(listing.order, rows)]


def validation_mask(
    names: Sequence[str],
    labels: NDArray[np.int32],
    rows: Integers,
    share: Fraction,
    seed: int,
) -> NDArray[np.bool_]:
    """Choose a share of the samples of each class for the validation split.

    The share is rounded to whole samples. At least one sample of each class is not chosen. Of a
    class with two or more samples, at least one is chosen.

    Args:
        names: the name of each entry of the listing.
        labels: the label of each entry.
        rows: the rows of the samples.
        share: the share of each class to choose.
        seed: the seed of the choice.

    Returns:
        A mask over ``rows``, true for the samples of the validation split.
    """
    rows_in_hash_order = _in_hash_order(names, rows, seed, b"validation")
    hash_rank = np.empty(len(names), dtype=np.int64)
    hash_rank[rows_in_hash_order] = np.arange(len(rows_in_hash_order))
    # Sort by label, and within a label by hash. The first samples of each class are chosen.
    order = np.lexsort((hash_rank[rows], labels[rows]))
    sorted_labels = labels[rows][order]
    _, starts, counts = np.unique(sorted_labels, return_index=True, return_counts=True)
    mask = np.zeros(len(rows), dtype=np.bool_)
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        validation_samples = int(Fraction(count) * share + Fraction(1, 2))
        validation_samples = min(max(validation_samples, 1), count - 1)
        mask[order[start : start + validation_samples]] = True
    return mask


def validation_mask_of_containers(
    containers: Sequence[str], rows: Integers, share: Fraction, seed: int
) -> NDArray[np.bool_]:
    """Choose whole containers for the validation split.

    This is for sources that can only be read in runs (``Listing.in_runs``). Their containers are
    the row groups of Parquet files.

    Containers are taken in the order of their hashes, until the next one would move the number of
    samples away from the requested share. At least one container is taken, and at least one is
    left.

    Args:
        containers: the container of each entry of the listing.
        rows: the rows of the samples.
        share: the share of all samples to choose.
        seed: the seed of the choice.

    Returns:
        A mask over ``rows``, true for the samples of the validation split.

    Raises:
        ConfigError: there is only one container, or none.
    """
    positions_by_container: dict[str, list[int]] = {}
    for position, row in enumerate(rows.tolist()):
        positions_by_container.setdefault(containers[row], []).append(position)
    names = [*positions_by_container]
    if len(names) < 2:
        raise ConfigError(
            "--validation takes whole row groups, of which this source has only one: give a "
            "source for each split"
        )
    target_samples = share * len(rows)
    mask = np.zeros(len(rows), dtype=np.bool_)
    order = _in_hash_order(names, np.arange(len(names), dtype=np.int64), seed, b"validation")
    samples = 0
    for containers_taken, number in enumerate(order.tolist()):
        positions = positions_by_container[names[number]]
        is_nearer = Fraction(samples) + Fraction(len(positions), 2) <= target_samples
        is_last = containers_taken == len(names) - 1
        if containers_taken > 0 and (is_last or not is_nearer):
            break
        mask[positions] = True
        samples += len(positions)
    return mask


def _in_hash_order(names: Sequence[str], rows: Integers, seed: int, purpose: bytes) -> Integers:
    """Return ``rows`` in the order of the hashes of their names.

    Different values of ``purpose`` give independent orders.
    """
    key = seed.to_bytes(8, "little", signed=True)
    hashes = [
        hashlib.blake2b(names[row].encode(*CODEC), digest_size=16, key=key, person=purpose).digest()
        for row in rows.tolist()
    ]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    return rows[np.array(order, dtype=np.int64)]
