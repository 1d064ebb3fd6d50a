"""Read a complete split: by sample number, shard by shard, or from start to end."""

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

from dataprep.errors import (
    ConfigError,
    CorruptRecord,
    DatasetError,
    FormatMissing,
    ImageError,
    ObjectNotFound,
)
from dataprep.formats import Sample, get_format, preferred_format
from dataprep.formats.protocol import Buffer, RawRecord
from dataprep.image.output_size import Pixels
from dataprep.image.rgb import decode_rgb
from dataprep.labels import LabelSpace
from dataprep.output import keys
from dataprep.output.manifest import FormatEntry, Manifest
from dataprep.output.samples_table import StoredTable, stored_table, to_numpy_array
from dataprep.output.snapshot import Snapshot
from dataprep.reading.epoch_order import Integers
from dataprep.reading.query import Query
from dataprep.reading.ranges import Range, RecordLocations, largest_gap_bytes
from dataprep.reading.read_counter import ReadCounter
from dataprep.reading.splits import open_split
from dataprep.reading.subset import (
    DividedSubset,
    divided_subset,
    fingerprint,
    sample_name,
    sorted_numbers,
)
from dataprep.stores import Store, StoreOptions, location, open_store
from dataprep.stores.protocol import Close
from dataprep.threaded_map import in_order

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")

_SHARDS_AHEAD = 4
"""Shards that iteration fetches before they are needed."""

_RANGES_AHEAD = 16
"""Byte ranges that iteration over a subset fetches before they are needed."""

_MAX_BYTES_AHEAD = 128 * 2**20
"""Memory for shards or ranges that were fetched ahead, unless two shards are larger."""


class Place(NamedTuple):
    """The location of a record.

    Attributes:
        key: the key of the shard below the output.
        offset: the first byte of the record in the shard.
        length: the size of the record in bytes.
    """

    key: str
    offset: int
    length: int


class Places(NamedTuple):
    """The location and the label of each sample: int64 arrays of shape (samples,).

    Attributes:
        shards: the number of the shard, from 0, in the order of the manifest.
        offsets: the first byte of the record in its shard.
        lengths: the size of the record in bytes.
        labels: the label of the sample, from 0.
    """

    shards: Integers
    offsets: Integers
    lengths: Integers
    labels: Integers


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a data set.

    Iterating over a shard yields its samples. It takes one request, which fetches the whole shard.
    A shard of a subset has only the samples that belong to the subset. Iterating over it fetches
    the byte ranges of these samples.

    Attributes:
        number: the number of the shard in the order of the manifest, from 0.
        key: the key of the shard below the output.
        bytes: the size of the shard.
        sha256: the SHA-256 of the shard's bytes, from the manifest.
        samples: the numbers of its samples in the data set.

    Example:
        >>> first_shard = dataprep.open("out").shards()[0]
        >>> labels = [sample.label for sample in first_shard]
        >>> len(labels) == len(first_shard)
        True
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


