"""Re-reads what was stored and holds it against receipts, manifest and table of samples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from dataprep import keys
from dataprep.errors import (
    DatasetError,
    ManifestMissing,
    ObjectNotFound,
    RecordError,
    SchemaTooNew,
    StoreError,
)
from dataprep.formats import format_names
from dataprep.job.jobfile import JobFile
from dataprep.job.resume import keys_of_shard, noted
from dataprep.labels import LabelSpace
from dataprep.ordered import in_order
from dataprep.pinned import Pinned
from dataprep.plan import SplitPlan
from dataprep.receipt import Receipt
from dataprep.sample_table import SampleTable
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.verification.accounts import Account, LabelCounts, receipt_labels
from dataprep.verification.duplicates import COLUMNS, Duplicates, within
from dataprep.verification.faults import Depth, Fault, Verification
from dataprep.verification.listed import quick_faults
from dataprep.verification.shards import ShardCheck
from dataprep.verification.tables import (
    TableCheck,
    expected_keys,
    out_of_bounds,
    plan_faults,
    stored_manifest,
)


def verify(
    output: str | os.PathLike[str],
    split: str | None = None,
    *,
    depth: Depth = "full",
    workers: int = 1,
    options: StoreOptions | None = None,
    on_shard: Callable[[int], None] | None = None,
) -> tuple[Verification, ...]:
    """Verify one split of an output, or all of them.

    ``quick`` compares sizes and ETags and reads receipts; ``full`` reads every shard: hashes,
    framing, CRCs, indexes; ``deep`` also decodes every image and compares labels and sizes.

    Args:
        output: a path or URI.
        split: which one; all where none is named.
        depth: how far to go.
        workers: threads; hashes and codecs release the GIL.
        options: endpoint, profile and the like.
        on_shard: called with the bytes of each shard that was checked.

    Raises:
        ManifestMissing: there is no such split, or nothing at all.
        DatasetChanged: a split was made anew meanwhile, or is being: nothing can be said of it.
        StoreError: the store cannot be read.
    """
    store = open_store(output, options)
    splits = splits_in(store)
    if split is not None and split not in splits:
        raise ManifestMissing(f"no split {split!r} in {store.uri!r}: it has {', '.join(splits)}")
    return tuple(
        verify_split(store, name, depth, workers, on_shard)
        for name in ([split] if split else splits)
    )


def splits_in(store: Store) -> list[str]:
    """The splits that an output holds, complete or not, sorted.

    Raises:
        ManifestMissing: there is none at all.
    """
    try:
        found = sorted(keys.splits(info.key for info in store.list()))
    except StoreError as error:
        error.exit_code = 2  # nothing to verify can be reached: the request was wrong
        raise
    if not found:
        raise ManifestMissing(
            f"{store.uri!r} holds no output of dataprep shard: no *.job.json there"
        )
    return found


def verify_split(
    store: Store,
    split: str,
    depth: Depth,
    workers: int,
    on_shard: Callable[[int], None] | None,
) -> Verification:
    """Verify one split; see ``verify``."""
    try:
        job = JobFile.from_json(store.get(keys.job(split)), keys.job(split))
    except (ObjectNotFound, DatasetError) as error:
        return _without_job(store, split, depth, error)
    with _unchanged(store, split):
        return _verify_job(store, job, depth, workers, on_shard)


def _unchanged(store: Store, split: str) -> AbstractContextManager[None]:
    """While a split that is complete stays as it is; any other is looked at as it is."""
    try:
        return Pinned.open(store, split).pinned.unchanged()
    except (ObjectNotFound, DatasetError):
        return nullcontext()


def _verify_job(
    store: Store,
    job: JobFile,
    depth: Depth,
    workers: int,
    on_shard: Callable[[int], None] | None,
) -> Verification:
    split = job.split
    names = format_names()
    sizes = {
        info.key: info.bytes for info in store.list() if keys.belongs_to(split, info.key, names)
    }

    retried, faults = _retried(store, job)
    manifest, manifest_faults = stored_manifest(store, job)
    faults.extend([*plan_faults(store, job), *manifest_faults])
    entries = {e.key: e for f in manifest.formats.values() for e in f.shards} if manifest else {}
    account = _account(store, job, retried)
    # Samples that lie within archives or records may bring a name of their own.
    named = account is not None and not account.plan.containers

    def one(shard: int) -> tuple[Receipt | None, list[Fault], LabelCounts]:
        receipt, found = _receipt(store, job, shard)
        if receipt is None:
            return None, found, {}
        found.extend(quick_faults(store, receipt, sizes, entries, depth))
        trusted = account is None or (receipt.shard < job.shards and account.agrees(receipt))
        labels = receipt_labels(receipt.rows, list(receipt.formats))
        if depth != "quick":
            check = ShardCheck(store, receipt, job, depth, entries, named=named, trusted=trusted)
            found.extend(check.faults())
            labels = check.labels
        if on_shard:
            on_shard(sum(stored.file.bytes for stored in receipt.formats.values()))
        return receipt, found, labels

    receipts: list[Receipt] = []
    table = SampleTable(list(job.label_offsets))
    threads = workers if workers > 1 else 0
    for receipt, found, labels in in_order(one, range(job.shards), threads):
        faults.extend(found)
        if receipt is not None:
            if account is not None and receipt.shard < job.shards:
                account.add(receipt, labels)
            table.add(receipt.samples, receipt.shard)
            receipts.append(receipt.without_rows())
    if account is not None:
        faults.extend(account.faults())
    duplicates = within(split, table.table().select(COLUMNS).to_pandas(use_threads=False))
    if manifest is not None and len(receipts) == job.shards:
        damaged = {fault.key for fault in faults if fault.key.startswith("receipts/")}
        check = TableCheck(store, job, manifest, table, damaged)
        faults.extend(check.faults(receipts, quick=depth == "quick"))
    strangers = sorted(sizes.keys() - expected_keys(job, receipts))
    faults.extend(Fault(key, "does not belong to this data set", remedy=key) for key in strangers)
    stored = [entry for receipt in receipts for entry in receipt.formats.values()]
    return Verification(
        output=store.uri,
        split=split,
        depth=depth,
        formats=tuple(job.label_offsets),
        shards=len(receipts),
        samples=table.counts.written,
        bytes=sum(entry.file.bytes for entry in stored),
        faults=tuple(faults),
        remarks=(*out_of_bounds(receipts), *(account.remarks() if account else ())),
        duplicates=duplicates,
    )


def _account(store: Store, job: JobFile, retried: Mapping[str, int]) -> Account | None:
    """Plan and labels to hold receipts against, if they are those of the job.

    Where they are not, that is what gets said, by ``table_faults``.
    """
    try:
        plan, labels = store.get(keys.plan(job.split)), store.get(keys.LABELS)
    except ObjectNotFound:
        return None
    digests = [hashlib.sha256(data).hexdigest() for data in (plan, labels)]
    if digests != [job.plan_sha256, job.labels_sha256]:
        return None
    try:
        planned = SplitPlan.from_parquet(plan, keys.plan(job.split))
        return Account(job, planned, LabelSpace.from_json(labels), retried)
    except DatasetError:
        return None


def _retried(store: Store, job: JobFile) -> tuple[dict[str, int], list[Fault]]:
    """Samples that were tried again, and what is wrong with the note of them."""
    try:
        return noted(store, job), []
    except DatasetError as error:
        return {}, [Fault.of(error, keys.retried(job.split))]


def _receipt(store: Store, job: JobFile, shard: int) -> tuple[Receipt | None, list[Fault]]:
    """A shard's receipt if it is there and can be read, and what is wrong with it."""
    key = keys.receipt(job.split, shard, job.shards)
    try:
        receipt = Receipt.from_json(store.get(key), key)
    except ObjectNotFound:
        return None, [Fault(key, "missing: this shard was never finished", remedy="")]
    except RecordError as error:
        return None, [Fault.of(error, key, remedy=key)]
    except DatasetError as error:
        return None, [Fault.of(error, key)]
    if receipt.fingerprint != job.fingerprint:
        return receipt, [Fault(key, "belongs to another job", remedy=key)]
    if (receipt.split, receipt.shard, receipt.shards) != (job.split, shard, job.shards):
        number = keys.numbered(receipt.split, receipt.shard, receipt.shards)
        return receipt, [Fault(key, f"is the receipt of {number}", remedy=key)]
    named = {file.key for stored in receipt.formats.values() for file in stored.files}
    if named != {*keys_of_shard(job, shard)}:
        strange = ", ".join(sorted(named - {*keys_of_shard(job, shard)})) or "too few"
        return None, [Fault(key, f"names other objects than its shard's: {strange}", remedy=key)]
    return receipt, []


def _without_job(store: Store, split: str, depth: Depth, error: Exception) -> Verification:
    """Of a split whose job file cannot be read nothing can be told."""
    key = keys.job(split)
    fault = Fault.of(error, key)
    if not isinstance(error, SchemaTooNew):
        what = "missing" if isinstance(error, ObjectNotFound) else fault.what
        fault = replace(fault, what=f"{what}. Put it back, or start anew with --overwrite")
    none = Duplicates(split, "", ())
    return Verification(store.uri, split, depth, (), 0, 0, 0, (fault,), (), none)
