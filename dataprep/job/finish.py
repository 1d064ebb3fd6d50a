"""Finish a split: read its receipts, store its table of samples, and store its manifest last."""

from __future__ import annotations

import datetime
import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataprep.config.shard_config import allowed_failures
from dataprep.errors import (
    CorruptRecord,
    JobError,
    ManifestMissing,
    OutputConflict,
    ShardsMissing,
    TooManyFailures,
)
from dataprep.job.job_file import JobFile
from dataprep.job.lock import Locks
from dataprep.job.output_state import (
    complete_shards,
    read_job,
    read_labels,
    read_manifest,
    read_plan,
)
from dataprep.job.report import Summary, ValidationShare
from dataprep.job.split_plan import SplitPlan, used_labels
from dataprep.job.split_planning import VALIDATION
from dataprep.labels import LabelSpace
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from dataprep.output import keys, manifest
from dataprep.output.manifest import Manifest, TableEntry
from dataprep.output.receipt import Receipt, Samples
from dataprep.output.samples_table import SampleTable
from dataprep.output.versions import informative_versions
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.stores.locked_writes import LockCheck, put_under_lock
from dataprep.threaded_map import in_order

# Limits of the samples, and of the shards and parts, that an error names.
_MAX_EXAMPLES = 3
_MAX_SHOWN_SHARDS = 10

_STORE_THREADS = 16
"""The number of receipts that are read at a time. Each read mostly waits for the store."""


@dataclass(frozen=True)
class FinishedSplit:
    """A split that this run has finished: the manifest that it has written, and the table."""

    manifest: Manifest
    table: SampleTable


def finish(
    store: Store,
    job: JobFile,
    plan: SplitPlan,
    label_space: LabelSpace,
    *,
    max_failures: int | str,
    run: Mapping[str, Any],
    start_s: float,
    check_lock: LockCheck,
) -> FinishedSplit:
    """Read the receipts of a split, store its table of samples, then store its manifest.

    Args:
        store: the output. It has a receipt for each shard of the split.
        job: the job of the split.
        plan: the plan of the split.
        label_space: the classes and their labels.
        max_failures: the number or share of the plan's entries that may fail. Entries that are in
            no shard count, too.
        run: properties of this run, such as its number of workers. The manifest records them.
        start_s: the time on the monotonic clock at which the work on the split began. The manifest
            records the seconds since then.
        check_lock: called before each write; raises LeaseLost if the run has lost its lock.

    Raises:
        LeaseLost: raised by ``check_lock``.
        TooManyFailures: more entries failed than ``max_failures`` allows; nothing was stored.
        JobError: no sample was written, a receipt is damaged, or a receipt belongs to another job.
        SchemaTooNew: a newer version wrote a receipt.
        StoreError: a receipt is missing, or an object could not be read or written.
    """
    entries_without_shard = plan.entries_without_shard(label_space)
    receipts, table = read_receipts(store, job, range(job.shards), entries_without_shard)
    counts = table.counts
    allowed_count = allowed_failures(max_failures, counts.total)
    if counts.failed > allowed_count:
        state = "every shard is stored, but the manifest was not written"
        raise too_many_failures_error(
            counts.failed, allowed_count, max_failures, table.failures, state
        )
    if not counts.written:
        raise _nothing_written_error(table)
    formats = manifest.format_entries(receipts, job.label_offsets)
    table_content = table.to_parquet()
    seconds = round(time.monotonic() - start_s, 3)
    finished = Manifest(
        split=job.split,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        fingerprint=job.fingerprint,
        config=job.config,
        run={**run, "seconds": seconds},
        versions={**informative_versions(), **job.versions},
        formats=formats,
        samples=counts,
        warnings={**table.warnings(formats), **job.warnings},
        table=TableEntry(len(table_content), hashlib.sha256(table_content).hexdigest()),
    )
    put_under_lock(store, keys.samples(job.split), table_content, check_lock)
    # Clean up before writing the manifest, so that a complete output has no temporary files.
    store.tidy()
    put_under_lock(store, keys.manifest(job.split), finished.to_json(), check_lock)
    return FinishedSplit(finished, table)


