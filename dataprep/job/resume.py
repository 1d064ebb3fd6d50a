"""What an output holds already: which job, which of its shards a run skips, and which it repeats.

A shard is skipped if its receipt is stored and every object that the receipt lists is in the store
with the same size and ETag. All other shards are made. A job is resumed only with the config,
source and library versions that it was planned with.

``--retry-failed`` makes the shards again in which samples failed, from the stored plan. Files of
these shards may have another size than planned; receipts say which size each file had. The manifest
is removed first, then the receipts: killed at any point, the split is not taken for complete. A
file with many samples may be replaced if one of them failed. The job file gets its new version.
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
from dataprep.stores.permitted import Permitted, put_while_permitted
from dataprep.stores.protocol import LEAVES
from dataprep.versions import determining, other_resizer

_RESIZED = "of another size"
_IF_FAILED = " (if these files failed before, --retry-failed takes them in)"
_MOST_SHOWN = 8
_STORE_THREADS = 16


def stored_shards(store: Store, job: JobFile, among: Iterable[int] | None = None) -> list[int]:
    """Return the shards that are stored whole, of ``among`` or of all; a run skips these.

    A listing may lag behind the store, so each receipt that it shows is read, and the store is
    asked for each object of it. No shard is read.
    """
    receipts = shards_with_receipt(store, job)

    def is_whole(shard: int) -> bool:
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
    found = in_order(lambda shard: (shard, is_whole(shard)), shards, _STORE_THREADS)
    return [shard for shard, whole in found if whole]


def shards_with_receipt(store: Store, job: JobFile) -> set[int]:
    """Return the shards of a job of which a receipt is listed; nothing is read."""
    listed = {info.key for info in store.list(f"receipts/{job.split}-")}
    shards = range(job.shards)
    return {shard for shard in shards if keys.receipt(job.split, shard, job.shards) in listed}


def keys_of_shard(job: JobFile, shard: int) -> Iterator[str]:
    """Yield the keys of a finished shard's data and indexes, without its receipt."""
    place = (job.split, shard, job.shards)
    for name in job.label_offsets:
        record_format = get_format(name)
        yield keys.data(name, record_format.extension, *place)
        for extension in record_format.indexes([]):
            yield keys.index(name, extension, *place)


