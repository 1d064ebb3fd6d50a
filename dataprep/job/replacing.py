"""Worker processes of our own that are not there any more, replaced.

Dask's nanny starts a worker anew that dies. But by its source (``Nanny.instantiate``) one that
dies before the nanny heard that it is up is not taken for one: the nanny closes, and where all
have, a job would wait for ever.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_LOOK_EVERY_S = 1.0


@contextlib.contextmanager
def replacing(cluster: Any, workers: int) -> Iterator[None]:
    """Look after the nannies of a cluster that was started here, until the block ends."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_LOOK_EVERY_S):
            replace_closed(cluster, workers)

    thread = threading.Thread(target=watch, name="replacing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def replace_closed(cluster: Any, workers: int) -> None:
    """Forget nannies that have closed, and have as many new ones."""
    from distributed.core import Status

    gone = {
        name
        for name, nanny in [*cluster.workers.items()]
        if nanny.status in (Status.closed, Status.failed)
    }
    for name in gone & {*cluster.worker_spec}:
        cluster.worker_spec.update(cluster.new_worker_spec())  # of another name
        del cluster.worker_spec[name]
    if gone:
        cluster.scale(workers)