def read_receipts(
    store: Store, job: JobFile, shards: Sequence[int], entries_without_shard: Samples | None
) -> tuple[list[Receipt], SampleTable]:
    """Read the receipts of shards, and collect their rows in a table of samples.

    Args:
        store: the output.
        job: the job of the split.
        shards: the numbers of the shards. The rows of the table have their order.
        entries_without_shard: the rows of entries that are in no shard, which come last in the
            table; None to leave them out.

    Returns:
        The receipts in the order of ``shards``, without their rows, and the table.

    Raises:
        JobError: a receipt is damaged or belongs to another job.
        SchemaTooNew: a newer version wrote a receipt.
        StoreError: a receipt is missing or could not be read.
    """

    def read(shard: int) -> Receipt:
        key = keys.receipt(job.split, shard, job.shards)
        try:
            receipt = Receipt.from_json(store.get(key), key)
        except CorruptRecord as error:
            raise JobError(
                f"{error}. Delete it and run dataprep shard again, which makes that shard again"
            ) from None
        if receipt.fingerprint != job.fingerprint:
            raise JobError(f"{key} belongs to another job: start again with --overwrite")
        return receipt

    receipts = []
    table = SampleTable(list(job.label_offsets))
    for receipt in in_order(read, shards, _STORE_THREADS):
        table.add(receipt.samples, receipt.shard)
        receipts.append(receipt.without_rows())
    if entries_without_shard is not None:
        table.add(entries_without_shard, None)
    return receipts, table


def summarize(
    store: Store,
    finished: FinishedSplit,
    plans: Mapping[str, SplitPlan],
    label_space: LabelSpace,
    *,
    start_s: float,
    made_shards: int,
    kept_shards: int,
    made_samples: int,
) -> Summary:
    """Summarize a split that this run has finished.

    Args:
        store: the output.
        finished: the manifest and the table of samples.
        plans: the plans of all splits of the job, as far as they are known.
        label_space: the classes and their labels.
        start_s: the time on the monotonic clock at which the work on the split began.
        made_shards: the number of shards that this run made.
        kept_shards: the number of shards that earlier runs made.
        made_samples: the number of samples in the shards that this run made.
    """
    seconds = time.monotonic() - start_s
    split = finished.manifest.split
    table = finished.table
    # Classes that have a sample in a plan of the job, but none that was written in this split.
    missing_labels = sorted(used_labels(plans.values()) - table.written_labels - {-1})
    missing_classes = [escape(label_space.synset_of(label)) for label in missing_labels]
    requested_share = finished.manifest.config.get("validation")
    validation = None
    if requested_share and split == VALIDATION and len(plans) > 1:
        total = sum(plan.samples for plan in plans.values())
        validation = ValidationShare(str(requested_share), plans[split].samples, total)
    return Summary(
        split=split,
        output=store.uri,
        manifest=finished.manifest,
        seconds=seconds,
        made_shards=made_shards,
        kept_shards=kept_shards,
        images_per_s=made_samples / max(seconds, 1e-9),  # no division by 0 on a coarse clock
        failures=tuple(table.failures),
        skips=dict(table.skip_reasons.most_common()),
        missing_classes=tuple(missing_classes),
        validation=validation,
    )


def summarize_complete_split(
    store: Store,
    complete: Manifest,
    kept_shards: int,
    start_s: float,
    note: Callable[[str], None],
) -> Summary:
    """Tell the user that a split is complete without work of this run, and summarize it.

    Args:
        store: the output.
        complete: the stored manifest of the split.
        kept_shards: the number of shards of the split.
        start_s: the time on the monotonic clock at which the work on the split began.
        note: called with the message for the user.
    """
    note(f"{complete.split}: complete already, nothing to do ({store.uri})")
    return Summary(
        split=complete.split,
        output=store.uri,
        manifest=complete,
        seconds=time.monotonic() - start_s,
        made_shards=0,
        kept_shards=kept_shards,
        images_per_s=0,
        failures=(),
    )


def finalize(
    output: str | os.PathLike[str],
    split: str,
    *,
    max_failures: int | str = "1%",
    parts: int | None = None,
    options: StoreOptions | None = None,
    note: Callable[[str], None] | None = None,
) -> Summary:
    """Build the table of samples and the manifest of a split from its stored receipts.

    The source is not needed. A split that is complete already does not change.

    Args:
        output: a path or URI.
        split: the name of the split.
        max_failures: the number or share of samples of the whole split that may have failed, or
            ``unlimited``.
        parts: the number of parts of the job. An error then names the parts with missing shards.
        options: the endpoint, the profile and other settings of the store.
        note: called with messages for the user; None to discard them.

    Raises:
        ManifestMissing: the output has no job of this split.
        OutputConflict: a part is still running; or the job file, the labels or the plan are damaged
            or missing.
        ShardsMissing: shards are missing; the message names them.
        TooManyFailures: more samples failed than allowed; no manifest was written.
        JobError: no sample was written, a receipt is damaged, or the lock was lost.
        SchemaTooNew: a newer version wrote the files of the split.
        ConfigError: the output is not a valid address, or ``max_failures`` has another form.
        StoreError: the output cannot be read or written.
    """
    if note is None:
        note = _discard
    start_s = time.monotonic()
    store = open_store(output, options)
    job = read_job(store, split)
    if job is None:
        raise ManifestMissing(
            f"no {keys.job(split)} in {store.uri!r}: no part has begun, or OUTPUT is wrong"
        )
    missing_shards = sorted(set(range(job.shards)).difference(complete_shards(store, job)))
    if missing_shards:
        raise _shards_missing_error(store, job, missing_shards, parts)
    complete = read_manifest(store, split, job)
    if complete is not None:
        return summarize_complete_split(store, complete, job.shards, start_s, note)
    label_space = read_labels(store, {split: job})
    plans = {split: read_plan(store, split, job), **_plan_of_other_split(store, job)}
    with Locks(store, None, note) as locks:
        locks.take([split])
        complete = read_manifest(store, split, job)
        if complete is not None:  # another run finished the split while this run waited for it
            return summarize_complete_split(store, complete, job.shards, start_s, note)
        finished = finish(
            store,
            job,
            plans[split],
            label_space,
            max_failures=max_failures,
            run={
                "output": store.uri,
                "endpoint_url": options.endpoint_url if options else None,
                "finalized": True,
            },
            start_s=start_s,
            check_lock=locks.check,
        )
    return summarize(
        store,
        finished,
        plans,
        label_space,
        start_s=start_s,
        made_shards=0,
        kept_shards=job.shards,
        made_samples=0,
    )


