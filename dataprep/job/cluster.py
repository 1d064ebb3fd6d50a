"""A Dask cluster: worker processes started here, a configured class, or one that runs already."""

from __future__ import annotations

import contextlib
import importlib
import logging
import secrets
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dataprep import keys
from dataprep.errors import ConfigError, DataprepError, JobError, WorkerLost
from dataprep.execution import DaskOptions
from dataprep.job.engine import OnResult, make_shard_or_take_back, nothing
from dataprep.worker import Progress, Report, ShardResult, ShardTask

_ANSWER_TIMEOUT_S = 15

# Dask tells glibc to give every freed block back to the kernel at once, and a task's thread has
# an arena that maps anything large anew. Pixels come and go by the half megabyte: a quarter of
# a worker's time went into page faults. One arena that keeps them costs a few megabytes.
# Its statistical profiler takes the interpreter from the task a hundred times a second, its
# ticks and monitors several times that: on two cores, a twentieth of all there is.
_LEAN_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**25,
    "distributed.nanny.pre-spawn-environ.MALLOC_ARENA_MAX": 1,
}


class Cluster:
    """A Dask cluster: started here, made by a configured class, or already running."""

    def __init__(
        self, options: DaskOptions, report: Report, announce: Callable[[str], None]
    ) -> None:
        self._options = options
        self._report = report
        self._announce = announce
        self._name = f"dataprep-{secrets.token_hex(8)}"  # others may use the same scheduler

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = nothing,
    ) -> None:
        """Two shards in flight for each worker, so that none waits for the driver."""
        with _quiet(), self._client() as client:
            if client.dashboard_link:
                self._announce(f"Dask dashboard: {client.dashboard_link}")
            client.subscribe_topic(self._name, self._receive)
            on_ready()
            self._run(client, tasks, on_result)

    def _run(
        self, client: Any, tasks: Sequence[Callable[[], ShardTask]], on_result: OnResult
    ) -> None:
        from distributed import Semaphore, as_completed

        slots = Semaphore(max_leases=self._options.max_concurrent_uploads, name=self._name)
        waiting = iter(tasks)

        def submit(count: int) -> list[Any]:
            built = [build() for _, build in zip(range(count), waiting, strict=False)]
            return [
                client.submit(
                    partial(_on_worker, task, slots, self._name),
                    pure=False,
                    retries=self._options.retries,
                    key=f"{keys.numbered(task.split, task.shard, task.shards)}-{self._name}",
                )
                for task in built
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
        slots.close()

    def _workers(self, client: Any) -> int:
        return max(len(client.scheduler_info(n_workers=-1)["workers"]), self._options.worker_count)

    def _receive(self, event: tuple[float, tuple[int, int, int]]) -> None:
        self._report(Progress(*event[1]))

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        from distributed import Client

        if self._options.scheduler:
            with _connected(self._options.scheduler) as client:
                yield client
            return
        with self._cluster() as cluster, Client(cluster) as client:
            yield client

    def _cluster(self) -> Any:
        if self._options.cluster:
            return _custom_cluster(self._options, self._options.cluster)
        import dask
        from distributed import LocalCluster

        # Workers inherit that Ctrl-C is not for them: the driver ends them.
        with dask.config.set(_LEAN_WORKERS), _interrupts_ignored():
            return LocalCluster(
                n_workers=self._options.worker_count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                memory_limit=int(self._options.memory_limit),
                dashboard_address=self._options.dashboard,
                silence_logs=logging.CRITICAL,
            )


def require_reachable(options: DaskOptions) -> None:
    """Find out before anything is written whether there is such a scheduler or class.

    Raises:
        ConfigError: there is not.
    """
    if options.scheduler:
        with _quiet(), _connected(options.scheduler):
            pass
    elif options.cluster:
        cluster_class(options.cluster)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=_ANSWER_TIMEOUT_S)
    except (OSError, ValueError) as error:
        raise ConfigError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        yield client


def _custom_cluster(options: DaskOptions, path: str) -> Any:
    try:
        cluster = cluster_class(path)(**options.cluster_args)
        if options.workers:
            cluster.scale(options.workers)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"dask.cluster: {path!r} did not start with these dask.cluster_args "
            f"({', '.join(options.cluster_args)}): {type(error).__name__}: {error}"
        ) from error
    return cluster


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


def _on_worker(task: ShardTask, slots: Any, topic: str) -> ShardResult:
    """Runs in a worker: progress goes to the driver as Dask events."""
    from distributed import get_worker

    worker = get_worker()

    def report(progress: Progress) -> None:
        worker.log_event(topic, (progress.samples, progress.source_bytes, progress.failed))

    return make_shard_or_take_back(task, report, slots)


def _result(future: Any) -> ShardResult:
    from distributed import KilledWorker

    try:
        result: ShardResult = future.result()
    except KilledWorker as error:
        shard = str(error.task).partition("-dataprep-")[0]
        raise WorkerLost(
            f"workers died again and again over {shard}: out of memory (see --set "
            "dask.memory_limit) or a crash in a codec. What is stored stays; run again to resume"
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
