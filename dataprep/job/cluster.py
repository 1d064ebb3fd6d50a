"""Make shards on a Dask cluster: worker processes started here, a configured class, or a running
scheduler.

Worker processes are forks of a server process (multiprocessing's forkserver) that imports once
what every worker needs, while the driver still plans.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import logging
import math
import multiprocessing
import os
import secrets
import signal
import sys
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from multiprocessing import forkserver, process, resource_tracker, util
from typing import Any, TypeAlias, cast

from dataprep.config import DaskOptions, SampleLimit, ShardConfig
from dataprep.errors import ConfigError, DataprepError, JobError, StoreError, WorkerLost
from dataprep.image import ImagePolicy
from dataprep.job.in_process import InProcess, OnResult, Tally, made_again, may_pass
from dataprep.job.isolate import isolated_outcomes
from dataprep.job.worker import Outcome, Progress, Report, ShardResult, ShardTask, chunks, parts_of
from dataprep.process_settings import MOST_OPEN_FILES
from dataprep.sources import Located, Source
from dataprep.versions import determining, require_versions

TASKS_END_WITHIN_S = 120.0
"""How long a job waits for its tasks on a cluster of somebody else before it ends."""

WITHOUT_WORKERS_S = 60.0
"""A job ends when its cluster has had no worker for so long."""

_CHUNKS_A_WORKER = 12
_CALIBRATED_AT_ONCE = 16
_FEWEST_SAMPLES = 32  # of a chunk: each task takes Dask some milliseconds
_ANSWER_TIMEOUT_S = 15
_LOOK_EVERY_S = 2.0
_SILENT = logging.CRITICAL + 1  # Dask logs the end of a client as critical, with a traceback

# Dask's profiler, ticks and monitors take a twentieth of two cores with their usual periods.
_DASK = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.multiprocessing-method": "forkserver",
    "distributed.scheduler.allowed-failures": 1,  # the second death over a task ends it
    "distributed.nanny.pre-spawn-environ": {},  # see dataprep.forked
    # Otherwise every connection keeps its last 1,000 messages in the driver's memory.
    "distributed.admin.low-level-log-length": 10,
}
_GUARD = (
    "in a script, put what starts a job under if __name__ == '__main__':, since worker processes "
    "import it; or set dask.processes: false"
)


class Cluster:
    """A Dask cluster that makes shards.

    Worker processes that are started here have ``modules`` imported when they begin.

    Attributes:
        tasks_may_run: whether tasks of the job may go on, because the cluster is somebody else's
            and did not say that they have ended. It is known once the cluster is closed.
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
        self.tasks_may_run = False
        self._client: Future[Any] | None = None
        self._open = ExitStack()
        if not options.is_external:
            with ExitStack() as settings:  # restored if the start fails
                settings.enter_context(MOST_OPEN_FILES.changed())
                settings.enter_context(_main_is_no_file())
                _begin_imports(modules)  # takes a second; meanwhile the caller lists the source
                self._open = settings.pop_all()

    def begin(self) -> Future[Any]:
        """Start or connect in the background; the future Dask client."""
        if self._client is None:
            self._open.enter_context(_quiet())
            starter = self._open.enter_context(ThreadPoolExecutor(1))
            with _interrupts_blocked():  # for this thread and the processes that it starts
                self._client = starter.submit(self._start)
        return self._client

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Make all shards; each task is built when its turn comes.

        The workers stay for the next call, until ``close``.
        """
        client = self.begin().result()
        if self.options.dashboard and client.dashboard_link:
            self.announce(f"Dask dashboard: {client.dashboard_link}")
        on_ready()
        self.tasks_may_run = self.options.is_external
        if tasks and self.options.is_external:
            _require_same_versions(client, tasks[0]().versions)
        _Run(self, client, tasks, on_result).run()

    def convert_samples(
        self, source: Source, policy: ImagePolicy, limit: SampleLimit, items: Sequence[Located]
    ) -> Iterator[Outcome]:
        """Convert samples that are in no shard yet, to learn how large records become."""
        client = self.begin().result()
        from distributed import KilledWorker

        from dataprep.job import tasks

        parts = list(chunks(items, _CALIBRATED_AT_ONCE))
        futures = client.map(
            tasks.outcomes,
            parts,
            source=source,
            policy=policy,
            versions=determining(same_everywhere=policy.same_everywhere),
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
        """End what was started; a cluster that was running before continues.

        Wait for the tasks of the job that a cluster still runs, at most ``TASKS_END_WITHIN_S``.
        """
        try:
            # The first waits until the start has ended.
            if self._client is not None and self._client.exception() is None and self.tasks_may_run:
                self.tasks_may_run = not self._tasks_have_ended(self._client.result())
        finally:
            self._open.close()

    def _tasks_have_ended(self, client: Any) -> bool:
        """Ask all workers to stop the tasks of the job, until all say that none runs."""
        from dataprep.job import tasks

        deadline_s = time.monotonic() + TASKS_END_WITHIN_S
        announced = False
        while client.status == "running" and (left_s := deadline_s - time.monotonic()) > 0:
            # A worker that hangs does not answer; what a worker raises is no number of tasks.
            with suppress(OSError, TimeoutError):
                answers = client.sync(
                    client.run, tasks.stop, self.name, on_error="return", callback_timeout=left_s
                )
                if all(count == 0 for count in answers.values()):
                    return True
            if not announced:
                announced = True
                self.announce(
                    f"waiting until tasks of this job on the cluster have ended, at most "
                    f"{TASKS_END_WITHIN_S:.0f} s, before its lock is released"
                )
            time.sleep(min(_LOOK_EVERY_S, max(left_s, 0.0)))
        self.announce(
            "tasks of this job may still run on the cluster: its lock is not released and expires "
            "in two minutes. A run that begins before waits for that"
        )
        return False

    def receive(self, event: tuple[float, tuple[str, int, tuple[int, int, int]]]) -> None:
        """Take a progress event, in Dask's event loop."""
        shard, number, totals = event[1]
        self.tally.add((shard, number), Progress(*totals))

    def _start(self) -> Any:
        import dask
        from distributed import Client

        # In force as long as the cluster: a scheduler reads some whenever a worker joins.
        self._open.enter_context(dask.config.set(_DASK))
        if self.options.scheduler:
            client = _connected(self.options, self.options.scheduler)
        else:
            cluster = self._open.enter_context(closing(self._cluster()))
            client = Client(cluster)
        self._open.enter_context(closing(client))
        client.subscribe_topic(self.name, self.receive)
        return client

    def _cluster(self) -> Any:
        import dask
        import distributed.utils

        if self.options.cluster:
            return _custom(self.options, self.options.cluster)
        disk = dask.config.get("temporary-directory", None) or util.get_temp_dir()
        with dask.config.set({"temporary-directory": disk}):
            # Otherwise Dask makes a running fork server import pandas.
            distributed.utils._forkserver_preload_set = True
            try:
                return distributed.LocalCluster(
                    n_workers=self.options.worker_count,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    memory_limit=int(self.options.memory_limit),
                    dashboard_address=self.options.dashboard,
                    silence_logs=_SILENT,
                    env=dict(os.environ),  # the fork server has that of an earlier job
                )
            except RuntimeError as error:
                raise JobError(
                    f"worker processes did not start ({error}): allow more of them (ulimit -u) and "
                    f"memory; {_GUARD}"
                ) from error


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
        self._workers = max(sum(each["nthreads"] for each in self._known().values()), 1)
        split = shards_to_split(len(tasks), self._workers)
        # With fewer chunks some workers are idle at the end; each chunk costs Dask some time.
        self._chunks_a_shard = _CHUNKS_A_WORKER * self._workers / max(split, 1)
        self._tasks, self._split = deque(tasks), split
        self._shards: dict[str, ShardTask] = {}
        self._isolated: set[str] = set()
        self._in_chunks: set[str] = set()
        self._repeated: Counter[str] = Counter()
        self._chunks: set[str] = set()
        self._numbers = itertools.count()
        # A configured cluster may wait in a queue for its first worker.
        self._seen_s = math.inf if cluster.options.cluster else time.monotonic()

    def run(self) -> None:
        """Submit, wait for results, and submit again."""
        from distributed import Semaphore, as_completed

        slots = Semaphore(max_leases=self._uploads, name=self._cluster.name)
        running = as_completed(self._next())
        try:
            while not running.is_empty():
                ready = running.next_batch(block=False)
                for future in ready:
                    again = []
                    if future.key in self._chunks:
                        self._chunks.remove(future.key)
                    else:
                        again = self._finished(future)
                    if future not in again:
                        future.release()
                    running.update([*again, *self._next()])
                if ready:
                    self._seen_s = time.monotonic()
                    continue
                with running.thread_condition:  # notified of each result
                    come = running.has_ready() or running.thread_condition.wait(_LOOK_EVERY_S)
                if not come:
                    self._require_workers()
        except BaseException:
            self._client.cancel([*running.futures], force=True)
            raise
        slots.close()

    def _known(self) -> Mapping[str, Any]:
        return cast(Mapping[str, Any], self._client.scheduler_info(n_workers=-1)["workers"])

    def _require_workers(self) -> None:
        """Raise WorkerLost when the cluster has had no worker for too long."""
        if self._known():
            self._seen_s = time.monotonic()
        elif time.monotonic() - self._seen_s > WITHOUT_WORKERS_S:
            raise WorkerLost(
                f"the cluster has had no worker for {WITHOUT_WORKERS_S:.0f} s. What is stored is "
                "kept: start workers and run the same command again to resume"
            )

    def _next(self) -> list[Any]:
        """Whole shards while there are any: one stored, one converted and one waiting a worker."""
        futures = []
        while self._tasks and len(self._shards) < 3 * self._workers:
            whole = len(self._tasks) > self._split
            if not whole and len(self._chunks) >= 2 * self._workers:
                break
            task = self._tasks.popleft()()
            if not whole:
                self._in_chunks.add(task.name)
            futures += self._begun(task)
        return futures

    def _begun(self, task: ShardTask) -> list[Any]:
        """Futures of a shard that is made for the first time, or again."""
        from dataprep.job import tasks

        if task.name in self._isolated:
            return [self._submit(task, tasks.isolated_shard)]
        if task.name in self._in_chunks:
            return self._begun_in_chunks(task)
        return [self._submit(task, tasks.whole_shard)]

    def _begun_in_chunks(self, task: ShardTask) -> list[Any]:
        """A task for each chunk, and one that puts them together."""
        from dataprep.job import tasks

        samples = max(_FEWEST_SAMPLES, math.ceil(len(task.items) / self._chunks_a_shard))
        parts = parts_of(task, samples)
        futures = self._client.map(
            tasks.chunks,
            [tasks.packed(part) for part in parts.values()],
            list(parts),
            topic=self._cluster.name,
            key=[self._key("chunk", f"{task.name}.{start}") for start in parts],
            pure=False,
            priority=-task.shard,
        )
        self._chunks.update(future.key for future in futures)
        return [*futures, self._submit(task, tasks.assembled_shard, futures)]

    def _submit(self, task: ShardTask, work: Callable[..., Any], parts: Sequence[Any] = ()) -> Any:
        from dataprep.job import tasks

        key = self._key(work.__name__, task.name)
        self._shards[key] = task
        return self._client.submit(
            work,
            tasks.packed(replace(task, items=()) if parts else task),
            self._uploads,
            self._cluster.name,
            *parts,
            key=key,
            pure=False,
            priority=-task.shard,
        )

    def _key(self, work: str, name: str) -> str:
        """A key that begins with the kind of task, by which Dask groups tasks.

        Dask gives tasks of a group to free workers in order of priority only if the group depends
        on no other tasks.
        """
        return f"{work}-{name}-{self._cluster.name}-{next(self._numbers)}"

    def _finished(self, future: Any) -> list[Any]:
        """Pass the result on. Return futures to wait for if the shard is made again."""
        from distributed import KilledWorker

        task = self._shards.pop(future.key)
        try:
            result: ShardResult = future.result(timeout=_LOOK_EVERY_S)
        except KilledWorker:
            if task.name in self._isolated:
                raise WorkerLost(
                    f"workers died again and again over {task.name}: out of memory (see --set "
                    "dask.memory_limit) or killed from outside. What is stored is kept; run again "
                    "to resume"
                ) from None
            self._cluster.announce(
                f"workers died over {task.name}: each of its images is now converted in a process "
                "of its own, so that one that crashes fails alone"
            )
            self._isolated.add(task.name)
            return self._begun(task)
        except StoreError as error:
            self._repeated[task.name] += 1
            if not may_pass(error) or self._repeated[task.name] > self._cluster.options.retries:
                raise
            self._cluster.announce(
                made_again(task, self._repeated[task.name], self._cluster.options.retries, error)
            )
            return self._begun(task)
        except (DataprepError, KeyboardInterrupt):
            raise
        except Exception as error:
            if isinstance(error, TimeoutError) and future.status != "error":
                self._shards[future.key] = task  # its worker died with the result: made again
                return [future]
            if self._client.status != "running":
                raise WorkerLost(
                    "the connection to the scheduler is lost. What is stored is kept: start a "
                    "cluster and run the same command again to resume"
                ) from None
            raise JobError(f"a worker failed: {type(error).__name__}: {error}") from error
        self._on_result(result)
        return []


