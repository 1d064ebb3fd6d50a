"""One trial of the layout probe: the same samples as shards, as records, or as small files."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dataprep.dataset import open_dataset
from dataprep.schema import typed
from dataprep.sources.imagefolder import ImageFolder
from dataprep.stores import open_store
from iobench.errors import TrialFailed
from iobench.image_files import image_files
from iobench.machine.coldness import judge_remote
from iobench.machine.page_cache import prepared
from iobench.probes.processes import Lane, Tally, drive
from iobench.probes.settings import Access, LayoutTrial
from iobench.stats import quantiles
from iobench.trial import Context, Metrics, Outcome, Place, TrialSpec

_READS_PER_S = 100_000  # more than Python can do: bounds what is prepared
_PIECE_BYTES = 2**20
_STORE_NOTE = "read through dataprep's store, which checks whole objects against their MD5"


class Item(NamedTuple):
    """One read: ``bytes`` of an object from ``offset`` on, which hold ``samples``."""

    key: str
    offset: int
    bytes: int
    samples: int
    whole: bool


def run(spec: TrialSpec, context: Context) -> Outcome:
    """Read shards, records or files with several processes, for a while; nothing is decoded.

    Process ``i`` of ``k`` reads items ``i, i + k, ...``. Cold trials read each item once and
    end with the last; others start over.

    Raises:
        TrialFailed: the place holds something else, or less than it says.
        DatasetError, SourceError, StoreError: it cannot be read.
    """
    trial = typed(LayoutTrial, {**spec.params, "repeat": spec.repeat})
    place = context.places[trial.data]
    at_most = int(trial.seconds * _READS_PER_S) + trial.parallelism
    items = find_items(place, trial.access, at_most=at_most, seed=trial.repeat)
    cache = None
    if not place.is_remote:
        root = Path(place.uri).expanduser()
        keys = dict.fromkeys(item.key for item in items)
        cache = prepared(trial.cache, [root / key for key in keys], trial.drop_caches)
    # More processes than items would only be started.
    processes = min(trial.parallelism, len(items))
    shares = [items[number::processes] for number in range(processes)]
    rounds = 1 if cache is not None and trial.cache == "cold" else at_most
    lanes = []
    for share in shares:
        work = itertools.chain.from_iterable(itertools.repeat(share, rounds))
        lanes.append(Lane(partial(opened_place, place, share[0]), work))
    tally = drive(lanes, context.clock, trial.seconds, context.progress)
    whole = items[0].whole
    metrics = _metrics(tally, shares, place, whole)
    if cache is None:
        return Outcome(metrics, judge_remote(trial.cache))
    return Outcome(metrics, cache.judged(tally.physical_ratio, sequential=whole))


def find_items(place: Place, access: Access, *, at_most: int, seed: int) -> Sequence[Item]:
    """List the reads at a place: shards in their order, records and files shuffled.

    Args:
        place: an output of ``dataprep shard``, or class folders for ``files``.
        access: what is read.
        at_most: how many reads are listed.
        seed: of the order.

    Raises:
        TrialFailed: the place holds something else.
        DatasetError, SourceError: nothing can be read there.
    """
    wanted = "files" if access == "files" else "shards"
    if place.holds != wanted:
        raise TrialFailed(f"{access} are read from {wanted}; this place holds {place.holds}")
    if access == "files":
        found = _files(place, at_most, seed)
    else:
        found = _parts_of_shards(place, access, at_most, seed)
    if not found:
        raise TrialFailed(f"no {access} in {place.uri}")
    return found


def _parts_of_shards(place: Place, access: Access, at_most: int, seed: int) -> Sequence[Item]:
    dataset = open_dataset(place.uri, place.split, options=place.store)
    shards = dataset.manifest.formats[dataset.format].shards
    if access == "shards":
        whole = shards[:at_most]
        return [Item(shard.key, 0, shard.bytes, shard.records, True) for shard in whole]
    chosen = np.random.default_rng(seed).permutation(len(dataset))[:at_most]
    rows = zip(*(column[chosen].tolist() for column in dataset.places[:3]), strict=True)
    return [Item(shards[shard].key, offset, length, 1, False) for shard, offset, length in rows]


def _files(place: Place, at_most: int, seed: int) -> Sequence[Item]:
    found = image_files(ImageFolder(place.uri, place.store).list())
    chosen = np.random.default_rng(seed).permutation(len(found.names))[:at_most].tolist()
    return [Item(found.names[row], 0, int(found.sizes[row]), 1, True) for row in chosen]


@contextlib.contextmanager
def opened_place(place: Place, first: Item) -> Iterator[Callable[[Item], int]]:
    """Give what reads an item of the place and returns its bytes, which are thrown away.

    A file is opened for each item, as random access to thousands of shards needs, and read in
    pieces of 1 MiB. Objects come through dataprep's store, which compares whole ones with their
    checksum; it is connected before the first item.

    Raises:
        TrialFailed: fewer bytes are there than the manifest or the listing says, by the
            callable.
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
    root = os.fspath(Path(place.uri).expanduser()) + "/"
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, _PIECE_BYTES, flags=flags) as memory, memoryview(memory) as piece:
        memory[:] = bytes(_PIECE_BYTES)  # touched now, not in the first read

        def read(item: Item) -> int:
            descriptor = os.open(root + item.key, os.O_RDONLY | os.O_CLOEXEC)
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
            f"{item.key}: {got:,} of {item.bytes:,} bytes at offset {item.offset:,}: it changed"
        )
    return got


def _metrics(tally: Tally, shares: Sequence[Sequence[Item]], place: Place, whole: bool) -> Metrics:
    counts = zip(shares, tally.operations, strict=True)
    samples = sum(samples_of(share, count) for share, count in counts)
    seconds = max(tally.seconds, 1e-9)
    operations = len(tally.latencies_s)
    metrics = {
        "mb_per_s": tally.bytes / 1e6 / seconds,
        "samples_per_s": samples / seconds,
        "bytes": tally.bytes,
        "seconds": tally.seconds,
        "samples": samples,
        "operations": operations,
        "processes": len(shares),
    }
    if whole:
        metrics["mean_object_bytes"] = tally.bytes / operations
    latency = quantiles(tally.latencies_s)
    metrics |= {f"latency_s_{name}": value for name, value in latency.items()}
    return {**metrics, "notes": [_STORE_NOTE] if place.is_remote else []}


def samples_of(share: Sequence[Item], reads: int) -> int:
    """PURE. Samples in the first ``reads`` items of a share that is read again and again."""
    rounds, rest = divmod(reads, len(share))
    once = sum(item.samples for item in share) if rounds else 0
    return rounds * once + sum(item.samples for item in share[:rest])
