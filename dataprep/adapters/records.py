"""Read encoded images of a data set by number; decode nothing else.

The table of samples has the place, the label and the checksum of each record, so only the image is
read from the record itself. Neighbouring records are read at once, and from a remote store many
ranges at a time: a request there takes as long as hundreds of images.
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

from dataprep.assign import RUN, Integers, Order, by_shard, of_share, own
from dataprep.dataset import Dataset, subset_of_all_hosts
from dataprep.errors import ConfigError, CorruptRecord
from dataprep.formats import get_format
from dataprep.formats.protocol import Buffer
from dataprep.keys import shard_number
from dataprep.ordered import in_order
from dataprep.reading.ranges import Range, RecordPlaces, largest_gap_bytes
from dataprep.reading.read_ahead import WINDOWS_AT_ONCE, GrowingWindows, ReadAhead, read_ahead
from dataprep.reading.read_counter import ReadCounter, StreamReport
from dataprep.reading.subset import DividedSubset, sample_name
from dataprep.stores.local import LocalStore, version_of

LOCAL_FILE_BYTES = 64 * 10**6
"""Size of the local files that MXNet's ImageRecordIter reads."""

_OPEN_FILES = 512
RANGES_AT_ONCE = 32
"""Ranges of one request for samples that are read from a remote store at the same time."""
_RUN_BYTES = 512 * 1024
_BATCH = 64  # samples of the first windows of a stream, if the batch is not known


