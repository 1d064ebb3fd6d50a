"""What OUTPUT holds already: the job to resume, to refuse, or to remove."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from dataprep import keys
from dataprep.config import ShardConfig
from dataprep.counted import counted
from dataprep.errors import (
    DataprepError,
    DatasetError,
    ObjectNotFound,
    OutputConflict,
    SchemaTooNew,
)
from dataprep.formats import format_names
from dataprep.job.jobfile import JobFile, differences
from dataprep.job.retry import Retries, retries
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, require_sums
from dataprep.plan import SplitPlan
from dataprep.sources import Listing
from dataprep.stores import Store
from dataprep.versions import determining, other_resizer

_RESIZED = "of another size"


def stored_job(store: Store, split: str) -> JobFile | None:
    """The job file of a split, if there is one. Raises OutputConflict where it is damaged."""
    key = keys.job(split)
    try:
        return JobFile.from_json(store.get(key), key)
    except ObjectNotFound:
        return None
    except SchemaTooNew:
        raise
    except DatasetError as error:
        raise OutputConflict(
            f"{error}: nobody can tell what the shards in {store.uri} belong to. Put {key} back, "
            "use another --output, or --overwrite to start anew"
        ) from None


def stored_manifest(store: Store, split: str, job: JobFile) -> Manifest | None:
    """The manifest of this very job, if it is complete, and its table of samples there.

    What cannot be read counts as not there: it is made anew from the receipts.
    """
    key = keys.manifest(split)
    try:
        found = require_sums(Manifest.from_json(store.get(key), key), key)
        table = store.head(keys.samples(split))
    except SchemaTooNew:
        raise
    except (ObjectNotFound, DatasetError):
        return None
    if found.fingerprint != job.fingerprint or (found.table and found.table.bytes != table.bytes):
        return None
    return found


def lost_plans(store: Store, splits: Iterable[str]) -> list[str]:
    """Labels and plans that are gone although a job was written with them."""
    return [key for key in (keys.LABELS, *map(keys.plan, splits)) if not _is_there(store, key)]


def _is_there(store: Store, key: str) -> bool:
    try:
        store.head(key)
    except ObjectNotFound:
        return False
    return True


def stored_labels(store: Store, jobs: Mapping[str, JobFile]) -> LabelSpace:
    """The labels that the jobs were planned with. Raises OutputConflict."""
    try:
        data = store.get(keys.LABELS)
    except ObjectNotFound:
        data = b""
    digest = hashlib.sha256(data).hexdigest()
    if any(digest != job.labels_sha256 for job in jobs.values()):
        raise OutputConflict(
            f"{keys.LABELS} in {store.uri} is not the one that the job was planned with: put it "
            "back, or delete it and run again: it is written anew where the source still gives it; "
            "otherwise start anew with --overwrite"
        )
    return LabelSpace.from_json(data)


def stored_plan(store: Store, split: str, job: JobFile) -> SplitPlan:
    """The plan that the job was written with. Raises OutputConflict."""
    key = keys.plan(split)
    try:
        data = store.get(key)
    except ObjectNotFound:
        data = b""
    if hashlib.sha256(data).hexdigest() != job.plan_sha256:
        raise OutputConflict(
            f"{key} in {store.uri} is not the plan that {keys.job(split)} was written with: "
            "put it back, or delete it and run again: it is written anew where the source still "
            "gives it; otherwise start anew with --overwrite"
        )
    return SplitPlan.from_parquet(data, key)


def require_same(
    store: Store,
    config: ShardConfig,
    jobs: Mapping[str, JobFile],
    listing: Listing,
    label_space: LabelSpace,
    plans: Mapping[str, SplitPlan],
    again: Mapping[str, Retries],
) -> None:
    """Refuse to go on with jobs that were planned from something else.

    Samples that are tried again may have other sizes, and all of them other places in archives.
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
        if job.source["sha256"] != digest:
            groups = _source_differences(listing, label_space, plans, again)
            if not found and groups.keys() == {_RESIZED}:
                _offer_retry(store, config, jobs, plans, groups[_RESIZED])
            found += [_group_shown(names, what) for what, names in groups.items()] or (
                [] if again[split] else ["source: other classes, labels or places"]
            )
        if found:
            more = f"; and {len(found) - 8} more" if len(found) > 8 else ""
            raise OutputConflict(
                f"{config.output} holds another job for split {split!r}: "
                f"{'; '.join(found[:8])}{more}. Take these back to resume it, use another "
                "--output, or --overwrite to start anew"
            )


