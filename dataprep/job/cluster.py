"""Make shards on a Dask cluster.

There are three kinds of cluster: worker processes on this machine; a cluster that the job starts
from a configured class (``dask.cluster``); and a running cluster, whose scheduler has a configured
address (``dask.scheduler``). The last two are external: their tasks may continue after the process
that runs the job has ended.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import chain
from multiprocessing import util
from typing import Any, TypeAlias

from dataprep.config.shard_config import DaskOptions, SampleLimit, ShardConfig
from dataprep.errors import ConfigError, JobError
from dataprep.image import ImagePolicy
from dataprep.job.conversion import Outcome, Progress, Report, cut_into_batches
from dataprep.job.dask_connection import (
    SILENT,
    connect,
    quiet_dask,
    require_same_versions,
    start_custom_cluster,
)
from dataprep.job.fork_server import (
    interrupts_blocked,
    is_starting_worker,
    keep_modules_of_fork_server,
    main_script_hidden,
    start_fork_server,
)
from dataprep.job.in_process import InProcess, OnResult, Tally
from dataprep.job.isolated_conversion import isolated_batches
from dataprep.job.shard_queue import ShardQueue
from dataprep.job.shard_task import ShardTask
from dataprep.machine.process_settings import MAX_OPEN_FILES
from dataprep.output.versions import versions_that_determine_bytes
from dataprep.sources import Located, Source

MAX_TASK_END_S = 120.0
"""How long a job that ends waits for its tasks on an external cluster."""

_POLL_INTERVAL_S = 2.0

_CALIBRATION_BATCH_SAMPLES = 16
"""The number of samples in a task of the calibration.

