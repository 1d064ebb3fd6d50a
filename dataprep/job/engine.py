"""Who does the work: Dask's threads in this process, worker processes, or any cluster.

All three take the same tasks and give the same bytes. A small job runs on threads: nobody
waits for a cluster to convert 200 images, and the codecs release the GIL.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from dataprep.config import DaskOptions
from dataprep.errors import ConfigError, DataprepError, JobError, WorkerLost
from dataprep.worker import Progress, Report, ShardResult, ShardTask, make_shard

SMALL_JOB_SOURCE_BYTES = 150_000_000
"""Below this a job ends before worker processes would have paid for their start."""

_TOPIC = "dataprep-progress"

OnResult = Callable[[ShardResult], None]
"""Called in the driver for each finished shard; raising stops the job."""


class Engine(Protocol):
    """Runs shard tasks."""

    def run(self, tasks: Sequence[Callable[[], ShardTask]], on_result: OnResult) -> None:
        """Run all tasks, each built when its turn comes; a bounded number is in flight."""
        ...


class Cancelled(BaseException):
    """Raised inside a thread's task to end it; never seen outside."""


class Threads:
    """Dask's threaded scheduler, in this process."""

    def __init__(self, options: DaskOptions, report: Report) -> None:
        self._options = options
        self._report = report
        self._stop = threading.Event()

    def run(self, tasks: Sequence[Callable[[], ShardTask]], on_result: OnResult) -> None:
        """As many shards at a time as there are workers."""
        import dask

        workers = self._options.worker_count
        slots = threading.BoundedSemaphore(self._options.max_concurrent_uploads)

        def work(build: Callable[[], ShardTask]) -> ShardResult:
            result = self._attempt(build, slots)
            on_result(result)
            return result

        with ThreadPoolExecutor(workers, "shard") as pool:
            try:
                dask.compute(
                    *[dask.delayed(partial(work, build), pure=False)() for build in tasks],
                    scheduler="threads",
                    pool=pool,
                    num_workers=workers,
                )
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def _attempt(
        self, build: Callable[[], ShardTask], slots: threading.BoundedSemaphore
    ) -> ShardResult:
        attempt = 0
        while True:
            try:
                return make_shard_or_take_back(build(), self._checked_report, slots)
            except DataprepError as error:
                if attempt == self._options.retries or not worth_retrying(error):
                    raise
            attempt += 1

    def _checked_report(self, progress: Progress) -> None:
        if self._stop.is_set():
            raise Cancelled
        self._report(progress)


def make_shard_or_take_back(task: ShardTask, report: Report, slots: Any) -> ShardResult:
    """``make_shard``; if it fails, the progress it reported is taken back."""
    reported = Progress()

    def counted(progress: Progress) -> None:
        nonlocal reported
        report(progress)
        reported = reported + progress

    try:
        return make_shard(task, counted, slots)
    except Exception:
        report(-reported)
        raise


def worth_retrying(error: BaseException) -> bool:
    """Whether the same task may succeed on another try: stores do, changed sources do not."""
    from dataprep.errors import PermissionRefused, StoreError, StoreFull

    return isinstance(error, StoreError) and not isinstance(error, PermissionRefused | StoreFull)


