"""Create the files that describe a job: the labels, the plans and the job files.

If several runs create different jobs in one output at the same time, exactly one of them succeeds.
"""

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
"""How long to wait for the job file if an output has other labels or another plan, but no job file.

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
    """Create the labels, then the plans, then the job files of an output.

    Locks do not exclude parts of one job from each other, nor the first runs of two splits, which
    share the labels. Therefore each object is created only if it does not exist. If it exists with
    the bytes that this run would write, it stays. If it has other bytes, it belongs to another job,
    or to a run that was killed before it wrote its job file. If no job file appears within
    ``wait_s``, the second is assumed, and the object is replaced.

    Args:
        store: the output.
        labels: the content of labels.json.
        plans: the content of the plan of each split.
        jobs: the content of the job file of each split.
        wait_s: how many seconds to wait for the job file of another run.
        check_lock: called before each write; raises LeaseLost if the run has lost its lock.
        changes: records that the output has changed; None if the caller does not need to know.

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
        # If the object was removed after ``create``, continue as if it had other bytes.
        with contextlib.suppress(ObjectNotFound):
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
    """Wait for the job file of the run that has stored an object.

    If the object is a plan or a job file, the job file of any of ``splits`` counts. If the object
    is the labels, which all splits share, the job file of any split counts. A receipt, a manifest
    or a table of samples counts like the job file of its split.

    Args:
        store: the output.
        key: the key of the object.
        splits: the splits of the job that this run creates.
        wait_s: how many seconds to wait.

    Returns:
        The version of the object, if there is no such job file; empty if the object is gone, or if
        the store has no versions.

    Raises:
        AnotherJobCreated: another run has stored its job file, now or after ``wait_s``.
    """
    version = ""
    for pause_s in (0.0, wait_s):
        time.sleep(pause_s)
        # Read the version before the job files are listed. If another job is created in between,
        # its objects have other versions, so that they are not replaced.
        version = version_of(store, key)
        begun_splits = keys.splits(info.key for info in store.list())
        if begun_splits & splits or (begun_splits and key == keys.LABELS):
            raise AnotherJobCreated
    return version
