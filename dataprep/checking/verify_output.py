"""Verify the splits of an output.

The checks cover every object of a split, and make sure that it has each source sample exactly once.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import NamedTuple, TypeVar

from crc32c import crc32c

from dataprep.checking.duplicates import COLUMNS, Duplicates, within
from dataprep.checking.result import Depth, Fault, Verification
from dataprep.errors import (
    DataprepError,
    DatasetError,
    ManifestMissing,
    ObjectNotFound,
    OutputConflict,
    RecordError,
    SchemaTooNew,
)
from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, format_names, get_format
from dataprep.formats.protocol import Buffer, without_location
from dataprep.image import check
from dataprep.job.job_file import JobFile
from dataprep.job.output_state import keys_of_shard, read_labels, read_plan
from dataprep.name_encoding import escape, escape_all, to_bytes, unescape
from dataprep.output import keys
from dataprep.output.manifest import (
    Manifest,
    Receipt,
    RecordLocation,
    Row,
    Share,
    StoredFile,
    format_entries,
)
from dataprep.output.samples_table import SampleTable
from dataprep.output.snapshot import Snapshot
from dataprep.reading.splits import splits_in
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.threaded_map import in_order

_MAX_FAULTS = 20
"""The maximum number of faults that are listed for one object."""

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
    receipts: list[Receipt] = []
    table = SampleTable(list(job.label_offsets))
    threads = workers if workers > 1 else 0
    for receipt, shard_faults in in_order(checks.check_shard, shards, threads):
        faults += shard_faults
        if receipt is not None:
            table.add(receipt.samples, receipt.shard)
            receipts.append(receipt.without_rows())
    samples = table.table().select(COLUMNS).to_pandas(use_threads=False)
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
        within(split, samples),
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
        store: the output.
        job: the job that wrote the split.
        depth: how much is read.
        faults: the list to which faults of the plan and of ``labels.json`` are added.
        shards: the numbers of the shards that the split must have.
    """

    def __init__(
        self, store: Store, job: JobFile, depth: Depth, faults: list[Fault], shards: Sequence[int]
    ) -> None:
        self._store = store
        self._job = job
        self._depth = depth
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
                content_faults += _format_faults(
                    self._store,
                    job,
                    receipt,
                    format_name,
                    has_file_names=self._has_file_names,
                    decodes_images=self._depth == "deep",
                )
        faults += self._listing_faults(receipt.files, compare_etags=not content_faults)
        faults += content_faults
        for problem in islice(self._plan_differences(receipt), _MAX_FAULTS):
            faults.append(Fault(key, problem, remedy=key))
        return receipt, faults

    def table_faults(
        self, manifest: Manifest, receipts: Sequence[Receipt], table: SampleTable
    ) -> Iterator[Fault]:
        """Compare the manifest and the table of samples with the receipts.

        Args:
            manifest: the manifest of the split.
            receipts: the receipts of all shards.
            table: the table of samples that results from these receipts.
        """
        if self._plan is None or self._labels is None:
            return
        job = self._job
        if manifest.share is None:
            table.add(self._plan.entries_without_shard(self._labels), None)
        manifest_key = keys.manifest(job.split)
        expected = _expected_manifest(manifest, job, receipts, table)
        for field in fields(manifest):
            if getattr(manifest, field.name) != getattr(expected, field.name):
                problem = f"its {field.name!r} does not match the receipts"
                yield Fault(manifest_key, problem, remedy=manifest_key)
        table_key = keys.samples(job.split)
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
        """Compare the listed sizes, and ETags if the store has them, with those in a receipt."""
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
        """Yield each difference between a receipt and the plan.

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


class _LocatedRow(NamedTuple):
    """A row of a receipt, and the location and the checksum of its record in one format."""

    row: Row
    location: RecordLocation


def _format_faults(
    store: Store,
    job: JobFile,
    receipt: Receipt,
    format_name: str,
    *,
    has_file_names: bool,
    decodes_images: bool,
) -> list[Fault]:
    """Read a shard in one format, and its index files. Return all faults."""
    stored_format = receipt.formats[format_name]
    record_format = get_format(format_name)
    options = job.record_options(format_name)
    rows = []
    index_entries = []
    for row in receipt.rows:
        if not row.records or format_name not in row.records:
            continue
        location = row.records[format_name]
        rows.append(_LocatedRow(row, location))
        offset, length, _ = location
        label = row.label + options.label_offset
        index_entries.append(
            IndexEntry(row.number, label, offset, length, row.source, row.values or ())
        )
    checks = _RecordChecks(record_format, options, has_file_names, decodes_images)
    trailer = record_format.trailer
    faults = list(
        islice(_shard_faults(store, stored_format.file, trailer, rows, checks), _MAX_FAULTS)
    )
    expected_indexes = record_format.indexes(index_entries).values()
    for file, expected in zip(stored_format.indexes, expected_indexes, strict=True):
        try:
            data = store.get(file.key)
        except ObjectNotFound:
            continue  # the comparison with the listing reports it
        if data != expected or hashlib.sha256(data).hexdigest() != file.sha256:
            faults.append(Fault(file.key, "does not match its receipt", remedy=file.key))
    return faults


def _shard_faults(
    store: Store,
    file: StoredFile,
    trailer: bytes,
    rows: Sequence[_LocatedRow],
    checks: _RecordChecks,
) -> Iterator[Fault]:
    """Check the records of a shard at the locations in its receipt, and the trailer after them."""
    key = file.key
    try:
        data = memoryview(store.get(key))
    except ObjectNotFound:
        return  # the comparison with the listing reports it
    end = 0
    records_are_sound = True
    for number, (row, (offset, length, crc)) in enumerate(rows):
        record = data[offset : offset + length]
        if offset != end:
            problems = [f"begins at byte {offset:,}, the record before it ends at byte {end:,}"]
        elif offset + length > len(data):
            problems = [f"the shard ends at byte {len(data):,}, inside this record or before it"]
        elif crc32c(record) != crc:
            problems = ["checksum does not match its receipt"]
        else:
            problems = list(checks.problems(record, row))
        end = offset + length
        for problem in problems:
            records_are_sound = False
            yield Fault(key, problem, number, offset, key)
    if end <= len(data) and data[end:] != trailer:
        extra_bytes = len(data) - end
        problem = f"{extra_bytes:,} bytes that the receipt does not list"
        if trailer:
            problem = f"{extra_bytes:,} bytes follow the records; they are not the expected trailer"
        yield Fault(key, problem, len(rows), end, key)
    elif records_are_sound and hashlib.sha256(data).hexdigest() != file.sha256:
        problem = "its SHA-256 does not match its receipt, although its records do"
        yield Fault(key, problem, remedy=key)


@dataclass(frozen=True)
class _RecordChecks:
    """Checks the content of a record, after its checksum was found to be correct.

    Attributes:
        record_format: the format of the record.
        options: the options with which the job wrote the record.
        has_file_names: whether records store the names of their source files.
        decodes_images: whether all pixels are decoded.
    """

    record_format: RecordFormat
    options: RecordOptions
    has_file_names: bool
    decodes_images: bool

    def problems(self, data: Buffer, row: Row) -> Iterator[str]:
        """Compare a record with its row in the receipt. Yield each problem."""
        image_shape = None
        try:
            (record,) = self.record_format.read(data, "record")
            sample = self.record_format.decode(record.payload, self.options)
            if self.decodes_images:
                image_shape = check(bytes(sample.image))
        except ValueError as error:
            # Unpacking raises a plain ValueError if there are no records, or more than one.
            problem = "not exactly one record"
            if isinstance(error, DataprepError):
                problem = without_location(str(error))
            yield f"{problem} ({row.source})"
            return
        for attribute, expected in self._expected(row).items():
            value = getattr(sample, attribute)
            # An attribute that the format does not store is 0 or empty.
            is_stored = bool(value) or attribute == "label"
            if is_stored and value != expected:
                yield f"{attribute} is {value!r}, the receipt says {expected!r} ({row.source})"
        boxes = len(sample.boxes)
        expected_boxes = row.boxes or 0
        if self.record_format.keeps_boxes(self.options) and boxes != expected_boxes:
            yield f"{boxes} boxes, the receipt says {expected_boxes} ({row.source})"
        if image_shape is not None:
            channels = sample.channels or image_shape[2]
            if image_shape != (row.width, row.height, channels):
                yield (
                    f"the image is {image_shape}, the receipt says {row.width} x {row.height} "
                    f"({row.source})"
                )

    def _expected(self, row: Row) -> dict[str, object]:
        """The attributes that the sample of a row must have."""
        expected: dict[str, object] = {
            "label": row.label,
            "synset": to_bytes(unescape(row.synset)),
            "number": row.number,
            "width": row.width,
            "height": row.height,
        }
        if self.has_file_names:
            source = to_bytes(unescape(row.source))
            expected["source"] = source
            expected["filename"] = source.rpartition(b"/")[2]
        return expected
