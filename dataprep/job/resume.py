"""Resume a job: read what the output already has, and decide which shards to make.

A shard is skipped if its receipt is stored, and if every object that the receipt lists is in the
store with the same size and ETag. All other shards are made. A job is resumed only with the config,
source and library versions that it was planned with.

``--retry-failed`` makes all shards with failed samples again, from the stored plan. Source files of
these shards may have another size than planned; receipts say which size each file had. A file with
many samples may be replaced if one of its samples failed; the job file then gets the new version of
the file. The manifest is removed first, then the receipts, so that the split never looks complete
if the run is killed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from dataprep import keys
from dataprep.config import ShardConfig, allowed_failures
from dataprep.counted import counted
from dataprep.errors import (
    Changes,
    CorruptRecord,
    DatasetError,
    ObjectNotFound,
    OutputConflict,
    SchemaTooNew,
    TooManyFailures,
)
from dataprep.formats import format_names, get_format
from dataprep.job.jobfile import JobFile, differences
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, Receipt, Row
from dataprep.names import unescape
from dataprep.ordered import in_order
from dataprep.sources import Listing
from dataprep.split_plan import SplitPlan
from dataprep.stores import Store
from dataprep.stores.locked_writes import LockCheck, put_under_lock
from dataprep.stores.protocol import LEAVES
from dataprep.versions import determining, other_resizer

_RESIZED = "of another size"
_IF_FAILED = " (if these files failed before, --retry-failed takes them in)"
_MOST_SHOWN = 8
_STORE_THREADS = 16


def stored_shards(store: Store, job: JobFile, among: Iterable[int] | None = None) -> list[int]:
    """Return the shards that are stored completely, so that a run skips them.

    A listing may lag behind the store. Therefore each listed receipt is read, and the store is
    asked for the size of each of its objects. No shard is read.

    Args:
        store: the output.
        job: the job of the split.
        among: the shards to check; None for all shards.
    """
    receipts = shards_with_receipt(store, job)

    def is_complete(shard: int) -> bool:
        if shard not in receipts:
            return False
        key = keys.receipt(job.split, shard, job.shards)
        try:
            receipt = Receipt.from_json(store.get(key), key)
            pairs = [(file, store.head(file.key)) for file in receipt.files]
        except (ObjectNotFound, CorruptRecord):
            return False
        is_own = receipt.fingerprint == job.fingerprint
        has_all = {file.key for file in receipt.files} == {*keys_of_shard(job, shard)}
        # Not every store has ETags.
        return (
            is_own
            and has_all
            and all(
                file.bytes == info.bytes
                and not (file.etag and info.etag and file.etag != info.etag)
                for file, info in pairs
            )
        )

    shards = range(job.shards) if among is None else among
    checked = in_order(lambda shard: (shard, is_complete(shard)), shards, _STORE_THREADS)
    return [shard for shard, complete in checked if complete]


def shards_with_receipt(store: Store, job: JobFile) -> set[int]:
    """Return the shards whose receipt is in the listing; no receipt is read."""
    listed = {info.key for info in store.list(f"receipts/{job.split}-")}
    shards = range(job.shards)
    return {shard for shard in shards if keys.receipt(job.split, shard, job.shards) in listed}


def keys_of_shard(job: JobFile, shard: int) -> Iterator[str]:
    """Yield the keys of a finished shard's data and indexes, without its receipt."""
    shard_of_split = (job.split, shard, job.shards)
    for name in job.label_offsets:
        record_format = get_format(name)
        yield keys.data(name, record_format.extension, *shard_of_split)
        for extension in record_format.indexes([]):
            yield keys.index(name, extension, *shard_of_split)


def stored_job(store: Store, split: str) -> JobFile | None:
    """Return the job file of a split, if there is one.

    Raises:
        OutputConflict: the job file is damaged.
        SchemaTooNew: a newer version wrote the job file.
    """
    key = keys.job(split)
    try:
        return JobFile.from_json(store.get(key), key)
    except ObjectNotFound:
        return None
    except SchemaTooNew:
        raise
    except DatasetError as error:
        raise OutputConflict(
            f"{error}: it is unknown which job made the shards in {store.uri}. Put {key} back, "
            "use another --output, or --overwrite to start anew"
        ) from None


