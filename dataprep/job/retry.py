"""Prepare ``--retry-failed``, which makes shards with failed samples again from the stored plan.

The manifest is removed first, then the receipts of these shards, so that the split never looks
complete if the run is killed.

Source files of failed samples may have another size than planned. The new receipts record this
size. A file with many samples may be replaced if one of its samples failed. The job file then
records the new version of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from dataprep.config.shard_config import allowed_failures
from dataprep.errors import Changes, DatasetError, ObjectNotFound, TooManyFailures
from dataprep.job.job_file import JobFile
from dataprep.job.source_changes import replaced_files
from dataprep.job.split_plan import SplitPlan
from dataprep.message_text import counted
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.sources import Listing
from dataprep.stores import Store
from dataprep.stores.locked_writes import LockCheck, put_under_lock


def refuse_retry_beyond_limit(
    store: Store, failures_by_split: Mapping[str, Mapping[int, int]], limit: int | str
) -> None:
    """Refuse to retry if a complete split would become incomplete by the same failures.

    This can happen if ``limit`` is lower than it was when the split was completed.

    Args:
        store: the output.
        failures_by_split: for each split, the number of failed samples in each shard that has some.
        limit: the number or share of samples that may fail (``--max-failures``).

    Raises:
        TooManyFailures: more samples failed than ``limit`` allows; nothing was changed.
    """
    for split, failures_by_shard in failures_by_split.items():
        try:
            counts = Manifest.from_json(store.get(keys.manifest(split)), split).samples
        except (ObjectNotFound, DatasetError):
            continue  # the split is not complete
        allowed = allowed_failures(limit, counts.total)
        if failures_by_shard and counts.failed > allowed:
            error = TooManyFailures(
                f"{split} is complete with {counted(counts.failed, 'failed sample')}, and "
                f"--max-failures {limit} allows {allowed:,}: if they failed again, the split would "
                f"become incomplete. Nothing was changed. Use --max-failures {counts.failed}"
            )
            error.exit_code = 2  # nothing was changed
            raise error


def remove_for_retry(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    failures_by_shard: Mapping[int, int],
    changes: Changes,
    note: Callable[[str], None],
    check_lock: LockCheck,
) -> None:
    """Remove the manifest, then the receipts of shards with failed samples. Tell the user.

    Nothing is removed if no shard has failed samples. Entries that failed when the job was planned
    are in no shard, so that they cannot be retried.

    Args:
        store: the output.
        job: the job of the split.
        plan: the plan of the split.
        failures_by_shard: the number of failed samples in each shard that has some.
        changes: records that the output has changed.
        note: called with messages for the user.
        check_lock: called before each removal; raises LeaseLost if the run has lost its lock.
    """
    split = job.split
    if refused := plan.statuses.count("failed"):
        note(
            f"{split}: {counted(refused, 'entry was')} refused when the job was planned. No shard "
            "has refused entries: only --overwrite can include them"
        )
    if not failures_by_shard:
        note(f"{split}: no sample of a stored shard failed, nothing to retry")
        return
    check_lock()
    store.delete(keys.manifest(split))
    changes.begin()
    for shard in failures_by_shard:
        check_lock()
        store.delete(keys.receipt(split, shard, job.shards))
    samples = counted(sum(failures_by_shard.values()), "sample")
    note(f"{split}: {samples} to try again in {counted(len(failures_by_shard), 'shard')}")


def update_file_versions(
    store: Store, job: JobFile, listing: Listing, changes: Changes, check_lock: LockCheck
) -> JobFile:
    """Record the current versions of the source files in the stored job file.

    A later run can then resume the job with the files that this run has accepted. The fingerprint
    of the job does not change.

    Args:
        store: the output.
        job: the job of the split.
        listing: the source as it is now.
        changes: records that the output has changed.
        check_lock: called before each write; raises LeaseLost if the run has lost its lock.

    Returns:
        The new job file, or ``job`` if no source file was replaced.
    """
    if not replaced_files(job, listing):
        return job
    updated = replace(job, file_versions=listing.file_versions)
    put_under_lock(store, keys.job(job.split), updated.to_json(), check_lock)
    changes.begin()
    return updated
