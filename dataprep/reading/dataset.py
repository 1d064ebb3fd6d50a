"""Read a complete split, or some of its shards or samples.

A data set is read by sample number, shard by shard, or from start to end.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from dataprep.errors import ConfigError, FormatMissing
from dataprep.formats import Sample, get_format, preferred_format
from dataprep.labels import LabelSpace
from dataprep.output import keys
from dataprep.output.snapshot import Snapshot
from dataprep.reading.epoch_order import Integers
from dataprep.reading.query import Query
from dataprep.reading.read_counter import ReadCounter
from dataprep.reading.sample_reader import SampleReader
from dataprep.reading.sample_rows import OpenState, Place, Places, SampleRows
from dataprep.reading.sequences import Images, SlicedToLists, sample_number
from dataprep.reading.split_part import SplitPart, first_samples
from dataprep.reading.splits import open_split
from dataprep.reading.subset import (
    DividedSubset,
    fingerprint,
    sorted_numbers,
    subset_of_shares,
)
from dataprep.stores import Store, StoreOptions, location, open_store
from dataprep.stores.protocol import Close

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard of a data set.

    Iterating over a shard yields its samples. One request fetches the whole shard. A shard of a
    subset has only the samples that belong to the subset. Iterating over it fetches the byte ranges
    of these samples.

    Attributes:
        number: the number of the shard in the data set, from 0, in the order of the manifest.
        key: the key of the shard, relative to the output.
        bytes: the size of the whole shard in bytes, also in a subset.
        sha256: the SHA-256 of the whole shard, from the manifest.
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


class Dataset(SlicedToLists[Sample]):
    """The samples of one split, in the order in which they were written.

    ``dataprep.open`` returns a data set. Labels count from 0; a sample without a class has -1.
    ``len(dataset)`` takes no request. ``dataset[i]`` takes one range request; the first one also
    reads the table of samples. Iteration takes one request for each shard, and fetches the next
    shards ahead.

    The first read of each shard also checks the manifest. If the split was written again since it
    was opened, reading raises DatasetChanged.

    Threads can share a data set. It can be pickled and forked: each process opens its own
    connections, and reads the same manifest. A ``with`` block closes the connections at its end.

    ``where`` and ``select`` return a subset. A subset is a data set of some of the samples, in the
    same order. Its samples are numbered from 0. Their labels do not change.

    Attributes:
        store: the store that contains the output.
        split: the name of the split.
        format: the format that is read, such as ``tfrecord``.
        manifest: the manifest of the split. The manifest of a data set that ``of_shards`` returned
            lists only the chosen shards. The manifest of a subset lists the shards that contain
            its samples.
        snapshot: reads the objects of the split.
        check: whether records are compared with the checksums in the table of samples, if their
            format has no checksums of its own.
        read_counter: the counter that ``count_reads`` returned last; None until ``count_reads`` is
            called.

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
            store: the store that contains the output.
            split: the name of the split.
            format: the format to read; None for TFRecord, or the first format if the split has no
                TFRecord.
            snapshot: the snapshot of a split that is open already; None to open the split.
            check: whether to compare records with the checksums in the table of samples, if their
                format has no checksums of its own.
            chosen_shards: the shards that were given to ``of_shards``, by their numbers in the
                whole split, ascending; None for all shards.
            selected_samples: the samples of a subset, by their numbers in the whole split,
                ascending: int64 of shape (samples,); None for all samples of the shards.
            queries: the queries that selected these samples, empty for all samples; None if
                ``select`` was used.

        Raises:
            ManifestMissing, SchemaTooNew, DatasetError: the split cannot be opened; see
                ``dataprep.open``.
            FormatMissing: the split does not have the format.
            DatasetChanged: the split was written again since ``snapshot`` was opened.
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
        if self.format not in formats:
            raise FormatMissing(
                f"split {split!r} of {store.uri} has no format {format!r}: it has "
                + ", ".join(formats)
            )
        record_format = get_format(self.format)
        starts = first_samples(self.manifest.formats[self.format])
        self._part = SplitPart(starts, chosen_shards, selected_samples, queries)
        self.manifest = self._part.manifest_of(self.manifest)
        self._format_entry = self.manifest.formats[self.format]
        self._state = OpenState(repr(self))
        self._rows = SampleRows(
            self.snapshot,
            self.manifest,
            self.format,
            self._part,
            self._state,
            reads_checksums=check and not record_format.has_checksums,
        )
        self._reader = SampleReader(
            self.snapshot, record_format, self.manifest.record_options(self.format), self._rows
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Dataset, (
            self.store,
            self.split,
            self.format,
            self.snapshot,
            self.check,
            self._part.chosen_shards,
            self._part.selected_samples,
            self._part.queries,
        )

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections.

        Samples can no longer be read through this data set. Columns that were read before remain
        available. A data set that shares the connections, such as a subset, can still be read, and
        then opens new connections.
        """
        self._state.close()
        if isinstance(self.store, Close):
            self.store.close()

    def count_reads(self) -> ReadCounter:
        """Count the samples and bytes that arrive in readers that are created from now on.

        The readers are those that ``to_torch``, ``to_tf`` and ``to_mxnet`` make of this data set,
        in this process and in workers that are forked from it. Iteration over the data set itself
        is not counted. A subset and a data set of some shards are not counted either: call their
        own ``count_reads``.

        Returns:
            The counter, which is also ``read_counter``.
        """
        self.read_counter = ReadCounter()
        return self.read_counter

    def __len__(self) -> int:
        if self._part.selected_samples is None:
            return self._format_entry.records
        return len(self._part.selected_samples)

    def __repr__(self) -> str:
        count = f"{len(self):,} samples"
        if self.is_subset:
            count = f"{len(self):,} of {self._part.samples_in_split:,} samples"
        return f"<Dataset {self.store.uri} {self.split!r} {self.format}: {count}>"

    @property
    def is_subset(self) -> bool:
        """Whether ``where`` or ``select`` returned this data set."""
        return self._part.selected_samples is not None

    @cached_property
    def subset(self) -> str | None:
        """The SHA-256 of ``numbers``, which identifies a subset; None if this is no subset.

        Saved states contain it. If ranks on several hosts read the shares that were staged there,
        their states contain the SHA-256 of the subset's numbers in the whole split instead.
        """
        if self._part.selected_samples is None:
            return None
        return fingerprint(self._part.selected_samples)

    @property
    def numbers(self) -> Integers:
        """The number of each sample in the whole split, ascending: int64 of shape (samples,).

        The data set that ``dataprep.open`` returns has the numbers 0, 1, 2 and so on. Its
        ``dataset[i]`` and ``written``, and ``dataprep inspect --record``, use these numbers. If
        ``dataprep stage`` copied a host's share, the share counts as the whole split.
        """
        return self._part.numbers

    @cached_property
    def label_space(self) -> LabelSpace:
        """The classes and their labels."""
        self._state.require_open()
        data = self.snapshot.get(keys.LABELS)
        return LabelSpace.from_json(data, location(self.store, keys.LABELS))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The table of samples, ``samples.parquet``: one row for each sample of the source.

        It also has rows for samples that failed. If ``of_shards`` returned the data set, it has
        only the rows of these shards. A subset contains only samples that were written, so its
        table is ``written``.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        if self.is_subset:
            return self.written
        return self._rows.all_sources()

    @cached_property
    def written(self) -> pd.DataFrame:
        """The rows of the samples that were written: row ``i`` describes ``dataset[i]``.

        Offsets and lengths are integers here. In ``samples`` they are floats if some are missing.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        return self._rows.written()

    @property
    def labels(self) -> Integers:
        """The label of each sample, from 0, or -1 without a class: int64 of shape (samples,).

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        return self.places.labels

    @cached_property
    def places(self) -> Places:
        """The shard, offset, length and label of each sample: int64 arrays of shape (samples,).

        Only these columns of the table of samples are read.

        Raises:
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        return self._rows.places

    @cached_property
    def checksums(self) -> Integers | None:
        """The CRC-32C of each record: int64 of shape (samples,).

        It is None if ``check`` is False, if the format has checksums of its own, or if an early
        version wrote the output without this column.
        """
        return self._rows.checksums

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
            DatasetError: the table is missing, damaged, or belongs to another split.
        """
        return self._rows.place(sample_number(index, len(self)))

    def read(self, key: str, offset: int, length: int) -> bytes:
        """Return part of an object of the split, by one range request.

        ``dataset.read(*dataset.place(i))`` is the encoded record of a sample.

        Args:
            key: the key of the object, relative to the output.
            offset: the position of the first byte in the object.
            length: the number of bytes.

        Raises:
            DatasetChanged: the split was written again since it was opened.
            DatasetError: the data set is closed.
            ObjectNotFound: the object is missing.
        """
        self._state.require_open()
        return self.snapshot.get_range(key, offset, length)

    def shards(self) -> tuple[Shard, ...]:
        """Return the shards in the order of the manifest.

        A subset has only the shards that contain its samples.
        """
        samples_by_shard = self._part.samples_by_shard()
        shards = []
        for number, entry in enumerate(self._format_entry.shards):
            samples = samples_by_shard[number]
            shards.append(Shard(number, entry.key, entry.bytes, entry.sha256, samples, self))
        return tuple(shards)

    def of_shards(self, numbers: Iterable[SupportsIndex]) -> Dataset:
        """Return some of the shards as a data set of its own, in the order of the manifest.

        Its samples and shards are numbered from 0. Classes, labels and checks do not change. The
        new data set shares the connections of this one. It is never the share of a host: ranks
        divide its samples as they divide a whole output.

        Args:
            numbers: the ``number`` of each chosen shard in ``shards()``, in any order. Repeated
                numbers count once. Negative numbers are out of range.

        Raises:
            ConfigError: no number is given, or a number is out of range.
            DatasetChanged: the split was written again since it was opened.

        Example:
            >>> first_shard = dataprep.open("out").of_shards([0])
            >>> len(first_shard.shards())
            1
        """
        shard_count = len(self._format_entry.shards)
        chosen = sorted({operator.index(number) for number in numbers})
        out_of_range = [number for number in chosen if not 0 <= number < shard_count]
        problem = ""
        if out_of_range:
            problem = f"has no shard {out_of_range[0]}"
        elif not chosen:
            problem = "cannot be read without a shard"
        if problem:
            raise ConfigError(
                f"split {self.split!r} of {self.store.uri} {problem}: give of_shards at least one "
                f"number from 0 to {shard_count - 1}"
            )
        return self._restricted(self._part.of_shards(chosen))

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
        queries = self._part.queries
        # None: ``select`` was used before, so that queries alone do not give these samples.
        if queries is not None:
            queries = (*queries, query)
        return self._restricted(self._part.of_samples(numbers, queries))

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
        parsed = Query.parse(query, self._rows.table.schema())
        mask = parsed.matches(self._rows.written(parsed.columns))
        matches: Integers = np.flatnonzero(mask)
        return matches

    def select(self, numbers: Iterable[SupportsIndex]) -> Dataset:
        """Return some of the samples as a subset, in the ascending order of their numbers.

        The samples of the subset are numbered from 0. Classes, labels and checks do not change. The
        subset shares the connections of this data set. ``to_torch``, ``to_tf`` and ``to_mxnet`` can
        read it. Their orders, ranks and saved states then refer to the samples of the subset.

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
        return self._restricted(self._part.of_samples(selected, None))

    def _restricted(self, part: SplitPart) -> Dataset:
        """Return a data set of a part of the split, with the same connections.

        It uses the table of samples of this data set, if this data set has read it already.
        """
        dataset = Dataset(
            self.store,
            self.split,
            self.format,
            self.snapshot,
            self.check,
            part.chosen_shards,
            part.selected_samples,
            part.queries,
        )
        dataset._rows.use_table_of(self._rows)
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
            ConfigError: this data set is a subset, and one of ``shards`` is not a shard of it.
            CorruptRecord: a record is damaged.
            DatasetChanged: the split was written again since it was opened.
            DatasetError: the data set is closed, or its table of samples is missing or damaged.
        """
        chosen = list(self.shards() if shards is None else shards)
        if self.is_subset:
            yield from self._samples_of_subset(chosen)
        else:
            yield from self._reader.samples_of_shards(chosen)

    def _samples_of_subset(self, shards: Sequence[Shard]) -> Iterator[Sample]:
        """Yield the samples of this subset that are in ``shards``.

        Raises:
            ConfigError: one of ``shards`` is not a shard of this subset. It may have other samples.
        """
        own_shards = self.shards()
        for shard in shards:
            if shard.number >= len(own_shards) or shard != own_shards[shard.number]:
                raise ConfigError(f"{shard!r} is not a shard of {self!r}: use its shards()")
        yield from self._reader.samples_of_subset(shards)

    def _item(self, number: int) -> Sample:
        return self._reader.sample(number)


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
        The data set. Only the manifest has been read.

    Raises:
        ManifestMissing: the split does not exist or is not complete. The message names the splits
            that exist, or says how many shards are finished.
        SchemaTooNew: a newer version of dataprep wrote the split.
        DatasetError: the manifest is damaged.
        FormatMissing: the split does not have the format.

    Example:
        >>> dataset = dataprep.open("out", "train")
        >>> sample = dataset[0]
        >>> sample.label >= 0
        True
    """
    return Dataset(open_store(uri, options), split, format, check=check)


def subset_of_all_hosts(dataset: Dataset) -> DividedSubset | None:
    """Return how many samples of a subset are in the share of each host.

    The queries of the subset are applied to the table of samples of the whole split.

    Args:
        dataset: the part of the subset that is in this host's share.

    Returns:
        The number of samples in each share. None if the data set is no share or no subset, or if
        the number is unknown: ``select`` chose the samples by their numbers in this share, or an
        earlier version of dataprep copied the share without the table of the whole split.

    Raises:
        DatasetError: the data set is closed, or the table of samples of the whole split is missing
            or damaged, or does not agree with this share.
        DatasetChanged: the split was written again since it was opened.
    """
    share, queries = dataset.manifest.share, dataset._part.queries
    if not dataset.is_subset or share is None or share.table is None or queries is None:
        return None
    dataset._state.require_open()
    return subset_of_shares(dataset.snapshot, dataset.split, share, queries, len(dataset))
