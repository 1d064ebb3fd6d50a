"""From stored receipts to the table of samples and the manifest, which goes last."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dataprep import keys, manifest
from dataprep.counted import counted
from dataprep.errors import CorruptRecord, JobError, ObjectNotFound, TooManyFailures
from dataprep.formats import get_format
from dataprep.job.jobfile import JobFile
from dataprep.job.split_plan import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, TableEntry
from dataprep.ordered import in_order
from dataprep.receipt import Receipt, StoredFile, stored_files
from dataprep.sample_table import SampleTable
from dataprep.shares import allowed_failures
from dataprep.stores import ObjectInfo, Store
from dataprep.versions import informing

_EXAMPLES = 3
_STORE_THREADS = 16


def stored_shards(store: Store, job: JobFile, among: Iterable[int] | None = None) -> list[int]:
    """The shards of which everything is in the store, with the sizes and ETags of its receipt.

    One listing, which may lag behind; so of what it shows each receipt is read, and each object
    asked for. No shard is read.
    """
    listed = {info.key: info for info in store.list()}

    def whole(shard: int) -> bool:
        key = keys.receipt(job.split, shard, job.shards)
        wanted = {*keys_of_shard(job, shard)}
        if not listed.keys() >= {key, *wanted}:
            return False
        try:
            files = stored_files(store.get(key), key)
        except (ObjectNotFound, CorruptRecord):
            return False
        return {file.key for file in files} == wanted and all(
            _is_as_told(listed[file.key], file) and _is_there(store, file) for file in files
        )

    shards = range(job.shards) if among is None else among
    found = in_order(lambda shard: (shard, whole(shard)), shards, _STORE_THREADS)
    return [shard for shard, is_whole in found if is_whole]


def _is_there(store: Store, file: StoredFile) -> bool:
    try:
        return _is_as_told(store.head(file.key), file)
    except ObjectNotFound:
        return False


def _is_as_told(info: ObjectInfo, file: StoredFile) -> bool:
    return info.bytes == file.bytes and not (info.etag and file.etag and info.etag != file.etag)


def keys_of_shard(job: JobFile, shard: int) -> Iterator[str]:
    """What a finished shard leaves in the store, besides its receipt."""
    place = (job.split, shard, job.shards)
    for name in job.label_offsets:
        record_format = get_format(name)
        yield keys.data(name, record_format.extension, *place)
        for extension in record_format.indexes([]):
            yield keys.index(name, extension, *place)


def read_back(
    store: Store, job: JobFile, plan: SplitPlan, label_space: LabelSpace
) -> tuple[list[Receipt], SampleTable]:
    """Every receipt as it is stored, its rows in the table.

    Raises:
        JobError: a receipt that is none, or belongs to another job.
    """

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
    for receipt in in_order(read, range(job.shards), _STORE_THREADS):
        table.add(receipt.samples, receipt.shard)
        receipts.append(receipt.without_rows())
    table.add(plan.others(label_space), None)
    return receipts, table


def finish(
    store: Store,
    job: JobFile,
    receipts: Sequence[Receipt],
    table: SampleTable,
    max_failures: int | str,
    run: Mapping[str, Any],
    check: Callable[[], None],
) -> Manifest:
    """Store the table, then the manifest; ``run`` is what it says of this run.

    Raises:
        LeaseLost: by ``check``: another run has taken over.
        TooManyFailures: more samples failed than ``max_failures``.
        JobError: none could be written.
    """
    counts = table.counts
    allowed = allowed_failures(max_failures, counts.total)
    if counts.failed > allowed:
        raise too_many(
            counts.failed,
            allowed,
            max_failures,
            table.failures,
            "every shard is stored, but no manifest",
        )
    if not counts.written:
        examples = (table.failures or table.skips)[:_EXAMPLES]
        raise JobError(
            f"none of {counts.total:,} samples could be written, such as "
            + "; ".join(f"{name}: {reason}" for name, reason in examples)
        )
    formats = manifest.format_entries(receipts, job.label_offsets)
    stored_table = table.to_parquet()
    finished = Manifest(
        split=job.split,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        fingerprint=job.fingerprint,
        config=job.config,
        run=run,
        versions={**informing(), **job.versions},
        formats=formats,
        samples=counts,
        warnings=table.warnings(formats),
        table=TableEntry(len(stored_table), hashlib.sha256(stored_table).hexdigest()),
    )
    check()
    store.put(keys.samples(job.split), stored_table)
    store.tidy()  # what is complete has nothing left to remove, wherever it is killed
    check()
    store.put(keys.manifest(job.split), finished.to_json())
    return finished


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
