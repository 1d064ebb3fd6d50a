"""What a mode needs while a loop runs: memory, disk, bytes and requests of the store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from iobench.access.downloaded_loader import DownloadedLoader
from iobench.access.fetched import counting
from iobench.access.modes import DIRECT
from iobench.access.peak_memory import PeakMemory
from iobench.loaders.protocol import BuffersSamples, Loader
from iobench.memory import memory_bytes
from iobench.stored import Stored
from iobench.trial import Params, Place


@contextlib.contextmanager
def metered(
    params: Params, loader: Loader, place: Place | None, data: Stored | None
) -> Iterator[Mapping[str, Any]]:
    """Metrics of what runs in the ``with`` block, there once it has ended; none for ``direct``.

    Bytes needed of disk and memory, GETs of S3 and what they brought, and how large the data and
    the memory are. The loader is still open at the end of the block.
    """
    found: dict[str, Any] = {}
    if params.get("access", DIRECT) == DIRECT or place is None or data is None:
        yield found
        return
    with counting() as count:
        with PeakMemory() as memory:
            yield found
        fetched = count.fetched()
    found["data_bytes"], found["memory_limit_bytes"] = data.bytes, memory_bytes()
    found["disk_needed_bytes"] = loader.disk_bytes if isinstance(loader, DownloadedLoader) else 0
    if memory.needed_bytes is not None:
        found["memory_needed_bytes"] = memory.needed_bytes
        found["memory_reading_share"] = memory.core_share
    if params["access"] == "pipe" and isinstance(loader, BuffersSamples):
        found["shuffle_buffer_bytes"] = loader.buffer_bytes()
    if place.uri.startswith("s3://"):
        found |= {"store_requests": fetched.requests, "store_read_bytes": fetched.bytes}
