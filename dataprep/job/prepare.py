"""Prepare a job before its first shard: resume the job that the output holds, or create a new one.

A request that cannot be fulfilled is refused here, before the stored files of the job change. Only
the locks are written earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import Changes, OutputConflict, nothing_written
from dataprep.formats import format_names
from dataprep.job.cluster import Engine
from dataprep.job.creation import JOB_FILE_WAIT_S, AnotherJobCreated, create_job
from dataprep.job.job_file import JobFile
from dataprep.job.lock import Locks
from dataprep.job.output_state import (
    StoredJobs,
    failures_by_shard,
    read_job,
    read_labels,
    read_manifest,
    read_plan,
)
from dataprep.job.parts import Part
from dataprep.job.planning import JobPlan, bytes_to_write, not_enough_space, plan_job
from dataprep.job.report import Understood
from dataprep.job.request import Request, label_space_for, open_request
from dataprep.job.resume import refuse_leftovers, require_same_job, with_current_locations
from dataprep.job.retry import refuse_retry_beyond_limit, remove_for_retry, update_file_versions
from dataprep.job.source_notes import describe_source
from dataprep.job.split_plan import SplitPlan
from dataprep.job.split_planning import VALIDATION
from dataprep.labels import LabelSpace
from dataprep.message_text import counted
from dataprep.output import keys
from dataprep.output.manifest import Manifest
from dataprep.sources import Source
from dataprep.stores import Store, open_store
from dataprep.stores.locked_writes import LockCheck
from dataprep.stores.protocol import RemovesEmptyRoot

Note = Callable[[str], None]
"""A function that shows the user a message of one line."""

_MAX_ATTEMPTS = 4
"""How often a run tries to resume or create its job while other runs create jobs in the output.

