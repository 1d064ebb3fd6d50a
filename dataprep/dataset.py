"""The read side: a complete split as a sequence of samples."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from dataprep import keys
from dataprep.errors import CorruptRecord, FormatMissing, ManifestMissing, ObjectNotFound
from dataprep.formats import Sample, get_format
from dataprep.formats.records import RawRecord
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest
from dataprep.stores import Store, StoreOptions, open_store


class Dataset(Sequence[Sample]):
    """Samples of one split in the order in which they were written; labels count from 0.

    ``len`` and columns cost nothing, ``dataset[i]`` one range request, iteration one request a
    shard. Instances can be pickled, and shared by threads.
    """

    def __init__(self, store: Store, split: str = "train", format: str | None = None) -> None:
        self._store = store
        self.split = split
        self.manifest = _manifest(store, split)
        names = list(self.manifest.formats)
        self.format = format or ("tfrecord" if "tfrecord" in names else names[0])
        if self.format not in names:
            raise FormatMissing(
                f"split {split!r} of {store.uri} has no format {format!r}: it has "
                + ", ".join(names)
            )
        self._format = get_format(self.format)
        self._entry = self.manifest.formats[self.format]
        self._options = self.manifest.record_options(self.format)

    def __reduce__(self) -> tuple[type[Dataset], tuple[Store, str, str]]:
        return Dataset, (self._store, self.split, self.format)

    def __len__(self) -> int:
        return self._entry.records

    def __repr__(self) -> str:
        return f"<Dataset {self._store.uri} {self.split!r} {self.format}: {len(self):,} samples>"

    @property
    def store(self) -> Store:
        """Where it lies."""
        return self._store

    @cached_property
    def label_space(self) -> LabelSpace:
        """The classes, by label."""
        return LabelSpace.from_json(self._store.get(keys.LABELS))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """``samples.parquet``: one row a source sample, those that failed included."""
        content = io.BytesIO(self._store.get(keys.samples(self.split)))
        table: pd.DataFrame = pq.read_table(content).to_pandas()
        return table

    @cached_property
    def _places(self) -> tuple[Any, Any, Any, Any]:
        table = self.samples
        written = table[table["status"] == "written"]
        return (
            written["shard"].to_numpy(np.int64),
            written[f"{self.format}_offset"].to_numpy(np.int64),
            written[f"{self.format}_length"].to_numpy(np.int64),
            written["label"].to_numpy(np.int64),
        )

    @property
    def labels(self) -> Any:
        """0-based label of each sample: int64 of shape (len,)."""
        return self._places[3]

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        shards, offsets, lengths, _ = self._places
        shard = self._entry.shards[int(shards[index])]
        data = self._store.get_range(shard.key, int(offsets[index]), int(lengths[index]))
        records = list(self._format.read(data, f"{shard.key} at {int(offsets[index])}"))
        if len(records) != 1:
            raise CorruptRecord(f"{shard.key}: {len(records)} records where sample {index} stands")
        return self._decoded(records[0])

    def __iter__(self) -> Iterator[Sample]:
        for shard in self._entry.shards:
            data = self._store.get(shard.key)
            for record in self._format.read(data, shard.key):
                yield self._decoded(record)

    def _decoded(self, record: RawRecord) -> Sample:
        """The sample with an image of its own: it can be pickled, and keeps no shard alive."""
        sample = self._format.decode(record.payload, self._options)
        return replace(sample, image=bytes(sample.image))


def open_dataset(
    uri: str | os.PathLike[str],
    split: str = "train",
    *,
    format: str | None = None,
    options: StoreOptions | None = None,
) -> Dataset:
    """Open a complete split of the output at ``uri``.

    Args:
        uri: a path, ``s3://bucket/prefix`` or ``memory://name``.
        split: which one.
        format: which of its formats; TFRecord if it has it.
        options: endpoint, profile and the like.

    Raises:
        ManifestMissing: nothing there, or not complete.
        SchemaTooNew: written by a newer version.
    """
    return Dataset(open_store(uri, options), split, format)


def _manifest(store: Store, split: str) -> Manifest:
    key = keys.manifest(split)
    try:
        return Manifest.from_json(store.get(key), key)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no complete split {split!r} in {store.uri!r}: no {key} there"
        ) from None