class _SlicedToLists(Sequence[Item]):
    """A sequence whose slices are lists. A subclass defines ``__len__`` and ``_item``."""

    @abstractmethod
    def _item(self, number: int) -> Item:
        """Return an item by its number, which is from 0 to ``len(self) - 1``."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self._item(number) for number in range(*index.indices(len(self)))]
        return self._item(_sample_number(index, len(self)))


class Dataset(_SlicedToLists[Sample]):
    """The samples of one split, in the order in which they were written.

    ``dataprep.open`` returns a data set. Labels count from 0. ``len(dataset)`` takes no request,
    and ``dataset[i]`` takes one range request. Iteration takes one request for each shard, and
    fetches the next shards ahead.

    The first read of each shard also checks the manifest. If the split was written again since it
    was opened, reading raises DatasetChanged.

    Threads can share a data set. It can be pickled and forked: each process opens its own
    connections, and reads the same manifest. A ``with`` block closes the connections at its end.

    ``where`` and ``select`` return a subset. A subset is a data set of some of the samples, in the
    same order. Its samples are numbered from 0. Their labels do not change.

    Attributes:
        store: the output.
        split: the name of the split.
        format: the format that is read, such as ``tfrecord``.
        manifest: the manifest of the split. The manifest of a data set that ``of_shards`` returned
            lists only the chosen shards. The manifest of a subset lists the shards that contain
            its samples.
        snapshot: reads the objects of the split.
        check: whether records are compared with the checksums in the table of samples, if their
            format has no checksums of its own.
        read_counter: counts the samples and bytes that readers of this data set read; None until
            ``count_reads`` is called.

    Example:
        >>> with dataprep.open("out", "train") as dataset:
        ...     first_sample = dataset[0]
        ...     labels = [sample.label for sample in dataset]
        >>> len(labels) == len(dataset)
        True
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
        """Open a split; programs call ``dataprep.open`` instead.

        Args:
            store: the output.
            split: the name of the split.
            format: the format to read; None for TFRecord, or the first format if the split has no
                TFRecord.
            snapshot: the snapshot of a split that is open already; None to open the split.
            check: whether to compare records with the checksums in the table of samples.
            chosen_shards: the shards that were given to ``of_shards``, by their numbers in the
                whole split, ascending; None for all shards.
            selected_samples: the samples of a subset, by their numbers in the whole split,
                ascending: int64 of shape (samples,); None for all samples of the shards.
            queries: the queries that selected these samples; None if ``select`` was used.
        """
        if snapshot is None:
            self.manifest, self.snapshot = open_split(store, split)
        else:
            self.manifest, self.snapshot = snapshot.manifest(), snapshot
        formats = list(self.manifest.formats)
        self.store = store
        self.split = split
        self.format = format or preferred_format(formats)
        self.check = check
        self._closed = False
        if self.format not in formats:
            raise FormatMissing(
                f"split {split!r} of {store.uri} has no format {format!r}: it has "
                + ", ".join(formats)
            )
        self._format = get_format(self.format)
        self._options = self.manifest.record_options(self.format)
        self._chosen_shards = chosen_shards
        self._selected_samples = selected_samples
        self._queries = queries
        # For each shard of the whole split, the number of its first sample in the whole split, and
        # at the end the number of all samples.
        self._first_samples = _first_samples(self.manifest.formats[self.format])
        # The numbers in the whole split of the shards that the manifest of this data set lists.
        self._listed_shards = tuple(range(len(self._first_samples) - 1))
        if selected_samples is not None:
            self._listed_shards = tuple(np.unique(self._shards_of(selected_samples)).tolist())
        elif chosen_shards is not None:
            self._listed_shards = chosen_shards
        if chosen_shards is not None or selected_samples is not None:
            self.manifest = _manifest_of_shards(self.manifest, self._listed_shards)
        if chosen_shards is not None:
            # A data set of chosen shards is never the share of a host.
            self.manifest = replace(self.manifest, share=None)
        self._format_entry = self.manifest.formats[self.format]
        self._table_in_memory: StoredTable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (
            self.store,
            self.split,
            self.format,
            self.snapshot,
            self.check,
            self._chosen_shards,
            self._selected_samples,
            self._queries,
        )

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections.

        Samples can no longer be read. Columns that were read before remain available.
        """
        self._closed = True
        if isinstance(self.store, Close):
            self.store.close()

    def count_reads(self) -> ReadCounter:
        """Count the samples and bytes that arrive in readers which are created from now on.

        The readers are those of ``to_torch``, ``to_tf`` and ``to_mxnet``, in this process and in
        workers that are forked from it. Iteration over the data set itself is not counted.

        Returns:
            The counter, which is also ``read_counter``.
        """
        self.read_counter = ReadCounter()
        return self.read_counter

    def __len__(self) -> int:
        if self._selected_samples is None:
            return self._format_entry.records
        return len(self._selected_samples)

    def __repr__(self) -> str:
        count = f"{len(self):,} samples"
        if self.is_subset:
            count = f"{len(self):,} of {self._first_samples[-1]:,} samples"
        return f"<Dataset {self.store.uri} {self.split!r} {self.format}: {count}>"

    @property
    def is_subset(self) -> bool:
        """Whether ``where`` or ``select`` returned this data set."""
        return self._selected_samples is not None

    @cached_property
    def subset(self) -> str | None:
        """The name of a subset in saved states: the SHA-256 of ``numbers``. None if no subset."""
        if self._selected_samples is None:
            return None
        return fingerprint(self._selected_samples)

    @property
    def numbers(self) -> Integers:
        """The number of each sample in the whole split, ascending: int64 of shape (samples,).

        If the whole split is opened, ``dataset[i]``, ``written`` and ``dataprep inspect --record``
        use these numbers.
        """
        if self._selected_samples is not None:
            return self._selected_samples.copy()
        numbers_by_shard = []
        for shard in self._listed_shards:
            first, following = self._first_samples[shard], self._first_samples[shard + 1]
            numbers_by_shard.append(np.arange(first, following))
        return np.concatenate(numbers_by_shard)

    @cached_property
    def label_space(self) -> LabelSpace:
        """The classes, by label."""
        self._require_open()
        data = self.snapshot.get(keys.LABELS)
        return LabelSpace.from_json(data, location(self.store, keys.LABELS))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The table of samples, ``samples.parquet``: one row for each sample of the source.

        It also has rows for samples that failed. A subset contains only samples that were written,
        so its table is ``written``.

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

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        return self._written_rows()

    @property
    def labels(self) -> Integers:
        """The label of each sample, from 0: int64 of shape (samples,)."""
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
        """The shard, offset, length and label of each sample: int64 arrays of shape (samples,).

        Only these columns of the table of samples are read.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        names = ["shard", f"{self.format}_offset", f"{self.format}_length", "label"]
        places = Places(*self._integer_columns(names))
        # The table has the numbers of shards in the whole split. A host's share and a data set of
        # chosen shards have only some of these shards, which count from 0 here.
        return places._replace(shards=np.searchsorted(self._shard_numbers, places.shards))

    @cached_property
    def checksums(self) -> Integers | None:
        """The CRC-32C of each record: int64 of shape (samples,).

        It is None if ``check`` is False, if the format has checksums of its own, and for outputs
        of early versions.
        """
        if not self.check or self._format.has_checksums:
            return None
        # Early versions wrote a table without this column.
        with suppress(DatasetError):
            (checksums,) = self._integer_columns([f"{self.format}_crc32c"])
            return checksums
        return None

    @property
    def _shard_numbers(self) -> list[int]:
        """The numbers of the shards in their keys and in the table of samples, ascending."""
        return [keys.shard_number(shard.key) for shard in self._format_entry.shards]

    def _integer_columns(self, names: Sequence[str]) -> list[Integers]:
        """Return columns of the table of samples: int64 arrays of shape (samples,).

        Raises:
            DatasetError: the table is missing or damaged, or lacks a column.
        """
        columns = self._table.columns(names).columns
        arrays = [to_numpy_array(column).astype(np.int64, copy=False) for column in columns]
        rows = self._rows(len(arrays[0]))
        if rows is None:
            return arrays
        return [array[rows] for array in arrays]

    def _written_rows(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return these columns of the table, or all columns, with a row for each sample."""
        frame = self._table.frame(names, written=True)
        rows = self._rows(len(frame))
        if rows is None:
            return frame
        return frame.iloc[rows].reset_index(drop=True)

    def _rows(self, written_rows: int) -> Integers | None:
        """Return the rows of these samples among the written rows of the table; None for all.

        Raises:
            DatasetError: the table has fewer written rows than the manifest has records.
        """
        if self._chosen_shards is None and self._selected_samples is None:
            return None
        records = self._first_samples[-1]
        if written_rows < records:
            raise DatasetError(
                f"{location(self.store, keys.samples(self.split))}: it has {written_rows:,} "
                f"written samples, the manifest has {records:,} records; run dataprep verify"
            )
        return self.numbers

    def _shards_of(self, numbers: Integers) -> Integers:
        """Return the shard of each sample. All numbers are those in the whole split."""
        shards: Integers = np.searchsorted(self._first_samples, numbers, side="right") - 1
        return shards

    @property
    def images(self) -> Images:
        """The decoded images: uint8 arrays of shape (height, width, 3)."""
        return Images(self)

    def place(self, index: SupportsIndex) -> Place:
        """Return the location of the record of a sample: key of the shard, offset and length.

        Args:
            index: the number of the sample. Negative numbers count from the end.

        Raises:
            IndexError: the number is out of range.
        """
        number = _sample_number(index, len(self))
        places = self.places
        key = self._format_entry.shards[int(places.shards[number])].key
        return Place(key, int(places.offsets[number]), int(places.lengths[number]))

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Return part of an object of the split, by one range request.

        ``dataset.read(*dataset.place(i))`` is the encoded record of a sample.

        Args:
            key: the key of the object below the output.
            offset: the first byte.
            length: the number of bytes.

        Raises:
            DatasetChanged: the split was written again since it was opened.
            ObjectNotFound: the object is missing.
        """
        self._require_open()
        return self.snapshot.get_range(key, offset, length)

    def shards(self) -> tuple[Shard, ...]:
        """Return the shards in the order of the manifest.

        A subset has only the shards that contain its samples.
        """
        first_samples = _first_samples(self._format_entry)
        if self._selected_samples is not None:
            first_in_split = [self._first_samples[shard] for shard in self._listed_shards]
            first_in_subset = np.searchsorted(self._selected_samples, first_in_split).tolist()
            first_samples = [*first_in_subset, len(self)]
        shards = []
        for number, entry in enumerate(self._format_entry.shards):
            samples = range(first_samples[number], first_samples[number + 1])
            shards.append(Shard(number, entry.key, entry.bytes, entry.sha256, samples, self))
        return tuple(shards)

    def of_shards(self, numbers: Iterable[SupportsIndex]) -> Dataset:
        """Return some of the shards as a data set of its own, in the order of the manifest.

        Its samples and shards are numbered from 0. Classes, labels and checks do not change. The
        new data set shares the connections of this one. It is never the share of a host: ranks
        divide its samples as they divide a whole output.

        Args:
            numbers: the ``number`` of each chosen shard in ``shards()``, in any order. Repeated
                numbers count once.

        Raises:
            ConfigError: no number is given, or a number is out of range.
            DatasetChanged: the split was written again since it was opened.

        Example:
            >>> first_shard = dataprep.open("out").of_shards([0])
            >>> len(first_shard.shards())
            1
        """
        count = len(self._format_entry.shards)
        chosen = sorted({operator.index(number) for number in numbers})
        out_of_range = [number for number in chosen if not 0 <= number < count]
        problem = ""
        if out_of_range:
            problem = f"has no shard {out_of_range[0]}"
        elif not chosen:
            problem = "cannot be read without a shard"
        if problem:
            raise ConfigError(
                f"split {self.split!r} of {self.store.uri} {problem}: give of_shards at least one "
                f"number from 0 to {count - 1}"
            )
        shards = tuple(self._listed_shards[number] for number in chosen)
        if self._selected_samples is None:
            return self._restricted(shards, None, self._queries)
        is_in_shards = np.isin(self._shards_of(self._selected_samples), shards)
        return self._restricted(shards, self._selected_samples[is_in_shards], self._queries)

    def where(self, query: str) -> Dataset:
        """Return the samples that match a query over the table of samples, as a subset.

        Args:
            query: a condition over the columns of ``written``; see ``matching``.

        Raises:
            ConfigError: the query is not allowed, names a column that does not exist, or matches
                no sample.
            DatasetError: the table is missing, damaged, or belongs to another split.
            DatasetChanged: the split was written again since it was opened.

        Example:
            >>> subset = dataprep.open("out").where("label < 5 and source_width >= 64")
            >>> bool((subset.labels < 5).all())
            True
        """
        numbers = self.matching(query)
        if not len(numbers):
            raise ConfigError(
                f"none of the {len(self):,} samples of split {self.split!r} of {self.store.uri} "
                f"matches {query!r}: dataset.written shows the values of the columns"
            )
        queries = None if self._queries is None else (*self._queries, query)
        return self._restricted(self._chosen_shards, self.numbers[numbers], queries)

    def matching(self, query: str) -> Integers:
        """Return the numbers of the samples that match a query, ascending.

        Args:
            query: a condition in the syntax of pandas' ``DataFrame.query`` over the columns of
                ``written``. It may contain comparisons, ``in`` and ``not in`` with a list, ``and``,
                ``or``, ``not`` and arithmetic. It cannot call functions, read attributes or use
                ``@``. A missing text counts as an empty text. A missing number is not equal to any
                number.

        Returns:
            Numbers of samples in this data set: int64 of shape (matches,).

        Raises:
            ConfigError: the query is not allowed, or names a column that does not exist.
            DatasetError: the table is missing, damaged, or belongs to another split.

        Example:
            >>> numbers = dataprep.open("out").matching("label == 0")
            >>> numbers.dtype
            dtype('int64')
        """
        parsed = Query.parse(query, self._table.schema())
        mask = parsed.matches(self._written_rows(parsed.columns))
        matches: Integers = np.flatnonzero(mask)
        return matches

    def select(self, numbers: Iterable[SupportsIndex]) -> Dataset:
        """Return some of the samples as a subset, in the ascending order of their numbers.

        The samples of the subset are numbered from 0. Classes, labels and checks do not change. The
        subset shares the connections of this data set. All adapters can read it. Their orders,
        ranks and saved states then refer to the samples of the subset.

        Args:
            numbers: the numbers of samples in this data set, in any order, each once. Number ``i``
                is ``dataset[i]`` and row ``i`` of ``dataset.written``. Negative numbers are out of
                range.

        Raises:
            ConfigError: no number is given, or a number is repeated, out of range, or not whole.
            DatasetChanged: the split was written again since it was opened.

        Example:
            >>> subset = dataprep.open("out").select([0, 2, 4])
            >>> len(subset)
            3
        """
        selected = sorted_numbers(numbers, len(self), repr(self))
        return self._restricted(self._chosen_shards, self.numbers[selected], None)

    def _restricted(
        self,
        shards: tuple[int, ...] | None,
        samples: Integers | None,
        queries: tuple[str, ...] | None,
    ) -> Dataset:
        """Return a data set of some shards and samples, with the same connections and table.

        The arguments are ``chosen_shards``, ``selected_samples`` and ``queries`` of ``Dataset``.
        """
        dataset = Dataset(
            self.store,
            self.split,
            self.format,
            self.snapshot,
            self.check,
            shards,
            samples,
            queries,
        )
        dataset._table_in_memory = self._table_in_memory
        return dataset

    def __iter__(self) -> Iterator[Sample]:
        return self.iterate()

    def iterate(self, shards: Iterable[Shard] | None = None) -> Iterator[Sample]:
        """Yield the samples of shards, and fetch the next shards meanwhile.

        At most five shards are in memory at a time. They have at most 128 MiB in total, or the size
        of the two largest shards if that is more. For a subset, only the byte ranges of its samples
        are read.

        Args:
            shards: some of ``shards()``, in the order in which to read them; None for all shards.

        Raises:
            ConfigError: a shard does not belong to this subset.
            CorruptRecord: a record is damaged.
            DatasetChanged: the split was written again since it was opened.
        """
        chosen = list(self.shards() if shards is None else shards)
        if self.is_subset:
            yield from self._iterate_ranges(chosen)
            return
        fetched = in_order(
            self._fetch, chosen, _SHARDS_AHEAD, weight=_shard_bytes, budget=_memory_budget(chosen)
        )
        with closing(fetched) as contents:
            for shard in chosen:
                # The data set may have been closed after this shard was fetched.
                self._require_open()
                # Hold no reference to the bytes of a shard, so that their memory is freed early.
                yield from self._samples_in(next(contents), shard)

    def _iterate_ranges(self, shards: Sequence[Shard]) -> Iterator[Sample]:
        """Yield the samples of a subset in these shards; read only their byte ranges."""
        own_shards = self.shards()
        for shard in shards:
            if shard.number >= len(own_shards) or shard != own_shards[shard.number]:
                raise ConfigError(f"{shard!r} is not a shard of {self!r}: use its shards()")
        places = self.places
        records = RecordLocations(places.shards, places.offsets, places.lengths)
        gap_bytes = largest_gap_bytes(self.store)

        def ranges() -> Iterator[tuple[Shard, Range]]:
            for shard in shards:
                for byte_range in records.ranges(shard.samples, gap_bytes):
                    yield shard, byte_range

        def fetch(item: tuple[Shard, Range]) -> tuple[Shard, Range, bytes]:
            shard, byte_range = item
            self._require_open()
            length = byte_range.stop - byte_range.start
            data = self.snapshot.get_range(shard.key, byte_range.start, length)
            return shard, byte_range, data

        def range_bytes(item: tuple[Shard, Range]) -> int:
            _, byte_range = item
            return byte_range.stop - byte_range.start

        fetched = in_order(
            fetch, ranges(), _RANGES_AHEAD, weight=range_bytes, budget=_memory_budget(shards)
        )
        with closing(fetched) as contents:
            for shard, byte_range, data in contents:
                for position in byte_range.positions:
                    self._require_open()
                    number = shard.samples[position]
                    start = int(places.offsets[number]) - byte_range.start
                    record = memoryview(data)[start : start + int(places.lengths[number])]
                    yield self._sample_of(record, number)

    def _fetch(self, shard: Shard) -> bytes:
        self._require_open()
        return self.snapshot.get(shard.key)

    def _require_open(self) -> None:
        if self._closed:
            raise DatasetError(f"{self!r} is closed: open it again")

    def _samples_in(self, data: bytes, shard: Shard) -> Iterator[Sample]:
        """Yield the samples of a shard whose bytes are ``data``."""
        name = location(self.store, shard.key)
        records = 0
        for record in self._format.read(data, name):
            records += 1
            if records > len(shard):
                break
            record_name = f"{name}: record {records - 1}"
            if self.checksums is not None:
                encoded = memoryview(data)[record.offset : record.offset + record.length]
                self._require_checksum(encoded, shard.samples[records - 1], record_name)
            yield self._decoded(record, record_name, record.offset)
        # A shard that was cut or extended at the end of a record has no damaged record.
        if records != len(shard):
            raise CorruptRecord(
                f"{name}: not the {len(shard):,} records of the manifest; run dataprep verify"
            )

    def _item(self, number: int) -> Sample:
        return self._sample_of(self.read(*self.place(number)), number)

    def _sample_of(self, data: Buffer, number: int) -> Sample:
        """Return the sample of an encoded record."""
        key, offset, _ = self.place(number)
        name = location(self.store, key)
        sample = self._name(number)
        records = list(self._format.read(data, f"{name} at {offset}"))
        if len(records) != 1:
            raise CorruptRecord(
                f"{name}: {len(records)} records at byte {offset}, expected {sample}; "
                "run dataprep verify"
            )
        self._require_checksum(data, number, f"{name}: {sample}")
        return self._decoded(records[0], f"{name}: {sample}", offset)

    def _name(self, number: int) -> str:
        """Describe a sample for messages. For a subset, its number in the split is added."""
        return sample_name(number, self._selected_samples)

    def _require_checksum(self, record: Buffer, number: int, name: str) -> None:
        """Raise CorruptRecord if a record does not have the checksum in the table of samples."""
        if self.checksums is not None and crc32c(record) != self.checksums[number]:
            raise CorruptRecord(
                f"{name}: its CRC-32C is not the one in the table of samples; run dataprep verify"
            )

    def _decoded(self, record: RawRecord, name: str, offset: int) -> Sample:
        """Return the sample of a record.

        The sample has a copy of the image, so that it can be pickled and does not keep the bytes of
        the shard in memory.
        """
        try:
            sample = self._format.decode(record.payload, self._options)
        except CorruptRecord as error:
            raise CorruptRecord(f"{name} at byte {offset}: {error}", offset=offset) from None
        return replace(sample, image=bytes(sample.image))


class Images(_SlicedToLists[Pixels]):
    """The decoded images of a data set: uint8 arrays of shape (height, width, 3), in RGB.

    Each image has its own size. A greyscale image has three equal channels. The EXIF orientation is
    ignored. ``images[i]`` takes one range request. Iteration reads shard after shard. If an image
    cannot be decoded, ImageError says which one, with its shard and offset.

    Example:
        >>> pixels = dataprep.open("out").images[0]
        >>> pixels.dtype
        dtype('uint8')
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
            return decode_rgb(sample.image)
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
    """Open a complete split of an output.

    Args:
        uri: the output: a path, ``s3://bucket/prefix`` or ``memory://name``.
        split: the name of the split.
        format: the format to read; None for TFRecord, or the first format of the split if it has
            no TFRecord.
        options: endpoint, profile and other options of the store.
        check: whether to compare each record with the CRC-32C in the table of samples, if its
            format has no checksums of its own.

    Returns:
        The data set, which needs no connection until a sample is read.

    Raises:
        ManifestMissing: the split does not exist or is not complete. The message names the splits
            that exist, or says how many shards are finished.
        SchemaTooNew: a newer version of dataprep wrote the split.
        FormatMissing: the split does not have the format.

    Example:
        >>> dataset = dataprep.open("out", "train")
        >>> sample = dataset[0]
        >>> sample.label >= 0
        True
    """
    return Dataset(open_store(uri, options), split, format, check=check)


def subset_of_all_hosts(dataset: Dataset) -> DividedSubset | None:
    """Return how many samples the shares of all hosts have of a subset.

    The data set is the part of the subset that is in this host's share. Its queries are applied to
    the table of samples of the whole split.

    Returns:
        The number of samples in each share. None if it is unknown: the data set is no share or no
        subset, or ``select`` chose the samples by their numbers in this share, or an earlier
        version of dataprep copied the share.

    Raises:
        DatasetError: the table of samples of the whole split is missing or damaged.
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
    matches_in_share = divided.samples[share.number]
    if matches_in_share != len(dataset):
        raise DatasetError(
            f"{location(store, key)}: {matches_in_share:,} samples of this share match "
            f"{' and '.join(queries)!r}, and {len(dataset):,} in {keys.samples(dataset.split)}; "
            "run dataprep verify"
        )
    return divided


def _manifest_of_shards(manifest: Manifest, numbers: Sequence[int]) -> Manifest:
    """Return the manifest with these shards only."""
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


def _first_samples(entry: FormatEntry) -> list[int]:
    """Return the number of the first sample of each shard, then the number of all samples."""
    return list(accumulate((shard.records for shard in entry.shards), initial=0))


def _shard_bytes(shard: Shard) -> int:
    return shard.bytes


def _memory_budget(shards: Sequence[Shard]) -> int:
    """Return how many bytes may be fetched ahead: enough for two of the largest shards."""
    largest_bytes = max((shard.bytes for shard in shards), default=0)
    return max(_MAX_BYTES_AHEAD, 2 * largest_bytes)


def _sample_number(index: SupportsIndex, samples: int) -> int:
    """Return the number of a sample, from 0, for an index that may count from the end."""
    number = operator.index(index)
    if not -samples <= number < samples:
        raise IndexError(f"sample {number} of {samples}")
    return number % samples
