"""A Dask cluster: worker processes started here, a configured class, or one that runs already."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from multiprocessing import util
from typing import Any

from dataprep import keys
from dataprep.errors import ConfigError
from dataprep.execution import DaskOptions
from dataprep.job.attempts import lost_beside_others, on_worker, result_of
from dataprep.job.custom_cluster import cluster_class, started
from dataprep.job.engine import OnResult, nothing
from dataprep.job.forgetting import forget_schedulers
from dataprep.job.forking import MALLOC, begin_imports, interrupts_held, started_processes
from dataprep.job.journal import ISOLATED
from dataprep.job.open_files import allow_open_files
from dataprep.job.replacing import replacing
from dataprep.worker import Progress, Report, ShardTask

_ANSWER_TIMEOUT_S = 15
# Whose client is gone before its last event is told by Dask as critical, with a traceback.
_SILENT = logging.CRITICAL + 1

# Its statistical profiler takes the interpreter from the task a hundred times a second, its
# ticks and monitors several times that: on two cores, a twentieth of all there is.
_LEAN_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.multiprocessing-method": "forkserver",
    # Where this program has such a server already, or has imported Dask and has it spawn.
    **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in MALLOC.items()},
}

# Every connection keeps its last 1,000 messages for Dask's developers: the tasks of a whole job,
# with all that these name, in the driver's memory.
_SHORT_LOGS = {"distributed.admin.low-level-log-length": 10}


class Cluster:
    """A Dask cluster: started here, made by a configured class, or already running."""

    def __init__(
        self, options: DaskOptions, report: Report, announce: Callable[[str], None]
    ) -> None:
        self._options = options
        self._report = report
        self._announce = announce
        self._name = f"dataprep-{secrets.token_hex(8)}"  # others may use the same scheduler
        self._client: Future[Any] | None = None
        self._told: dict[str, Progress] = {}
        self._refusal: BaseException | None = None
        self._open = contextlib.ExitStack()

    @property
    def begun(self) -> bool:
        """Whether there are workers, or will be."""
        return self._client is not None

    def begin(self) -> Future[Any]:
        """Start, or connect, while the caller does something else: the client that will be."""
        if self._client is None:
            local = not (self._options.scheduler or self._options.cluster)
            if local:
                allow_open_files(self._options.worker_count)
            self._open.enter_context(_quiet())
            if local:
                begin_imports()
            client: Future[Any] = Future()
            with interrupts_held():
                threading.Thread(target=self._start, args=(client,), daemon=True).start()
                self._client = client  # which is waited for, so that it has to begin before
        return self._client

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = nothing,
    ) -> None:
        """Three shards in flight for each worker, so that none waits for the driver.

        What was started serves the next call as well, until ``close``.
        """
        client = self.begin().result()
        if client.dashboard_link:
            self._announce(f"Dask dashboard: {client.dashboard_link}")
        on_ready()
        self._run(client, tasks, on_result)

    def close(self) -> None:
        """End what was started; a cluster that ran before runs on."""
        if self._client is not None:
            self._client.exception()  # what has begun to start is waited for
        self._open.close()
        forget_schedulers()

    def _start(self, client: Future[Any]) -> None:
        try:
            connected = self._open.enter_context(self._connection())
            connected.subscribe_topic(self._name, self._receive)
            client.set_result(connected)
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            client.set_exception(error)

    def _run(
        self, client: Any, tasks: Sequence[Callable[[], ShardTask]], on_result: OnResult
    ) -> None:
        from distributed import Semaphore, as_completed

        slots = Semaphore(max_leases=self._options.max_concurrent_uploads, name=self._name)
        waiting = iter(tasks)
        numbers = itertools.count()
        built: dict[str, ShardTask] = {}

        def submit(task: ShardTask) -> Any:
            shard = keys.numbered(task.split, task.shard, task.shards)
            key = f"{shard}-{self._name}-{next(numbers)}"
            built[key] = task
            return client.submit(
                partial(on_worker, task, self._options.max_concurrent_uploads, self._name),
                pure=False,
                retries=self._options.retries,
                key=key,
            )

        def submit_next(count: int) -> list[Any]:
            return [submit(build()) for _, build in zip(range(count), waiting, strict=False)]

        in_flight = max(2, 3 * self._workers(client))  # one stored, one converted, one to begin
        running = as_completed(submit_next(in_flight))
        try:
            for future in running:
                self._require_told()
                task = built.pop(future.key)
                if lost_beside_others(client, future, self._name, task, self._options.retries):
                    running.add(submit(task))
                    continue
                on_result(result_of(future))
                future.release()
                running.update(submit_next(1))
        except BaseException:
            client.cancel([*running.futures], force=True)
            raise
        slots.close()
        self._require_told()

    def _workers(self, client: Any) -> int:
        return max(len(client.scheduler_info(n_workers=-1)["workers"]), self._options.worker_count)

    def _receive(self, event: tuple[float, tuple[str, tuple[int, int, int] | None]]) -> None:
        """Runs in Dask's loop, which an interrupt would end and any other error not reach."""
        try:
            self._tell(*event[1])
        except BaseException as error:  # noqa: BLE001  raised where the job runs
            self._refusal = self._refusal or error

    def _require_told(self) -> None:
        """Raises what the caller raised who was told of progress."""
        if self._refusal is not None:
            raise self._refusal

    def _tell(self, shard: str, told: tuple[int, int, int] | None) -> None:
        if told is None:  # what its lost attempt had told is not there
            self._report(-self._told.pop(shard, Progress()))
            self._announce(f"a worker was lost over {shard}: its {ISOLATED}")
            return
        progress = Progress(*told)
        self._told[shard] = self._told.get(shard, Progress()) + progress
        self._report(progress)

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        import dask
        from distributed import Client  # its own options must be there before any is set

        with contextlib.ExitStack() as opened:
            # For as long as it lasts: a scheduler here reads it whenever a worker joins.
            opened.enter_context(dask.config.set(_SHORT_LOGS))
            if self._options.scheduler:
                yield opened.enter_context(_connected(self._options.scheduler))
                return
            cluster = opened.enter_context(contextlib.closing(self._cluster()))
            client = opened.enter_context(contextlib.closing(Client(cluster)))
            if not self._options.cluster:
                opened.enter_context(replacing(cluster, self._options.worker_count))
            yield client

    def _cluster(self) -> Any:
        import dask
        import distributed.utils

        if self._options.cluster:
            return started(self._options, self._options.cluster)
        # Workers keep what they keep on a disk in a folder that the next run removes, if need be.
        disk = dask.config.get("temporary-directory", None) or util.get_temp_dir()
        options = {**_LEAN_WORKERS, "temporary-directory": disk}
        with dask.config.set(options), started_processes():
            from distributed import LocalCluster

            # Otherwise it imports pandas to have it in a server that runs already.
            distributed.utils._forkserver_preload_set = True
            return LocalCluster(
                n_workers=self._options.worker_count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                memory_limit=int(self._options.memory_limit),
                dashboard_address=self._options.dashboard,
                silence_logs=_SILENT,
                env=dict(os.environ),  # what they are forks of may be of an earlier job
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
    with contextlib.closing(client):  # its own context ends in the thread alone that began it
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask's warnings of a taken port and its log lines on shutdown help nobody here."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio", "bokeh")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(_SILENT)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