class Cluster:
    """A Dask cluster: started here, made by a configured class, or already running."""

    def __init__(
        self, options: DaskOptions, report: Report, announce: Callable[[str], None]
    ) -> None:
        self._options = options
        self._report = report
        self._announce = announce

    def run(self, tasks: Sequence[Callable[[], ShardTask]], on_result: OnResult) -> None:
        """Two shards in flight for each worker, so that none waits for the driver."""
        with _quiet(), self._client() as client:
            if client.dashboard_link:
                self._announce(f"Dask dashboard: {client.dashboard_link}")
            client.subscribe_topic(_TOPIC, self._receive)
            self._run(client, tasks, on_result)

    def _run(
        self, client: Any, tasks: Sequence[Callable[[], ShardTask]], on_result: OnResult
    ) -> None:
        from distributed import Semaphore, as_completed

        slots = Semaphore(
            max_leases=self._options.max_concurrent_uploads, name="dataprep-uploads"
        )
        waiting = iter(tasks)

        def submit(count: int) -> list[Any]:
            return [
                client.submit(
                    partial(_on_worker, build(), slots),
                    pure=False,
                    retries=self._options.retries,
                    key=f"shard-{id(build)}-{count}",
                )
                for _, build in zip(range(count), waiting, strict=False)
            ]

        in_flight = max(2, 2 * self._workers(client))
        running = as_completed(submit(in_flight))
        try:
            for future in running:
                on_result(_result(future))
                future.release()
                running.update(submit(1))
        except BaseException:
            client.cancel([*running.futures], force=True)
            raise

    def _workers(self, client: Any) -> int:
        return max(len(client.scheduler_info(n_workers=-1)["workers"]), self._options.worker_count)

    def _receive(self, event: tuple[float, tuple[int, int, int]]) -> None:
        self._report(Progress(*event[1]))

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        from distributed import Client

        if self._options.scheduler:
            with self._connected(self._options.scheduler) as client:
                yield client
            return
        with self._cluster() as cluster, Client(cluster) as client:
            yield client

    @contextlib.contextmanager
    def _connected(self, address: str) -> Iterator[Any]:
        from distributed import Client

        try:
            client = Client(address, timeout="15s")
        except (OSError, ValueError) as error:
            raise ConfigError(f"no Dask scheduler answers at {address!r}: {error}") from None
        with client:
            yield client

    def _cluster(self) -> Any:
        if self._options.cluster:
            cluster = cluster_class(self._options.cluster)(**self._options.cluster_args)
            if self._options.workers:
                cluster.scale(self._options.workers)
            return cluster
        from distributed import LocalCluster

        # Workers inherit that Ctrl-C is not for them: the driver ends them.
        with _interrupts_ignored():
            return LocalCluster(
                n_workers=self._options.worker_count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                memory_limit=int(self._options.memory_limit),
                dashboard_address=self._options.dashboard,
                silence_logs=logging.CRITICAL,
            )


def cluster_class(path: str) -> Callable[..., Any]:
    """The class at ``package.module.Class``.

    Raises:
        ConfigError: it cannot be imported.
    """
    module, _, name = path.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"dask.cluster: cannot import {path!r} ({error}): install the package that has it"
        ) from None
    return found


def _on_worker(task: ShardTask, slots: Any) -> ShardResult:
    """Runs in a worker: progress goes to the driver as Dask events."""
    from distributed import get_worker

    worker = get_worker()

    def report(progress: Progress) -> None:
        worker.log_event(_TOPIC, (progress.samples, progress.source_bytes, progress.failed))

    return make_shard_or_take_back(task, report, slots)


def _result(future: Any) -> ShardResult:
    from distributed import KilledWorker

    try:
        result: ShardResult = future.result()
    except KilledWorker as error:
        raise WorkerLost(
            f"workers died again and again over {error.task}: out of memory (see "
            "--set dask.memory_limit) or a crash in a codec. What is stored stays; run again "
            "to resume"
        ) from None
    except (DataprepError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error
    return result


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's warnings of a taken port and its log lines on shutdown help nobody here."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio", "bokeh")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def choose(
    options: DaskOptions,
    source_bytes: int,
    report: Report,
    announce: Callable[[str], None],
) -> Engine:
    """Threads for a small job, unless told; a cluster otherwise."""
    clustered = options.scheduler or options.cluster
    small = source_bytes < SMALL_JOB_SOURCE_BYTES
    processes = not small if options.processes == "auto" else options.processes
    if clustered or processes:
        return Cluster(options, report, announce)
    return Threads(options, report)
