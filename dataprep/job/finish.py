"""From stored receipts to the table of samples and the manifest, which goes last."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dataprep import keys, manifest
from dataprep.counted import counted
from dataprep.errors import JobError, TooManyFailures
from dataprep.formats import get_format
from dataprep.job.jobfile import JobFile
from dataprep.job.plans import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest
from dataprep.ordered import in_order
from dataprep.receipt import Receipt
from dataprep.sample_table import SampleTable
from dataprep.shares import allowed_failures
from dataprep.stores import Store
from dataprep.versions import informing

_EXAMPLES = 3
_STORE_THREADS = 16


def stored_shards(store: Store, job: JobFile) -> list[int]:
    """The shards of which everything is in the store, the receipt included."""
    stored = {info.key for info in store.list()}
    return [i for i in range(job.shards) if stored.issuperset(_keys_of(job, i))]


def _keys_of(job: JobFile, shard: int) -> Iterator[str]:
    """Everything that a finished shard leaves in the store."""
    place = (job.split, shard, job.shards)
    yield keys.receipt(*place)
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
        JobError: a receipt belongs to another job.
    """

    def read(shard: int) -> Receipt:
        key = keys.receipt(job.split, shard, job.shards)
        receipt = Receipt.from_json(store.get(key), key)
        if receipt.fingerprint != job.fingerprint:
            raise JobError(f"{key} belongs to another job: start anew with --overwrite")
        return receipt

    receipts = []
    table = SampleTable(list(job.label_offsets))
    for receipt in in_order(read, range(job.shards), _STORE_THREADS):
        table.add(receipt.rows, receipt.shard)
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
) -> Manifest:
    """Store the table, then the manifest; ``run`` is what it says of this run.

    Raises:
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
    )
    store.put(keys.samples(job.split), table.to_parquet())
    store.put(keys.manifest(job.split), finished.to_json())
    store.tidy()
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