class Records:
    """The encoded images and the labels of one split in one format.

    Threads can share an instance. It can be pickled and forked. If the split was made anew since
    it was opened, reading raises DatasetChanged. Records of a format without checksums of its own
    are compared with those of the table of samples, if that has them and ``check`` is true.

    Attributes:
        labels: int64 (samples,), counted from 0.
        mean_bytes: the average size of a record.
        subset: the name of the subset of the split, or None for the whole; see ``subset_name``.
        is_remote: whether a read takes much longer than from a disk.
        counter: counts the samples and bytes that arrive; see ``Dataset.count_reads``.
    """

    counter: ReadCounter | None

    def __init__(self, dataset: Dataset, *, check: bool = True) -> None:
        self._files: dict[int, int] = {}
        store = dataset.store
        self._folder = store if isinstance(store, LocalStore) else None
        self._snapshot = dataset.snapshot
        self._format = get_format(dataset.format)
        self._options = dataset.manifest.record_options(dataset.format)
        self._share = dataset.manifest.share
        self._fingerprint = dataset.manifest.fingerprint
        self._keys = [shard.key for shard in dataset.manifest.formats[dataset.format].shards]
        self._shards, self._offsets, self._lengths, self.labels = dataset.places
        # Samples are numbered in shard order.
        self._bounds: list[int] = np.searchsorted(
            self._shards, np.arange(len(self._keys) + 1)
        ).tolist()
        self._checksums = dataset.checksums if check else None
        self._places = RecordPlaces(self._shards, self._offsets, self._lengths)
        self._gap_bytes = largest_gap_bytes(store)
        self.subset = dataset.subset
        # Only ranks that divide a subset of a host's share need to know how it is divided.
        self._dataset = dataset if dataset.is_subset and self._share is not None else None
        self._selected = dataset.numbers if dataset.is_subset else None
        self.mean_bytes = int(self._lengths.sum()) // max(len(self.labels), 1) or 1
        # The gaps between samples of a subset take memory as the samples do.
        self._window_bytes_per_sample = self.mean_bytes
        if dataset.is_subset:
            self._window_bytes_per_sample = self._places.read_bytes_per_record(self._gap_bytes)
        self._run = max(RUN, _RUN_BYTES // self.mean_bytes)
        self.is_remote = self._folder is None
        self.counter = dataset.read_counter
        self._window_samples = 0  # of the last stream at its end

    def __getstate__(self) -> dict[str, Any]:
        # Another process has neither the open files nor the counter's file in memory.
        return {**self.__dict__, "_files": {}, "counter": None, "_dataset": None}

    def __del__(self) -> None:
        for descriptor in self._files.values():
            os.close(descriptor)

    def __len__(self) -> int:
        return len(self.labels)

    def name(self, number: int) -> str:
        """A description of a sample for messages: its number, shard and offset."""
        key = self._keys[self._shards[number]]
        sample = sample_name(number, self._selected)
        return f"{sample} ({key} at byte {self._offsets[number]:,})"

    @cached_property
    def _divided(self) -> DividedSubset | None:
        """How the shares of all hosts divide the subset; None if that is not known.

        It is read before the first epoch, in the process that trains.
        """
        return None if self._dataset is None else subset_of_all_hosts(self._dataset)

    def local(self, order: Order) -> Order:
        """The order within these samples: in a host's share, among the ranks of that host.

        Raises:
            ConfigError: the ranks do not fit the share, or read a subset of which it is not known
                how many samples each share has, or one share has none.
        """
        if self._share is None:
            return order
        samples = self.shares(order)
        if 0 in samples:
            raise ConfigError(
                f"share {samples.index(0)} of {len(samples)} has no sample of the subset, so that "
                "the ranks of that host would have no steps: open the whole output for the subset"
            )
        return of_share(order, self._share.number, samples)

    def shares(self, order: Order) -> tuple[int, ...]:
        """The number of samples of each share. A single rank and a whole output have one.

        Raises:
            ConfigError: several ranks read a subset, and these numbers are not known.
        """
        if self._share is None or order.world_size == 1:
            return (len(self),)
        if self.subset is None:
            return tuple(self._share.samples)
        if self._divided is None:
            raise ConfigError(
                f"{order.world_size} ranks cannot read this subset of a host's share: this host "
                "does not know how many samples of it the other hosts have, so that steps would "
                "differ. Choose the samples by dataset.where of a share that this version has "
                "staged, open the whole output, or let one rank read"
            )
        return self._divided.samples

    def subset_name(self, order: Order) -> str | None:
        """The name of the subset that the ranks of ``order`` read together; None for the whole."""
        if order.world_size == 1 or self._divided is None:
            return self.subset
        return self._divided.fingerprint

    def identity(self, order: Order) -> str:
        """A name of these samples: a state of other samples has another name.

        All hosts whose shares the ranks of ``order`` divide have the same name.
        """
        content: list[Any] = [self._fingerprint]
        if self._share is None:
            content += [[shard_number(key) for key in self._keys], self._bounds]
        else:
            content.append(list(self._share.samples))
            if order.world_size == 1:
                content.append(self._share.number)
        if self.subset is not None:
            content.append(self.subset_name(order))
        return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()

    def order_by_shard(self, order: Order) -> str:
        """A name of the order in which ``part`` reads."""
        if not order.shuffle:
            return "as stored"
        # The shares of hosts may have runs of different lengths.
        return "by shard" if self._share else f"by shard, runs of {self._run}"

    def part(self, order: Order, epoch: int) -> Integers:
        """The numbers of this rank's samples of an epoch, shard by shard."""
        return own(order, by_shard(order, self._bounds, epoch, self._run), epoch)

    def image(self, number: int) -> Buffer:
        """The encoded image of one sample, in one ranged read."""
        return self.fetch([number])[0]

    def fetch(
        self, numbers: Sequence[int], *, when_arrived: Callable[[], object] = lambda: None
    ) -> list[Buffer]:
        """The encoded images of several samples; ``when_arrived`` as in ``encoded``."""
        records = self.encoded(numbers, when_arrived=when_arrived)
        return [self._image_of(*each) for each in zip(records, numbers, strict=True)]

    def windows(self, numbers: Integers, size: int) -> Iterator[tuple[list[int], list[Buffer]]]:
        """The images, ``size`` samples at a time; the next ones are read meanwhile."""
        threads = WINDOWS_AT_ONCE if self.is_remote else 1
        with closing(in_order(self.fetch, windows(numbers, size), threads)) as read:
            yield from zip(windows(numbers, size), read, strict=True)

    def stream(
        self, numbers: Integers, batch_samples: int = _BATCH
    ) -> Iterator[tuple[int, Buffer]]:
        """Number and image of each sample; the next ones are read meanwhile.

        It suits an order by shard, where one request returns many samples. The first windows have
        ``batch_samples``, and later ones grow: see ``GrowingWindows``.
        """
        most = self._read_ahead
        growing = GrowingWindows(
            max(batch_samples, self._run), most, earlier_size=self._window_samples
        )
        report = StreamReport(self.counter) if self.counter is not None else None
        # While the rate of the store is unknown, the first window is requested alone: nothing else
        # delays the first batch.
        may_go_on = threading.Event()
        if self._window_samples:
            may_go_on.set()

        def sized() -> Iterator[list[int]]:
            begin = 0
            while begin < len(numbers):
                size = growing.next_size()
                if report is not None:
                    report.window(size, most.windows_at_once)
                yield numbers[begin : begin + size].tolist()
                begin += size
                may_go_on.wait()

        def read(window: list[int]) -> tuple[list[int], list[Buffer]]:
            begun_s = time.monotonic()

            def note_arrival() -> None:
                growing.arrived(time.monotonic() - begun_s)
                may_go_on.set()

            try:
                return window, self.fetch(window, when_arrived=note_arrival)
            finally:
                may_go_on.set()

        try:
            with closing(in_order(read, sized(), most.windows_at_once)) as arrived:
                for window, images in arrived:
                    growing.taken(len(window))
                    yield from zip(window, images, strict=True)
        finally:
            self._window_samples = growing.size
            if report is not None:
                report.end()

    @property
    def window_samples(self) -> int:
        """The largest number of samples that a sequential reader reads at a time."""
        return self._read_ahead.window_samples

    @property
    def _read_ahead(self) -> ReadAhead:
        return read_ahead(self._window_bytes_per_sample, is_remote=self.is_remote)

    def encoded(
        self, numbers: Sequence[int], *, when_arrived: Callable[[], object] = lambda: None
    ) -> list[Buffer]:
        """The records of several samples, framing included; views of what was read together.

        ``when_arrived`` is called when all bytes have arrived, before a request confirms that they
        belong to the data set: the caller may request other samples meanwhile.

        Raises:
            CorruptRecord: one is cut, or has another checksum.
            DatasetChanged: the split was made anew since it was opened, or is being.
            ObjectNotFound: a shard is missing.
        """
        ranges = self._places.ranges(numbers, self._gap_bytes)
        threads = min(RANGES_AT_ONCE, len(ranges)) if self.is_remote else 0
        contents: list[bytes] = []
        versions: dict[str, str] = {}
        for wanted, (data, version) in zip(
            ranges, in_order(self._read, ranges, threads), strict=True
        ):
            contents.append(data)
            if version is not None:
                versions[self._keys[wanted.shard]] = version
            if self.counter is not None:
                self.counter.add(len(wanted.positions), len(data))
        when_arrived()
        if versions:
            self._snapshot.confirm(versions)
        records: list[Buffer] = [b""] * len(numbers)
        for wanted, data in zip(ranges, contents, strict=True):
            view = memoryview(data)
            for position in wanted.positions:
                number = numbers[position]
                start = int(self._offsets[number]) - wanted.start
                record = view[start : start + int(self._lengths[number])]
                if self._checksums is not None and crc32c(record) != self._checksums[number]:
                    raise CorruptRecord(
                        f"{self.name(number)}: its CRC-32C is not the one in the table of samples;"
                        " run dataprep verify"
                    )
                records[position] = record
        return records

    def _read(self, wanted: Range) -> tuple[bytes, str | None]:
        """The bytes of a range, and the version to confirm; None if the file was confirmed."""
        shard, length = wanted.shard, wanted.stop - wanted.start
        if shard not in self._files and self._folder is not None and len(self._files) < _OPEN_FILES:
            self._open(shard, self._folder)
        descriptor = self._files.get(shard)
        if descriptor is None:
            return self._snapshot.get_unconfirmed(self._keys[shard], wanted.start, length)
        return os.pread(descriptor, length, wanted.start), None

    def _open(self, shard: int, folder: LocalStore) -> None:
        """Open a shard for good: opening takes longer than reading a record.

        If it cannot be opened, the usual way of reading raises the error.
        """
        with contextlib.suppress(OSError):
            path = folder.path(self._keys[shard])
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._snapshot.confirm({self._keys[shard]: version_of(os.fstat(descriptor))})
                self._files.setdefault(shard, descriptor)
            finally:
                if self._files.get(shard) != descriptor:  # another thread was first, or it changed
                    os.close(descriptor)

    def _image_of(self, record: Buffer, number: int) -> Buffer:
        offset = int(self._offsets[number])
        where = f"{self._keys[self._shards[number]]}: record at byte {offset}"
        found = next(self._format.read(record, where), None)
        if found is None:
            raise CorruptRecord(f"{where}: the shard ends before it; write it again", offset=offset)
        try:
            return self._format.image(found.payload, self._options)
        except CorruptRecord as error:
            raise CorruptRecord(f"{where}: {error}", offset=offset) from None


def windows(numbers: Integers, size: int) -> Iterator[list[int]]:
    """The same numbers, ``size`` at a time."""
    for begin in range(0, len(numbers), size):
        yield numbers[begin : begin + size].tolist()