The second attempt usually succeeds, because it reads the files that the other run has created. It
fails only if yet another run creates a job at that moment.
"""


@dataclass(frozen=True)
class Prepared:
    """A job whose shards can be made.

    Attributes:
        config: the config of this run.
        source: the opened source, from which workers read the samples.
        store: the output.
        label_space: the classes of the output and their labels.
        jobs: the job file of each split that this run makes, by the name of the split.
        plans: the plan of each of these splits.
        manifests: the stored manifest of each split that has one. The shards of such a split may
            have been lost since.
        locks: the locks of this run, which it has taken already.
        understood: how the program interprets the source.
        changes: records whether this run has changed the output.
    """

    config: ShardConfig
    source: Source
    store: Store
    label_space: LabelSpace
    jobs: Mapping[str, JobFile]
    plans: Mapping[str, SplitPlan]
    manifests: Mapping[str, Manifest]
    locks: Locks
    understood: Understood
    changes: Changes


def prepare(
    config: ShardConfig,
    *,
    overwrite: bool = False,
    retry_failed: bool = False,
    part: Part | None = None,
    takeover: bool = False,
    cleanup: ExitStack,
    note: Note,
    engine: Engine,
) -> Prepared:
    """Check the request, then resume the job that the output holds or create a new one.

    Args:
        config: the config of the job.
        overwrite: remove the stored splits that the job makes, and create the job anew.
        retry_failed: resume the job, and remove the receipts of shards with failed samples, so that
            these shards are made again.
        part: the part of each split that this run makes; None for the whole split.
        takeover: take over the locks of other runs without waiting.
        cleanup: a stack that the caller closes at the end of the run. This function registers there
            the release of the locks, the removal of an empty output, and the correction of exit
            codes.
        note: called with messages for the user.
        engine: converts a few samples of a new job, to estimate the size of records.

    Raises:
        ConfigError, SourceError, StoreError, OutputConflict, SchemaTooNew: the job cannot run.
        TooManyFailures: a retry could make a complete split incomplete.
        JobError: the samples for the estimate could not be converted, or the locks were lost.

    If this run has changed the output before an error, the error has ``exit_code`` 1. This also
    holds for later errors, until ``cleanup`` is closed.
    """
    changes = Changes()
    cleanup.enter_context(changes.exit_codes())
    request = open_request(config, note)
    store = open_store(config.output, config.store)
    with nothing_written():
        store.prepare()
    if isinstance(store, RemovesEmptyRoot):
        cleanup.callback(store.remove_if_empty)
    outlives_driver = config.dask.is_external
    locks = cleanup.enter_context(Locks(store, part, note, takeover, outlives_driver))
    locks.take(request.splits)
    run = _Run(request, store, locks, changes, note)
    for _ in range(_MAX_ATTEMPTS):
        try:
            if not overwrite:
                resumed = _resume(run, retry_failed)
                if resumed is not None:
                    return resumed
            return _create(run, overwrite, engine)
        except AnotherJobCreated:
            note(f"another run has just created a job in {store.uri}: trying to resume that job")
            # With ``overwrite``, this run has removed the old splits already. The new job of the
            # other run must stay.
            overwrite = False
    raise OutputConflict(
        f"{keys.LABELS} in {store.uri} differs from the labels of this source, and other runs "
        "create jobs there: run again when they have started, or use another --output"
    )


@dataclass(frozen=True)
class _Run:
    """A run that is being prepared.

    Attributes:
        request: the checked config and its source.
        store: the output.
        locks: the locks of this run.
        changes: records whether this run has changed the output.
        note: called with messages for the user.
    """

    request: Request
    store: Store
    locks: Locks
    changes: Changes
    note: Note


def _resume(run: _Run, retry_failed: bool) -> Prepared | None:
    """Return the stored job, ready to continue; None if a requested split has no job file.

    Raises:
        OutputConflict: the stored job differs from the request, or its files are damaged.
        TooManyFailures: a retry could make a complete split incomplete.
        SchemaTooNew: a newer version wrote the files of the job.
    """
    request, store = run.request, run.store
    jobs = _read_jobs(request, store, retry_failed)
    if not jobs:
        return None
    label_space = read_labels(store, jobs)
    plans = {split: read_plan(store, split, job) for split, job in jobs.items()}
    stored_jobs = StoredJobs(store, jobs, label_space, plans)
    # Compare the stored splits even if a split is missing: the missing split then gets a job with
    # the same config and source.
    require_same_job(request.config, stored_jobs, request.listing, retry_failed=retry_failed)
    if len(jobs) < len(request.splits):
        return None
    request.labelling.require_order(label_space, request.config.split)
    digest = request.listing.digest()
    for split, job in jobs.items():
        if job.source["sha256"] != digest:
            # Only sizes and locations differ, because ``require_same_job`` refuses other changes.
            plans[split] = with_current_locations(plans[split], request.listing)
    if retry_failed:
        jobs = _begin_retry(run, jobs, plans)
    manifests = {}
    for split in request.splits:
        manifest = read_manifest(store, split, jobs[split])
        if manifest is not None:
            manifests[split] = manifest
    understood = describe_source(request, label_space, plans)
    run.note(understood.line)
    run.note(f"resuming {store.uri}: same config, same source")
    return Prepared(
        config=request.config,
        source=request.source,
        store=store,
        label_space=label_space,
        jobs=jobs,
        plans=plans,
        manifests=manifests,
        locks=run.locks,
        understood=understood,
        changes=run.changes,
    )


def _read_jobs(request: Request, store: Store, retry_failed: bool) -> dict[str, JobFile]:
    """Read the job files of the requested splits. A split without a job file is left out.

    Raises:
        OutputConflict: failed samples are to be retried, but a split has no job file; or a job file
            is damaged.
        SchemaTooNew: a newer version wrote a job file.
    """
    jobs: dict[str, JobFile] = {}
    missing_splits = []
    for split in request.splits:
        job = read_job(store, split)
        if job is None:
            missing_splits.append(split)
        else:
            jobs[split] = job
    if retry_failed and missing_splits:
        raise OutputConflict(
            f"{store.uri} has no job of split {min(missing_splits)!r}, so that there is nothing "
            "to retry: run without --retry-failed"
        )
    return jobs


def _begin_retry(
    run: _Run, jobs: Mapping[str, JobFile], plans: Mapping[str, SplitPlan]
) -> dict[str, JobFile]:
    """Remove the receipts of shards with failed samples, and the manifests of their splits.

    Returns:
        The job files. They have the current versions of the source files, which may have been
        replaced since the job was planned.

    Raises:
        TooManyFailures: the same failures would make a complete split incomplete; nothing was
            removed.
    """
    request, store, changes, check_lock = run.request, run.store, run.changes, run.locks.check
    failures_by_split = {split: failures_by_shard(store, job) for split, job in jobs.items()}
    refuse_retry_beyond_limit(store, failures_by_split, request.config.max_failures)
    updated_jobs = {}
    for split, job in jobs.items():
        failures = failures_by_split[split]
        remove_for_retry(store, job, plans[split], failures, changes, run.note, check_lock)
        updated_jobs[split] = update_file_versions(store, job, request.listing, changes, check_lock)
    return updated_jobs


def _create(run: _Run, overwrite: bool, engine: Engine) -> Prepared:
    """Plan a new job, remove the splits that it overwrites, then write its files.

    Raises:
        AnotherJobCreated: another run has created its job in this output first.
        ConfigError, SourceError, StoreError, JobError: the job cannot be planned or written.
    """
    request, store = run.request, run.store
    splits_to_remove: list[str] = []
    if overwrite:
        splits_to_remove = _splits_to_remove(store, request.splits)
        run.locks.take(splits_to_remove)  # may include a validation split that is not requested
    else:
        for split in request.splits:
            if read_job(store, split) is None:
                refuse_leftovers(store, split)
    label_space = label_space_for(request, store, splits_to_remove)
    engine.begin()  # worker processes start in the background
    config = request.config
    convert = partial(engine.convert_samples, request.source, config.image, config.sample_limit)
    planned = plan_job(request, label_space, run.note, convert)
    _require_space(run, planned)
    _note_planned_size(run, planned)
    _note_removed_splits(run, splits_to_remove)
    run.locks.check()  # planning can take minutes
    job_files = {split: job.to_json() for split, job in planned.jobs.items()}
    # A store that does not allow writing refuses the first write, with exit code 2. After a change,
    # ``run.changes`` corrects the exit code of an error to 1.
    with nothing_written():
        for split in splits_to_remove:
            _remove_split(store, split, run.changes, run.locks.check)
        create_job(
            store,
            planned.labels_json,
            planned.encoded_plans,
            job_files,
            0.0 if overwrite else JOB_FILE_WAIT_S,  # --overwrite replaces remains at once
            run.locks.check,
            run.changes,
        )
    return Prepared(
        config=config,
        source=request.source,
        store=store,
        label_space=label_space,
        jobs=planned.jobs,
        plans=planned.plans,
        manifests={},
        locks=run.locks,
        understood=describe_source(request, label_space, planned.plans),
        changes=run.changes,
    )


def _require_space(run: _Run, planned: JobPlan) -> None:
    """Raise StoreFull if the output is known to have too little free space for the shards."""
    needed_bytes = bytes_to_write(planned.plans, run.request.config)
    space_error = not_enough_space(run.store, needed_bytes)
    if space_error is not None:
        raise space_error


def _note_planned_size(run: _Run, planned: JobPlan) -> None:
    """Tell the user the number and the predicted size of the planned shards."""
    config = run.request.config
    predicted_bytes = bytes_to_write(planned.plans, config)
    shard_count = sum(plan.shard_count for plan in planned.plans.values())
    mean_shard_mb = predicted_bytes / len(config.format) / shard_count / 1e6
    run.note(
        f"plan: {counted(shard_count, 'shard')} per format, about {mean_shard_mb:,.1f} MB each, "
        f"{predicted_bytes / 1e6:,.0f} MB in all"
    )


def _note_removed_splits(run: _Run, splits_to_remove: Sequence[str]) -> None:
    """Tell the user which of these splits are in the output, before they are removed."""
    if not splits_to_remove:
        return
    stored_splits = keys.splits(info.key for info in run.store.list())
    for split in sorted(stored_splits.intersection(splits_to_remove)):
        run.note(f"--overwrite removes split {split!r} of {run.store.uri}")


def _splits_to_remove(store: Store, splits: Sequence[str]) -> list[str]:
    """The splits to overwrite, and the validation split if its samples were taken from one of them.

    The new job may put these samples into another split. If the validation split stayed, they would
    be in two splits. The validation split was taken from a split if the stored job of that split
    requests a share for validation, and both stored jobs have the same source. If one of the two
    job files is missing or cannot be read, the validation split stays.
    """
    to_remove = list(splits)
    for split in splits:
        try:
            job = read_job(store, split)
            validation_job = read_job(store, VALIDATION)
        except OutputConflict:
            continue
        if job is None or validation_job is None or VALIDATION in to_remove:
            continue
        if job.config.get("validation") and job.source == validation_job.source:
            to_remove.append(VALIDATION)
    return to_remove


def _remove_split(store: Store, split: str, changes: Changes, check_lock: LockCheck) -> None:
    """Remove all files of a split. The labels stay, because other splits may share them.

    The manifest is removed first, so that a reader never sees an incomplete split with a manifest.
    The job file is removed last. If the removal is interrupted, the remaining files still have
    their job file, without which the next run would refuse them (``refuse_leftovers``).
    """
    split_keys = {
        info.key for info in store.list() if keys.belongs_to(split, info.key, format_names())
    }
    check_lock()  # the listing can take minutes
    store.delete(keys.manifest(split))
    if split_keys:
        changes.begin()
    split_keys.discard(keys.job(split))
    for key in sorted(split_keys, key=_removal_rank):
        check_lock()
        store.delete(key)
    check_lock()
    store.delete(keys.job(split))


def _removal_rank(key: str) -> int:
    """The position of a key in the order of removal. Lower positions are removed first.

    Receipts come before shards and indexes, so that no receipt names a file that was removed. The
    files of the root folder come last.
    """
    folder = key.rpartition("/")[0]
    if folder == "receipts":
        return 0
    return 1 if folder else 2
