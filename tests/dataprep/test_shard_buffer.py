"""A shard in memory: what is stored, and what is known of each record."""

from __future__ import annotations

import hashlib
import mmap
import secrets

import pytest
from crc32c import crc32c

from dataprep import shard_buffer
from dataprep.formats import IndexEntry, RecordOptions, Sample, format_names, get_format
from dataprep.shard_buffer import Records, ShardBuffer
from dataprep.stores import Store
from dataprep.stores.memory import MemoryStore

PLACE = ("train", 1, 4)
IMAGES = [bytes([number]) * size for number, size in enumerate((40_000, 1, 900_000, 300_000))]


def filled(name: str, store: Store) -> ShardBuffer:
    """A shard of these images."""
    buffer = ShardBuffer(get_format(name), store)
    samples = [Sample(image, label=number, number=number) for number, image in enumerate(IMAGES)]
    for part in (samples[:1], [], samples[1:]):
        buffer.append(Records.of(get_format(name), RecordOptions(), part))
    return buffer


def entries(buffer: ShardBuffer) -> list[IndexEntry]:
    """What an index says of them."""
    places = zip(buffer.offsets, buffer.lengths, strict=True)
    return [IndexEntry(i, i, offset, length, str(i)) for i, (offset, length) in enumerate(places)]


@pytest.mark.parametrize("first_bytes", [4096, 1_000_000, 2**27])
@pytest.mark.parametrize("name", format_names())
def test_a_shard_is_stored_with_its_hash_and_places(
    name: str, first_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its memory had to grow: records are where their offsets say."""
    monkeypatch.setattr(shard_buffer, "_FIRST_BYTES", first_bytes)
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    buffer = filled(name, store)
    stored = buffer.put(PLACE, entries(buffer))
    content = store.get(stored.file.key)
    assert stored.file.sha256 == hashlib.sha256(content).hexdigest()
    assert (stored.file.bytes, stored.records) == (len(content), len(IMAGES))
    ends = [*buffer.offsets[1:], len(content)]
    for offset, length, end, crc, image in zip(
        buffer.offsets, buffer.lengths, ends, buffer.crcs, IMAGES, strict=True
    ):
        assert offset + length == end
        assert crc == crc32c(content[offset:end])
        assert image in content[offset:end]
    for index in stored.indexes:
        assert index.sha256 == hashlib.sha256(store.get(index.key)).hexdigest()


def test_memory_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard takes the memory of one that is stored, and nothing of what it held."""
    sizes: list[int] = []
    real = shard_buffer._mapped

    def seen(size: int) -> mmap.mmap:
        sizes.append(size)
        return real(size)

    monkeypatch.setattr(shard_buffer, "_mapped", seen)
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    beside = filled("recordio", store)
    first, made = filled("tfrecord", store), len(sizes)
    one = first.put(PLACE, entries(first))
    second = filled("tfrecord", store)
    assert len(sizes) == made
    assert second.put(("train", 2, 4), entries(second)).file.sha256 == one.file.sha256
    assert beside.offsets[0] == 0


def test_the_shard_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """SHA-256 sees each byte of a shard once, and of each index once."""
    hashed: list[int] = []
    real = hashlib.sha256

    class Counting:
        def __init__(self, data: bytes = b"") -> None:
            self._real = real(data)
            hashed.append(len(data))

        def update(self, data: memoryview) -> None:
            hashed.append(len(data))
            self._real.update(data)

        def hexdigest(self) -> str:
            return self._real.hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Counting)
    store = MemoryStore(f"memory://{secrets.token_hex(8)}")
    buffer = filled("tfrecord", store)
    stored = buffer.put(PLACE, entries(buffer))
    assert sum(hashed) == stored.file.bytes + sum(index.bytes for index in stored.indexes)
