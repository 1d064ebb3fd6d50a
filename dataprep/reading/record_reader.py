"""Read the encoded images of a data set by number.

The table of samples has the location, the label and the checksum of each record. Therefore only the
image is taken from the record itself. Neighbouring records are read together, as one range of
bytes. From a remote store, many ranges are read at the same time, to hide the latency of a request.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from crc32c import crc32c

from dataprep.errors import ConfigError, CorruptRecord
from dataprep.formats import get_format
from dataprep.formats.protocol import Buffer
from dataprep.output.keys import shard_number
from dataprep.reading.dataset import Dataset, subset_of_all_hosts
from dataprep.reading.epoch_order import (
    RUN_SAMPLES,
    Integers,
    Order,
    order_in_share,
    samples_of_rank,
    sequence_by_shard,
)
from dataprep.reading.ranges import Range, RecordLocations, largest_gap_bytes
from dataprep.reading.read_ahead import WINDOWS_AT_ONCE, GrowingWindows, ReadAhead, read_ahead
from dataprep.reading.read_counter import ReadCounter, StreamReport
from dataprep.reading.sample_rows import wrong_checksum
from dataprep.reading.subset import DividedSubset, sample_name
from dataprep.stores.local import LocalStore, version_of
from dataprep.threaded_map import in_order

LOCAL_FILE_BYTES = 64 * 10**6
"""Size of the local files to which records are copied for MXNet's ImageRecordIter."""

_MAX_OPEN_FILES = 512
"""Shards of a local folder that one reader keeps open. Many systems allow 1,024 files a process."""

RANGES_AT_ONCE = 32
"""Maximum number of ranges that ``encoded`` reads from a remote store at the same time."""

_MIN_RUN_BYTES = 512 * 1024
"""Runs of neighbouring records have about this size or more, so that their reads are not mostly
latency. Runs of large records have ``RUN_SAMPLES`` samples and are larger."""

_DEFAULT_BATCH = 64
"""Samples that are assumed to be in the consumer's batch if the caller of ``stream`` gives none."""


