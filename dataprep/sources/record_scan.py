"""Shards of anybody's making, gone through once: where each record lies and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dataprep.errors import CorruptRecord
from dataprep.ordered import in_order
from dataprep.sources.framing import Framed, recordio_at, tfrecord_at
from dataprep.sources.ranges import Ranges, Readable
from dataprep.sources.record_classes import Scanned, as_name
from dataprep.sources.record_content import Content, Fields, of_example, of_image_record
from dataprep.sources.record_files import Format
from dataprep.stores import ObjectInfo, Store
from dataprep.stores.local import LocalStore

_CHUNK_BYTES = 8 * 2**20
_HEADERS_BYTES = 4096
_AHEAD = 4
_SHARDS_AT_ONCE = 4
_IMAGE_HEADER_BYTES = 24


def scan(
    store: Store, shards: Sequence[ObjectInfo], form: Format, fields: Fields
) -> Iterator[list[Scanned]]:
    """The records of each shard, in order. Of RecordIO on a disk only headers are read.

    Raises:
        StoreError: a shard could not be read.
    """
    local = isinstance(store, LocalStore)
    with ThreadPoolExecutor(_SHARDS_AT_ONCE * _AHEAD) as pool:

        def one(shard: ObjectInfo) -> list[Scanned]:
            fetch = partial(store.get_range, shard.key)
            if local:
                chunk_bytes = _HEADERS_BYTES if form == "recordio" else _CHUNK_BYTES
                data = Ranges(fetch, chunk_bytes, shard.bytes)
            else:
                data = Ranges(fetch, _CHUNK_BYTES, shard.bytes, pool, _AHEAD)
            try:
                if form == "recordio":
                    return list(scan_recordio(data, shard.key, shard.bytes))
                return list(scan_tfrecord(data, shard.key, shard.bytes, fields))
            finally:
                data.close()

        yield from in_order(one, shards, _SHARDS_AT_ONCE)


def scan_tfrecord(data: Readable, shard: str, size: int, fields: Fields) -> Iterator[Scanned]:
    """The Examples of a shard of ``size`` bytes."""

    def found(number: int, offset: int, framed: Framed) -> Scanned:
        content = of_example(framed.payload, fields)
        return _scanned(shard, number, offset, len(memoryview(content.image)), content)

    return _scan(lambda offset: tfrecord_at(data, offset), shard, size, found)


def scan_recordio(data: Readable, shard: str, size: int) -> Iterator[Scanned]:
    """The image records of a file of ``size`` bytes."""

    def found(number: int, offset: int, framed: Framed) -> Scanned:
        content = of_image_record(framed.payload)
        # By the header's flag: labels that follow the header.
        header_bytes = _IMAGE_HEADER_BYTES + 4 * int.from_bytes(framed.payload[:4], "little")
        return _scanned(shard, number, offset, framed.size - header_bytes, content)

    return _scan(lambda offset: recordio_at(data, offset, size), shard, size, found)


def _scan(
    at: Callable[[int], Framed],
    shard: str,
    size: int,
    found: Callable[[int, int, Framed], Scanned],
) -> Iterator[Scanned]:
    offset: int | None = 0
    number = 0
    while offset is not None and offset < size:
        framed = at(offset)
        problem = framed.problem
        if not problem:
            try:
                yield found(number, offset, framed)
            except CorruptRecord as error:
                problem = str(error)
        if problem:
            yield Scanned(shard, number, offset, problem=f"damaged at byte {offset}: {problem}")
        offset = framed.end
        number += 1


def _scanned(shard: str, number: int, offset: int, size: int, content: Content) -> Scanned:
    return Scanned(
        shard,
        number,
        offset,
        size,
        content.labels,
        as_name(content.synset),
        as_name(content.text),
        as_name(content.filename),
        boxes=content.boxes,
    )
