"""Verify the splits of an output.

The checks cover every object of a split, and make sure that it has each source sample exactly once.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import islice
from typing import TypeVar

from dataprep.checking.duplicates import COMPARED_COLUMNS, Duplicates, duplicates_within
from dataprep.checking.result import Depth, Fault, Verification
from dataprep.checking.verify_shard import MAX_FAULTS, format_faults
from dataprep.errors import (
    DatasetError,
    ManifestMissing,
    ObjectNotFound,
    OutputConflict,
    RecordError,
    SchemaTooNew,
)
from dataprep.formats import format_names
from dataprep.job.job_file import JobFile
from dataprep.job.output_state import keys_of_shard, read_labels, read_plan
from dataprep.name_encoding import escape, escape_all
from dataprep.output import keys
from dataprep.output.manifest import Manifest, Share, format_entries
from dataprep.output.receipt import Receipt, StoredFile
from dataprep.output.samples_table import SampleTable
from dataprep.output.snapshot import Snapshot
from dataprep.reading.splits import splits_in
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.threaded_map import in_order

_Content = TypeVar("_Content")


def verify(
    output: str | os.PathLike[str],
    split: str | None = None,
    *,
    depth: Depth = "full",
    workers: int = 1,
    options: StoreOptions | None = None,
) -> tuple[Verification, ...]:
    """Verify one split of an output, or all splits.

    ``quick`` compares sizes and ETags, and reads receipts and tables. ``full`` also reads every
    shard, and checks hashes, framing, checksums, indexes and labels. ``deep`` also decodes every
    image.

    Args:
        output: the path or URI of the output.
        split: the name of a split; by default, all splits are verified.
        depth: how much is read.
        workers: the number of threads. Each thread has one shard in memory.
        options: endpoint, profile and other options of the store.

    Raises:
        ManifestMissing: there is no such split, or no output.
        DatasetChanged: a split was written again during the verification.
        StoreError: the store cannot be read.
    """
    store = open_store(output, options)
    all_splits = splits_in(store)
    if split is None:
        splits = all_splits
    elif split in all_splits:
        splits = [split]
    else:
        raise ManifestMissing(
            f"no split {split!r} in {store.uri!r}: it has {', '.join(all_splits)}"
        )
    return tuple(_verify_split(store, name, depth, workers) for name in splits)


def _verify_split(store: Store, split: str, depth: Depth, workers: int) -> Verification:
    """Verify one split: its job, its shards with their receipts, its table and its manifest."""
    faults: list[Fault] = []
    job_key = keys.job(split)
    job = _load(job_key, faults, lambda: JobFile.from_json(store.get(job_key), job_key))
    if job is None:
        job_fault = Fault(job_key, f"{faults[0].what}; restore it, or use --overwrite")
        return Verification(store.uri, split, depth, (job_fault,), Duplicates(split))
    manifest_and_snapshot = _load(
        keys.manifest(split), faults, lambda: Snapshot.open(store, split), remedy=""
    )
    manifest, snapshot = manifest_and_snapshot or (None, None)
    shards = _expected_shards(job, manifest)
    checks = _SplitChecks(store, job, depth, faults, shards)
    receipts, table = checks.check_shards(workers)
    samples = table.table().select(COMPARED_COLUMNS).to_pandas(use_threads=False)
    if manifest is not None and len(receipts) == len(shards):
        faults += checks.table_faults(manifest, receipts, table)
        faults += checks.share_table_faults(manifest.share)
    faults += checks.foreign_objects()
    if snapshot is not None:
        snapshot.check()
    entries = format_entries(receipts, job.label_offsets)
    return Verification(
        store.uri,
        split,
        depth,
        tuple(faults),
        duplicates_within(split, samples),
        formats=tuple(job.label_offsets),
        shards=len(receipts),
        samples=table.counts.written,
        bytes=sum(entry.bytes for entry in entries.values()),
    )


def _expected_shards(job: JobFile, manifest: Manifest | None) -> Sequence[int]:
    """The numbers of the shards that the output must have.

    An output that ``dataprep stage`` wrote for one host has only the shards of this host.
    """
    if manifest is None or not manifest.share:
        return range(job.shards)
    entry = next(iter(manifest.formats.values()))
    return [keys.shard_number(shard.key) for shard in entry.shards]


def _load(
    key: str, faults: list[Fault], read: Callable[[], _Content], remedy: str | None = None
) -> _Content | None:
    """Read an object, and add a fault if it is missing or damaged.

    Args:
        key: the key of the object.
        faults: the list to which a fault is added.
        read: reads and parses the object.
        remedy: the remedy if the object is damaged, as in ``Fault``.

    Returns:
        The result of ``read``; None if a fault was added.
    """
    try:
        return read()
    except ObjectNotFound:
        faults.append(Fault(key, "missing", remedy=""))
    except OutputConflict:
        problem = "missing, or not the one that the job was planned with"
        faults.append(Fault(key, f"{problem}: restore it, or use --overwrite"))
    except (DatasetError, RecordError) as error:
        problem = str(error).removeprefix(f"{key}: ")
        if isinstance(error, SchemaTooNew):
            remedy = None  # this version cannot repair an object of a newer version
        faults.append(Fault(key, problem, remedy=remedy))
    return None


class _SplitChecks:
    """Checks the objects of one split against its job, its plan and each other.

    Args:
        store: the store that contains the output.
        job: the job that wrote the split.
        depth: how much is read.
        faults: the list to which faults of the plan, of ``labels.json`` and of shards are added.
        shards: the numbers of the shards that the split must have.
    """

    def __init__(
        self, store: Store, job: JobFile, depth: Depth, faults: list[Fault], shards: Sequence[int]
    ) -> None:
        self._store = store
        self._job = job
        self._depth = depth
        self._faults = faults
        self._shards = shards
        split = job.split
        self._plan = _load(keys.plan(split), faults, lambda: read_plan(store, split, job))
        self._labels = _load(keys.LABELS, faults, lambda: read_labels(store, {split: job}))
        # A record contains the names of source files. The names of samples in archives and shards
        # can differ from them.
        self._has_file_names = self._plan is not None and not self._plan.containers
        formats = format_names()
        self._objects = {
            info.key: info for info in store.list() if keys.belongs_to(split, info.key, formats)
        }

    def check_shards(self, workers: int) -> tuple[list[Receipt], SampleTable]:
        """Check all shards in ``workers`` threads, and add their faults.

        Returns:
            The receipts that can be used, without their rows, and the table of all their rows.
        """
        receipts: list[Receipt] = []
        table = SampleTable(list(self._job.label_offsets))
        threads = workers if workers > 1 else 0
        for receipt, shard_faults in in_order(self.check_shard, self._shards, threads):
            self._faults += shard_faults
            if receipt is not None:
                table.add(receipt.samples, receipt.shard)
                receipts.append(receipt.without_rows())
        return receipts, table

    def check_shard(self, shard: int) -> tuple[Receipt | None, list[Fault]]:
        """Check a shard in all its formats.

        Returns:
            The receipt of the shard and all faults. The receipt is None if it cannot be used.
        """
        faults: list[Fault] = []
        job = self._job
        key = self._receipt_key(shard)
        receipt = _load(
            key, faults, lambda: Receipt.from_json(self._store.get(key), key), remedy=key
        )
        if receipt is None:
            return None, faults
        is_of_this_shard = (
            receipt.fingerprint == job.fingerprint
            and receipt.split == job.split
            and receipt.shard == shard
            and {file.key for file in receipt.files} == set(keys_of_shard(job, shard))
        )
        if not is_of_this_shard:
            return None, [Fault(key, "belongs to another job or shard", remedy=key)]
        content_faults: list[Fault] = []
        if self._depth != "quick":
            for format_name in receipt.formats:
                content_faults += format_faults(
                    self._store,
                    job,
                    receipt,
                    format_name,
                    has_file_names=self._has_file_names,
                    decodes_images=self._depth == "deep",
                )
        faults += self._listing_faults(receipt.files, compare_etags=not content_faults)
        faults += content_faults
        for problem in islice(self._plan_differences(receipt), MAX_FAULTS):
            faults.append(Fault(key, problem, remedy=key))
        return receipt, faults

    def table_faults(
        self, manifest: Manifest, receipts: Sequence[Receipt], table: SampleTable
    ) -> Iterator[Fault]:
        """Compare the manifest and the table of samples with the receipts.

        Args:
            manifest: the manifest of the split.
            receipts: the receipts of all shards.
            table: the table of samples that results from these receipts. For a whole split, rows
                of entries that are in no shard are added to it.
        """
        if self._plan is None or self._labels is None:
            return
        if manifest.share is None:
            table.add(self._plan.entries_without_shard(self._labels), None)
        yield from self._manifest_faults(manifest, receipts, table)
        yield from self._stored_table_faults(manifest, table)

    def _manifest_faults(
        self, manifest: Manifest, receipts: Sequence[Receipt], table: SampleTable
    ) -> Iterator[Fault]:
        """Compare each field of the manifest with the job and the receipts."""
        key = keys.manifest(self._job.split)
        expected = _expected_manifest(manifest, self._job, receipts, table)
        for field in fields(manifest):
            if getattr(manifest, field.name) != getattr(expected, field.name):
                problem = f"its {field.name!r} does not match the receipts"
                yield Fault(key, problem, remedy=key)

    def _stored_table_faults(self, manifest: Manifest, table: SampleTable) -> Iterator[Fault]:
        """Compare the stored table of samples with the table that results from the receipts."""
        table_key = keys.samples(self._job.split)
        try:
            data = self._store.get(table_key)
        except ObjectNotFound:
            yield Fault(table_key, "missing", remedy="")
            return
        entry = manifest.table
        matches_manifest = entry is not None and entry.sha256 == hashlib.sha256(data).hexdigest()
        differing_shards = table.differences(data)
        if not differing_shards:
            if entry and not matches_manifest:
                yield Fault(table_key, "checksum does not match the manifest", remedy=table_key)
            return
        # If the manifest confirms the stored table, then the receipts must be wrong.
        shards = [shard for shard in differing_shards if shard is not None]
        if not matches_manifest or not shards:
            yield Fault(table_key, "does not match the receipts", remedy=table_key)
            return
        for shard in shards:
            receipt_key = self._receipt_key(shard)
            problem = f"its samples differ from those in {table_key}"
            yield Fault(receipt_key, problem, remedy=receipt_key)

    def share_table_faults(self, share: Share | None) -> Iterator[Fault]:
        """Check the table of the whole split in an output that was staged for one host."""
        if share is None or share.table is None:
            return
        key = keys.whole_samples(self._job.split)
        try:
            data = self._store.get(key)
        except ObjectNotFound:
            yield Fault(key, "missing; run the same dataprep stage again")
            return
        if hashlib.sha256(data).hexdigest() != share.table.sha256:
            yield Fault(key, "checksum does not match the manifest; remove it and stage again")

    def foreign_objects(self) -> list[Fault]:
        """Find objects whose keys look like keys of the split, but which do not belong to it."""
        split = self._job.split
        expected = {
            keys.job(split),
            keys.plan(split),
            keys.samples(split),
            keys.manifest(split),
            keys.whole_samples(split),  # in an output that was staged for one host
        }
        for shard in self._shards:
            expected.add(self._receipt_key(shard))
            expected.update(keys_of_shard(self._job, shard))
        foreign_keys = sorted(self._objects.keys() - expected)
        return [Fault(key, "does not belong to this data set", remedy=key) for key in foreign_keys]

    def _listing_faults(
        self, files: Sequence[StoredFile], *, compare_etags: bool
    ) -> Iterator[Fault]:
        """Compare the listed sizes, and ETags if the store has them, with those in a receipt.

        ETags are not compared if the content has faults, because they would repeat these faults.
        """
        for file in files:
            info = self._objects.get(file.key)
            if info is None:
                yield Fault(file.key, "missing", remedy="")
            elif info.bytes != file.bytes:
                problem = f"has {info.bytes:,} bytes, its receipt says {file.bytes:,}"
                yield Fault(file.key, problem, remedy="")
            elif compare_etags and info.etag and file.etag and info.etag != file.etag:
                problem = f"its ETag is {info.etag}, its receipt says {file.etag}"
                yield Fault(file.key, problem, remedy="")

    def _plan_differences(self, receipt: Receipt) -> Iterator[str]:
        """Yield each contradiction within a receipt, and each difference from the plan.

        The plan has every source sample exactly once.
        """
        rows = receipt.rows
        plan, labels = self._plan, self._labels
        written = sum(row.status == "written" for row in rows)
        for name, stored_format in receipt.formats.items():
            with_location = sum(name in (row.records or {}) for row in rows)
            if not stored_format.records == with_location == written:
                yield (
                    f"{written:,} samples written, but {stored_format.records:,} records in "
                    f"{name}, and {with_location:,} locations of them"
                )
        if plan is None or labels is None:
            return
        plan_rows = plan.rows_of(receipt.shard)
        names = escape_all(plan.names[plan_rows])
        numbers = range(plan_rows.start, plan_rows.stop)
        classes = plan.labels[plan_rows].tolist()
        synsets = [escape(labels.synset_of(label)) for label in classes]
        planned = Counter(zip(names, numbers, classes, synsets, strict=True))
        in_receipt = Counter((row.source, row.number, row.label, row.synset) for row in rows)
        for sample in sorted((planned - in_receipt) | (in_receipt - planned)):
            name, number, label, synset = sample
            yield (
                f"{name} with number {number}, label {label} and class {synset} is "
                f"{in_receipt[sample]} times in it, {planned[sample]} times in the plan"
            )

    def _receipt_key(self, shard: int) -> str:
        return keys.receipt(self._job.split, shard, self._job.shards)


def _expected_manifest(
    manifest: Manifest, job: JobFile, receipts: Sequence[Receipt], table: SampleTable
) -> Manifest:
    """The manifest as it must be, according to the job and the receipts.

    The other fields are copied from ``manifest``.
    """
    formats = format_entries(receipts, job.label_offsets)
    return replace(
        manifest,
        split=job.split,
        fingerprint=job.fingerprint,
        config=job.config,
        versions={**manifest.versions, **job.versions},
        formats=formats,
        samples=table.counts,
        warnings={**table.warnings(formats), **job.warnings},
    )
