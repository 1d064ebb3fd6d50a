"""How many threads a framework computes with on a CPU that loaders share."""

from __future__ import annotations

import os
from collections.abc import Mapping

from iobench.environment import gpus

_VARIABLES = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


def limit_threads(threads: int | None, workers: int, *, on_cpu: bool) -> None:
    """Set the frameworks' thread count in this process; before any of them is imported.

    Without ``threads``, and ``on_cpu`` or without a GPU, a training loop leaves a processor to
    each of the loader's ``workers``: threads that wait for each other while a worker has their
    processor take many times as long, and would look like a stall for data. What the user's
    environment says stands.
    """
    chosen = _chosen(threads, workers, os.environ, on_cpu)
    if chosen is not None:
        os.environ.update(dict.fromkeys(_VARIABLES, str(chosen)))


def _chosen(
    threads: int | None, workers: int, environment: Mapping[str, str], on_cpu: bool
) -> int | None:
    if threads is not None:
        return threads
    if any(name in environment for name in _VARIABLES):
        return None
    if gpus() and not on_cpu:
        return None
    return max(1, len(os.sched_getaffinity(0)) - workers)
