"""A new job written down, although others may write theirs at the same moment.

Machines that share a job (``--part``) all find an empty output, and so do the first runs of two
splits. Each object is created only if there is none (``Create``); who comes second must find
its own bytes there. If it does not, another job was faster, and what it wrote is looked at anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from dataprep import keys
from dataprep.errors import ObjectNotFound
from dataprep.stores import Store

PATIENCE_S = (0.0, 0.5, 1.0, 2.0, 4.0)
"""How long other bytes without a job file may still be the beginning of another job."""


class Overtaken(Exception):
    """Another run wrote its job here first."""


def write_down(
    store: Store,
    labels: bytes,
    plans: Mapping[str, bytes],
    jobs: Mapping[str, bytes],
    patience_s: Sequence[float] = PATIENCE_S,
) -> None:
    """Write labels, plans by split and job files by split, the job files last.

    What a run left that was killed before its job file is replaced, after ``patience_s``.

    Raises:
        Overtaken: another job is there now.
        StoreError: the store cannot be written to.
    """

    def claim(key: str, data: bytes, settled: Callable[[], bool]) -> None:
        if store.create(key, data) or _bytes(store, key) == data:
            return
        for wait_s in patience_s:
            time.sleep(wait_s)
            if settled():
                raise Overtaken
        store.put(key, data)

    claim(keys.LABELS, labels, lambda: bool(stored_splits(store)))
    for split, data in plans.items():
        claim(keys.plan(split), data, lambda: bool(stored_splits(store) & {*jobs}))
    for split, data in jobs.items():
        if not store.create(keys.job(split), data) and _bytes(store, keys.job(split)) != data:
            raise Overtaken


def _bytes(store: Store, key: str) -> bytes | None:
    try:
        return store.get(key)
    except ObjectNotFound:  # removed since, or still on its way
        return None


def stored_splits(store: Store) -> set[str]:
    """Splits of which a job file, a table or a receipt is in the store."""
    return keys.splits(info.key for info in store.list())