def shards_to_split(shards: int, workers: int) -> int:
    """How many of the last shards are converted in chunks: few, since chunks cost some time.

    Those that are too few for a shard a worker; and at least one for every four workers, since
    some workers finish before others. Two or three workers hardly do.
    """
    left, least = shards % workers, workers // 4
    return min(shards, left if left >= least else left + least)


def require_reachable(options: DaskOptions) -> None:
    """Find out before anything is written whether there is such a scheduler or class.

    Raises:
        ConfigError: there is none.
    """
    if options.scheduler:
        with _quiet():
            _connected(options, options.scheduler).close()
    elif options.cluster:
        _cluster_class(options.cluster)


def _connected(options: DaskOptions, address: str) -> Any:
    from distributed import Client, Security

    files = {}
    if options.tls is not None:
        files["tls_ca_file"] = options.tls.ca_file
        files["tls_client_cert"] = options.tls.cert
        files["tls_client_key"] = options.tls.key
    try:
        return Client(address, timeout=_ANSWER_TIMEOUT_S, security=Security(**files))
    except TypeError:
        why = (
            f"{address!r} needs certificates: name their files in dask.tls (ca_file, cert, key), "
            "or in DASK_DISTRIBUTED__COMM__TLS__CA_FILE and the others of Dask"
        )
    except (OSError, ValueError) as error:
        why = f"no Dask scheduler answers at {address!r}: {error}"
    # A client that did not connect closes itself when it is collected. If that happens while
    # another one starts, both wait for each other for ever.
    gc.collect()
    raise ConfigError(why)


