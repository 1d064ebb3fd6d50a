"""Create the files that describe a job. If several runs do this at once, exactly one succeeds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

from dataprep.errors import Changes, ObjectNotFound
from dataprep.output import keys
from dataprep.stores import Store
from dataprep.stores.locked_writes import LockCheck, no_lock, version_of
from dataprep.stores.protocol import KeepsLocks

JOB_FILE_WAIT_S = 5.0
"""How long to wait for the job file if an output has labels or a plan but no job file.

Another run may be creating its job at that moment.
"""


class AnotherJobCreated(Exception):
    """Another run has created its job in this output first."""


def create_job(
    store: Store,
    labels: bytes,
    plans: Mapping[str, bytes],
    jobs: Mapping[str, bytes],
    wait_s: float = JOB_FILE_WAIT_S,
    check_lock: LockCheck = no_lock,
    changes: Changes | None = None,
) -> None:
    """Create the labels, the plans and then the job files of an output.

    Locks do not exclude parts of one job from each other, nor the first runs of two splits.
    Therefore each object is created only if it does not exist. If it exists, it must have the bytes
    that this run would write. Otherwise it belongs to another job, or to a run that was killed
    before it wrote its job file. In the second case, it is replaced after ``wait_s``.

    Args:
        store: the output.
        labels: the content of labels.json.
        plans: the content of the plan of each split.
        jobs: the content of the job file of each split.
        wait_s: how long to wait for the job file of another run.
        check_lock: called before each write; raises LeaseLost if the run has lost its lock.
        changes: records that the output has changed.

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
        with contextlib.suppress(ObjectNotFound):  # the object was removed after ``create``
            if store.create(key, data):
                changes.begin()
                continue
            if store.get(key) == data:
                continue
        leftover_version = _wait_for_job_file(store, key, set(jobs), wait_s)
        check_lock()
        if not isinstance(store, KeepsLocks):
            store.put(key, data)
        elif not (leftover_version and store.replace(key, data, leftover_version)):
            raise AnotherJobCreated
        changes.begin()


def _wait_for_job_file(store: Store, key: str, splits: set[str], wait_s: float) -> str:
    """Wait for a job file to appear. If none does, return the version of the object ``key``.

    Raises:
        AnotherJobCreated: there is a job file now, or after ``wait_s``.
    """
    version = ""
    for pause_s in (0.0, wait_s):
        time.sleep(pause_s)
        # Read the version before the search for job files. If another job is created in between,
        # its objects have other versions, so that they are not replaced.
        version = version_of(store, key)
        splits_with_job = keys.splits(info.key for info in store.list())
        if splits_with_job & splits or (splits_with_job and key == keys.LABELS):
            raise AnotherJobCreated
    return version
