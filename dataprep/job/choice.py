"""Which engine a job gets."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.execution import DaskOptions
from dataprep.job import socket_folder
from dataprep.job.cluster import Cluster
from dataprep.job.engine import Engine
from dataprep.job.forking import refuse_while_main_is_imported
from dataprep.job.journal import Journal
from dataprep.job.threads import Threads
from dataprep.worker import Report

SMALL_JOB_SOURCE_BYTES = 150_000_000
"""Below this a job ends before worker processes would have paid for their start."""


class Engines:
    """The engine of each split of a job. Worker processes serve all splits that are left."""

    def __init__(
        self,
        options: DaskOptions,
        report: Report,
        announce: Callable[[str], None],
        journal: Journal | None = None,
    ) -> None:
        self._options = options
        self._threads = Threads(options, report, journal)
        self._cluster = Cluster(options, report, announce)  # begins when it is wanted

    def expect(self, source_bytes: int) -> None:
        """Begin to start worker processes here, if so much is work for them."""
        there_already = self._options.scheduler or self._options.cluster
        if not there_already and takes_processes(self._options, source_bytes):
            self._cluster.begin()

    def choose(self, source_bytes: int) -> Engine:
        """Threads for a small job, unless told or there are worker processes; these otherwise."""
        if self._cluster.begun or takes_processes(self._options, source_bytes):
            return self._cluster
        return self._threads

    def __enter__(self) -> Engines:
        """Raises ConfigError in a worker that begins: its caller's script has no guard."""
        refuse_while_main_is_imported()
        socket_folder.sweep()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()


def takes_processes(options: DaskOptions, source_bytes: int) -> bool:
    """PURE. Whether a job of so much is not for the threads of this process."""
    if options.scheduler or options.cluster:
        return True
    if options.processes == "auto":
        return source_bytes >= SMALL_JOB_SOURCE_BYTES
    return options.processes
