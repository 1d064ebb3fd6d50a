"""Make shards on a Dask cluster.

There are three kinds of cluster: worker processes on this machine, a cluster of a configured class
(``dask.cluster``), and a running cluster with the address of its scheduler (``dask.scheduler``).
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
"""How long a job that ends waits for its tasks on a cluster that outlives the job."""

_POLL_INTERVAL_S = 2.0
_CALIBRATION_BATCH_SAMPLES = 16

_DASK_SETTINGS = {
    # With their usual intervals, Dask's profiler, ticks and monitors use 5 % of two cores.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.multiprocessing-method": "forkserver",
    # A task fails when a second worker has died over it.
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
        modules: modules that worker processes import when they start.

    Attributes:
        topic: the name of the job in Dask. It is unique, because other jobs may use the scheduler.
        tasks_may_run: whether tasks of the job may still run on a cluster that outlives the job.
            It is final after ``close``, which asks the cluster.
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
        self._client: Future[Any] | None = None
        self._resources = ExitStack()
        if not options.is_external:
            with ExitStack() as settings:  # restores the settings if the start fails
                settings.enter_context(MAX_OPEN_FILES.changed())
                settings.enter_context(main_script_hidden())
                start_fork_server(modules)  # in the background, while the caller lists the source
                self._resources = settings.pop_all()

    def begin(self) -> Future[Any]:
        """Start or connect to the cluster in the background. Return a future of the client."""
        if self._client is None:
            self._resources.enter_context(quiet_dask())
            starter = self._resources.enter_context(ThreadPoolExecutor(1))
            with interrupts_blocked():  # for this thread and the processes that it starts
                self._client = starter.submit(self._start)
        return self._client

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Make all shards. The workers stay alive for the next call, until ``close``.

        Args:
            tasks: functions that build the task of a shard, called when the shard is submitted.
            on_result: called with the result of each shard.
            on_ready: called before the first shard is submitted.
        """
        client = self.begin().result()
        if self._options.dashboard and client.dashboard_link:
            self._note(f"Dask dashboard: {client.dashboard_link}")
        on_ready()
        self.tasks_may_run = self._options.is_external
        if tasks and self._options.is_external:
            require_same_versions(client, tasks[0]().versions)
        queue = ShardQueue(client, self.topic, self._options, self._note, tasks, on_result)
        queue.run()

    def convert_samples(
        self, source: Source, policy: ImagePolicy, limit: SampleLimit, items: Sequence[Located]
    ) -> Iterator[Outcome]:
        """Convert samples to estimate the size of records. Nothing is stored."""
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
                    isolated = isolated_batches(source, batch, policy, limit)
                    yield from chain.from_iterable(isolated)
        finally:
            client.cancel(futures, force=True)

    def close(self) -> None:
        """End the cluster, unless it was running before the job.

        If tasks of the job still run on it, first wait for them, at most ``MAX_TASK_END_S``.
        """
        try:
            if self._client is None:
                return
            has_started = self._client.exception() is None  # waits until the start has ended
            if has_started and self.tasks_may_run:
                self.tasks_may_run = not self._wait_for_tasks(self._client.result())
        finally:
            self._resources.close()

    def _wait_for_tasks(self, client: Any) -> bool:
        """Ask all workers to stop the tasks of the job. Return whether all tasks have ended."""
        from dataprep.job import dask_tasks

        deadline_s = time.monotonic() + MAX_TASK_END_S
        is_noted = False
        while client.status == "running":
            remaining_s = deadline_s - time.monotonic()
            if remaining_s <= 0:
                break
            # A worker that hangs does not answer. If a worker raises an error, its answer is that
            # error instead of the number of running tasks.
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
            if not is_noted:
                is_noted = True
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
        """Add the progress event of a worker. Dask calls this in its event loop."""
        _, (shard, chunk, totals) = event
        self._tally.add((shard, chunk), Progress(*totals))

    def _start(self) -> Any:
        """Start or connect to the cluster. Return a client."""
        import dask
        from distributed import Client

        # The settings stay as long as the cluster, because the scheduler reads some of them each
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
        import dask
        import distributed

        if self._options.cluster:
            return start_custom_cluster(self._options, self._options.cluster)
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
    uses_s3 = "s3://" in config.source or "s3://" in config.output
    return Cluster(config.dask, report, note, ["boto3"] if uses_s3 else [])
