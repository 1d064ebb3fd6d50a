"""What --overwrite takes away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataprep import keys
from dataprep.errors import OutputConflict
from dataprep.formats import format_names
from dataprep.job.plans import VALIDATION
from dataprep.job.stored import stored_job
from dataprep.stores import Store


def splits_to_remove(store: Store, splits: Sequence[str]) -> list[str]:
    """The splits to overwrite, and a validation split that was taken from one of them.

    If it stayed, its samples would be in both. A job file that cannot be read says nothing.
    """
    taken = []
    for split in splits:
        try:
            job, other = stored_job(store, split), stored_job(store, VALIDATION)
        except OutputConflict:
            continue
        if job and other and job.config.get("validation") and job.source == other.source:
            taken.append(VALIDATION)
    return list(dict.fromkeys([*splits, *taken]))


def note_removal(
    store: Store, asked: Sequence[str], removed: Sequence[str], note: Callable[[str], None]
) -> None:
    """Say which splits an overwriting removes, and why one that was not asked for."""
    there = keys.splits(info.key for info in store.list())
    gone = [split for split in removed if split in there]
    for split in gone:
        taken = "" if split in asked else ", which was taken from the same source: it would overlap"
        note(f"--overwrite removes split {split!r} of {store.uri}{taken}")


def remove_split(store: Store, split: str) -> None:
    """Remove a split, the manifest first: a reader never meets half of it.

    The job file goes last: a removal cut short is no new output, but one to go on removing.
    """
    store.delete(keys.manifest(split))
    found = {info.key for info in store.list() if keys.belongs_to(split, info.key, format_names())}
    ranks = {"receipts": 0, "": 2}
    for key in sorted(found - {keys.job(split)}, key=lambda k: ranks.get(k.rpartition("/")[0], 1)):
        store.delete(key)
    store.delete(keys.job(split))
