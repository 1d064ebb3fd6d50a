"""A shard on its way to the store while its worker converts the next one.

Each thread that converts has at most one shard of its own that is being stored, or waits for that,
so that never more than two shards a thread are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import BoundedSemaphore
from typing import Any


class Places:
    """Places for threads of this process that convert.

    ``Places(n).converting(slots)`` waits for one of ``n``; what it gives is the context in which
    to store: it leaves the place to the next thread, then takes an upload slot.
    """

    def __init__(self, count: int) -> None:
        self._free = BoundedSemaphore(count)

    @contextmanager
    def converting(
        self, slots: AbstractContextManager[object]
    ) -> Iterator[AbstractContextManager[object]]:
        """A place, until it is left or the block ends."""
        self._free.acquire()
        left = False

        @contextmanager
        def storing() -> Iterator[None]:
            nonlocal left
            left = True
            self._free.release()
            with slots:
                yield

        try:
            yield storing()
        finally:
            if not left:
                self._free.release()


@contextmanager
def beside_dask_tasks(worker: Any, slots: AbstractContextManager[object]) -> Iterator[None]:
    """The context in which a task of a Dask worker stores: its thread begins the next task.

    It waits where as many shards of this worker are being stored as it has threads.
    """
    from distributed import secede

    with _stored_at_once(worker.address, worker.state.nthreads):
        secede()
        with slots:
            yield


@lru_cache(maxsize=64)
def _stored_at_once(address: str, threads: int) -> BoundedSemaphore:
    """By worker, of which one process may have several."""
    return BoundedSemaphore(threads)