def stored_manifest(store: Store, split: str, job: JobFile) -> Manifest | None:
    """Return the manifest of this job, if it is complete and its table of samples is stored.

    A manifest that cannot be read counts as missing, because it is made again from the receipts.
    """
    key = keys.manifest(split)
    try:
        manifest = Manifest.from_json(store.get(key), key)
        table = store.head(keys.samples(split))
    except SchemaTooNew:
        raise
    except (ObjectNotFound, DatasetError):
        return None
    if manifest.fingerprint != job.fingerprint:
        return None
    if manifest.table and manifest.table.bytes != table.bytes:
        return None
    return manifest


def stored_labels(store: Store, jobs: Mapping[str, JobFile]) -> LabelSpace:
    """Return the labels of the jobs. Raises OutputConflict if they are missing or other labels."""
    digests = {job.labels_sha256 for job in jobs.values()}
    return LabelSpace.from_json(_unchanged(store, keys.LABELS, digests))


def stored_plan(store: Store, split: str, job: JobFile) -> SplitPlan:
    """Return the plan of the job. Raises OutputConflict if it is missing or another plan."""
    key = keys.plan(split)
    return SplitPlan.from_parquet(_unchanged(store, key, {job.plan_sha256}), key)


def _unchanged(store: Store, key: str, digests: Set[str]) -> bytes:
    """The bytes of an object with the only SHA-256 in ``digests``. Raises OutputConflict."""
    try:
        data = store.get(key)
    except ObjectNotFound:
        data = b""
    if digests != {hashlib.sha256(data).hexdigest()}:
        problem = "is not the one that the job was planned with" if data else "is missing"
        raise OutputConflict(
            f"{key} in {store.uri} {problem}: put it back, use another --output, or --overwrite to "
            "start anew"
        )
    return data


def failures(store: Store, job: JobFile) -> dict[int, int]:
    """Return how many samples failed, for each shard with failed samples in its receipt."""

    def failed_in(shard: int) -> int:
        return sum(row.status == "failed" for row in _rows(store, job, shard))

    counts = in_order(failed_in, range(job.shards), _STORE_THREADS)
    return {shard: count for shard, count in enumerate(counts) if count}


def _rows(store: Store, job: JobFile, shard: int) -> Sequence[Row]:
    """The samples of a shard; empty if its receipt is missing or damaged."""
    key = keys.receipt(job.split, shard, job.shards)
    try:
        return Receipt.from_json(store.get(key), key).rows
    except (ObjectNotFound, CorruptRecord):
        return []


