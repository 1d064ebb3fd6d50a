"""How many files this process may have open, where it starts worker processes."""

from __future__ import annotations

import resource

from dataprep.errors import ConfigError

_OWN, _A_WORKER = 56, 4
"""Measured with Dask: connections, pipes and what watches each worker."""


def allow_open_files(workers: int) -> None:
    """Raise this process's own limit to what so many worker processes take, as far as it may be.

    With too few Dask waits for ever for workers that cannot be started.

    Raises:
        ConfigError: the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _OWN + _A_WORKER * workers
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigError(
            f"too few open files: --workers {workers} takes about {needed:,}, and {hard:,} are "
            "allowed: raise the limit (ulimit -Hn), take fewer --workers, or "
            "--set dask.processes=false"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