def _offer_retry(
    store: Store,
    config: ShardConfig,
    jobs: Mapping[str, JobFile],
    plans: Mapping[str, SplitPlan],
    changed: Set[str],
) -> None:
    """Say how to go on where all that changed are files that had failed."""
    failed: set[str] = set()
    for split, job in jobs.items():
        failed |= retries(store, job, plans[split], failed=True).names
    if changed <= failed:
        raise OutputConflict(
            f"{config.output}: {_group_shown(changed, _RESIZED)}, all of which failed before: "
            "--retry-failed makes their shards again and leaves the others as they are"
        )


def _group_shown(names: Set[str], what: str) -> str:
    return f"source: {counted(len(names), 'file')} {what}, such as {min(names)!r}"


def content_of_split(config: ShardConfig, split: str) -> dict[str, object]:
    """The content part of ``config`` for one of its splits."""
    return {**config.content(), "split": split}


def with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A stored content part, with today's defaults for keys that came later.

    A key's default does what was done before there was the key.
    """
    return _filled(stored, ShardConfig(source="-", output="-").content())


def _filled(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    filled = {**defaults, **values}
    for key, default in defaults.items():
        if isinstance(default, Mapping) and isinstance(value := filled[key], Mapping):
            filled[key] = _filled(value, default)
    return filled


def _source_differences(
    listing: Listing,
    label_space: LabelSpace,
    plans: Mapping[str, SplitPlan],
    again: Mapping[str, Retries],
) -> dict[str, set[str]]:
    """Names by what became of them."""
    before: dict[str, int] = {}
    labels: dict[str, int] = {}
    mended: set[str] = set()
    for split, stored in plans.items():
        before |= zip(stored.names, stored.sizes.tolist(), strict=True)
        labels |= zip(stored.names[: stored.samples], stored.labels.tolist(), strict=False)
        before |= again[split].sizes
        mended |= again[split].names
    now = dict(zip(listing.names, listing.sizes.tolist(), strict=True))
    classes = dict(zip(listing.names, listing.classes, strict=True))
    both = now.keys() & before.keys()
    groups = {
        "new": now.keys() - before.keys(),
        "gone": before.keys() - now.keys(),
        _RESIZED: {n for n in both if now[n] != before[n]} - mended,
        "of another class": {
            n for n in both & labels.keys() if label_space.index.get(classes[n], -1) != labels[n]
        },
    }
    return {what: names for what, names in groups.items() if names}


def refuse_leftovers(store: Store, split: str) -> None:
    """Refuse files in the split's places of which nobody knows to what plan they belong.

    Labels and a plan alone are what a run leaves that is killed before its job file.
    """
    stored = {info.key for info in store.list()}
    found = {key for key in stored if keys.belongs_to(split, key, format_names())}
    begun: dict[str, Callable[[bytes], object]] = {
        keys.LABELS: LabelSpace.from_json,
        keys.plan(split): SplitPlan.from_parquet,
    }
    strange = found - begun.keys()
    strange |= {key for key in begun.keys() & stored if not _reads(store, key, begun[key])}
    # Asked last: another part may have written its job, and shards, since this one looked.
    if strange and stored_job(store, split) is None:
        raise OutputConflict(
            f"{store.uri} holds {_shown(sorted(strange, key=_rank))}, but no {keys.job(split)} to "
            "which that belongs: put this file back, use another --output, or --overwrite to "
            f"remove split {split!r} and start anew"
        )


def _reads(store: Store, key: str, read: Callable[[bytes], object]) -> bool:
    try:
        data = store.get(key)
    except ObjectNotFound:  # removed meanwhile
        return True
    try:
        read(data)
    except (DataprepError, OSError, ValueError, LookupError):
        return False
    return True


def _rank(key: str) -> tuple[bool, str]:
    return key.startswith(("index/", "receipts/")), key


def _shown(found: Sequence[str]) -> str:
    more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + more