def require_limit(
    store: Store, failures_by_split: Mapping[str, Mapping[int, int]], limit: int | str
) -> None:
    """Refuse to retry in a complete split that would not be completed if its samples failed again.

    Args:
        store: the output.
        failures_by_split: what ``failures`` returns for each split.
        limit: the number or share of samples that may fail (``--max-failures``).

    Raises:
        TooManyFailures: more samples failed than ``limit`` allows; nothing was changed.
    """
    for split, failed in failures_by_split.items():
        try:
            counts = Manifest.from_json(store.get(keys.manifest(split)), split).samples
        except (ObjectNotFound, DatasetError):
            continue
        allowed = allowed_failures(limit, counts.total)
        if failed and counts.failed > allowed:
            error = TooManyFailures(
                f"{split} is complete with {counted(counts.failed, 'failed sample')}, and "
                f"--max-failures {limit} allows {allowed:,}: if they failed again, the split would "
                f"no longer be complete. Nothing was changed. Use --max-failures {counts.failed}"
            )
            error.exit_code = 2
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
    """Remove the manifest, then the receipts of the shards that are made again.

    Args:
        store: the output.
        job: the job of the split.
        plan: the plan of the split.
        failures_by_shard: how many samples failed, for each shard with failed samples.
        changes: notes that the output has changed.
        note: prints a line for the user.
        check_lock: called before each removal; raises an error if the lock is lost.
    """
    split = job.split
    if refused := plan.statuses.count("failed"):
        note(
            f"{split}: {counted(refused, 'entry was')} refused when the job was planned, and so "
            "in no shard: only --overwrite can take refused entries in"
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


def with_current_locations(plan: SplitPlan, listing: Listing) -> SplitPlan:
    """Return the plan with the sizes, containers and offsets that its samples have now."""
    rows_by_name = {name: row for row, name in enumerate(listing.names)}
    rows = np.array([rows_by_name[name] for name in plan.names[: plan.samples]], dtype=np.int64)
    sizes = np.concatenate([listing.sizes[rows], plan.sizes[plan.samples :]])
    if not plan.containers:
        return replace(plan, sizes=sizes)
    return replace(
        plan,
        sizes=sizes,
        containers=[
            *(listing.containers[row] for row in rows.tolist()),
            *plan.containers[plan.samples :],
        ],
        offsets=np.concatenate([listing.offsets[rows], plan.offsets[plan.samples :]]),
    )


def require_same(
    config: ShardConfig,
    store: Store,
    jobs: Mapping[str, JobFile],
    listing: Listing,
    label_space: LabelSpace,
    plans: Mapping[str, SplitPlan],
    retry_failed: bool,
) -> None:
    """Refuse to resume jobs that were planned from another config, source or resizer.

    Samples that are tried again may have other sizes, and all samples may have other locations in
    archives. A file with many samples may be replaced only if one of its samples is tried again.

    Raises:
        OutputConflict: something differs; the message lists it.
    """
    digest = listing.digest()
    for split, job in jobs.items():
        if other := other_resizer(job.versions):
            raise OutputConflict(
                f"{config.output}: its job for split {split!r} was {other}, or start anew with "
                "another --output or with --overwrite"
            )
        conflicts = differences(with_defaults(job.config), content_of_split(config, split))
        versions = dict(determining(same_everywhere=config.image.same_everywhere))
        # Jobs of earlier versions do not name their resizer.
        conflicts += differences({"resizer": versions.get("resizer"), **job.versions}, versions)
        source_changes: list[str] = []
        if job.source["sha256"] != digest:
            source_changes = _source_changes(
                store, jobs, listing, label_space, plans, retry_failed=retry_failed
            )
        replaced = _replaced_files(job, listing)
        if replaced and retry_failed:
            replaced -= _files_to_retry(store, jobs, plans, listing)
        if replaced and not source_changes:
            source_changes = [
                f"source: {counted(len(replaced), 'file')} replaced since, such as "
                f"{min(replaced)!r}: the size is the same, but the modification time, ETag or "
                "SHA-256 is not. A copy of a file must keep its modification time (cp -p)"
                + _IF_FAILED
            ]
        conflicts += source_changes
        if conflicts:
            not_shown = len(conflicts) - _MOST_SHOWN
            more = [f"and {not_shown} more"] if not_shown > 0 else []
            lines = "".join(f"\n  {line}" for line in [*conflicts[:_MOST_SHOWN], *more])
            raise OutputConflict(
                f"{config.output} already holds split {split} with other settings:{lines}\n"
                "Undo the changes to resume it, use another --output, or --overwrite to replace it"
            )


def _source_changes(
    store: Store,
    jobs: Mapping[str, JobFile],
    listing: Listing,
    label_space: LabelSpace,
    plans: Mapping[str, SplitPlan],
    *,
    retry_failed: bool,
) -> list[str]:
    """Describe what changed in a source whose listing has another digest than the planned one.

    The list is empty if only samples that are tried again have changed.
    """
    groups = _source_differences(listing, label_space, plans)
    resized = groups[_RESIZED]
    for split, plan in plans.items():
        allowed = _may_be_resized(store, jobs[split], plan, resized, listing, retry_failed)
        groups[_RESIZED] = groups[_RESIZED] - allowed
    differing = {change: names for change, names in groups.items() if names}
    changes = [
        f"source: {counted(len(names), 'file')} {change}, such as {min(names)!r}"
        for change, names in differing.items()
    ]
    refused = any(plan.samples < len(plan.names) for plan in plans.values())
    if not differing and not resized and not refused:
        changes.append("source: other classes, labels or places")
    if differing.keys() == {_RESIZED}:
        changes[-1] += _IF_FAILED
    return changes


def _source_differences(
    listing: Listing, label_space: LabelSpace, plans: Mapping[str, SplitPlan]
) -> dict[str, set[str]]:
    """Group the names of files by their change. The size of a refused entry may change."""
    planned_names: set[str] = set()
    planned_sizes: dict[str, int] = {}
    planned_labels: dict[str, int] = {}
    for plan in plans.values():
        sample_names = plan.names[: plan.samples]
        planned_names |= {*plan.names}
        planned_sizes |= zip(sample_names, plan.sizes.tolist(), strict=False)
        planned_labels |= zip(sample_names, plan.labels.tolist(), strict=False)
    sizes = dict(zip(listing.names, listing.sizes.tolist(), strict=True))
    classes = dict(zip(listing.names, listing.classes, strict=True))
    samples = {name for row, name in enumerate(listing.names) if row not in listing.problems}
    skipped = _skipped_otherwise(listing, samples, planned_labels.keys(), plans)
    linked = _newly_linked(samples, plans)
    if linked:
        skipped["behind links that earlier versions did not follow"] = linked
    explained = {name for names in skipped.values() for name in names}
    common = (sizes.keys() & planned_labels.keys()) - explained
    labels = {name: label_space.index.get(classes[name], -1) for name in common}
    return {
        **skipped,
        "new": sizes.keys() - planned_names - explained,
        "gone": planned_names - sizes.keys(),
        _RESIZED: {name for name in common if sizes[name] != planned_sizes[name]},
        "of another class": {name for name in common if labels[name] != planned_labels[name]},
    }


def _skipped_otherwise(
    listing: Listing, samples: Set[str], planned: Set[str], plans: Mapping[str, SplitPlan]
) -> dict[str, set[str]]:
    """Group the files that are skipped either now or in the plan, but not in both, by the reason.

    A listing may have a name twice, as a sample and as a skipped row.

    Args:
        listing: the source now.
        samples: the names of the samples in the listing.
        planned: the names of the samples in the plans.
        plans: the plans of all splits.
    """
    groups: dict[str, set[str]] = {}
    for row, problem in listing.problems.items():
        name = listing.names[row]
        if problem.status == "skipped" and name in planned and name not in samples:
            groups.setdefault(f"skipped now ({problem.reason})", set()).add(name)
    for plan in plans.values():
        for row in range(plan.samples, len(plan.names)):
            name, reason = plan.names[row], plan.reasons[row]
            if plan.statuses[row] == "skipped" and name in samples and name not in planned:
                groups.setdefault(f"skipped before ({reason})", set()).add(name)
    return groups


def _newly_linked(samples: Set[str], plans: Mapping[str, SplitPlan]) -> set[str]:
    """The samples that are, or are below, a link that failed when the job was planned."""
    links = {
        name
        for plan in plans.values()
        for name, reason in zip(plan.names, plan.reasons, strict=True)
        if reason == LEAVES
    }
    folders = tuple(f"{name}/" for name in links)
    return {name for name in samples if name in links or name.startswith(folders)}


def _replaced_files(job: JobFile, listing: Listing) -> set[str]:
    """The files with many entries whose version has changed since the job was planned.

    A version that is unknown does not count: not every store has versions, and jobs of earlier
    releases do not record them.
    """
    replaced = set()
    for key, version in listing.file_versions.items():
        planned = job.file_versions.get(key, "")
        if version and planned and version != planned:
            replaced.add(key)
    return replaced


def _files_to_retry(
    store: Store, jobs: Mapping[str, JobFile], plans: Mapping[str, SplitPlan], listing: Listing
) -> set[str]:
    """The files with a sample that is tried again, so that they may be replaced.

    A sample is tried again if it failed, or if its shard has no receipt.
    """
    containers = dict(zip(listing.names, listing.containers, strict=True))
    names: set[str] = set()
    for split, job in jobs.items():
        for shard in range(job.shards):
            rows = _rows(store, job, shard)
            names.update(unescape(row.source) for row in rows if row.status == "failed")
            if not rows:
                names.update(plans[split].names[plans[split].rows_of(shard)])
    files: set[str] = set()
    for name in names & containers.keys():
        container = containers[name]
        # A sample in a part of a file, such as a row group, has the container KEY!PART.
        files |= {container, container.rpartition("!")[0]}
    return files


def store_file_versions(
    store: Store, job: JobFile, listing: Listing, changes: Changes, check_lock: LockCheck
) -> JobFile:
    """Store the current versions of source files in the job file. Its fingerprint does not change.

    After ``--retry-failed`` has accepted a replaced file, the job can be resumed with this file.
    """
    if not _replaced_files(job, listing):
        return job
    updated = replace(job, file_versions=listing.file_versions)
    put_under_lock(store, keys.job(job.split), updated.to_json(), check_lock)
    changes.begin()
    return updated


def _may_be_resized(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    resized: Set[str],
    listing: Listing,
    retry_failed: bool,
) -> set[str]:
    """The names of files that may have another size than planned.

    A file may have another size if its receipt has this size, because it was tried again before.
    With ``retry_failed``, a file may also have another size if it failed, or if its shard has no
    receipt.
    """
    sizes = dict(zip(listing.names, listing.sizes.tolist(), strict=True))
    allowed: set[str] = set()
    shard_of_names = zip(plan.names, plan.shards.tolist(), strict=True)
    for shard in {shard for name, shard in shard_of_names if name in resized}:
        rows = _rows(store, job, shard)
        if retry_failed and not rows:
            allowed.update(plan.names[plan.rows_of(shard)])
        for row in rows:
            name = unescape(row.source)
            if row.source_bytes == sizes.get(name) or (retry_failed and row.status == "failed"):
                allowed.add(name)
    return allowed


def content_of_split(config: ShardConfig, split: str) -> dict[str, object]:
    """Return the content part of ``config`` for one of its splits."""
    return {**config.content(), "split": split}


def with_defaults(
    stored: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the content part of a stored config, with defaults for keys that it does not have.

    A key that was added later has a default that does what earlier versions did.
    """
    if defaults is None:
        defaults = ShardConfig(source="-", output="-").content()
    filled = {**defaults, **stored}
    for key, default in defaults.items():
        if isinstance(default, Mapping) and isinstance(value := filled[key], Mapping):
            filled[key] = with_defaults(value, default)
    return filled


def refuse_leftovers(store: Store, split: str) -> None:
    """Refuse files that belong to the split by their names if the split has no job file.

    Labels that can be read and a plan are accepted, because a run that is killed before it has
    written its job file leaves them.

    Raises:
        OutputConflict: there are such files; the message names some of them.
    """
    stored_keys = {info.key for info in store.list()}
    leftovers = {key for key in stored_keys if keys.belongs_to(split, key, format_names())}
    leftovers.discard(keys.plan(split))
    if keys.LABELS in stored_keys and not _are_labels(store):
        leftovers.add(keys.LABELS)
    # Look for the job file last: since the listing, another part may have written it and shards.
    if leftovers and stored_job(store, split) is None:
        shown = sorted(leftovers)[:3]
        more = f" and {len(leftovers) - 3:,} more" if len(leftovers) > 3 else ""
        raise OutputConflict(
            f"{store.uri} holds {', '.join(shown)}{more}, but no {keys.job(split)} that they "
            "belong to: put this file back, use another --output, or --overwrite to remove split "
            f"{split!r} and start anew"
        )


def _are_labels(store: Store) -> bool:
    """Whether the stored labels can be read, or are gone by now."""
    try:
        LabelSpace.from_json(store.get(keys.LABELS))
    except ObjectNotFound:  # removed since the listing
        return True
    except (DatasetError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return True
