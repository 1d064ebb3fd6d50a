"""One split in one format: by number, by shard, from one end to the other."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, SupportsIndex, overload

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dataprep import keys
from dataprep.dataset.images import Images
from dataprep.dataset.opening import opened
from dataprep.dataset.shards import Shard
from dataprep.errors import CorruptRecord, DatasetError, FormatMissing
from dataprep.formats import Sample, get_format
from dataprep.formats.protocol import RawRecord
from dataprep.labels import LabelSpace
from dataprep.ordered import in_order
from dataprep.pinned import Pinned
from dataprep.samples import StoredTable, stored_table
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.protocol import Close, location

_AHEAD = 4
_HELD_BYTES = 128 * 2**20


class Place(NamedTuple):
    """Where a record lies: the key of its shard, its offset and length in bytes."""

    key: str
    offset: int
    length: int


class Places(NamedTuple):
    """Where each sample lies, by number, and its label counted from 0: int64 of shape (len,).

    ``shards`` are numbers in the order of the manifest, offsets and lengths are in bytes.
    """

    shards: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    labels: NDArray[np.int64]


class Dataset(Sequence[Sample]):
    """Samples of one split in the order in which they were written; labels count from 0.

    ``len`` and columns cost nothing, ``dataset[i]`` one range request, iteration one request a
    shard, the next shards being fetched meanwhile; the first of each shard also looks for the
    manifest. Instances can be shared by threads, pickled and forked: every process has
    connections of its own, and reads of the manifest that was opened here. Where the split is
    made anew meanwhile, reading raises DatasetChanged. As a context manager it lets go of
    connections at the end.
    """

    def __init__(
        self,
        store: Store,
        split: str = "train",
        format: str | None = None,
        pinned: Pinned | None = None,
    ) -> None:
        self._store = store
        self._closed = False
        self.split = split
        self.manifest, self.pinned = (
            opened(store, split) if pinned is None else (pinned.manifest(), pinned)
        )
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

    def __reduce__(self) -> tuple[type[Dataset], tuple[Store, str, str, Pinned]]:
        return Dataset, (self._store, self.split, self.format, self.pinned)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections. Samples can no longer be read; what was read stays."""
        self._closed = True
        if isinstance(self._store, Close):
            self._store.close()

    def __len__(self) -> int:
        return self._entry.records

    def __repr__(self) -> str:
        return f"<Dataset {self._store.uri} {self.split!r} {self.format}: {len(self):,} samples>"

    @property
    def store(self) -> Store:
        """Where it lies.

        Raises:
            DatasetError: the data set was closed.
        """
        self._require_open()
        return self._store

    @cached_property
    def label_space(self) -> LabelSpace:
        """The classes, by label."""
        return LabelSpace.from_json(self._get(keys.LABELS), location(self._store, keys.LABELS))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """``samples.parquet``: one row a source sample, those that failed included.

        Raises:
            DatasetError: the table is missing, damaged, or not that of this split.
        """
        return self._table.frame()

    @cached_property
    def written(self) -> pd.DataFrame:
        """Rows of ``samples`` that were written: row ``i`` tells of ``dataset[i]``.

        Their places are whole numbers, which ``samples`` cannot have where some are missing.
        """
        return self._table.frame(written=True)

    @property
    def labels(self) -> Any:
        """0-based label of each sample: int64 of shape (len,)."""
        return self.places.labels

    @cached_property
    def _table(self) -> StoredTable:
        with self.pinned.unchanged():
            return stored_table(self.store, self.manifest)

    @cached_property
    def places(self) -> Places:
        """Where all samples lie, and their labels; no other column of the table is unpacked."""
        names = ["shard", f"{self.format}_offset", f"{self.format}_length", "label"]
        columns = self._table.columns(names).columns
        return Places(*(column.to_numpy().astype(np.int64, copy=False) for column in columns))

    @property
    def images(self) -> Images:
        """The samples decoded: uint8 of shape (height, width, 3)."""
        return Images(self, self._name)

    def place(self, index: SupportsIndex) -> Place:
        """Where a sample's record lies; raises IndexError where there is none."""
        number = self._number(index)
        places = self.places
        key = self._entry.shards[int(places.shards[number])].key
        return Place(key, int(places.offsets[number]), int(places.lengths[number]))

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Part of one of its objects, such as ``place`` tells: one range request.

        Raises:
            DatasetChanged: the split was made anew since it was opened, or is being.
            ObjectNotFound: the object is missing.
        """
        self._require_open()
        return self.pinned.get_range(key, offset, length)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        key, offset, length = self.place(index)
        data = self.read(key, offset, length)
        name = location(self._store, key)
        records = list(self._format.read(data, f"{name} at {offset}"))
        if len(records) != 1:
            raise CorruptRecord(
                f"{name}: {len(records)} records at byte {offset}, where sample "
                f"{operator.index(index)} stands; run dataprep verify"
            )
        return self._decoded(records[0], f"{name}: sample {operator.index(index)}", offset)

    def __iter__(self) -> Iterator[Sample]:
        return self.iterate()

    def iterate(self, shards: Iterable[Shard] | None = None) -> Iterator[Sample]:
        """Samples of these shards, or of all: while one is decoded, the next are fetched.

        At most five shards are in memory at a time, and no more than 128 MiB of them, or than two
        of the largest. Between small ones a store's latency would show.
        """
        chosen = list(self.shards() if shards is None else shards)
        budget = max([_HELD_BYTES, *(2 * shard.bytes for shard in chosen)])
        fetched = in_order(
            self._fetch, chosen, _AHEAD, weight=lambda shard: shard.bytes, budget=budget
        )
        with closing(fetched) as contents:
            for shard in chosen:
                self._require_open()  # also of shards that were fetched before it was closed
                # The callee alone holds the shard: it is gone before the one after next comes.
                yield from self._samples_in(next(contents), shard)

    def shards(self) -> tuple[Shard, ...]:
        """All shards in the manifest's order; iterating one gives its samples."""
        entries = self._entry.shards
        ends = list(accumulate((entry.records for entry in entries), initial=0))
        return tuple(
            Shard(i, entry.key, entry.bytes, entry.sha256, range(*ends[i : i + 2]), self._walk)
            for i, entry in enumerate(entries)
        )

    def _require_open(self) -> None:
        if self._closed:
            raise DatasetError(f"{self!r} is closed: open it again")

    def _walk(self, shard: Shard) -> Iterator[Sample]:
        return self._samples_in(self._fetch(shard), shard)

    def _fetch(self, shard: Shard) -> bytes:
        return self._get(shard.key)

    def _get(self, key: str) -> bytes:
        self._require_open()
        return self.pinned.get(key)

    def _samples_in(self, data: bytes, shard: Shard) -> Iterator[Sample]:
        name, count = location(self._store, shard.key), 0
        for count, record in enumerate(self._format.read(data, name), start=1):
            if count > len(shard):
                break
            yield self._decoded(record, f"{name}: record {count - 1}", record.offset)
        if count != len(shard):  # cut, or longer, just where a record ends
            raise CorruptRecord(
                f"{name}: {min(count, len(shard)):,} records{' and more' * (count > len(shard))}, "
                f"where the manifest tells of {len(shard):,}; run dataprep verify"
            )

    def _decoded(self, record: RawRecord, what: str, offset: int) -> Sample:
        """The sample with an image of its own: it can be pickled, and keeps no shard alive."""
        try:
            sample = self._format.decode(record.payload, self._options)
        except CorruptRecord as error:
            raise CorruptRecord(f"{what} at byte {offset}: {error}", offset=offset) from None
        return replace(sample, image=bytes(sample.image))

    def _number(self, index: SupportsIndex) -> int:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"sample {number} of {len(self)}")
        return number % len(self)

    def _name(self, number: int) -> str:
        key, offset, _ = self.place(number)
        return f"sample {number:,} ({location(self._store, key)} at byte {offset:,})"


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

    Reading raises DatasetChanged where the split is made anew after it was opened.

    Raises:
        ManifestMissing: nothing there, or not complete; it says what is there.
        SchemaTooNew: written by a newer version.
        FormatMissing: not made in that format.
    """
    return Dataset(open_store(uri, options), split, format)
