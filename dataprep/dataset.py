"""Read a complete split: by sample number, by shard, or from start to end."""

from __future__ import annotations

import hashlib
import operator
import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from crc32c import crc32c

from dataprep import keys
from dataprep.assign import Integers
from dataprep.errors import (
    ConfigError,
    CorruptRecord,
    DatasetError,
    FormatMissing,
    ImageError,
    ManifestMissing,
    ObjectNotFound,
    StoreError,
)
from dataprep.formats import Sample, get_format, preferred_format
from dataprep.formats.protocol import Buffer, RawRecord
from dataprep.image.geometry import Pixels
from dataprep.image.rgb import decode_whole
from dataprep.labels import LabelSpace
from dataprep.manifest import FormatEntry, Manifest
from dataprep.ordered import in_order
from dataprep.reading.query import Query
from dataprep.reading.ranges import Range, RecordPlaces, largest_gap_bytes
from dataprep.reading.read_counter import ReadCounter
from dataprep.reading.subset import (
    DividedSubset,
    divided_subset,
    fingerprint,
    sample_name,
    sorted_numbers,
)
from dataprep.samples import StoredTable, in_numpy, stored_table
from dataprep.snapshot import Snapshot
from dataprep.stores import Store, StoreOptions, location, open_store
from dataprep.stores.protocol import Close

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")

_SHARDS_AHEAD = 4
_RANGES_AHEAD = 16
_MEMORY_BYTES = 128 * 2**20
_NOTHING = "dataprep has stored nothing there"


class Place(NamedTuple):
    """The shard of a record, and its offset and length in bytes."""

    key: str
    offset: int
    length: int


class Places(NamedTuple):
    """Shard, offset, length and label of each sample: int64 arrays of shape (len,).

    ``shards`` counts in the order of the manifest, offsets and lengths are in bytes, labels count
    from 0.
    """

    shards: Integers
    offsets: Integers
    lengths: Integers
    labels: Integers


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard. Iterating it gives its samples, after one request for all of it.

    A shard of a subset has the samples of the subset that are stored in it; iterating it reads
    their ranges.

    Attributes:
        number: its place in the order of the manifest, from 0.
        key: its key below the output.
        bytes: the size of the stored shard.
        sha256: the SHA-256 of its bytes, from the manifest.
        samples: the numbers of its samples in the data set.
    """

    number: int
    key: str
    bytes: int
    sha256: str
    samples: range
    _dataset: Dataset = field(repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Sample]:
        return self._dataset.iterate([self])


class _Numbered(Sequence[Item]):
    """A sequence whose slices are lists. Subclasses define ``__len__`` and ``_item``."""

    @abstractmethod
    def _item(self, number: int) -> Item:
        """The item of a number from 0 to ``len - 1``."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(number) for number in range(*index.indices(len(self)))]
        return self._item(_number(index, len(self)))


