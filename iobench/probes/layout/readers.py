"""One read of an item: from a file, or from an object store."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from dataprep.stores import open_store
from iobench.errors import TrialFailed
from iobench.probes.layout.items import Item
from iobench.trial import Place

_PIECE_BYTES = 2**20

Read: TypeAlias = Callable[[Item], int]


@contextlib.contextmanager
def reading(place: Place, first: Item) -> Iterator[Read]:
    """What reads an item of the place and returns its bytes, which are thrown away.

    A file is opened for each item, as random access to thousands of shards needs, and read in
    pieces of 1 MiB. Objects come through dataprep's store, which holds whole ones against their
    checksum; the connection is there before the first item.

    Raises:
        TrialFailed: fewer bytes are there than the manifest or the listing says, by the
            callable.
    """
    if place.is_remote:
        store = open_store(place.uri, place.store)
        store.head(first.key)

        def fetch(item: Item) -> int:
            if item.whole:
                return _complete(item, len(store.get(item.key)))
            return _complete(item, len(store.get_range(item.key, item.offset, item.bytes)))

        yield fetch
        return
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, _PIECE_BYTES, flags=flags) as memory, memoryview(memory) as piece:
        memory[:] = bytes(_PIECE_BYTES)  # touched now, not in the first read
        yield partial(_from_file, os.fspath(Path(place.uri).expanduser()) + "/", piece)


def _from_file(top: str, piece: memoryview, item: Item) -> int:
    descriptor = os.open(top + item.key, os.O_RDONLY | os.O_CLOEXEC)
    try:
        at, end = item.offset, item.offset + item.bytes
        while at < end:
            got = os.preadv(descriptor, [piece[: end - at]], at)
            if not got:
                break
            at += got
    finally:
        os.close(descriptor)
    return _complete(item, at - item.offset)


def _complete(item: Item, got: int) -> int:
    if got != item.bytes:
        raise TrialFailed(
            f"{item.key}: {got:,} of {item.bytes:,} bytes at offset {item.offset:,}: it changed"
        )
    return got
