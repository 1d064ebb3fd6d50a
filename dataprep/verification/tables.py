"""Labels, plan, table of samples and manifest against the receipts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from dataprep import keys
from dataprep.errors import DataprepError, ObjectNotFound
from dataprep.formats import get_format
from dataprep.job.jobfile import JobFile
from dataprep.job.plans import SplitPlan
from dataprep.labels import LabelSpace
from dataprep.manifest import Manifest, format_entries, in_bounds
from dataprep.receipt import Receipt
from dataprep.sample_table import SampleTable
from dataprep.stores import Store
from dataprep.verification.faults import Fault


def table_faults(
    store: Store, job: JobFile, receipts: Sequence[Receipt], table: SampleTable
) -> Iterator[Fault]:
    """Labels, plan, table of samples and manifest against the receipts.

    ``table`` has the rows of all receipts; those that are in no shard are added here.
    """
    split = job.split
    for key, sha256 in (
        (keys.LABELS, job.labels_sha256),
        (keys.plan(split), job.plan_sha256),
    ):
        try:
            if hashlib.sha256(store.get(key)).hexdigest() != sha256:
                yield Fault(key, f"is not what {keys.job(split)} was written with")
        except ObjectNotFound:
            yield Fault(key, "missing")
    key = keys.manifest(split)
    try:
        manifest = Manifest.from_json(store.get(key), key)
    except ObjectNotFound:
        yield Fault(key, "missing: the data set is not complete; run shard again to resume")
        return
    except DataprepError as error:
        yield Fault(key, str(error))
        return
    if len(receipts) != job.shards:
        return
    yield from _manifest_faults(store, job, manifest, receipts, table)


def _manifest_faults(
    store: Store,
    job: JobFile,
    manifest: Manifest,
    receipts: Sequence[Receipt],
    table: SampleTable,
) -> Iterator[Fault]:
    key, table_key = keys.manifest(job.split), keys.samples(job.split)
    try:
        plan = SplitPlan.from_parquet(store.get(keys.plan(job.split)))
        label_space = LabelSpace.from_json(store.get(keys.LABELS))
    except (DataprepError, OSError, ValueError, KeyError):
        return  # said already
    table.add(plan.others(label_space), None)
    formats = format_entries(receipts, job.label_offsets)
    for name, found, wanted in (
        ("split", manifest.split, job.split),
        ("fingerprint", manifest.fingerprint, job.fingerprint),
        ("versions", manifest.versions, {**manifest.versions, **job.versions}),
        ("config", manifest.config, job.config),
        ("formats", manifest.formats, formats),
        ("samples", manifest.samples, table.counts),
        ("warnings", manifest.warnings, table.warnings(formats)),
    ):
        if found != wanted:
            yield Fault(key, f"its {name!r} does not agree with the receipts")
    try:
        stored = store.get(table_key)
    except ObjectNotFound:
        yield Fault(table_key, "missing")
        return
    if not table.agrees_with(stored):
        yield Fault(table_key, "does not agree with the receipts")


def expected_keys(job: JobFile, receipts: Sequence[Receipt]) -> set[str]:
    """Every key that belongs to the split, or will when it is complete."""
    split = job.split
    expected = {keys.job(split), keys.plan(split), keys.samples(split), keys.manifest(split)}
    expected.add(keys.retried(split))
    expected |= {keys.receipt(split, shard, job.shards) for shard in range(job.shards)}
    present = {receipt.shard for receipt in receipts}
    for name in job.label_offsets:
        record_format = get_format(name)
        extensions = record_format.indexes([]).keys()
        for shard in set(range(job.shards)) - present:
            # Stored before its receipt was: the next run writes it again.
            expected.add(keys.data(name, record_format.extension, split, shard, job.shards))
            expected |= {keys.index(name, x, split, shard, job.shards) for x in extensions}
    for receipt in receipts:
        for stored in receipt.formats.values():
            expected |= {stored.file.key, *(index.key for index in stored.indexes)}
    return expected


def out_of_bounds(receipts: Sequence[Receipt]) -> Iterator[str]:
    """A remark for each shard that has not 1 to 128 MB."""
    for receipt in receipts:
        largest = max(
            (stored.file for stored in receipt.formats.values()), key=lambda file: file.bytes
        )
        if not in_bounds(largest.bytes):
            yield f"{largest.key} has {largest.bytes:,} bytes, outside 1 to 128 MB"
