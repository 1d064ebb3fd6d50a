"""A Dask cluster: worker processes started here, a configured class, or one that runs already."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import secrets
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from multiprocessing import util
from typing import Any

from dataprep.config import DaskOptions, SampleLimit
from dataprep.errors import ConfigError
from dataprep.image import ImagePolicy
from dataprep.job import dask_tasks
from dataprep.job.custom_cluster import cluster_class, started
from dataprep.job.forgetting import forget_schedulers
from dataprep.job.forking import (
    MALLOC,
    begin_imports,
    interrupts_held,
    started_processes,
)
from dataprep.job.in_process import OnResult, Tally, nothing
from dataprep.job.isolate import isolated_outcomes
from dataprep.job.open_files import allow_open_files
from dataprep.job.replacing import replacing
from dataprep.job.worker import Outcome, Progress, Report, ShardTask, chunks
from dataprep.sources import Located, Source
from dataprep.versions import determining

_CHUNKS_A_WORKER = 12
_CALIBRATED_AT_ONCE = 16
_FEWEST_SAMPLES = 32  # of a chunk: Dask takes milliseconds for each
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
    "distributed.scheduler.allowed-failures": 1,  # the second death over a task is told
    # Where this program has such a server already, or has imported Dask and has it spawn.
    **{f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in MALLOC.items()},
}

# Every connection keeps its last 1,000 messages for Dask's developers: the tasks of a whole job,
# with all that these name, in the driver's memory.
_SHORT_LOGS = {"distributed.admin.low-level-log-length": 10}


class Cluster:
    """A Dask cluster: started here, made by a configured class, or already running.

    Worker processes started here have ``modules`` imported when they begin.
    """

    def __init__(
        self,
        options: DaskOptions,
        report: Report,
        announce: Callable[[str], None],
        modules: Sequence[str] = (),
    ) -> None:
        self.options = options
        self.announce = announce
        self.name = f"dataprep-{secrets.token_hex(8)}"  # others may use the same scheduler
        self.tally = Tally(report)
        self._client: Future[Any] | None = None
        self._refusal: BaseException | None = None
        self._open = contextlib.ExitStack()
        if not (options.scheduler or options.cluster):
            allow_open_files(options.worker_count)
            begin_imports(modules)  # takes a second; meanwhile the caller lists the source

    def begin(self) -> Future[Any]:
        """Start, or connect, while the caller does something else: the client that will be."""
        if self._client is None:
            self._open.enter_context(_quiet())
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
        """Make all shards; each task is built when its turn comes.

        What was started serves the next call as well, until ``close``.
        """
        client = self.begin().result()
        if client.dashboard_link:
            self.announce(f"Dask dashboard: {client.dashboard_link}")
        on_ready()
        _Run(self, client, tasks, on_result).run()

    def outcomes(
        self, source: Source, items: Sequence[Located], policy: ImagePolicy, limit: SampleLimit
    ) -> Iterator[Outcome]:
        """Convert samples that are in no shard yet, to learn how large records become."""
        from distributed import KilledWorker

        client = self.begin().result()
        versions = determining(same_everywhere=policy.same_everywhere)
        parts = list(chunks(items, _CALIBRATED_AT_ONCE))
        futures = client.map(
            dask_tasks.outcomes,
            parts,
            source=source,
            policy=policy,
            versions=versions,
            limit=limit,
            pure=False,
        )
        try:
            for part, future in zip(parts, futures, strict=True):
                try:
                    yield from future.result()
                except KilledWorker:
                    yield from isolated_outcomes(source, part, policy, limit)
        finally:
            client.cancel(futures, force=True)

    def close(self) -> None:
        """End what was started; a cluster that ran before runs on."""
        if self._client is not None:
            self._client.exception()  # what has begun to start is waited for
        self._open.close()
        forget_schedulers()

    def _start(self, client: Future[Any]) -> None:
        try:
            connected = self._open.enter_context(self._connection())
            connected.subscribe_topic(self.name, self.receive)
            client.set_result(connected)
        except BaseException as error:  # noqa: BLE001  raised where it is waited for
            client.set_exception(error)

    def receive(self, event: tuple[float, tuple[str, int, tuple[int, int, int]]]) -> None:
        """Runs in Dask's event loop, which an interrupt would end and other errors not reach."""
        try:
            shard, number, totals = event[1]
            self.tally.add((shard, number), Progress(*totals))
        except BaseException as error:  # noqa: BLE001  raised where the job runs
            self._refusal = self._refusal or error

    def require_heard(self) -> None:
        """Raise what the caller's progress callback raised."""
        if self._refusal is not None:
            raise self._refusal

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        import dask
        from distributed import Client  # its own options must be there before any is set

        with contextlib.ExitStack() as opened:
            # For as long as it lasts: a scheduler here reads it whenever a worker joins.
            opened.enter_context(dask.config.set(_SHORT_LOGS))
            if self.options.scheduler:
                yield opened.enter_context(_connected(self.options.scheduler))
                return
            cluster = opened.enter_context(contextlib.closing(self._cluster()))
            client = opened.enter_context(contextlib.closing(Client(cluster)))
            if not self.options.cluster:
                opened.enter_context(replacing(cluster, self.options.worker_count))
            yield client

    def _cluster(self) -> Any:
        import dask
        import distributed.utils

        if self.options.cluster:
            return started(self.options, self.options.cluster)
        # Workers keep what they keep on a disk in a folder that the next run removes, if need be.
        disk = dask.config.get("temporary-directory", None) or util.get_temp_dir()
        options = {**_LEAN_WORKERS, "temporary-directory": disk}
        with dask.config.set(options), started_processes():
            from distributed import LocalCluster

            # Otherwise it imports pandas to have it in a server that runs already.
            distributed.utils._forkserver_preload_set = True
            return LocalCluster(
                n_workers=self.options.worker_count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                memory_limit=int(self.options.memory_limit),
                dashboard_address=self.options.dashboard,
                silence_logs=_SILENT,
                env=dict(os.environ),  # what they are forks of may be of an earlier job
            )


