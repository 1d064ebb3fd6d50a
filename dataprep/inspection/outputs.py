"""The splits of an output, complete or not."""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep import keys
from dataprep.dataset.opening import stored_manifest, what_is_there
from dataprep.errors import DatasetError, ManifestMissing, ObjectNotFound
from dataprep.inspection.summary import COLUMNS, SplitSummary, summarise
from dataprep.inspection.target import splits_of
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
        DatasetError: a table that is none.
    """
    if split is not None:
        return (_summary(store, split),)
    found: list[SplitSummary | Unfinished] = []
    for name in splits_of(store):
        try:
            found.append(_summary(store, name))
        except ManifestMissing:
            found.append(Unfinished(name, what_is_there(store, name)))
    return tuple(found)


def _summary(store: Store, split: str) -> SplitSummary:
    manifest = stored_manifest(store, split)
    key = keys.samples(split)
    columns = [*COLUMNS, *(f"{name}_length" for name in manifest.formats)]
    try:
        table = pq.read_table(io.BytesIO(store.get(key)), columns=columns).to_pandas()
    except ObjectNotFound:
        raise DatasetError(f"{key} is missing: dataprep shard writes it again") from None
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DatasetError(f"{key}: not a table of samples: {error}") from None
    return summarise(manifest, table)
