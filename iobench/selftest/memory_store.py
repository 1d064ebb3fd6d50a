"""Shards of drawn images, on disk and on a store in memory. A proxy slows the store down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ByteSize

import dataprep
from dataprep.drawn import draw_tree
from iobench.clock import Clock
from iobench.data.pixel_shards import write_pixel_shards
from iobench.results.trial import Location
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.memory_s3 import MemoryS3
from iobench.servers.moto_server import signed_in

_BUCKET = "selftest"
SHARDS = "/tfrecord/"
"""A part of the path of every shard on the store. Manifests and tables do not have it."""


@dataclass(frozen=True, slots=True)
class MemoryStore:
    """The locations of the shards, and the proxy in front of the store.

    Attributes:
        disk: the location of the shards on disk.
        remote: the location of the same shards on the store.
        proxy: the proxy between clients and the store; its rules set latency and bandwidth.
    """

    disk: Location
    remote: Location
    proxy: FaultProxy


@contextmanager
def memory_store(
    folder: Path,
    images: int,
    policy: dataprep.ImagePolicy,
    clock: Clock,
    *,
    shard_bytes: int = 64 * 2**20,
    as_pixels: bool = False,
) -> Iterator[MemoryStore]:
    """Draw images, make shards of them, and serve the shards over HTTP in the ``with`` block.

    Args:
        folder: an empty folder for the images and the shards.
        images: the number of images.
        policy: how images are encoded.
        clock: the clock of the delays of the proxy.
        shard_bytes: the size of a shard.
        as_pixels: whether the shards have decoded images. The number of shards is the same.
    """
    source = draw_tree(folder / "images", images=images, classes=2).root
    encoded = folder / "shards"
    config = dataprep.ShardConfig(
        source=str(source), output=str(encoded), image=policy, shard_size=ByteSize(shard_bytes)
    )
    dataprep.shard(config)
    shards = Location(str(encoded), "shards")
    if as_pixels:
        pixels = folder / "pixels"
        write_pixel_shards(shards, pixels)
        shards = replace(shards, uri=str(pixels), decoded=True)
    objects = MemoryS3()
    objects.fill(_BUCKET, Path(shards.uri))
    proxy = FaultProxy(objects.answer, clock=clock.now_s, sleep=clock.sleep)
    with signed_in(), proxy:
        options = dataprep.StoreOptions(endpoint_url=proxy.url)
        remote = replace(shards, uri=f"s3://{_BUCKET}", store=options)
        yield MemoryStore(shards, remote, proxy)
