"""From stored receipts to the table of samples and the manifest, which is written last."""

from __future__ import annotations

import datetime
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dataprep import keys, manifest
from dataprep.config import allowed_failures
from dataprep.counted import counted
from dataprep.errors import (
    CorruptRecord,
    JobError,
    ManifestMissing,
    OutputConflict,
    ShardsMissing,
    TooManyFailures,
)
from dataprep.job.jobfile import JobFile
from dataprep.job.lock import Locks
from dataprep.job.output_state import (
    complete_shards,
    read_job,
    read_labels,
    read_manifest,
    read_plan,
)
from dataprep.job.report import Summary, ValidationShare
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, Receipt, Samples, TableEntry
from dataprep.names import escape
from dataprep.ordered import in_order
from dataprep.samples import SampleTable
from dataprep.split_plan import VALIDATION, SplitPlan, used_labels
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.locked_writes import LockCheck, put_under_lock
from dataprep.versions import informing

_EXAMPLES = 3
_SHOWN = 10
_STORE_THREADS = 16


def finish(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    label_space: LabelSpace,
    *,
    max_failures: int | str,
    run: Mapping[str, Any],
    started_s: float,
    check: LockCheck,
) -> tuple[Manifest, SampleTable]:
    """Read the receipts back, store the table, then the manifest.

    ``run`` goes into the manifest; this run began at ``started_s`` of the monotonic clock.

    Raises:
        LeaseLost: by ``check``: another run has taken over.
        TooManyFailures: more samples failed than ``max_failures``.
        JobError: none could be written, or a receipt is damaged or of another job.
    """
    receipts, table = read_back(store, job, range(job.shards), plan.others(label_space))
    counts = table.counts
    allowed = allowed_failures(max_failures, counts.total)
    if counts.failed > allowed:
        state = "every shard is stored, but no manifest"
        raise too_many(counts.failed, allowed, max_failures, table.failures, state)
    if not counts.written:
        why = table.failures[:_EXAMPLES] or table.skip_reasons.most_common(_EXAMPLES)
        raise JobError(
            f"none of {counts.total:,} samples could be written: "
            + "; ".join(f"{what}: {reason}" for what, reason in why)
        )
    formats = manifest.format_entries(receipts, job.label_offsets)
    stored_table = table.to_parquet()
    finished = Manifest(
        split=job.split,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        fingerprint=job.fingerprint,
        config=job.config,
        run={**run, "seconds": round(time.monotonic() - started_s, 3)},
        versions={**informing(), **job.versions},
        formats=formats,
        samples=counts,
        warnings={**table.warnings(formats), **job.warnings},
        table=TableEntry(len(stored_table), hashlib.sha256(stored_table).hexdigest()),
    )
    put_under_lock(store, keys.samples(job.split), stored_table, check)
    store.tidy()  # what is complete has nothing left to remove, wherever it is killed
    put_under_lock(store, keys.manifest(job.split), finished.to_json(), check)
    return finished, table


def read_back(
    store: Store, job: JobFile, shards: Sequence[int], others: Samples | None
) -> tuple[list[Receipt], SampleTable]:
    """The receipts of ``shards`` as they are stored; their rows and ``others`` in the table."""

    def read(shard: int) -> Receipt:
        key = keys.receipt(job.split, shard, job.shards)
        try:
            receipt = Receipt.from_json(store.get(key), key)
        except CorruptRecord as error:
            raise JobError(
                f"{error}. Delete it and run dataprep shard again: it makes that shard anew"
            ) from None
        if receipt.fingerprint != job.fingerprint:
            raise JobError(f"{key} belongs to another job: start anew with --overwrite")
        return receipt

    receipts = []
    table = SampleTable(list(job.label_offsets))
    for receipt in in_order(read, shards, _STORE_THREADS):
        table.add(receipt.samples, receipt.shard)
        receipts.append(receipt.without_rows())
    if others is not None:
        table.add(others, None)
    return receipts, table


def finished_summary(
    store: Store,
    finished: Manifest,
    table: SampleTable,
    started_s: float,
    made: int,
    kept: int,
    samples: int,
    plans: Mapping[str, SplitPlan],
    label_space: LabelSpace,
) -> Summary:
    """Summarise a split; this run made ``made`` shards of ``samples``, earlier ones ``kept``.

    ``plans`` are those of all splits of the job.
    """
    seconds = time.monotonic() - started_s
    missing = sorted(used_labels(plans.values()) - table.written_labels - {-1})
    asked, validation = finished.config.get("validation"), None
    if asked and finished.split == VALIDATION and len(plans) > 1:
        total = sum(plan.samples for plan in plans.values())
        validation = ValidationShare(str(asked), plans[VALIDATION].samples, total)
    return Summary(
        split=finished.split,
        output=store.uri,
        manifest=finished,
        seconds=seconds,
        made_shards=made,
        kept_shards=kept,
        images_per_s=samples / max(seconds, 1e-9),
        failures=tuple(table.failures),
        skips=dict(table.skip_reasons.most_common()),
        missing_classes=tuple(escape(label_space.synset_of(label)) for label in missing),
        validation=validation,
    )


