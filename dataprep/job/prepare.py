"""Everything before the first shard: refuse, resume, or plan and write the plan down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import Changes, OutputConflict, nothing_written
from dataprep.formats import format_names
from dataprep.job.cluster import Engine
from dataprep.job.creation import PATIENCE_S, AnotherJobCreated, create_job
from dataprep.job.jobfile import JobFile
from dataprep.job.lock import Locks
from dataprep.job.planning import (
    Request,
    bytes_to_write,
    label_space_for,
    lack_of_space,
    planned,
    requested,
    understood,
)
from dataprep.job.report import Understood
from dataprep.job.resume import (
    failures,
    refuse_leftovers,
    remove_for_retry,
    require_limit,
    require_same,
    store_file_versions,
    stored_job,
    stored_labels,
    stored_manifest,
    stored_plan,
    with_current_locations,
)
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest
from dataprep.sources import Source
from dataprep.split_plan import VALIDATION, Part, SplitPlan
from dataprep.stores import Store, open_store
from dataprep.stores.locked_writes import LockCheck
from dataprep.stores.protocol import RemovesEmptyRoot

Note = Callable[[str], None]
_ROUNDS = 4


@dataclass(frozen=True)
class Prepared:
    """A job that can begin: what is stored about it, by split; ``changes`` are those of OUTPUT."""

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
    running: ExitStack,
    note: Note,
    engine: Engine,
) -> Prepared:
    """Check the request, then find the job that OUTPUT holds or write a new one down.

    The locks on its splits are released when ``running`` ends.

    Raises:
        ConfigError, SourceError, StoreError, OutputConflict: nothing was written, or ``exit_code``
            is 1. The same holds for later errors, until ``running`` ends.
    """
    changes = Changes()
    running.enter_context(changes.exit_codes())
    request = requested(config, note)
    store = open_store(config.output, config.store)
    with nothing_written():
        store.prepare()
    if isinstance(store, RemovesEmptyRoot):
        running.callback(store.remove_if_empty)
    outlives_driver = config.dask.is_external
    locks = running.enter_context(Locks(store, part, note, takeover, outlives_driver))
    locks.take(request.splits)
    for _ in range(_ROUNDS):
        try:
            found = None
            if not overwrite:
                found = _found(request, store, locks, changes, note, retry_failed)
            return found or _new(request, store, locks, changes, note, overwrite, engine)
        except AnotherJobCreated:
            note(f"another run began in {store.uri} at this moment: looking at what it wrote")
            overwrite = False
    raise OutputConflict(
        f"{keys.LABELS} in {store.uri} is not the one that this source gives, and other runs write "
        "there: run again when they have begun, or use another --output"
    )


def _found(
    request: Request,
    store: Store,
    locks: Locks,
    changes: Changes,
    note: Note,
    retry_failed: bool,
) -> Prepared | None:
    """The job that is there already, if all of it is."""
    config, splits = request.config, request.splits
    found = {split: job for split in splits if (job := stored_job(store, split))}
    if retry_failed and set(found) != set(splits):
        raise OutputConflict(
            f"{store.uri} holds no job of split {min(set(splits) - set(found))!r}, and so nothing "
            "to retry: run without --retry-failed"
        )
    if not found:
        return None
    label_space = stored_labels(store, found)
    plans = {split: stored_plan(store, split, found[split]) for split in found}
    require_same(config, store, found, request.listing, label_space, plans, retry_failed)
    if set(found) != set(splits):
        return None
    request.labelling.require_order(label_space, config.split)
    digest = request.listing.digest()
    for split, job in found.items():
        if job.source["sha256"] != digest:
            plans[split] = with_current_locations(plans[split], request.listing)
    if retry_failed:
        failed = {split: failures(store, job) for split, job in found.items()}
        require_limit(store, failed, config.max_failures)
        for split, job in found.items():
            remove_for_retry(store, job, plans[split], failed[split], changes, note, locks.check)
            found[split] = store_file_versions(store, job, request.listing, changes, locks.check)
    manifests = {s: m for s in splits if (m := stored_manifest(store, s, found[s]))}
    facts = understood(request, label_space, plans)
    note(facts.line)
    note(f"resuming {store.uri}: same config, same source")
    return Prepared(
        config=config,
        source=request.source,
        store=store,
        label_space=label_space,
        jobs=found,
        plans=plans,
        manifests=manifests,
        locks=locks,
        understood=facts,
        changes=changes,
    )


def _new(
    request: Request,
    store: Store,
    locks: Locks,
    changes: Changes,
    note: Note,
    overwrite: bool,
    engine: Engine,
) -> Prepared:
    """Plan, remove what is to be overwritten, then write labels, plans and job files."""
    remove = _splits_to_remove(store, request.splits) if overwrite else []
    locks.take(remove)
    for split in () if overwrite else request.splits:
        if stored_job(store, split) is None:
            refuse_leftovers(store, split)
    label_space = label_space_for(request, store, remove)
    engine.begin()  # worker processes start meanwhile
    config = request.config
    convert = partial(engine.outcomes, request.source, config.image, config.sample_limit)
    made = planned(request, label_space, note, convert)
    needed = bytes_to_write(made.plans, config)
    if (lacking := lack_of_space(store, needed)) is not None:
        raise lacking
    shards = sum(split_plan.shard_count for split_plan in made.plans.values())
    note(
        f"plan: {counted(shards, 'shard')} a format, about "
        f"{needed / len(config.format) / shards / 1e6:,.1f} MB each, {needed / 1e6:,.0f} MB in all"
    )
    there = keys.splits(info.key for info in store.list()) if remove else set()
    for split in sorted({*remove} & there):
        note(f"--overwrite removes split {split!r} of {store.uri}")
    locks.check()
    with nothing_written():  # the first write shows whether writing is allowed at all
        for split in remove:
            _remove_split(store, split, changes, locks.check)
        job_files = {split: job.to_json() for split, job in made.jobs.items()}
        patience_s = 0.0 if overwrite else PATIENCE_S
        create_job(store, made.labels, made.encoded, job_files, patience_s, locks.check, changes)
    return Prepared(
        config=config,
        source=request.source,
        store=store,
        label_space=label_space,
        jobs=made.jobs,
        plans=made.plans,
        manifests={},
        locks=locks,
        understood=understood(request, label_space, made.plans),
        changes=changes,
    )


def _splits_to_remove(store: Store, splits: Sequence[str]) -> list[str]:
    """The splits to overwrite, and a validation split that was taken from one of them.

    If it stayed, its samples would be in both. A job file that cannot be read says nothing.
    """
    taken = []
    for split in splits:
        try:
            job, other = stored_job(store, split), stored_job(store, VALIDATION)
        except OutputConflict:
            continue
        if job and other and job.config.get("validation") and job.source == other.source:
            taken.append(VALIDATION)
    return list(dict.fromkeys([*splits, *taken]))


def _remove_split(store: Store, split: str, changes: Changes, check_lock: LockCheck) -> None:
    """Remove a split, the manifest first: a reader never meets half of it.

    The job file goes last: a removal cut short is no new output, but one to go on removing.
    """
    found = {info.key for info in store.list() if keys.belongs_to(split, info.key, format_names())}
    check_lock()  # after the listing, which can take minutes
    store.delete(keys.manifest(split))
    if found:
        changes.begin()
    ranks = {"receipts": 0, "": 2}
    for key in sorted(found - {keys.job(split)}, key=lambda k: ranks.get(k.rpartition("/")[0], 1)):
        check_lock()
        store.delete(key)
    check_lock()
    store.delete(keys.job(split))