class _Run:
    """One run of a cluster: the shards that it works on, whole or in chunks.

    All shards but the last few are whole tasks. The last ones are cut into chunks of photos that
    any worker converts, so that no worker is idle at the end, or where shards are fewer than
    workers. Few of these are open at a time: a kill loses little, and memory stays bounded.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: Any,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
    ) -> None:
        self._cluster, self._client, self._on_result = cluster, client, on_result
        self._uploads = cluster.options.max_concurrent_uploads
        known = client.scheduler_info(n_workers=-1)["workers"].values()
        self._workers = max(sum(worker["nthreads"] for worker in known), 1)
        split = shards_to_split(len(tasks), self._workers)
        whole = len(tasks) - split
        # With fewer chunks some workers are idle at the end; each chunk costs Dask some time.
        self._chunks_a_shard = _CHUNKS_A_WORKER * self._workers / max(split, 1)
        self._whole, self._split = deque(tasks[:whole]), deque(tasks[whole:])
        self._shards: dict[str, ShardTask] = {}
        self._isolated: set[str] = set()
        self._chunks: set[str] = set()
        self._numbers = itertools.count()

    def run(self) -> None:
        """Submit, wait for results, and submit again."""
        from distributed import Semaphore, as_completed

        slots = Semaphore(max_leases=self._uploads, name=self._cluster.name)
        running = as_completed(self._next())
        try:
            for future in running:
                self._cluster.require_heard()
                if future.key in self._chunks:
                    self._chunks.remove(future.key)
                else:
                    running.update(self._finished(future))
                future.release()
                running.update(self._next())
        except BaseException:
            self._client.cancel([*running.futures], force=True)
            raise
        slots.close()
        self._cluster.require_heard()

    def _next(self) -> list[Any]:
        """Whole shards while there are any: one stored, one converted and one waiting a worker."""
        futures = []
        while len(self._shards) < 3 * self._workers:
            if self._whole:
                futures.append(self._submit_whole(self._whole.popleft()()))
                continue
            if not self._split or len(self._chunks) >= 2 * self._workers:
                break
            futures += self._submit_split(self._split.popleft()())
        return futures

    def _submit_whole(self, task: ShardTask) -> Any:
        return self._submit(task, dask_tasks.whole_shard)

    def _submit_split(self, task: ShardTask) -> list[Any]:
        """A task for each chunk, and one that puts them together."""
        samples = max(_FEWEST_SAMPLES, math.ceil(len(task.items) / self._chunks_a_shard))
        starts = range(0, len(task.items), samples)
        parts = [
            dask_tasks.packed(
                replace(
                    task,
                    items=task.items[start : start + samples],
                    first_number=task.first_number + start,
                )
            )
            for start in starts
        ]
        futures = self._client.map(
            dask_tasks.chunks,
            parts,
            starts,
            topic=self._cluster.name,
            key=[self._key("chunk", f"{task.name}.{start}") for start in starts],
            pure=False,
            priority=-task.shard,
            retries=self._cluster.options.retries,
        )
        self._chunks.update(future.key for future in futures)
        return [*futures, self._submit(task, dask_tasks.assembled_shard, futures)]

    def _submit(self, task: ShardTask, work: Callable[..., Any], parts: Sequence[Any] = ()) -> Any:
        key = self._key(work.__name__, task.name)
        self._shards[key] = task
        return self._client.submit(
            work,
            dask_tasks.packed(replace(task, items=()) if parts else task),
            self._uploads,
            self._cluster.name,
            *parts,
            key=key,
            pure=False,
            priority=-task.shard,
            retries=self._cluster.options.retries,
        )

    def _key(self, work: str, name: str) -> str:
        """A key that begins with the kind of task, by which Dask groups tasks.

        Dask gives tasks of a group to free workers in order of priority only if the group depends
        on no other tasks.
        """
        return f"{work}-{name}-{self._cluster.name}-{next(self._numbers)}"

    def _finished(self, future: Any) -> list[Any]:
        """Pass the result on, or submit the shard again if workers died over it."""
        from distributed import KilledWorker

        task = self._shards.pop(future.key)
        died = isinstance(future.exception(), KilledWorker)
        if not died or task.name in self._isolated:
            self._on_result(dask_tasks.result_of(future, task.name))
            return []
        self._cluster.announce(
            f"workers died over {task.name}: its images are converted each in a process of its "
            "own, where one that crashes fails alone"
        )
        self._cluster.tally.forget(task.name)
        self._isolated.add(task.name)
        return [self._submit(task, dask_tasks.isolated_shard)]


def shards_to_split(shards: int, workers: int) -> int:
    """How many of the last shards are converted in chunks: few, since chunks cost some time.

    Those that are too few for a shard a worker; and at least one for every four workers, since
    some workers finish before others.
    """
    left = shards % workers
    least = -(-workers // 4)
    return min(shards, left if left >= least else left + least)


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
