"""How many threads a framework computes with on a CPU that loaders share."""

from __future__ import annotations

import os
from collections.abc import Mapping

from iobench.machine.hardware import gpus

_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


def limit_threads(threads: int | None, workers: int, *, on_cpu: bool) -> None:
    """Set the frameworks' thread count in this process; before any of them is imported.

    Without ``threads``, and ``on_cpu`` or without a GPU, a training loop leaves a processor to
    each of the loader's ``workers``: threads that wait for each other while a worker has their
    processor take many times as long, and would look like a stall for data. What the user's
    environment says stands.
    """
    os.environ.update(_limited(threads, workers, os.environ, on_cpu=on_cpu))


def rank_environment(
    environment: Mapping[str, str], threads: int | None, workers: int, ranks: int, *, on_cpu: bool
) -> dict[str, str]:
    """``environment`` for each of ``ranks`` processes that share the processors.

    Each has as many threads as ``limit_threads`` would give it on its part of them.
    """
    limited = _limited(threads, workers, environment, on_cpu=on_cpu, ranks=ranks)
    return {**environment, **limited}


def _limited(
    threads: int | None,
    workers: int,
    environment: Mapping[str, str],
    *,
    on_cpu: bool,
    ranks: int = 1,
) -> dict[str, str]:
    """The variables to set; none where they are to stay as they are."""
    if threads is None:
        if any(name in environment for name in _VARIABLES) or (not on_cpu and gpus()):
            return {}
        threads = max(1, len(os.sched_getaffinity(0)) // ranks - workers)
    return dict.fromkeys(_VARIABLES, str(threads))
