"""Dask's threads in this process: for small jobs, for which no cluster is worth its start."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from dataprep.errors import DataprepError, PermissionRefused, StoreError, StoreFull
from dataprep.execution import DaskOptions
from dataprep.job.engine import OnResult, make_shard_or_take_back, nothing
from dataprep.job.journal import Journal
from dataprep.job.storing import Places
from dataprep.worker import Progress, Report, ShardResult, ShardTask


class Cancelled(BaseException):
    """Raised inside a thread's task to end it; never seen outside."""


class Threads:
    """Dask's threaded scheduler, in this process."""

    def __init__(
        self, options: DaskOptions, report: Report, journal: Journal | None = None
    ) -> None:
        self._options = options
        self._report = report
        self._journal = journal or Journal(None)
        self._stop = threading.Event()

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = nothing,
    ) -> None:
        """As many shards converted at a time as there are workers, and as many stored.

        Where there are fewer shards than workers, several threads convert the images of each.
        """
        import dask
        import dask.threaded

        on_ready()
        workers = self._options.worker_count
        threads = 2 * workers
        places = Places(workers)
        slots = threading.BoundedSemaphore(self._options.max_concurrent_uploads)

        def work(build: Callable[[], ShardTask]) -> ShardResult:
            result = self._attempt(build, places, slots, threads_within(workers, len(tasks)))
            on_result(result)
            return result

        with ThreadPoolExecutor(threads, "shard") as pool:
            try:
                dask.compute(
                    *[dask.delayed(partial(work, build), pure=False)() for build in tasks],
                    scheduler=dask.threaded.get,  # its name would import dask.distributed
                    pool=pool,
                    num_workers=threads,
                )
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _attempt(
        self,
        build: Callable[[], ShardTask],
        places: Places,
        slots: threading.BoundedSemaphore,
        within: int,
    ) -> ShardResult:
        attempt = 0
        while True:
            try:
                with places.converting(slots) as storing:
                    return make_shard_or_take_back(
                        build(),
                        self._checked_report,
                        storing,
                        within,
                        isolated=self._journal.isolated,
                        in_hand=self._journal,
                    )
            except DataprepError as error:
                if attempt == self._options.retries or not worth_retrying(error):
                    raise
            attempt += 1

    def _checked_report(self, progress: Progress) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._report(progress)


def threads_within(workers: int, shards: int) -> int:
    """How many threads convert the images of one shard; 0 for its own alone."""
    each = workers // max(1, shards)
    return each if each > 1 else 0


def worth_retrying(error: BaseException) -> bool:
    """Whether the same task may succeed on another try: stores do, changed sources do not."""
    return isinstance(error, StoreError) and not isinstance(error, PermissionRefused | StoreFull)
