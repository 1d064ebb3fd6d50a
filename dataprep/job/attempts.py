"""Whether a shard was begun before by a worker that is gone: the scheduler remembers it.

Dask gives a task of a lost worker to another one, and tells neither that nor why. Each attempt
notes with the scheduler that it begins, and takes that back however it ends, unless its process
does. Two requests to the scheduler a shard; it is known on whatever machine the next attempt runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dataprep.worker import ShardTask


def key_of(task: ShardTask) -> str:
    """What a job calls a shard of one of its splits here."""
    return f"{task.split}-{task.shard}"


@contextlib.contextmanager
def attempt(worker: Any, job: str, shard: str) -> Iterator[int]:
    """An attempt that begins in a task of ``worker``: how many of this shard were lost before."""
    from distributed.utils import sync

    keys = [job, shard]
    lost: int = sync(worker.loop, worker.scheduler.get_metadata, keys=keys, default=0)
    sync(worker.loop, worker.scheduler.set_metadata, keys=keys, value=lost + 1)
    try:
        yield lost
    finally:
        with contextlib.suppress(OSError, RuntimeError):  # the scheduler, or our loop, is gone
            sync(worker.loop, worker.scheduler.set_metadata, keys=keys, value=0)


def attempts_lost(client: Any, job: str, shard: str) -> int:
    """How many attempts of a shard were lost since the last one that ended."""
    found: int = client.get_metadata([job, shard], default=0)
    return found