def _require_same_versions(client: Any, planned: tuple[tuple[str, str], ...]) -> None:
    """Compare the versions of all connected workers; later ones are compared at their first task.

    Raises:
        JobError: one has other versions, or lacks this package.
    """
    try:
        client.run(require_versions, planned)
    except DataprepError:
        raise
    except Exception as error:
        raise JobError(
            f"a worker of the cluster cannot run jobs: {type(error).__name__}: {error}: install "
            "the same version of this package there"
        ) from error


def _custom(options: DaskOptions, path: str) -> Any:
    """A cluster of a configured class, scaled to the workers that are asked for."""
    made = _cluster_class(path)
    try:
        cluster = made(**options.cluster_args)
        if options.workers:
            cluster.scale(options.workers)
    except Exception as error:
        raise ConfigError(
            f"dask.cluster: {path!r} did not start with these dask.cluster_args "
            f"({', '.join(options.cluster_args)}): {type(error).__name__}: {error}"
        ) from error
    return cluster


def _cluster_class(path: str) -> Callable[..., Any]:
    """The class or function at ``package.module.NameCluster``."""
    module, _, name = path.rpartition(".")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"dask.cluster: cannot import {path!r} ({error}): install the package that has it"
        ) from None
    if not name.endswith("Cluster"):  # a config must not call whatever is installed
        raise ConfigError(f"dask.cluster: {path!r}: give a class or function named ...Cluster")
    return found