The calibration converts few samples. Small tasks distribute them to several workers.
"""

_DASK_SETTINGS = {
    # With their usual intervals, Dask's profiler, ticks and monitors use 5 % of two cores.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.multiprocessing-method": "forkserver",
    # A task fails when a second worker has died while it ran the task.
    "distributed.scheduler.allowed-failures": 1,
    # dataprep.job.fork_server_preload sets the environment of workers.
    "distributed.nanny.pre-spawn-environ": {},
    # Otherwise every connection keeps its last 1,000 messages in the driver's memory.
    "distributed.admin.low-level-log-length": 10,
}
_GUARD_ADVICE = (
    "worker processes import the script that started the job: put its code under "
    "if __name__ == '__main__':, or set dask.processes: false"
)


class Cluster:
    """A Dask cluster that makes shards.

    Args:
        options: the settings of the cluster.
        report: called with the progress since the last call.
        note: called with messages for the user.
        modules: modules that the fork server imports for the workers on this machine, in addition
            to those that every worker needs.

    Attributes:
        topic: the name of the job in Dask. It is unique, because other jobs may use the scheduler.
        tasks_may_run: whether tasks of the job may still run on an external cluster. Until
            ``close`` has asked the cluster, this is assumed once tasks were submitted.
    """

    def __init__(
        self,
        options: DaskOptions,
        report: Report,
        note: Callable[[str], None],
        modules: Sequence[str] = (),
    ) -> None:
        self.topic = f"dataprep-{secrets.token_hex(8)}"
        self.tasks_may_run = False
        self._options = options
        self._note = note
        self._tally = Tally(report)
        self._client_future: Future[Any] | None = None
        self._resources = ExitStack()
        if not options.is_external:
            # Restore the settings at once if the start fails, otherwise in ``close``.
            with ExitStack() as settings:
                settings.enter_context(MAX_OPEN_FILES.changed())
                settings.enter_context(main_script_hidden())
                start_fork_server(modules)  # in the background, while the caller lists the source
                self._resources = settings.pop_all()

    def begin(self) -> Future[Any]:
        """Start the cluster, or connect to it, in a thread.

        Returns:
            The future of the Dask client. It is the same for all calls.
        """
        if self._client_future is None:
            self._resources.enter_context(quiet_dask())
            starter = self._resources.enter_context(ThreadPoolExecutor(1))
            with interrupts_blocked():  # in the thread and in the processes that it starts
                self._client_future = starter.submit(self._start)
        return self._client_future

    def run(
        self,
        task_builders: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Make all shards. The workers stay alive for the next call, until ``close``.

        Args:
            task_builders: a function for each shard, which builds its task. It is called when the
                shard is submitted, so that few tasks are in memory.
            on_result: called with the result of each shard. It may raise an error to stop the work.
            on_ready: called when the cluster runs, before the first shard is submitted.

        Raises:
            ConfigError: the scheduler does not answer, or the configured class does not start.
            WorkerLost: workers died over a shard, or the cluster has no workers.
            JobError: the workers did not start, or have other library versions; or a task failed.
            SourceChanged: a sample is gone or has another size than planned.
            StoreError: a shard could not be stored after all retries.
        """
        client = self.begin().result()
        if self._options.dashboard and client.dashboard_link:
            self._note(f"Dask dashboard: {client.dashboard_link}")
        on_ready()
        self.tasks_may_run = self._options.is_external
        if task_builders and self._options.is_external:
            any_task = task_builders[0]()  # all tasks of a split have the same versions
            require_same_versions(client, any_task.versions)
        queue = ShardQueue(client, self.topic, self._options, self._note, task_builders, on_result)
        queue.run()

    def convert_samples(
        self, source: Source, policy: ImagePolicy, limit: SampleLimit, items: Sequence[Located]
    ) -> Iterator[Outcome]:
        """Yield the outcomes of converting samples, from which the size of records is estimated.

        Nothing is stored.

        Args:
            source: where the samples come from.
            policy: how images are converted.
            limit: how long the conversion of one sample may take.
            items: the samples.
        """
        client = self.begin().result()
        from distributed import KilledWorker

        from dataprep.job import dask_tasks

        batches = list(cut_into_batches(items, _CALIBRATION_BATCH_SAMPLES))
        futures = client.map(
            dask_tasks.convert_samples,
            batches,
            source=source,
            policy=policy,
            versions=versions_that_determine_bytes(same_everywhere=policy.same_everywhere),
            limit=limit,
            pure=False,
        )
        try:
            for batch, future in zip(batches, futures, strict=True):
                try:
                    yield from future.result()
                except KilledWorker:
                    # An image may have crashed the workers. Convert each image of the batch in a
                    # child process of this process, so that only this image fails.
                    isolated = isolated_batches(source, batch, policy, limit)
                    yield from chain.from_iterable(isolated)
        finally:
            client.cancel(futures, force=True)

    def close(self) -> None:
        """End the cluster, or only disconnect from it if it was running before the job.

        If tasks of the job may still run on an external cluster, first wait until they have ended,
        at most ``MAX_TASK_END_S``.
        """
        try:
            if self._client_future is None:
                return
            # ``exception`` waits until the start has succeeded or failed.
            has_started = self._client_future.exception() is None
            if has_started and self.tasks_may_run:
                self.tasks_may_run = not self._wait_for_tasks(self._client_future.result())
        finally:
            self._resources.close()

    def _wait_for_tasks(self, client: Any) -> bool:
        """Ask all workers to stop the tasks of the job, until they have ended or the time is over.

        Returns:
            Whether all workers have answered that no task of the job runs any more.
        """
        from dataprep.job import dask_tasks

        deadline_s = time.monotonic() + MAX_TASK_END_S
        user_was_told = False
        while client.status == "running":
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                break
            # The answer of a worker is the number of its running tasks, or an error. A worker that
            # hangs does not answer, so that the request ends with a timeout.
            with suppress(OSError, TimeoutError):
                answers = client.sync(
                    client.run,
                    dask_tasks.stop,
                    self.topic,
                    on_error="return",
                    callback_timeout=remaining_s,
                )
                if all(answer == 0 for answer in answers.values()):
                    return True
            if not user_was_told:
                user_was_told = True
                self._note(
                    f"waiting until tasks of this job on the cluster have ended, at most "
                    f"{MAX_TASK_END_S:.0f} s, before its lock is released"
                )
            time.sleep(min(_POLL_INTERVAL_S, remaining_s))
        self._note(
            "tasks of this job may still run on the cluster: its lock is not released and expires "
            "in two minutes. Another run of this output waits until then"
        )
        return False

    def _receive_progress(self, event: tuple[float, tuple[str, int, tuple[int, int, int]]]) -> None:
        """Add the progress of a shard or chunk. Dask calls this in its event loop.

        Args:
            event: the time of the event, and what ``dask_tasks`` has logged: the name of the shard,
                the number of the chunk, and the fields of its ``Progress``.
        """
        _, (shard, chunk, totals) = event
        self._tally.add((shard, chunk), Progress(*totals))

    def _start(self) -> Any:
        """Start the cluster, or connect to it. Return its client. This is called in a thread."""
        import dask
        from distributed import Client

        # The settings stay until the cluster ends, because its scheduler reads some of them each
        # time a worker joins.
        self._resources.enter_context(dask.config.set(_DASK_SETTINGS))
        if self._options.scheduler:
            client = connect(self._options, self._options.scheduler)
        else:
            cluster = self._resources.enter_context(closing(self._start_cluster()))
            client = Client(cluster)
        self._resources.enter_context(closing(client))
        client.subscribe_topic(self.topic, self._receive_progress)
        return client

    def _start_cluster(self) -> Any:
        """Start a cluster of the configured class or, without one, worker processes here.

        Raises:
            ConfigError: the class cannot be imported, or does not start with its arguments.
            JobError: the worker processes did not start.
        """
        import dask
        import distributed

        if self._options.cluster:
            return start_custom_cluster(self._options, self._options.cluster)
        # The temporary folder of multiprocessing is removed when this process ends.
        folder = dask.config.get("temporary-directory", None) or util.get_temp_dir()
        with dask.config.set({"temporary-directory": folder}):
            keep_modules_of_fork_server()
            try:
                return distributed.LocalCluster(
                    n_workers=self._options.worker_count,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    memory_limit=int(self._options.memory_limit),
                    dashboard_address=self._options.dashboard,
                    silence_logs=SILENT,
                    # Otherwise workers could get the fork server's environment of an earlier job.
                    env=dict(os.environ),
                )
            except RuntimeError as error:
                raise JobError(
                    f"worker processes did not start ({error}): allow more of them (ulimit -u) and "
                    f"memory; {_GUARD_ADVICE}"
                ) from error


Engine: TypeAlias = Cluster | InProcess
"""Makes the shards of a job: on a Dask cluster, or in this process."""


def engine_of(config: ShardConfig, report: Report, note: Callable[[str], None]) -> Engine:
    """Return the engine that the config asks for: a Dask cluster, or this process.

    Args:
        config: the config of the job.
        report: called with the progress since the last call.
        note: called with messages for the user.

    Raises:
        ConfigError: this process is a worker that imports a script without a guard.
    """
    if is_starting_worker():
        raise ConfigError(_GUARD_ADVICE)
    if not config.dask.uses_workers:
        return InProcess(config.dask, report, note)
    # boto3 is slow to import. With it in the fork server, each worker starts with boto3 imported.
    uses_s3 = "s3://" in config.source or "s3://" in config.output
    return Cluster(config.dask, report, note, ["boto3"] if uses_s3 else [])
