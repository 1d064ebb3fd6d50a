"""What a loop asks of a store while it runs, and what a mode needs: memory and disk."""

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
    """Metrics of what runs in the ``with`` block, there once it has ended.

    Of data on S3: its GETs, what they brought and how long they took, and answers that asked for
    fewer. Of modes other than ``direct``: bytes needed of disk and memory, and how large the data
    and the memory are. The loader is still open at the end of the block.
    """
    found: dict[str, Any] = {}
    remote = place is not None and place.uri.startswith("s3://")
    if params.get("access", DIRECT) == DIRECT or place is None or data is None:
        with counting() if remote else contextlib.nullcontext() as gets:
            yield found
            found |= gets.fetched().metrics if gets else {}
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
    if remote:
        found |= fetched.metrics
