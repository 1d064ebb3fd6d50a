"""One shard growing in memory."""

from __future__ import annotations

import hashlib
import random
from weakref import WeakValueDictionary

import pytest
from crc32c import crc32c

from dataprep import shard_memory
from dataprep.formats import RecordOptions, Sample, get_format
from dataprep.spool import Spool
from dataprep.stores.memory import MemoryStore


@pytest.mark.parametrize("name", ["tfrecord", "recordio"])
def test_what_is_stored_is_what_was_accounted_for(name: str) -> None:
    """Offsets, lengths and checksums of records, and size and digest of the shard."""
    store = MemoryStore("memory://spool-" + name)
    grown = Spool(get_format(name), RecordOptions(0))
    places = [grown.write(_sample(number)) for number in range(5)]
    stored = grown.put(store, ("train", 0, 1), ())
    content = store.get(stored.file.key)
    assert (stored.file.bytes, stored.file.sha256) == (
        len(content),
        hashlib.sha256(content).hexdigest(),
    )
    records = list(get_format(name).read(content, "shard"))
    assert [(one.offset, one.length) for one in records] == [place[:2] for place in places]
    for offset, length, crc in places:
        assert crc32c(content[offset : offset + length]) == crc


def _sample(number: int) -> Sample:
    image = random.Random(number).randbytes(5000 + number)
    return Sample(
        image=image,
        label=number,
        number=number,
        width=3,
        height=2,
        channels=3,
        colorspace="RGB",
        filename=b"name.jpg",
        synset=b"n0",
        text=b"text",
        encoding="JPEG",
        source=b"n0/name.jpg",
    )


def test_the_next_shard_grows_in_the_memory_of_one_that_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As long as another is under way; what is stored stays what it was."""
    maps = []
    real = shard_memory._mapped

    def seen(size: int) -> object:
        maps.append(size)
        return real(size)

    monkeypatch.setattr(shard_memory, "_mapped", seen)
    monkeypatch.setattr(shard_memory, "_KEPT", WeakValueDictionary())
    store, form = MemoryStore("memory://spool-again"), get_format("tfrecord")
    first, beside = (Spool(form, RecordOptions(0)) for _ in range(2))
    first.write(_sample(1))
    stored = first.put(store, ("train", 0, 2), ())
    content = store.get(stored.file.key)
    Spool(form, RecordOptions(0)).write(_sample(2))
    assert len(maps) == 2
    assert store.get(stored.file.key) == content
    del beside
