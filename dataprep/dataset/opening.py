"""The manifest of a split, or a word of what is there instead."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from dataprep import keys
from dataprep.counted import counted
from dataprep.errors import DataprepError, ManifestMissing, ObjectNotFound
from dataprep.manifest import require_sums
from dataprep.pinned import Opened, Pinned
from dataprep.stores import Store
from dataprep.stores.protocol import location

_MOST_KEYS = 100_000


def opened(store: Store, split: str) -> Opened:
    """The manifest of a complete split, and its objects.

    Raises:
        ManifestMissing: there is none; it says what is there instead.
        SchemaTooNew: written by a newer version.
        DatasetError: no manifest at all.
    """
    try:
        found = Pinned.open(store, split)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no complete split {split!r} in {store.uri!r}: {what_is_there(store, split)}"
        ) from None
    require_sums(found.manifest, location(store, keys.manifest(split)))
    return found


def what_is_there(store: Store, split: str) -> str:
    """Why a split cannot be opened: it is not finished, or others are there, or nothing is."""
    missing = f"no {keys.manifest(split)} there"
    try:
        found = {info.key for info in islice(store.list(), _MOST_KEYS)}
    except ObjectNotFound:
        return f"{missing}, nor anything else"
    if keys.job(split) in found:
        return f"{missing}; {how_far(store, split, found)}"
    splits = splits_among(found)
    if splits:
        return f"{missing}; it has {' and '.join(splits)}"
    if found:
        return f"{missing}, but {counted(len(found), 'other object')}, such as {min(found)!r}"
    return f"{missing}, nor anything else"


def splits_among(found: Iterable[str]) -> list[str]:
    """Splits whose job or manifest is among the keys: ``'train'``, ``'test' (not complete)``."""
    present = set(found)
    names = {split for key in present if (split := keys.split_of_job(key))}
    return [
        repr(name) if keys.manifest(name) in present else f"{name!r} (not complete)"
        for name in sorted(names)
    ]


def how_far(store: Store, split: str, found: Iterable[str]) -> str:
    """How much of a split without manifest is made, and what finishes it."""
    from dataprep.job.jobfile import JobFile  # all of a job, for one line that is seldom said

    receipts = sum(key.startswith("receipts/") and keys.belongs_to(split, key, ()) for key in found)
    try:
        shards = JobFile.from_json(store.get(keys.job(split)), keys.job(split)).shards
    except DataprepError:  # there is none, or it tells nothing
        return f"{counted(receipts, 'shard')} of it made: run dataprep shard again, it resumes"
    return (
        f"{receipts:,} of {counted(shards, 'shard')} "
        f"{'has its receipt' if shards == 1 else 'have receipts'}: "
        "run dataprep shard again, it resumes"
    )