def stored_job(store: Store, split: str) -> JobFile | None:
    """Return the job file of a split, if there is one.

    Raises:
        OutputConflict: it is damaged.
        SchemaTooNew: a newer version wrote it.
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
    """Return the manifest of this very job, if it is complete and its samples table is stored.

    One that cannot be read counts as missing: it is made again from the receipts.
    """
    key = keys.manifest(split)
    try:
        found = Manifest.from_json(store.get(key), key)
        table = store.head(keys.samples(split))
    except SchemaTooNew:
        raise
    except (ObjectNotFound, DatasetError):
        return None
    if found.fingerprint != job.fingerprint or (found.table and found.table.bytes != table.bytes):
        return None
    return found


def stored_labels(store: Store, jobs: Mapping[str, JobFile]) -> LabelSpace:
    """Return the labels that the jobs were planned with. Raises OutputConflict."""
    digests = {job.labels_sha256 for job in jobs.values()}
    return LabelSpace.from_json(_unchanged(store, keys.LABELS, digests))


def stored_plan(store: Store, split: str, job: JobFile) -> SplitPlan:
    """Return the plan that the job was written with. Raises OutputConflict."""
    key = keys.plan(split)
    return SplitPlan.from_parquet(_unchanged(store, key, {job.plan_sha256}), key)


def _unchanged(store: Store, key: str, digests: Set[str]) -> bytes:
    try:
        data = store.get(key)
    except ObjectNotFound:
        data = b""
    if digests != {hashlib.sha256(data).hexdigest()}:
        what = "is not the one that the job was planned with" if data else "is missing"
        raise OutputConflict(
            f"{key} in {store.uri} {what}: put it back, use another --output, or --overwrite to "
            "start anew"
        )
    return data


def failures(store: Store, job: JobFile) -> dict[int, int]:
    """Return how many samples failed in each shard that lost any, as its receipt says."""

    def failed_in(shard: int) -> int:
        return sum(row.status == "failed" for row in _rows(store, job, shard))

    counts = in_order(failed_in, range(job.shards), _STORE_THREADS)
    return {shard: count for shard, count in enumerate(counts) if count}


def _rows(store: Store, job: JobFile, shard: int) -> Sequence[Row]:
    """The samples of a shard; none where its receipt is missing or damaged: it is made again."""
    key = keys.receipt(job.split, shard, job.shards)
    try:
        return Receipt.from_json(store.get(key), key).rows
    except (ObjectNotFound, CorruptRecord):
        return []


def require_limit(store: Store, again: Mapping[str, Mapping[int, int]], limit: int | str) -> None:
    """Refuse to retry in a complete split that would be incomplete if its samples failed again.

    Raises:
        TooManyFailures: more samples failed than ``limit`` allows; nothing was changed.
    """
    for split, failed in again.items():
        try:
            counts = Manifest.from_json(store.get(keys.manifest(split)), split).samples
        except (ObjectNotFound, DatasetError):
            continue
        allowed = allowed_failures(limit, counts.total)
        if failed and counts.failed > allowed:
            error = TooManyFailures(
                f"{split} is complete with {counted(counts.failed, 'failed sample')}, and "
                f"--max-failures {limit} allows {allowed:,}: if they failed again, it would no "
                f"longer be complete. Nothing was changed; give --max-failures {counts.failed}"
            )
            error.exit_code = 2
            raise error


def forget(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    again: Mapping[int, int],
    changes: Changes,
    note: Callable[[str], None],
    permit: Permitted,
) -> None:
    """Remove the manifest, then the receipts of the shards that are made again.

    ``permit`` is asked before each removal.
    """
    split = job.split
    if refused := plan.statuses.count("failed"):
        note(
            f"{split}: {counted(refused, 'entry was')} refused when the job was planned and "
            "have no place in a shard: only --overwrite can take them in"
        )
    if not again:
        note(f"{split}: no sample of a stored shard failed, nothing to retry")
        return
    permit()
    store.delete(keys.manifest(split))
    changes.begin()
    for shard in again:
        permit()
        store.delete(keys.receipt(split, shard, job.shards))
    lost, shards = counted(sum(again.values()), "sample"), counted(len(again), "shard")
    note(f"{split}: {lost} to try again in {shards}")


def located(plan: SplitPlan, listing: Listing) -> SplitPlan:
    """Return the plan with the sizes and places that its samples have now."""
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
    """Refuse to go on with jobs that were planned from another config, source or resizer.

    Samples that are tried again may have other sizes, and all samples other places in archives.
    Files with many samples may be replaced only if one of their samples is tried again.

    Raises:
        OutputConflict: it names what differs.
    """
    digest = listing.digest()
    for split, job in jobs.items():
        if other := other_resizer(job.versions):
            raise OutputConflict(
                f"{config.output}: its job for split {split!r} was {other}, or start anew with "
                "another --output or with --overwrite"
            )
        found = differences(with_defaults(job.config), content_of_split(config, split))
        here = dict(determining(same_everywhere=config.image.same_everywhere))
        # Jobs of earlier versions do not name their resizer.
        found += differences({"resizer": here.get("resizer"), **job.versions}, here)
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
                f"{min(replaced)!r}: sizes are the same, but the modification time, ETag or "
                "SHA-256 is not. A copy of the same file needs the same modification time, which "
                "cp -p keeps" + _IF_FAILED
            ]
        found += source_changes
        if found:
            left = len(found) - _MOST_SHOWN
            more = [f"and {left} more"] if left > 0 else []
            lines = "".join(f"\n  {line}" for line in [*found[:_MOST_SHOWN], *more])
            raise OutputConflict(
                f"{config.output} already holds split {split} with other settings:{lines}\n"
                "Take these back to resume it, use another --output, or --overwrite to replace it"
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
    """Describe what changed in a source whose listing has another digest than planned.

    Nothing is described where all changes are those of samples that are tried again.
    """
    groups = _source_differences(listing, label_space, plans)
    resized = groups[_RESIZED]
    for split, plan in plans.items():
        mended = _mended(store, jobs[split], plan, resized, listing, retry_failed)
        groups[_RESIZED] = groups[_RESIZED] - mended
    differing = {what: names for what, names in groups.items() if names}
    changes = [
        f"source: {counted(len(names), 'file')} {what}, such as {min(names)!r}"
        for what, names in differing.items()
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
    """Group the names of files by what changed. The size of a refused entry may change."""
    known: set[str] = set()
    sizes: dict[str, int] = {}
    labels: dict[str, int] = {}
    for plan in plans.values():
        known |= {*plan.names}
        sizes |= zip(plan.names[: plan.samples], plan.sizes.tolist(), strict=False)
        labels |= zip(plan.names[: plan.samples], plan.labels.tolist(), strict=False)
    now = dict(zip(listing.names, listing.sizes.tolist(), strict=True))
    classes = dict(zip(listing.names, listing.classes, strict=True))
    samples = {name for row, name in enumerate(listing.names) if row not in listing.problems}
    skipped = _skipped_otherwise(listing, samples, labels.keys(), plans)
    linked = _newly_linked(samples, plans)
    if linked:
        skipped["behind links that earlier versions did not follow"] = linked
    named = {name for names in skipped.values() for name in names}
    both = (now.keys() & labels.keys()) - named
    return {
        **skipped,
        "new": now.keys() - known - named,
        "gone": known - now.keys(),
        _RESIZED: {n for n in both if now[n] != sizes[n]},
        "of another class": {n for n in both if label_space.index.get(classes[n], -1) != labels[n]},
    }


def _skipped_otherwise(
    listing: Listing, samples: Set[str], planned: Set[str], plans: Mapping[str, SplitPlan]
) -> dict[str, set[str]]:
    """Group the files that are skipped now or were skipped before, but not both, by the reason.

    ``samples`` are the names of today's samples, ``planned`` of those in the plans. A listing may
    have one name twice, as a sample and as a skipped row.
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
    """Which samples are, or are below, a link that failed as a file when the job was planned."""
    links = {
        name
        for plan in plans.values()
        for name, reason in zip(plan.names, plan.reasons, strict=True)
        if reason == LEAVES
    }
    folders = tuple(f"{name}/" for name in links)
    return {name for name in samples if name in links or name.startswith(folders)}