class Dataset(_Numbered[Sample]):
    """The samples of one split in the order in which they were written; labels count from 0.

    ``len`` needs no request. ``dataset[i]`` is one range request. Iteration is one request per
    shard and fetches the next shards ahead. The first read of each shard also checks the manifest:
    if the split was made anew since it was opened, reading raises DatasetChanged.

    Threads can share an instance. It can be pickled and forked: each process opens its own
    connections and reads the same manifest. A ``with`` block closes connections at its end.

    ``where`` and ``select`` give a subset, which is a data set with some of the samples in the same
    order. Its samples are numbered from 0, labels do not change.

    Attributes:
        store, split, format: what is read.
        manifest: the manifest of the split. That of a data set ``of_shards`` lists these shards
            only, that of a subset the whole shards in which its samples are stored.
        snapshot: reads its objects.
        check: whether records are compared with their checksums, where the format has none.
        read_counter: counts what readers of this data set read; None until ``count_reads``.
    """

    read_counter: ReadCounter | None = None

    def __init__(
        self,
        store: Store,
        split: str = "train",
        format: str | None = None,
        snapshot: Snapshot | None = None,
        check: bool = True,
        chosen_shards: tuple[int, ...] | None = None,
        selected_samples: Integers | None = None,
        queries: tuple[str, ...] | None = (),
    ) -> None:
        if snapshot is None:
            self.manifest, self.snapshot = open_split(store, split)
        else:
            self.manifest, self.snapshot = snapshot.manifest(), snapshot
        names = list(self.manifest.formats)
        self.store, self.split = store, split
        self.format = format or preferred_format(names)
        self.check = check
        self._closed = False
        if self.format not in names:
            raise FormatMissing(
                f"split {split!r} of {store.uri} has no format {format!r}: it has "
                + ", ".join(names)
            )
        self._format = get_format(self.format)
        self._options = self.manifest.record_options(self.format)
        # The shards that were given to of_shards, by their numbers in the whole split, ascending;
        # None for all shards.
        self._chosen_shards = chosen_shards
        # The samples of a subset, by their numbers in the whole split, ascending; None for all
        # samples of these shards.
        self._selected_samples = selected_samples
        # The queries that have chosen these samples; None if ``select`` has taken part.
        self._queries = queries
        # The number of the first sample of each shard of the whole split, and of all samples.
        self._bounds = _bounds(self.manifest.formats[self.format])
        # The shards that the manifest of this data set lists, by their numbers in the whole split.
        self._listed_shards = tuple(range(len(self._bounds) - 1))
        if selected_samples is not None:
            self._listed_shards = tuple(np.unique(self._shards_of(selected_samples)).tolist())
        elif chosen_shards is not None:
            self._listed_shards = chosen_shards
        if chosen_shards is not None or selected_samples is not None:
            self.manifest = _manifest_of_shards(self.manifest, self._listed_shards)
        if chosen_shards is not None:  # of_shards is never the share of a host
            self.manifest = replace(self.manifest, share=None)
        self._entry = self.manifest.formats[self.format]
        self._table_in_memory: StoredTable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        split = (self.store, self.split, self.format, self.snapshot, self.check)
        return Dataset, (*split, self._chosen_shards, self._selected_samples, self._queries)

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections. Samples can no longer be read; columns read before remain."""
        self._closed = True
        if isinstance(self.store, Close):
            self.store.close()

    def count_reads(self) -> ReadCounter:
        """Count the samples and bytes that arrive in readers that are made from now on.

        The readers of ``to_torch``, ``to_tf`` and ``to_mxnet`` count, in this process and in
        workers that are forked from it. Iterating over the data set itself is not counted.
        """
        self.read_counter = ReadCounter()
        return self.read_counter

    def __len__(self) -> int:
        return (
            self._entry.records if self._selected_samples is None else len(self._selected_samples)
        )

    def __repr__(self) -> str:
        count = f"{len(self):,} samples"
        if self.is_subset:
            count = f"{len(self):,} of {self._bounds[-1]:,} samples"
        return f"<Dataset {self.store.uri} {self.split!r} {self.format}: {count}>"

    @property
    def is_subset(self) -> bool:
        """Whether ``where`` or ``select`` made this data set."""
        return self._selected_samples is not None

    @cached_property
    def subset(self) -> str | None:
        """The SHA-256 of ``numbers``, by which states name a subset; None if this is no subset."""
        if self._selected_samples is None:
            return None
        return fingerprint(self._selected_samples)

    @property
    def numbers(self) -> Integers:
        """The number of each sample in the whole split, ascending: int64 of shape (len,).

        It is the number that ``dataset[i]``, ``written`` and ``dataprep inspect --record`` have for
        the sample where the whole split is opened.
        """
        if self._selected_samples is not None:
            return self._selected_samples.copy()
        ranges = [np.arange(*self._bounds[shard : shard + 2]) for shard in self._listed_shards]
        return np.concatenate(ranges)

    @cached_property
    def label_space(self) -> LabelSpace:
        """The classes, by label."""
        self._require_open()
        data = self.snapshot.get(keys.LABELS)
        return LabelSpace.from_json(data, location(self.store, keys.LABELS))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """``samples.parquet``: one row per source sample, also those that failed.

        A subset has written samples only: there it is ``written``.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        if self.is_subset:
            return self.written
        frame = self._table.frame()
        if self._chosen_shards is None:
            return frame
        return frame[frame["shard"].isin(self._shard_numbers)].reset_index(drop=True)

    @cached_property
    def written(self) -> pd.DataFrame:
        """The rows of ``samples`` that were written: row ``i`` describes ``dataset[i]``.

        Offsets and lengths are integers here. In ``samples`` they are floats if some are missing.
        """
        return self._written()

    @property
    def labels(self) -> Integers:
        """The 0-based label of each sample: int64 of shape (len,)."""
        return self.places.labels

    @property
    def _table(self) -> StoredTable:
        if self._table_in_memory is None:
            self._require_open()
            with self.snapshot.unchanged():
                self._table_in_memory = stored_table(self.store, self.manifest)
        return self._table_in_memory

    @cached_property
    def places(self) -> Places:
        """Shard, offset, length and label of each sample; reads these columns of the table only."""
        names = ["shard", f"{self.format}_offset", f"{self.format}_length", "label"]
        places = Places(*self._integers(names))
        # A host's share, and a data set of chosen shards, have some of the numbers only.
        return places._replace(shards=np.searchsorted(self._shard_numbers, places.shards))

    @cached_property
    def checksums(self) -> Integers | None:
        """The CRC-32C of each record as it is stored: int64 of shape (len,).

        None without ``check``, if the format has checksums of its own, and in outputs of early
        versions.
        """
        if not self.check or self._format.has_checksums:
            return None
        with suppress(DatasetError):  # the table is whole, but has no such column
            (checksums,) = self._integers([f"{self.format}_crc32c"])
            return checksums
        return None

    @property
    def _shard_numbers(self) -> list[int]:
        """The numbers of the shards in their keys and in the table of samples, ascending."""
        return [keys.shard_number(shard.key) for shard in self._entry.shards]

    def _integers(self, names: Sequence[str]) -> list[Integers]:
        """Columns of the table: int64 arrays of shape (len,).

        Raises:
            DatasetError: the table is missing or damaged, or lacks a column.
        """
        columns = self._table.columns(names).columns
        arrays = [in_numpy(column).astype(np.int64, copy=False) for column in columns]
        rows = self._rows(len(arrays[0]))
        return arrays if rows is None else [array[rows] for array in arrays]

    def _written(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """These columns of the table, or all, with a row for each sample."""
        frame = self._table.frame(names, written=True)
        rows = self._rows(len(frame))
        return frame if rows is None else frame.iloc[rows].reset_index(drop=True)

    def _rows(self, count: int) -> Integers | None:
        """The rows of these samples among the ``count`` written ones of the table; None for all.

        Raises:
            DatasetError: the table has fewer written samples than the manifest has records.
        """
        if self._chosen_shards is None and self._selected_samples is None:
            return None
        if count < self._bounds[-1]:
            raise DatasetError(
                f"{location(self.store, keys.samples(self.split))}: it has {count:,} written "
                f"samples, the manifest has {self._bounds[-1]:,} records; run dataprep verify"
            )
        return self.numbers

    def _shards_of(self, numbers: Integers) -> Integers:
        """The number of the shard of each sample, both in the whole split."""
        shards: Integers = np.searchsorted(self._bounds, numbers, side="right") - 1
        return shards

    @property
    def images(self) -> Images:
        """The samples decoded: uint8 arrays of shape (height, width, 3)."""
        return Images(self)

    def place(self, index: SupportsIndex) -> Place:
        """Where the record of a sample is stored. Raises IndexError if there is no such sample."""
        number, places = _number(index, len(self)), self.places
        key = self._entry.shards[int(places.shards[number])].key
        return Place(key, int(places.offsets[number]), int(places.lengths[number]))

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Part of an object of the split, such as a ``place``, in one range request.

        Raises:
            DatasetChanged: the split was made anew since it was opened, or is being.
            ObjectNotFound: the object is missing.
        """
        self._require_open()
        return self.snapshot.get_range(key, offset, length)

    def shards(self) -> tuple[Shard, ...]:
        """All shards in the order of the manifest. A subset has the shards with its samples."""
        entries = self._entry.shards
        bounds = _bounds(self._entry)
        if self._selected_samples is not None:
            begins = [self._bounds[shard] for shard in self._listed_shards]
            bounds = [*np.searchsorted(self._selected_samples, begins).tolist(), len(self)]
        return tuple(
            Shard(i, entry.key, entry.bytes, entry.sha256, range(*bounds[i : i + 2]), self)
            for i, entry in enumerate(entries)
        )

    def of_shards(self, numbers: Iterable[SupportsIndex]) -> Dataset:
        """Some of the shards as a data set of its own, in the order of the manifest.

        Its samples and shards are numbered from 0; classes, labels and checks do not change. It
        shares the connections of this data set. It is never the share of a host: ranks divide its
        samples as they divide a whole output.

        Args:
            numbers: ``number`` of each of these ``shards()``, in any order; repeated numbers count
                once.

        Raises:
            ConfigError: there are no numbers, or no shard has such a number.
            DatasetChanged: the split was made anew since it was opened.
        """
        count = len(self._entry.shards)
        wanted = sorted({operator.index(number) for number in numbers})
        wrong = [number for number in wanted if not 0 <= number < count]
        if wrong or not wanted:
            problem = f"has no shard {wrong[0]}" if wrong else "is to be read without a shard"
            raise ConfigError(
                f"split {self.split!r} of {self.store.uri} {problem}: give of_shards at least one "
                f"number from 0 to {count - 1}"
            )
        shards = tuple(self._listed_shards[number] for number in wanted)
        if self._selected_samples is None:
            return self._part(shards, None, self._queries)
        is_stored_there = np.isin(self._shards_of(self._selected_samples), shards)
        return self._part(shards, self._selected_samples[is_stored_there], self._queries)

    def where(self, query: str) -> Dataset:
        """The samples that match a query over the table of samples, as a data set of its own.

        ``dataset.where("label < 100 and source_width >= 64")``. It is ``select`` of the numbers
        that ``matching`` gives.

        Raises:
            ConfigError: the query is not allowed or names a column that does not exist, or no
                sample matches.
            DatasetError: the table is missing, damaged, or belongs to another split.
            DatasetChanged: the split was made anew since it was opened.
        """
        numbers = self.matching(query)
        if not len(numbers):
            raise ConfigError(
                f"none of the {len(self):,} samples of split {self.split!r} of {self.store.uri} "
                f"matches {query!r}: dataset.written shows the values of the columns"
            )
        queries = None if self._queries is None else (*self._queries, query)
        return self._part(self._chosen_shards, self.numbers[numbers], queries)

    def matching(self, query: str) -> Integers:
        """The numbers of the samples in this data set that match a query, ascending.

        Args:
            query: a condition in the syntax of pandas' ``DataFrame.query`` over the columns of
                ``written``: comparisons, ``in`` and ``not in`` with a list, ``and``, ``or``,
                ``not`` and arithmetic. It cannot call functions, read attributes or use ``@``. An
                unknown text is an empty one, an unknown number is not equal to any number.

        Raises:
            ConfigError: the query is not allowed, or names a column that does not exist.
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        parsed = Query.parse(query, self._table.schema())
        mask = parsed.matches(self._written(parsed.columns))
        matches: Integers = np.flatnonzero(mask)
        return matches

    def select(self, numbers: Iterable[SupportsIndex]) -> Dataset:
        """Some of the samples as a data set of its own, in ascending order of their numbers.

        Its samples are numbered from 0; classes, labels and checks do not change. It shares the
        connections of this data set. All adapters read it, and order, ranks and states are those of
        its samples.

        Args:
            numbers: numbers of samples in this data set, in any order, each once: ``i`` is
                ``dataset[i]`` and row ``i`` of ``dataset.written``. They count from 0; negative
                numbers are out of range.

        Raises:
            ConfigError: there are no numbers, a number is repeated or out of range, or something is
                not a whole number.
            DatasetChanged: the split was made anew since it was opened.
        """
        wanted = sorted_numbers(numbers, len(self), repr(self))
        return self._part(self._chosen_shards, self.numbers[wanted], None)

    def _part(
        self,
        shards: tuple[int, ...] | None,
        samples: Integers | None,
        queries: tuple[str, ...] | None,
    ) -> Dataset:
        """Another data set of this split, with the same connections and table.

        It has these shards and of them these samples, by their numbers in the whole split; None
        for all. ``queries`` have chosen the samples, if no numbers were given.
        """
        split = (self.store, self.split, self.format, self.snapshot, self.check)
        part = Dataset(*split, shards, samples, queries)
        part._table_in_memory = self._table_in_memory
        return part

    def __iter__(self) -> Iterator[Sample]:
        return self.iterate()

    def iterate(self, shards: Iterable[Shard] | None = None) -> Iterator[Sample]:
        """The samples of these shards, or of all. The next shards are fetched meanwhile.

        At most five shards are in memory at a time, and at most 128 MiB or two of the largest. A
        subset reads the ranges of shards in which its samples are stored.
        """
        chosen = list(self.shards() if shards is None else shards)
        if self.is_subset:
            yield from self._iterate_ranges(chosen)
            return
        fetched = in_order(
            self._fetch,
            chosen,
            _SHARDS_AHEAD,
            weight=lambda shard: shard.bytes,
            budget=max([_MEMORY_BYTES, *(2 * shard.bytes for shard in chosen)]),
        )
        with closing(fetched) as contents:
            for shard in chosen:
                self._require_open()  # also for shards that were fetched before it was closed
                # Hold no reference to the bytes of a shard, so that their memory is freed early.
                yield from self._samples_in(next(contents), shard)

    def _iterate_ranges(self, shards: Sequence[Shard]) -> Iterator[Sample]:
        """The samples of a subset in these shards, by the ranges in which they are stored."""
        own_shards = self.shards()
        for shard in shards:
            if shard.number >= len(own_shards) or shard != own_shards[shard.number]:
                raise ConfigError(f"{shard!r} is not a shard of {self!r}: use its shards()")
        places = self.places
        records = RecordPlaces(places.shards, places.offsets, places.lengths)
        gap_bytes = largest_gap_bytes(self.store)

        def ranges() -> Iterator[tuple[Shard, Range]]:
            for shard in shards:
                for part in records.ranges(shard.samples, gap_bytes):
                    yield shard, part

        def fetch(item: tuple[Shard, Range]) -> tuple[Shard, Range, bytes]:
            shard, part = item
            self._require_open()
            data = self.snapshot.get_range(shard.key, part.start, part.stop - part.start)
            return shard, part, data

        fetched = in_order(
            fetch,
            ranges(),
            _RANGES_AHEAD,
            weight=lambda item: item[1].stop - item[1].start,
            budget=max([_MEMORY_BYTES, *(2 * shard.bytes for shard in shards)]),
        )
        with closing(fetched) as contents:
            for shard, part, data in contents:
                for position in part.positions:
                    self._require_open()
                    number = shard.samples[position]
                    start = int(places.offsets[number]) - part.start
                    record = memoryview(data)[start : start + int(places.lengths[number])]
                    yield self._sample_of(record, number)

    def _fetch(self, shard: Shard) -> bytes:
        self._require_open()
        return self.snapshot.get(shard.key)

    def _require_open(self) -> None:
        if self._closed:
            raise DatasetError(f"{self!r} is closed: open it again")

    def _samples_in(self, data: bytes, shard: Shard) -> Iterator[Sample]:
        name, count = location(self.store, shard.key), 0
        for count, record in enumerate(self._format.read(data, name), start=1):
            if count > len(shard):
                break
            what = f"{name}: record {count - 1}"
            if self.checksums is not None:
                encoded = memoryview(data)[record.offset : record.offset + record.length]
                self._require_same(encoded, shard.samples[count - 1], what)
            yield self._decoded(record, what, record.offset)
        if count != len(shard):  # cut or extended exactly at the end of a record
            raise CorruptRecord(
                f"{name}: not the {len(shard):,} records of the manifest; run dataprep verify"
            )

    def _item(self, number: int) -> Sample:
        return self._sample_of(self.read(*self.place(number)), number)

    def _sample_of(self, data: Buffer, number: int) -> Sample:
        """The sample of an encoded record."""
        key, offset, _ = self.place(number)
        name, sample = location(self.store, key), self._name(number)
        records = list(self._format.read(data, f"{name} at {offset}"))
        if len(records) != 1:
            raise CorruptRecord(
                f"{name}: {len(records)} records at byte {offset}, expected {sample}; "
                "run dataprep verify"
            )
        self._require_same(data, number, f"{name}: {sample}")
        return self._decoded(records[0], f"{name}: {sample}", offset)

    def _name(self, number: int) -> str:
        """The number of a sample for messages; of a subset, its number in the split as well."""
        return sample_name(number, self._selected_samples)

    def _require_same(self, record: Buffer, number: int, what: str) -> None:
        if self.checksums is not None and crc32c(record) != self.checksums[number]:
            raise CorruptRecord(
                f"{what}: its CRC-32C is not the one in the table of samples; run dataprep verify"
            )

    def _decoded(self, record: RawRecord, what: str, offset: int) -> Sample:
        """The sample with a copy of its image, so that it can be pickled and frees the shard."""
        try:
            sample = self._format.decode(record.payload, self._options)
        except CorruptRecord as error:
            raise CorruptRecord(f"{what} at byte {offset}: {error}", offset=offset) from None
        return replace(sample, image=bytes(sample.image))


class Images(_Numbered[Pixels]):
    """The decoded images of a data set: uint8 arrays of shape (height, width, 3), RGB.

    Each has its own size. Greyscale is repeated over the three channels; the EXIF orientation is
    ignored. ``images[i]`` is one range request, iteration reads shard after shard. An image that
    cannot be decoded raises ImageError with its shard and offset.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __iter__(self) -> Iterator[Pixels]:
        for number, sample in enumerate(self._dataset):
            yield self._pixels(number, sample)

    def _item(self, number: int) -> Pixels:
        return self._pixels(number, self._dataset[number])

    def _pixels(self, number: int, sample: Sample) -> Pixels:
        try:
            return decode_whole(sample.image)
        except ImageError as error:
            key, offset, _ = self._dataset.place(number)
            where = f"{location(self._dataset.store, key)} at byte {offset:,}"
            raise type(error)(f"{self._dataset._name(number)} ({where}): {error}") from None


def open_dataset(
    uri: str | os.PathLike[str],
    split: str = "train",
    *,
    format: str | None = None,
    options: StoreOptions | None = None,
    check: bool = True,
) -> Dataset:
    """Open a complete split of the output at ``uri``.

    Args:
        uri: a path, ``s3://bucket/prefix`` or ``memory://name``.
        split: the name of the split.
        format: one of its formats; TFRecord by default, if it has it.
        options: endpoint, profile and other options of the store.
        check: compare each record with the CRC-32C in the table of samples, if its format has no
            checksums of its own.

    Raises:
        ManifestMissing: the split does not exist or is not complete; the error says what exists.
        SchemaTooNew: a newer version wrote it.
        FormatMissing: it has no such format.
    """
    return Dataset(open_store(uri, options), split, format, check=check)


def open_split(store: Store, split: str) -> tuple[Manifest, Snapshot]:
    """The manifest of a complete split, and a snapshot of its objects.

    Raises:
        ManifestMissing: the split does not exist or is not complete; the error says what exists.
        SchemaTooNew: a newer version wrote it.
        DatasetError: its manifest is damaged.
    """
    try:
        return Snapshot.open(store, split)
    except ObjectNotFound:
        raise ManifestMissing(
            f"no complete split {split!r} in {store.uri!r}: {why_missing(store, split)}"
        ) from None


def subset_of_all_hosts(dataset: Dataset) -> DividedSubset | None:
    """How the shares of all hosts divide a subset, if the data set is a host's share.

    None if that is not known: no share, no subset, a subset by ``select``, whose numbers are those
    of this share, or a share that an earlier version copied.

    Raises:
        DatasetError: the table of the whole split is missing or damaged.
    """
    share, queries, store = dataset.manifest.share, dataset._queries, dataset.store
    if not dataset.is_subset or share is None or share.table is None or queries is None:
        return None
    dataset._require_open()
    key = keys.whole_samples(dataset.split)
    content = b""
    with dataset.snapshot.unchanged(), suppress(ObjectNotFound):
        content = store.get(key)
    if hashlib.sha256(content).hexdigest() != share.table.sha256:
        raise DatasetError(
            f"{location(store, key)}: missing or damaged: remove it, and run the same dataprep "
            "stage again"
        )
    divided = divided_subset(StoredTable(store, dataset.split, content), share.shards, queries)
    matches_here = divided.samples[share.number]
    if matches_here != len(dataset):
        raise DatasetError(
            f"{location(store, key)}: {matches_here:,} samples of this share match "
            f"{' and '.join(queries)!r}, and {len(dataset):,} in {keys.samples(dataset.split)}; "
            "run dataprep verify"
        )
    return divided


def _manifest_of_shards(manifest: Manifest, numbers: Sequence[int]) -> Manifest:
    """The manifest with these shards only."""
    formats = {}
    for name, entry in manifest.formats.items():
        shards = tuple(entry.shards[number] for number in numbers)
        formats[name] = replace(
            entry,
            records=sum(shard.records for shard in shards),
            bytes=sum(shard.bytes for shard in shards),
            shards=shards,
        )
    return replace(manifest, formats=formats)


def _bounds(entry: FormatEntry) -> list[int]:
    """The number of the first sample of each shard, and the number of all samples."""
    return [*accumulate((shard.records for shard in entry.shards), initial=0)]


def splits_in(store: Store) -> list[str]:
    """The splits of an output, complete or not, sorted.

    Raises:
        ManifestMissing: there are none.
        StoreError: the store cannot be listed; ``exit_code`` is 2.
    """
    try:
        found = _keys(store)
    except StoreError as error:
        error.exit_code = 2  # the request named what cannot be reached
        raise
    splits = sorted(keys.splits(found))
    if not splits:
        raise ManifestMissing(f"no data set in {store.uri!r}: {_NOTHING}")
    return splits


def why_missing(store: Store, split: str) -> str:
    """Why a split has no manifest: it is not finished, or something else is stored there."""
    found = _keys(store)
    splits = sorted(keys.splits(found))
    if split not in splits:
        return f"it has {' and '.join(map(repr, splits))}" if splits else _NOTHING
    receipts = [key for key in found if key.startswith(f"receipts/{split}-")]
    finished = "no"
    if receipts:
        total = int(receipts[0].removesuffix(".json").rpartition("-")[2])
        finished = f"{len(receipts):,} of {total:,}"
    return f"{finished} shards are finished; run the same dataprep shard again to resume"


def _keys(store: Store) -> list[str]:
    try:
        return [info.key for info in store.list()]
    except ObjectNotFound:
        return []


def _number(index: SupportsIndex, count: int) -> int:
    number = operator.index(index)
    if not -count <= number < count:
        raise IndexError(f"sample {number} of {count}")
    return number % count
