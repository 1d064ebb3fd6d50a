"""Two splits of one output compared by what their samples contain; nothing else is read."""

from __future__ import annotations

import os

import pandas as pd

from dataprep import keys
from dataprep.errors import ConfigError, ManifestMissing, ObjectNotFound
from dataprep.samples import StoredTable
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.verification.duplicates import COLUMNS, Duplicates, between
from dataprep.verification.output import splits_in


def leakage(
    output: str | os.PathLike[str],
    split: str,
    against: str,
    *,
    options: StoreOptions | None = None,
) -> Duplicates:
    """Samples of ``split`` whose source file is in ``against`` too, byte for byte.

    Two objects are read, the tables of samples of both splits.

    Raises:
        ManifestMissing: one of the splits has no table, so that it is not complete.
        DatasetError: a table that is none.
    """
    store = open_store(output, options)
    return between(split, _table(store, split), against, _table(store, against))


def compare(
    output: str | os.PathLike[str],
    split: str | None,
    against: str,
    *,
    options: StoreOptions | None = None,
) -> tuple[Duplicates, ...]:
    """``leakage`` of one split, or of every other, with ``against``.

    Raises:
        ConfigError: it would be compared with itself, or there is no other split.
        ManifestMissing: a split is not there, or not complete.
    """
    if split == against:
        raise ConfigError(f"--against {against}: give another split than the one to compare")
    splits = [split] if split else splits_in(open_store(output, options))
    others = [name for name in splits if name != against]
    if not others:
        raise ConfigError(f"{against!r} is the only split of {os.fspath(output)!r}")
    return tuple(leakage(output, name, against, options=options) for name in others)


def _table(store: Store, split: str) -> pd.DataFrame:
    try:
        return StoredTable.fetch(store, split).frame(COLUMNS)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no {keys.samples(split)} in {store.uri!r}: split {split!r} is not there, or not "
            "complete"
        ) from None
