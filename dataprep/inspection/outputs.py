"""The splits of an output, complete or not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dataprep.dataset import open_split, why_missing
from dataprep.errors import ManifestMissing
from dataprep.inspection.summary import COLUMNS, SplitSummary, summarise
from dataprep.inspection.target import splits_of
from dataprep.stored_table import stored_table
from dataprep.stores import Store


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A split without a manifest, and what there is of it."""

    split: str
    why: str

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {**asdict(self), "complete": False}


def summaries(store: Store, split: str | None = None) -> tuple[SplitSummary | Unfinished, ...]:
    """One split, or all: two objects are read of each, the manifest and the table of samples.

    Raises:
        ManifestMissing: there is no data set, or the split that was asked for is not complete.
        DatasetError: a table that is missing, damaged or that of another split.
    """
    if split is not None:
        return (_summary(store, split),)
    found: list[SplitSummary | Unfinished] = []
    for name in splits_of(store):
        try:
            found.append(_summary(store, name))
        except ManifestMissing:
            found.append(Unfinished(name, why_missing(store, name)))
    return tuple(found)


def _summary(store: Store, split: str) -> SplitSummary:
    manifest, snapshot = open_split(store, split)
    columns = [*COLUMNS, *(f"{name}_length" for name in manifest.formats)]
    with snapshot.unchanged():
        return summarise(manifest, stored_table(store, manifest).frame(columns))
