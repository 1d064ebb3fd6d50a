"""Who makes the shards: this process, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from dataprep.config import DaskOptions, SampleLimit, ShardConfig
from dataprep.image import ImagePolicy
from dataprep.job import socket_folder
from dataprep.job.cluster import Cluster
from dataprep.job.forking import refuse_while_main_is_imported
from dataprep.job.in_process import InProcess, OnResult, nothing
from dataprep.job.worker import Outcome, Report, ShardTask
from dataprep.sources import Located, Source

AUTO = True
"""Whether ``dask.processes: auto`` means worker processes."""


class Engine(Protocol):
    """Converts samples and makes shards; the bytes are the same with each."""

    def begin(self) -> object:
        """Start the workers in the background, if there are any to start."""
        ...

    def run(
        self,
        tasks: Sequence[Callable[[], ShardTask]],
        on_result: OnResult,
        on_ready: Callable[[], None] = nothing,
    ) -> None:
        """Make all shards; each task is built when its turn comes.

        ``on_ready`` is called once, when there are workers. Raises what ended a shard.
        """
        ...

    def outcomes(
        self, source: Source, items: Sequence[Located], policy: ImagePolicy, limit: SampleLimit
    ) -> Iterator[Outcome]:
        """Convert samples that are in no shard yet, in order."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


def engine_of(config: ShardConfig, report: Report, announce: Callable[[str], None]) -> Engine:
    """The engine that the config asks for.

    Raises:
        ConfigError: in a worker that imports the main script, which has no guard.
    """
    refuse_while_main_is_imported()
    socket_folder.sweep()
    if not uses_workers(config.dask):
        return InProcess(config.dask, report)
    on_s3 = "s3://" in config.source or "s3://" in config.output
    return Cluster(config.dask, report, announce, ["boto3"] if on_s3 else [])


def uses_workers(options: DaskOptions) -> bool:
    """Whether a job is done by worker processes or a cluster, not by this process."""
    processes = AUTO if options.processes == "auto" else options.processes
    return bool(options.scheduler or options.cluster or processes)