Engine: TypeAlias = Cluster | InProcess


def engine_of(config: ShardConfig, report: Report, announce: Callable[[str], None]) -> Engine:
    """What makes the shards of a job: a cluster or this process.

    Raises:
        ConfigError: this process is a worker that imports a script without a guard.
    """
    if getattr(process.current_process(), "_inheriting", False):
        raise ConfigError(_GUARD)
    if not config.dask.uses_workers:
        return InProcess(config.dask, report, announce)
    on_s3 = "s3://" in config.source or "s3://" in config.output
    return Cluster(config.dask, report, announce, ["boto3"] if on_s3 else [])


def _begin_imports(modules: Sequence[str]) -> None:
    """Start the fork server in the background, unless this process has one."""
    multiprocessing.set_forkserver_preload(["dataprep.forked", *modules])
    resource_tracker.ensure_running()  # up to Python 3.12 its start lets interrupts through
    with _interrupts_blocked():
        forkserver.ensure_running()


@contextmanager
def _main_is_no_file() -> Iterator[None]:
    """Keep workers from importing a script that the interpreter reads from its standard input."""
    main = sys.modules["__main__"]
    if getattr(main, "__file__", None) != "<stdin>":
        yield
        return
    del main.__file__
    try:
        yield
    finally:
        main.__file__ = "<stdin>"


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Threads and processes that begin here never see Ctrl-C: the driver ends them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's warnings of a taken port and its log lines on shutdown."""
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
