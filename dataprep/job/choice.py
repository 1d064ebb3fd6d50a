"""Which engine a job gets."""

from __future__ import annotations

from collections.abc import Callable

from dataprep.execution import DaskOptions
from dataprep.job.cluster import Cluster
from dataprep.job.engine import Engine
from dataprep.job.threads import Threads
from dataprep.worker import Report

SMALL_JOB_SOURCE_BYTES = 150_000_000
"""Below this a job ends before worker processes would have paid for their start."""


def choose_engine(
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
