"""One trial of the layout probe: samples read as shards, as records, or as small files."""

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
from iobench.errors import TrialFailed
from iobench.machine.coldness import judge_remote
from iobench.machine.page_cache import prepared
from iobench.probes.processes import drive
from iobench.probes.settings import Access, LayoutTrial
from iobench.stored import image_files, open_shards
from iobench.trial import Context, Outcome, Place, TrialSpec

_READS_PER_S = 100_000  # more than Python can do; bounds the number of prepared reads
_PIECE_BYTES = 2**20
_STORE_NOTE = "read through dataprep's store, which checks whole objects against their MD5"


class Item(NamedTuple):
    """One read: ``bytes`` of an object from ``offset`` on, which contain ``samples``."""

    key: str
    offset: int
    bytes: int
    samples: int
    whole: bool


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read shards, records or files with several processes for some seconds; decode nothing.

    Process ``i`` of ``k`` reads items ``i, i + k, ...``. Cold trials read each item at most once;
    others start over after the last.

    Raises:
        TrialFailed: the place has data of another kind, or an item is shorter than listed.
        DatasetError, SourceError, StoreError: it cannot be read, or the key of a shard leads out of
            the output.
    """
    trial = typed(LayoutTrial, {**spec.params, "repeat": spec.repeat})
    place = context.places[trial.data]
    at_most = int(trial.seconds * _READS_PER_S) + trial.parallelism
    items = find_items(place, trial.access, at_most=at_most, seed=trial.repeat)
    cache = None
    if not place.is_remote:
        folder = LocalStore(place.uri)
        keys = dict.fromkeys(item.key for item in items)
        cache = prepared(trial.cache, [folder.path(key) for key in keys], trial.drop_caches)
    # With more processes than items, some would have nothing to do.
    processes = min(trial.parallelism, len(items))
    shares = [items[number::processes] for number in range(processes)]
    rounds = 1 if cache is not None and trial.cache == "cold" else at_most
    works = [itertools.chain.from_iterable(itertools.repeat(share, rounds)) for share in shares]
    opened = functools.partial(opened_place, place, items[0])
    context.begin()
    moved = drive(opened, works, context.clock, trial.seconds, context.progress)
    samples = 0
    for share, count in zip(shares, moved.operations, strict=True):
        done = itertools.islice(itertools.cycle(share), count)
        samples += sum(item.samples for item in done)
    metrics = {
        **moved.metrics(),
        "samples_per_s": samples / max(moved.seconds, 1e-9),
        "samples": samples,
        "processes": processes,
        "notes": [_STORE_NOTE] if place.is_remote else [],
    }
    whole = items[0].whole
    if whole:
        metrics["mean_object_bytes"] = moved.bytes / sum(moved.operations)
    if cache is None:
        return Outcome(metrics, judge_remote(trial.cache))
    return Outcome(metrics, cache.judged(moved.physical_ratio, sequential=whole))


def find_items(place: Place, access: Access, *, at_most: int, seed: int) -> Sequence[Item]:
    """List the reads at a place: shards in their order, records and files shuffled.

    Args:
        place: an output of ``dataprep shard``, or class folders for ``files``.
        access: the kind of item that is read.
        at_most: the largest number of reads.
        seed: the seed of the order.

    Raises:
        TrialFailed: the place has data of another kind.
        DatasetError, SourceError: nothing can be read there.
    """
    wanted = "files" if access == "files" else "shards"
    if place.holds != wanted:
        raise TrialFailed(f"{access} are read from {wanted}; this place holds {place.holds}")
    order = np.random.default_rng(seed).permutation
    if access == "files":
        files = image_files(ImageFolder(place.uri, place.store).list(), place.every)
        chosen = order(len(files.names))[:at_most]
        sizes = zip(chosen.tolist(), files.sizes[chosen].tolist(), strict=True)
        found = [Item(files.names[row], 0, size, 1, True) for row, size in sizes]
    else:
        dataset = open_shards(place)
        shards = dataset.manifest.formats[dataset.format].shards
        found = [Item(one.key, 0, one.bytes, one.records, True) for one in shards[:at_most]]
        if access == "records":
            chosen = order(len(dataset))[:at_most]
            rows = zip(*(column[chosen].tolist() for column in dataset.places[:3]), strict=True)
            found = [Item(shards[shard].key, at, length, 1, False) for shard, at, length in rows]
    if not found:
        raise TrialFailed(f"no {access} in {place.uri}")
    return found


@contextlib.contextmanager
def opened_place(place: Place, first: Item) -> Iterator[Callable[[Item], int]]:
    """Yield a function that reads an item of the place, drops the data, and returns their size.

    Each item opens its file, as random access to thousands of shards needs to, and reads it in
    pieces of 1 MiB. Objects are read through dataprep's store, which compares whole objects with
    their checksum; the store is connected before the first item.

    Raises:
        TrialFailed: the function found fewer bytes than the manifest or the listing says.
    """
    if place.is_remote:
        store = open_store(place.uri, place.store)
        store.head(first.key)

        def fetch(item: Item) -> int:
            if item.whole:
                return _require_all(item, len(store.get(item.key)))
            return _require_all(item, len(store.get_range(item.key, item.offset, item.bytes)))

        yield fetch
        return
    path_of = functools.cache(LocalStore(place.uri).path)  # refuses keys that lead out of it
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, _PIECE_BYTES, flags=flags) as memory, memoryview(memory) as piece:
        memory[:] = bytes(_PIECE_BYTES)  # touched now, not in the first read

        def read(item: Item) -> int:
            descriptor = os.open(path_of(item.key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                at, end = item.offset, item.offset + item.bytes
                while at < end:
                    got = os.preadv(descriptor, [piece[: end - at]], at)
                    if not got:
                        break
                    at += got
            finally:
                os.close(descriptor)
            return _require_all(item, at - item.offset)

        yield read


def _require_all(item: Item, got: int) -> int:
    if got != item.bytes:
        raise TrialFailed(
            f"{item.key}: {got:,} of {item.bytes:,} bytes at offset {item.offset:,}: the data "
            "changed"
        )
    return got