def _discard(line: str) -> None:
    """Discard a message, because the caller gave no callback."""


def _plan_of_other_split(store: Store, job: JobFile) -> dict[str, SplitPlan]:
    """The plan of the job's other split, by the name of the split.

    A job with a share for validation has two splits, with the same source and labels. The result is
    empty if the job has only one split, or if the other split is not stored or is damaged.
    """
    if not job.config.get("validation"):
        return {}
    stored_splits = keys.splits(info.key for info in store.list())
    for split in sorted(stored_splits - {job.split}):
        try:
            other = read_job(store, split)
            if other is None:
                continue
            if other.source == job.source and other.labels_sha256 == job.labels_sha256:
                return {split: read_plan(store, split, other)}
        except OutputConflict:  # the split is damaged, which a call for that split will report
            continue
    return {}


def _shards_missing_error(
    store: Store, job: JobFile, missing_shards: Sequence[int], parts: int | None
) -> ShardsMissing:
    """The error that names the missing shards, and the parts that must make them.

    Args:
        store: the output.
        job: the job of the split.
        missing_shards: the numbers of the missing shards.
        parts: the number of parts of the job; None if the error is not to name parts.
    """
    shards_text = ", ".join(str(shard) for shard in missing_shards[:_MAX_SHOWN_SHARDS])
    if len(missing_shards) > _MAX_SHOWN_SHARDS:
        shards_text += f" and {len(missing_shards) - _MAX_SHOWN_SHARDS:,} more"
    if parts:
        part_numbers = sorted({shard % parts for shard in missing_shards})[:_MAX_SHOWN_SHARDS]
        parts_text = ", ".join(f"{number}/{parts}" for number in part_numbers)
        shards_text += f" (parts {parts_text})"
    return ShardsMissing(
        f"{job.split}: {len(missing_shards):,} of {counted(job.shards, 'shard')} are missing in "
        f"{store.uri}: number {shards_text}. Wait for these parts, or run them again: "
        "complete shards are kept"
    )


def _nothing_written_error(table: SampleTable) -> JobError:
    """The error that no sample could be written, with examples of the reasons."""
    # Names and reasons of failed samples or, if none failed, reasons and counts of skipped samples.
    examples: Sequence[tuple[str, object]] = table.failures[:_MAX_EXAMPLES]
    if not examples:
        examples = table.skip_reasons.most_common(_MAX_EXAMPLES)
    examples_text = "; ".join(f"{subject}: {detail}" for subject, detail in examples)
    return JobError(f"none of {table.counts.total:,} samples could be written: {examples_text}")


def too_many_failures_error(
    failed: int,
    allowed: int,
    limit: int | str,
    failures: Sequence[tuple[str, str]],
    state: str,
) -> TooManyFailures:
    """Return the error that too many samples failed.

    Args:
        failed: the number of failed samples.
        allowed: the number of samples that may fail.
        limit: the value of ``--max-failures``, from which ``allowed`` was computed.
        failures: the names and reasons of some or all failed samples. The error has all of them as
            an attribute, and its message the first few.
        state: a clause that says what the job has done, such as ``nothing was converted``.
    """
    examples_text = "; ".join(f"{name}: {reason}" for name, reason in failures[:_MAX_EXAMPLES])
    # A share of few samples is rounded down to 0 samples, which needs an explanation.
    is_share = str(limit).strip().endswith("%")
    explanation = " of so few samples" if allowed == 0 and is_share else ""
    error = TooManyFailures(
        f"{counted(failed, 'sample')} failed, but --max-failures {limit} allows {allowed:,}"
        f"{explanation}: {state}. For example, {examples_text}. To accept the failures, resume "
        "with a higher --max-failures. To convert repaired files, run again with --retry-failed"
    )
    error.failures = tuple(failures)
    return error
