"""An output that is made again, step by step, while others read it."""

from __future__ import annotations

import contextlib
import io
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

import dataprep
from dataprep.stores import Buffer, ObjectInfo, Store
from dataprep.stores.memory import MemoryStore


class Step(NamedTuple):
    """One change of a store. Without data it is a removal."""

    key: str
    data: bytes | None

    def apply(self, store: Store) -> None:
        """Make this change in a store."""
        if self.data is None:
            store.delete(self.key)
        else:
            store.put(self.key, self.data)


class ChangingOutput(NamedTuple):
    """The content of an output, its changes step by step, and the images before and after."""

    before: dict[str, bytes]
    steps: tuple[Step, ...]
    images: tuple[bytes, ...]
    later_images: tuple[bytes, ...]


def draw(folder: Path, seed: int, images: int = 24, image_bytes: int = 110_000) -> Path:
    """Draw JPEGs in two classes. All have one size in bytes for any seed."""
    rng = np.random.default_rng(seed)
    for number in range(images):
        path = folder / f"class-{number % 2}" / f"{number:02}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        noise = rng.integers(0, 256, (160, 160, 3), np.uint8)
        Image.fromarray(noise).save(buffer, "JPEG", quality=90)
        path.write_bytes(_padded(buffer.getvalue(), image_bytes))
    return folder


def make_changing_output(folder: Path) -> ChangingOutput:
    """Make an output, and make it again with ``--overwrite`` from a source of the same sizes."""
    uri = f"memory://{secrets.token_hex(6)}"
    _shard(draw(folder / "before", 1), uri, overwrite=False)
    store = MemoryStore(uri)
    before = {info.key: store.get(info.key) for info in store.list()}
    images = tuple(bytes(sample.image) for sample in dataprep.open(uri))
    with _recorded() as steps:
        _shard(draw(folder / "after", 2), uri, overwrite=True)
    later = tuple(bytes(sample.image) for sample in dataprep.open(uri))
    of_data = tuple(step for step in steps if not step.key.startswith("leases/"))
    return ChangingOutput(before, of_data, images, later)


@contextlib.contextmanager
def _recorded() -> Iterator[list[Step]]:
    """Record every change of the stores in memory, in order."""
    steps: list[Step] = []
    put, create, delete = MemoryStore.put, MemoryStore.create, MemoryStore.delete
    replace = MemoryStore.replace

    def noted_put(store: MemoryStore, key: str, data: Buffer) -> ObjectInfo:
        steps.append(Step(key, bytes(data)))
        return put(store, key, data)

    def noted_create(store: MemoryStore, key: str, data: Buffer) -> bool:
        created = create(store, key, data)
        if created:
            steps.append(Step(key, bytes(data)))
        return created

    def noted_replace(store: MemoryStore, key: str, data: Buffer, version: str) -> bool:
        replaced = replace(store, key, data, version)
        if replaced:
            steps.append(Step(key, bytes(data)))
        return replaced

    def noted_delete(store: MemoryStore, key: str) -> None:
        steps.append(Step(key, None))
        delete(store, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryStore, "put", noted_put)
        patch.setattr(MemoryStore, "create", noted_create)
        patch.setattr(MemoryStore, "replace", noted_replace)
        patch.setattr(MemoryStore, "delete", noted_delete)
        yield steps


def _shard(source: Path, output: str, *, overwrite: bool) -> None:
    """Shard a source into an output."""
    content = {
        "source": str(source),
        "output": output,
        "format": ("tfrecord", "recordio"),
        "shard_size": "1MB",
        "dask": {"workers": 1, "processes": False},
    }
    dataprep.shard(dataprep.ShardConfig.model_validate(content), overwrite=overwrite)


def _padded(jpeg: bytes, size_bytes: int) -> bytes:
    """The same image with this size in bytes: comments follow its start marker."""
    missing = size_bytes - len(jpeg)
    assert missing >= 4
    segments = b""
    while missing:
        size = min(missing, 60_000)
        size -= 4 if 0 < missing - size < 4 else 0
        segments += b"\xff\xfe" + (size - 2).to_bytes(2, "big") + bytes(size - 4)
        missing -= size
    return jpeg[:2] + segments + jpeg[2:]