def _replaced_files(job: JobFile, listing: Listing) -> set[str]:
    """The files with several entries that have another version than when the job was planned.

    Jobs of earlier versions have no versions of files, and not every store has them.
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
    """The files with a sample that failed, or whose shard has no receipt: these may be mended."""
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
        # What is in a part of a file, such as a row group, has a container KEY!PART.
        files |= {container, container.rpartition("!")[0]}
    return files


def note_versions(
    store: Store, job: JobFile, listing: Listing, changes: Changes, permit: Permitted
) -> JobFile:
    """Store the versions that files have now in the job file, whose fingerprint stays the same.

    After ``--retry-failed`` has accepted a mended file, the job can be resumed with this file.
    """
    if not _replaced_files(job, listing):
        return job
    noted = replace(job, file_versions=listing.file_versions)
    put_while_permitted(store, keys.job(job.split), noted.to_json(), permit)
    changes.begin()
    return noted


def _mended(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    resized: Set[str],
    listing: Listing,
    retry_failed: bool,
) -> set[str]:
    """Names of files that may have another size than planned.

    Those that were tried again with this size; and with ``retry_failed`` those that failed, or
    whose shard has no receipt.
    """
    now = dict(zip(listing.names, listing.sizes.tolist(), strict=True))
    found: set[str] = set()
    of_shards = zip(plan.names, plan.shards.tolist(), strict=True)
    for shard in {shard for name, shard in of_shards if name in resized}:
        rows = _rows(store, job, shard)
        if retry_failed and not rows:
            found.update(plan.names[plan.rows_of(shard)])
        for row in rows:
            name = unescape(row.source)
            if row.source_bytes == now.get(name) or (retry_failed and row.status == "failed"):
                found.add(name)
    return found


def content_of_split(config: ShardConfig, split: str) -> dict[str, object]:
    """Return the content part of ``config`` for one of its splits."""
    return {**config.content(), "split": split}


def with_defaults(
    stored: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a stored content part with today's defaults for keys that came later.

    The default of such a key does what earlier versions did.
    """
    if defaults is None:
        defaults = ShardConfig(source="-", output="-").content()
    filled = {**defaults, **stored}
    for key, default in defaults.items():
        if isinstance(default, Mapping) and isinstance(value := filled[key], Mapping):
            filled[key] = with_defaults(value, default)
    return filled


def refuse_leftovers(store: Store, split: str) -> None:
    """Refuse files in the split's places that belong to no job file.

    Readable labels, and a plan, are what a run leaves that is killed before its job file.

    Raises:
        OutputConflict: it names some of the files.
    """
    found = {info.key for info in store.list()}
    strange = {key for key in found if keys.belongs_to(split, key, format_names())}
    strange.discard(keys.plan(split))
    if keys.LABELS in found and not _are_labels(store):
        strange.add(keys.LABELS)
    # Asked last: another part may have written its job, and shards, since the listing.
    if strange and stored_job(store, split) is None:
        shown = sorted(strange)[:3]
        more = f" and {len(strange) - 3:,} more" if len(strange) > 3 else ""
        raise OutputConflict(
            f"{store.uri} holds {', '.join(shown)}{more}, but no {keys.job(split)} that they "
            "belong to: put this file back, use another --output, or --overwrite to remove split "
            f"{split!r} and start anew"
        )


def _are_labels(store: Store) -> bool:
    try:
        LabelSpace.from_json(store.get(keys.LABELS))
    except ObjectNotFound:  # removed meanwhile
        return True
    except (DatasetError, ValueError, LookupError, TypeError, AttributeError):
        return False
    return True
