"""One trial of the layout probe: read samples as whole shards, as records, or as small files."""

from __future__ import annotations

import contextlib
import functools
import itertools
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dataprep.schema import typed
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores import open_store
from dataprep.stores.local import LocalStore
from iobench.data.data_summary import image_files, open_shards
from iobench.errors import TrialFailed
from iobench.machine.coldness import judge_remote
from iobench.machine.page_cache import prepare_cache
from iobench.probes.parallel import run_in_processes
from iobench.probes.settings import Access, LayoutTrial
from iobench.results.trial import Context, Location, Outcome, TrialSpec

_MAX_READS_PER_S = 100_000
"""More reads than a process can do in a second. It limits the number of prepared reads."""

_PIECE_BYTES = 2**20
"""The number of bytes that a file is read at a time."""
_STORE_NOTE = "read through dataprep's store, which checks whole objects against their MD5"


class Item(NamedTuple):
    """One read of a file or an object.

    Attributes:
        key: the key of the file or object, relative to the location of the data.
        offset: the position of the first byte in the file or object.
        bytes: the number of bytes to read.
        samples: the number of samples in these bytes.
        is_whole: whether the read covers the whole file or object.
    """

    key: str
    offset: int
    bytes: int
    samples: int
    is_whole: bool


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read shards, records or files with several processes for some seconds, without decoding.

    Process ``i`` of ``k`` reads items ``i, i + k, ...``. A cold trial on local files reads each
    item at most once, since a second read would come from the page cache. Other trials start again
    after the last item.

    Raises:
        TrialFailed: the data have another form, or an item is shorter than the manifest or the
            listing says.
        DatasetError, SourceError, StoreError: the data cannot be read, or the key of a shard is
            outside the output.
    """
    trial = typed(LayoutTrial, {**spec.params, "repeat": spec.repeat})
    location = context.locations[trial.data]
    max_items = int(trial.seconds * _MAX_READS_PER_S) + trial.parallelism
    items = find_items(location, trial.access, max_items=max_items, seed=trial.repeat)
    cache = None
    if not location.is_remote:
        folder = LocalStore(location.uri)
        keys = dict.fromkeys(item.key for item in items)
        cache = prepare_cache(trial.cache, [folder.path(key) for key in keys], trial.drop_caches)
    # With more processes than items, some processes would have nothing to do.
    processes = min(trial.parallelism, len(items))
    shares = [items[number::processes] for number in range(processes)]
    # As many rounds as ``max_items`` take longer than the trial, so that its time limit ends it.
    rounds = 1 if cache is not None and trial.cache == "cold" else max_items
    repeated_shares = [
        itertools.chain.from_iterable(itertools.repeat(share, rounds)) for share in shares
    ]
    open_operation = functools.partial(open_reader, location, items[0])
    context.begin()
    moved = run_in_processes(
        open_operation, repeated_shares, context.clock, trial.seconds, context.progress
    )
    samples = _read_samples(shares, moved.operations)
    metrics = {
        **moved.metrics(),
        "samples_per_s": samples / max(moved.seconds, 1e-9),
        "samples": samples,
        "processes": processes,
        "notes": [_STORE_NOTE] if location.is_remote else [],
    }
    reads_whole_files = items[0].is_whole
    if reads_whole_files:
        metrics["mean_object_bytes"] = moved.bytes / sum(moved.operations)
    if cache is None:
        return Outcome(metrics, judge_remote(trial.cache))
    return Outcome(metrics, cache.judged(moved.physical_ratio, sequential=reads_whole_files))


def _read_samples(shares: Sequence[Sequence[Item]], operations: Sequence[int]) -> int:
    """Return the number of samples in all items that were read. Items that were read again count.

    Args:
        shares: the items of each process. After the last one, it starts again with the first one.
        operations: the number of reads of each process.
    """
    samples = 0
    for share, reads in zip(shares, operations, strict=True):
        read_items = itertools.islice(itertools.cycle(share), reads)
        samples += sum(item.samples for item in read_items)
    return samples


def find_items(location: Location, access: Access, *, max_items: int, seed: int) -> Sequence[Item]:
    """List the reads of a trial.

    Shards keep their order. Records and files are shuffled, because loaders read single samples in
    random order.

    Args:
        location: the location of an output of ``dataprep shard``, or of class folders if ``access``
            is ``files``.
        access: what each read covers.
        max_items: the largest number of reads.
        seed: the seed of the order.

    Raises:
        TrialFailed: the data have another form, or there are no items.
        DatasetError, SourceError: the data cannot be read.
    """
    needed_form = "files" if access == "files" else "shards"
    if location.holds != needed_form:
        raise TrialFailed(
            f"{access} are read from {needed_form}, but this location holds {location.holds}"
        )
    generator = np.random.default_rng(seed)
    if access == "files":
        items = _file_items(location, max_items, generator)
    elif access == "records":
        items = _record_items(location, max_items, generator)
    else:
        items = _shard_items(location, max_items)
    if not items:
        raise TrialFailed(f"no {access} in {location.uri}")
    return items


def _file_items(location: Location, max_items: int, generator: np.random.Generator) -> list[Item]:
    """Return a read of each image file, in random order."""
    files = image_files(ImageFolder(location.uri, location.store).list(), location.every)
    positions = generator.permutation(len(files.names))[:max_items]
    sizes = files.sizes[positions].tolist()
    items = []
    for position, size_bytes in zip(positions.tolist(), sizes, strict=True):
        items.append(Item(files.names[position], 0, size_bytes, samples=1, is_whole=True))
    return items


def _shard_items(location: Location, max_items: int) -> list[Item]:
    """Return a read of each shard, in the order of the manifest."""
    dataset = open_shards(location)
    shards = dataset.manifest.formats[dataset.format].shards
    return [Item(shard.key, 0, shard.bytes, shard.records, True) for shard in shards[:max_items]]


def _record_items(location: Location, max_items: int, generator: np.random.Generator) -> list[Item]:
    """Return a read of each record, in random order."""
    dataset = open_shards(location)
    shards = dataset.manifest.formats[dataset.format].shards
    positions = generator.permutation(len(dataset))[:max_items]
    # The columns are the numbers of the shards, and the offsets and lengths of the records.
    columns = [column[positions].tolist() for column in dataset.places[:3]]
    items = []
    for shard_number, offset, length in zip(*columns, strict=True):
        items.append(Item(shards[shard_number].key, offset, length, samples=1, is_whole=False))
    return items


@contextlib.contextmanager
def open_reader(location: Location, first: Item) -> Iterator[Callable[[Item], int]]:
    """Yield a function that reads an item, drops the data, and returns the number of bytes.

    For each item, the file is opened again and read in pieces of 1 MiB. A program that reads
    thousands of shards in random order also opens files again and again. Objects are read through
    dataprep's store, which compares whole objects with their checksums. The connection to the store
    is opened before the first item.

    Args:
        location: the location of the data.
        first: an item that is requested without its data, to open the connection.

    Raises:
        TrialFailed: the function has read fewer bytes than the manifest or the listing says.
    """
    if location.is_remote:
        store = open_store(location.uri, location.store)
        store.head(first.key)

        def fetch(item: Item) -> int:
            if item.is_whole:
                return _require_all(item, len(store.get(item.key)))
            return _require_all(item, len(store.get_range(item.key, item.offset, item.bytes)))

        yield fetch
        return
    # LocalStore refuses keys that are outside the folder.
    path_of = functools.cache(LocalStore(location.uri).path)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, _PIECE_BYTES, flags=flags) as memory, memoryview(memory) as piece:
        # The memory is touched here, so that the first read is not slower than the others.
        memory[:] = bytes(_PIECE_BYTES)

        def read(item: Item) -> int:
            descriptor = os.open(path_of(item.key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                offset, end = item.offset, item.offset + item.bytes
                while offset < end:
                    read_bytes = os.preadv(descriptor, [piece[: end - offset]], offset)
                    if not read_bytes:
                        break
                    offset += read_bytes
            finally:
                os.close(descriptor)
            return _require_all(item, offset - item.offset)

        yield read


def _require_all(item: Item, read_bytes: int) -> int:
    """Return ``read_bytes``, after a check that the item was read completely.

    Raises:
        TrialFailed: the number of bytes differs from the size of the item.
    """
    if read_bytes != item.bytes:
        raise TrialFailed(
            f"{item.key}: {read_bytes:,} of {item.bytes:,} bytes at offset {item.offset:,}: the "
            "data changed"
        )
    return read_bytes