class Records:
    """The encoded images and the labels of one split in one format.

    Threads can share an instance. It can be pickled and forked. If the split was written again
    since it was opened, reading raises DatasetChanged. If the format has no checksums of its own,
    records are compared with the checksums in the table of samples, unless the table has none, or
    ``check`` is False here or in the data set.

    Attributes:
        labels: the label of each sample, from 0, or -1 without a class: int64 of shape (samples,).
        mean_bytes: the average size of a record in bytes.
        subset: ``Dataset.subset``, which names the samples of a subset; None for other data sets.
            For the subset that the ranks of all hosts read together, see ``subset_name``.
        is_remote: whether the shards are in another store than a local folder, such as S3.
        counter: counts the samples and bytes that arrive; None if they are not counted. See
            ``Dataset.count_reads``.
    """

    counter: ReadCounter | None

    def __init__(self, dataset: Dataset, *, check: bool = True) -> None:
        self._descriptors: dict[int, int] = {}
        store = dataset.store
        self._folder = store if isinstance(store, LocalStore) else None
        self._snapshot = dataset.snapshot
        self._format = get_format(dataset.format)
        self._options = dataset.manifest.record_options(dataset.format)
        self._share = dataset.manifest.share
        self._fingerprint = dataset.manifest.fingerprint
        self._keys = [shard.key for shard in dataset.manifest.formats[dataset.format].shards]
        self._shards, self._offsets, self._lengths, self.labels = dataset.places
        # The number of the first sample of each shard, then the number of all samples.
        self._first_samples: list[int] = np.searchsorted(
            self._shards, np.arange(len(self._keys) + 1)
        ).tolist()
        self._checksums = dataset.checksums if check else None
        self._locations = RecordLocations(self._shards, self._offsets, self._lengths)
        self._gap_bytes = largest_gap_bytes(store)
        self.subset = dataset.subset
        self._selected = dataset.numbers if dataset.is_subset else None
        # The data set counts the samples of the subset in the shares of all hosts, when a method
        # first needs this number.
        self._subset_of_share = None
        if dataset.is_subset and self._share is not None:
            self._subset_of_share = dataset
        self.mean_bytes = int(self._lengths.sum()) // max(len(self.labels), 1) or 1
        # Reads of a subset include small gaps between its samples, which also take memory.
        self._window_bytes_per_sample = self.mean_bytes
        if dataset.is_subset:
            self._window_bytes_per_sample = self._locations.read_bytes_per_record(self._gap_bytes)
        self._run_samples = max(RUN_SAMPLES, _MIN_RUN_BYTES // self.mean_bytes)
        self.is_remote = self._folder is None
        self.counter = dataset.read_counter
        # The size of the windows at the end of the last stream; 0 before the first stream.
        self._last_window_samples = 0

    def __getstate__(self) -> dict[str, object]:
        # Open files, and the counter's file in memory, belong to this process. Another process does
        # not need the data set, because ``_subset_of_all_hosts`` was computed in this one.
        return {**self.__dict__, "_descriptors": {}, "counter": None, "_subset_of_share": None}

    def __del__(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def __len__(self) -> int:
        return len(self.labels)

    def name(self, number: int) -> str:
        """Describe a sample for messages: its number, its shard, and its offset in the shard."""
        key = self._keys[self._shards[number]]
        sample = sample_name(number, self._selected)
        return f"{sample} ({key} at byte {self._offsets[number]:,})"

    @cached_property
    def _subset_of_all_hosts(self) -> DividedSubset | None:
        """How many samples of the subset each host's share has.

        None if this is no subset of a share, or if the numbers are unknown. The training process
        computes this before the first epoch; its workers get the value.
        """
        if self._subset_of_share is None:
            return None
        return subset_of_all_hosts(self._subset_of_share)

    def order_on_host(self, order: Order) -> Order:
        """Return the order for this host's share, among the ranks of this host.

        If the data set is no share, or a single rank reads it, the order stays as it is.

        Raises:
            ConfigError: the number of ranks does not fit the number of shares; this rank belongs to
                another host's share; or several ranks read a subset, and the number of its samples
                in some share is unknown or 0.
        """
        if self._share is None:
            return order
        samples = self.samples_by_share(order)
        if 0 in samples:
            raise ConfigError(
                f"share {samples.index(0)} of {len(samples)} has no sample of the subset, so that "
                "the ranks of that host would have no steps: open the whole output for the subset"
            )
        return order_in_share(order, self._share.number, samples)

    def samples_by_share(self, order: Order) -> tuple[int, ...]:
        """Return the number of samples in each share.

        If the data set is no share, or a single rank reads it, all its samples count as one share.

        Raises:
            ConfigError: several ranks read a subset, and these numbers are unknown.
        """
        if self._share is None or order.world_size == 1:
            return (len(self),)
        if self.subset is None:
            return tuple(self._share.samples)
        if self._subset_of_all_hosts is None:
            raise ConfigError(
                f"{order.world_size} ranks cannot read this subset of a host's share: it is "
                "unknown how many samples of the subset the other hosts have, so the ranks could "
                "make different numbers of steps. Choose the samples with dataset.where, in a "
                "share that this version of dataprep has staged; or open the whole output; or read "
                "with one rank"
            )
        return self._subset_of_all_hosts.samples

    def subset_name(self, order: Order) -> str | None:
        """Return the name of the subset that all ranks read together; None if it is no subset."""
        if order.world_size == 1 or self._subset_of_all_hosts is None:
            return self.subset
        return self._subset_of_all_hosts.fingerprint

    def identity(self, order: Order) -> str:
        """Return a name of these samples. A saved state of other samples has another name.

        The name is the same on all hosts whose ranks read together.
        """
        content: list[Any] = [self._fingerprint]
        if self._share is None:
            content += [[shard_number(key) for key in self._keys], self._first_samples]
        else:
            content.append(list(self._share.samples))
            # A single rank reads only the share of its host. Several ranks read all shares.
            if order.world_size == 1:
                content.append(self._share.number)
        if self.subset is not None:
            content.append(self.subset_name(order))
        return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()

    def order_name(self, order: Order) -> str:
        """Return a name of the order in which ``samples_of_rank`` returns the samples."""
        if not order.shuffle:
            return "as stored"
        # Each host chooses the length of runs from the records of its share. The name must be the
        # same on all hosts, so it does not have the length.
        if self._share:
            return "by shard"
        return f"by shard, runs of {self._run_samples}"

    def samples_of_rank(self, order: Order, epoch: int) -> Integers:
        """Return the numbers of the samples that this rank reads in an epoch, shard by shard."""
        sequence = sequence_by_shard(order, self._first_samples, epoch, self._run_samples)
        return samples_of_rank(order, sequence, epoch)

    def image(self, number: int) -> Buffer:
        """Return the encoded image of a sample, by one range request. See ``fetch`` for errors."""
        return self.fetch([number])[0]

    def fetch(
        self, numbers: Sequence[int], *, when_arrived: Callable[[], object] = lambda: None
    ) -> list[Buffer]:
        """Return the encoded images of samples. Arguments and errors are as in ``encoded``."""
        records = self.encoded(numbers, when_arrived=when_arrived)
        return [
            self._image_of(record, number) for record, number in zip(records, numbers, strict=True)
        ]

    def windows(self, numbers: Integers, size: int) -> Iterator[tuple[list[int], list[Buffer]]]:
        """Yield the numbers and encoded images of ``size`` samples at a time.

        The next samples are read meanwhile. The last window may have fewer samples.
        """
        threads = WINDOWS_AT_ONCE if self.is_remote else 1
        with closing(in_order(self.fetch, in_windows(numbers, size), threads)) as images:
            yield from zip(in_windows(numbers, size), images, strict=True)

    def stream(
        self, numbers: Integers, batch_samples: int = _DEFAULT_BATCH
    ) -> Iterator[tuple[int, Buffer]]:
        """Yield the number and the encoded image of each sample. Read the next samples meanwhile.

        Use this for an order by shard, where one request returns many samples. Windows of samples
        are read together. The first window has a batch or a run, whichever has more samples, and
        later windows grow: see ``GrowingWindows``.

        Args:
            numbers: the numbers of the samples, in the order in which to yield them.
            batch_samples: samples in the consumer's batch.
        """
        limits = self._read_ahead
        window_sizes = GrowingWindows(
            max(batch_samples, self._run_samples), limits, earlier_size=self._last_window_samples
        )
        report = StreamReport(self.counter) if self.counter is not None else None
        # The first window of this reader's first stream is requested alone. Therefore no other
        # request delays the first batch, and its time shows the rate of the store.
        may_request_more = threading.Event()
        if self._last_window_samples:
            may_request_more.set()

        def sample_windows() -> Iterator[list[int]]:
            """Yield the sample numbers of one window after another, each when it is requested."""
            begin = 0
            while begin < len(numbers):
                size = window_sizes.next_size()
                if report is not None:
                    report.window(size, limits.windows_at_once)
                yield numbers[begin : begin + size].tolist()
                begin += size
                may_request_more.wait()

        def fetch_window(window: list[int]) -> tuple[list[int], list[Buffer]]:
            """Read the images of a window, and note how long its requests took."""
            begun_s = time.monotonic()

            def note_arrival() -> None:
                window_sizes.note_arrival(time.monotonic() - begun_s)
                may_request_more.set()

            try:
                return window, self.fetch(window, when_arrived=note_arrival)
            finally:
                # If the read failed, ``sample_windows`` must not wait for ever.
                may_request_more.set()

        try:
            fetched = in_order(fetch_window, sample_windows(), limits.windows_at_once)
            with closing(fetched):
                for window, images in fetched:
                    window_sizes.note_taken(len(window))
                    yield from zip(window, images, strict=True)
        finally:
            self._last_window_samples = window_sizes.size
            if report is not None:
                report.end()

    @property
    def window_samples(self) -> int:
        """The number of samples in the largest window that ``stream`` reads."""
        return self._read_ahead.window_samples

    @property
    def _read_ahead(self) -> ReadAhead:
        """How far ``stream`` reads ahead at most."""
        return read_ahead(self._window_bytes_per_sample, is_remote=self.is_remote)

    def encoded(
        self, numbers: Sequence[int], *, when_arrived: Callable[[], object] = lambda: None
    ) -> list[Buffer]:
        """Return the records of these samples, with the framing of their format.

        Records that were read together are views of the same bytes, so that one of them keeps the
        others in memory.

        Args:
            numbers: the numbers of the samples, in any order.
            when_arrived: called once, when all bytes have arrived. After that, one more request may
                be needed to confirm that the bytes belong to the data set. The caller may request
                other samples meanwhile.

        Returns:
            The record of each sample, in the order of ``numbers``.

        Raises:
            CorruptRecord: a record is cut off, or has another checksum.
            DatasetChanged: the split was written again since it was opened.
            ObjectNotFound: a shard is missing.
        """
        ranges = self._locations.ranges(numbers, self._gap_bytes)
        threads = min(RANGES_AT_ONCE, len(ranges)) if self.is_remote else 0
        contents: list[bytes] = []
        versions: dict[str, str] = {}
        reads = in_order(self._read, ranges, threads)
        for byte_range, (data, version) in zip(ranges, reads, strict=True):
            contents.append(data)
            if version is not None:
                versions[self._keys[byte_range.shard]] = version
            if self.counter is not None:
                self.counter.add(len(byte_range.positions), len(data))
        when_arrived()
        if versions:
            self._snapshot.confirm(versions)
        records: list[Buffer] = [b""] * len(numbers)
        for byte_range, data in zip(ranges, contents, strict=True):
            view = memoryview(data)
            for position in byte_range.positions:
                number = numbers[position]
                start = int(self._offsets[number]) - byte_range.start
                record = view[start : start + int(self._lengths[number])]
                if self._checksums is not None and crc32c(record) != self._checksums[number]:
                    raise wrong_checksum(self.name(number))
                records[position] = record
        return records

    def _read(self, byte_range: Range) -> tuple[bytes, str | None]:
        """Return the bytes of a range, and the version of its shard that must still be confirmed.

        The version is None if it is confirmed already.
        """
        shard, length = byte_range.shard, byte_range.stop - byte_range.start
        may_open = self._folder is not None and len(self._descriptors) < _MAX_OPEN_FILES
        if may_open and shard not in self._descriptors:
            self._open(shard)
        descriptor = self._descriptors.get(shard)
        if descriptor is None:
            return self._snapshot.get_unconfirmed(self._keys[shard], byte_range.start, length)
        return os.pread(descriptor, length, byte_range.start), None

    def _open(self, shard: int) -> None:
        """Open a shard of a local folder and keep it open.

        The file stays open because opening a file takes longer than reading a record. An OSError is
        ignored here. The shard is then read through the snapshot, which raises the error.
        """
        if self._folder is None:
            return
        with contextlib.suppress(OSError):
            path = self._folder.path(self._keys[shard])
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._snapshot.confirm({self._keys[shard]: version_of(os.fstat(descriptor))})
                self._descriptors.setdefault(shard, descriptor)
            finally:
                # Close the file if another thread was first, or if it could not be confirmed.
                if self._descriptors.get(shard) != descriptor:
                    os.close(descriptor)

    def _image_of(self, record: Buffer, number: int) -> Buffer:
        """Return the encoded image of the record of sample ``number``.

        Raises:
            CorruptRecord: the record is empty or damaged.
        """
        offset = int(self._offsets[number])
        where = f"{self._keys[self._shards[number]]}: record at byte {offset}"
        for raw_record in self._format.read(record, where):
            try:
                return self._format.image(raw_record.payload, self._options)
            except CorruptRecord as error:
                raise CorruptRecord(f"{where}: {error}", offset=offset) from None
        raise CorruptRecord(
            f"{where}: the shard ends before it; write the shard again", offset=offset
        )


def in_windows(numbers: Integers, size: int) -> Iterator[list[int]]:
    """Yield the numbers in lists of length ``size``; the last list may be shorter."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size].tolist()
