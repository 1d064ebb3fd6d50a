"""Create the files that describe a job, so that of several runs at once exactly one creates it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from dataprep.errors import Changes, ObjectNotFound
from dataprep.output import keys
from dataprep.stores import Store
from dataprep.stores.locked_writes import LockCheck, no_lock, version_of
from dataprep.stores.protocol import KeepsLocks

PATIENCE_S = 5.0
"""How long labels or a plan without a job file may still belong to a job that is being created."""


class AnotherJobCreated(Exception):
    """Another run created its job in this output first."""


def create_job(
    store: Store,
    labels: bytes,
    plans: Mapping[str, bytes],
    jobs: Mapping[str, bytes],
    patience_s: float = PATIENCE_S,
    check_lock: LockCheck = no_lock,
    changes: Changes | None = None,
) -> None:
    """Create the labels, the plans and then the job files of an output.

    Parts of a job, and the first runs of two splits, do not exclude each other by locks. Therefore
    each object is created only if it does not exist. The run that comes second must find its own
    bytes there. Labels and plans of a run that was killed before it wrote its job file are replaced
    after ``patience_s``.

    Args:
        store: the output.
        labels: the content of labels.json.
        plans: the content of the plan of each split.
        jobs: the content of the job file of each split.
        patience_s: how long to wait for the job file of objects that another run has written.
        check_lock: called before each write; raises LeaseLost if the run has lost its lock.
        changes: notes that the output has changed.

    Raises:
        LeaseLost: raised by ``check_lock``.
        AnotherJobCreated: the output now holds another job.
        StoreError: the store cannot be written to.
    """
    if changes is None:
        changes = Changes()
    objects = {keys.LABELS: labels}
    for split, plan in plans.items():
        objects[keys.plan(split)] = plan
    for split, job in jobs.items():
        objects[keys.job(split)] = job
    for key, data in objects.items():
        check_lock()
        with contextlib.suppress(ObjectNotFound):  # the object was removed since it was found
            if store.create(key, data):
                changes.begin()
                continue
            if store.get(key) == data:
                continue
        leftover_version = _wait_for_job_file(store, key, set(jobs), patience_s)
        check_lock()
        if not isinstance(store, KeepsLocks):
            store.put(key, data)
        elif not (leftover_version and store.replace(key, data, leftover_version)):
            raise AnotherJobCreated
        changes.begin()


def _wait_for_job_file(store: Store, key: str, splits: set[str], patience_s: float) -> str:
    """Return the version of an object that no job file belongs to.

    Raises:
        AnotherJobCreated: a job file was found at once, or after ``patience_s``.
    """
    version = ""
    for wait_s in (0.0, patience_s):
        time.sleep(wait_s)
        # Read the version before the search for job files: if another job is created in between,
        # its objects have other versions and are not replaced.
        version = version_of(store, key)
        splits_with_job = keys.splits(info.key for info in store.list())
        if splits_with_job & splits or (splits_with_job and key == keys.LABELS):
            raise AnotherJobCreated
    return version