def already_complete(
    store: Store, complete: Manifest, kept: int, started_s: float, note: Callable[[str], None]
) -> Summary:
    """Summarise a split that is left as it is."""
    note(f"{complete.split}: complete already, nothing to do ({store.uri})")
    seconds = time.monotonic() - started_s
    return Summary(complete.split, store.uri, complete, seconds, 0, kept, 0, failures=())


def finalize(
    output: str | os.PathLike[str],
    split: str,
    *,
    max_failures: int | str = "1%",
    parts: int | None = None,
    options: StoreOptions | None = None,
    note: Callable[[str], None] | None = None,
) -> Summary:
    """Build the table of samples and the manifest from the receipts that are stored.

    No source is needed. A split that is complete already is left as it is.

    Args:
        output: a path or URI.
        split: which one.
        max_failures: how many samples of the whole split may have failed.
        parts: in how many parts it was made, to name those with missing shards.
        options: endpoint, profile and the like.
        note: called with messages for the user.

    Raises:
        ManifestMissing: there is no job of this split.
        OutputConflict: a part is under way.
        ShardsMissing: shards are missing; they are named.
        TooManyFailures: more samples failed than allowed; no manifest.
    """
    note = note or (lambda line: None)
    started_s = time.monotonic()
    store = open_store(output, options)
    job = read_job(store, split)
    if job is None:
        raise ManifestMissing(
            f"no {keys.job(split)} in {store.uri!r}: no part has begun, or OUTPUT is wrong"
        )
    lacking = sorted({*range(job.shards)} - {*complete_shards(store, job)})
    if lacking:
        raise _missing(store, job, lacking, parts)
    complete = read_manifest(store, split, job)
    if complete is not None:
        return already_complete(store, complete, job.shards, started_s, note)
    endpoint_url = options.endpoint_url if options else None
    label_space = read_labels(store, {split: job})
    plans = {split: read_plan(store, split, job), **_plan_beside(store, job)}
    with Locks(store, None, note) as locks:
        locks.take([split])
        complete = read_manifest(store, split, job)
        if complete is not None:  # another run has finished it while this one waited
            return already_complete(store, complete, job.shards, started_s, note)
        finished, table = finish(
            store,
            job,
            plans[split],
            label_space,
            max_failures=max_failures,
            run={"output": store.uri, "endpoint_url": endpoint_url, "finalized": True},
            started_s=started_s,
            check=locks.check,
        )
    return finished_summary(store, finished, table, started_s, 0, job.shards, 0, plans, label_space)


def _plan_beside(store: Store, job: JobFile) -> dict[str, SplitPlan]:
    """The plan of the other split of a job with a validation split; none if there is no such."""
    if not job.config.get("validation"):
        return {}
    for split in sorted(keys.splits(info.key for info in store.list()) - {job.split}):
        try:
            other = read_job(store, split)
            if other is not None and (other.source, other.labels_sha256) == (
                job.source,
                job.labels_sha256,
            ):
                return {split: read_plan(store, split, other)}
        except OutputConflict:  # damaged: its own finalize says so
            continue
    return {}


def _missing(
    store: Store, job: JobFile, lacking: Sequence[int], parts: int | None
) -> ShardsMissing:
    shown = ", ".join(str(shard) for shard in lacking[:_SHOWN])
    more = f" and {len(lacking) - _SHOWN:,} more" if len(lacking) > _SHOWN else ""
    owners = ""
    if parts:
        numbers = sorted({shard % parts for shard in lacking})[:_SHOWN]
        owners = f" (parts {', '.join(f'{number}/{parts}' for number in numbers)})"
    return ShardsMissing(
        f"{job.split}: {len(lacking):,} of {counted(job.shards, 'shard')} are missing in "
        f"{store.uri}: number {shown}{more}{owners}. Wait for these parts, or run them again: "
        "complete shards are kept"
    )


def too_many(
    failed: int,
    allowed: int,
    limit: int | str,
    known: Sequence[tuple[str, str]],
    state: str,
) -> TooManyFailures:
    """The error that says how many failed, a few of the ``known`` ones, and what to do."""
    shown = "; ".join(f"{name}: {reason}" for name, reason in known[:_EXAMPLES])
    few = " of so few" if allowed == 0 and str(limit).strip().endswith("%") else ""
    error = TooManyFailures(
        f"{counted(failed, 'sample')} failed, --max-failures {limit} allows {allowed:,}{few}: "
        f"{state}. Such as {shown}. To accept them, run again with a higher --max-failures: it "
        "resumes; to try mended files again, with --retry-failed"
    )
    error.failures = tuple(known)
    return error
