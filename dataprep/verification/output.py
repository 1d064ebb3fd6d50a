"""Verify the splits of an output: every object, and every source sample exactly once."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from typing import TypeVar

from crc32c import crc32c

from dataprep import keys
from dataprep.dataset import splits_in
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
from dataprep.formats.protocol import Buffer, without_place
from dataprep.image import check
from dataprep.job.jobfile import JobFile
from dataprep.job.output_state import keys_of_shard, read_labels, read_plan
from dataprep.manifest import (
    Manifest,
    Receipt,
    RecordLocation,
    Row,
    Share,
    StoredFile,
    format_entries,
)
from dataprep.names import escape, escape_all, to_bytes, unescape
from dataprep.ordered import in_order
from dataprep.samples import SampleTable
from dataprep.snapshot import Snapshot
from dataprep.stores import Store, StoreOptions, open_store
from dataprep.verification.duplicates import COLUMNS, Duplicates, within
from dataprep.verification.result import Depth, Fault, Verification

_MOST_FAULTS = 20
"""How many faults of one object are listed."""

Content = TypeVar("Content")


def verify(
    output: str | os.PathLike[str],
    split: str | None = None,
    *,
    depth: Depth = "full",
    workers: int = 1,
    options: StoreOptions | None = None,
) -> tuple[Verification, ...]:
    """Verify one split of an output, or all.

    ``quick`` compares sizes and ETags and reads receipts and tables. ``full`` also reads every
    shard: hashes, framing, checksums, indexes, labels. ``deep`` also decodes every image.

    Args:
        output: a path or URI.
        split: the name of a split; all by default.
        depth: how much is read.
        workers: threads; each has one shard in memory.
        options: endpoint, profile and other options of the store.

    Raises:
        ManifestMissing: there is no such split, or no output.
        DatasetChanged: a split was made anew meanwhile, so that it has no result.
        StoreError: the store cannot be read.
    """
    store = open_store(output, options)
    splits = splits_in(store)
    if split is not None and split not in splits:
        raise ManifestMissing(f"no split {split!r} in {store.uri!r}: it has {', '.join(splits)}")
    chosen = splits if split is None else [split]
    return tuple(_verify(store, name, depth, workers) for name in chosen)


def _verify(store: Store, split: str, depth: Depth, workers: int) -> Verification:
    faults: list[Fault] = []
    key = keys.job(split)
    job = _load(key, faults, lambda: JobFile.from_json(store.get(key), key))
    if job is None:
        lost = Fault(key, f"{faults[0].what}; restore it, or use --overwrite")
        return Verification(store.uri, split, depth, (lost,), Duplicates(split))
    opened = _load(keys.manifest(split), faults, lambda: Snapshot.open(store, split), remedy="")
    shards: Sequence[int] = range(job.shards)
    if opened and opened[0].share:
        entries = next(iter(opened[0].formats.values())).shards
        shards = [keys.shard_number(entry.key) for entry in entries]
    check = _SplitCheck(store, job, depth, faults, shards)
    receipts: list[Receipt] = []
    table = SampleTable(list(job.label_offsets))
    for receipt, found in in_order(check.shard, shards, workers if workers > 1 else 0):
        faults += found
        if receipt is not None:
            table.add(receipt.samples, receipt.shard)
            receipts.append(receipt.without_rows())
    samples = table.table().select(COLUMNS).to_pandas(use_threads=False)
    if opened and len(receipts) == len(shards):
        faults += check.table_faults(opened[0], receipts, table)
        faults += check.whole_table_faults(opened[0].share)
    faults += check.strangers()
    if opened:
        opened[1].check()
    return Verification(
        store.uri,
        split,
        depth,
        tuple(faults),
        within(split, samples),
        formats=tuple(job.label_offsets),
        shards=len(receipts),
        samples=table.counts.written,
        bytes=sum(entry.bytes for entry in format_entries(receipts, job.label_offsets).values()),
    )


def _load(
    key: str, faults: list[Fault], read: Callable[[], Content], remedy: str | None = None
) -> Content | None:
    """What ``read`` returns; None, and a fault of ``key``, if that is missing or damaged.

    ``remedy`` repairs a damaged object.
    """
    try:
        return read()
    except ObjectNotFound:
        faults.append(Fault(key, "missing", remedy=""))
    except OutputConflict:
        what = "missing, or not the one that the job was planned with"
        faults.append(Fault(key, f"{what}: restore it, or use --overwrite"))
    except (DatasetError, RecordError) as error:
        what = str(error).removeprefix(f"{key}: ")
        helps = None if isinstance(error, SchemaTooNew) else remedy
        faults.append(Fault(key, what, remedy=helps))
    return None


class _SplitCheck:
    """Compares the objects of a split with its job, its plan and each other.

    Faults of the plan and of labels.json go to ``faults``.
    """

    def __init__(
        self, store: Store, job: JobFile, depth: Depth, faults: list[Fault], shards: Sequence[int]
    ) -> None:
        self._store, self._job, self._depth, self._shards = store, job, depth, shards
        plan, labels = keys.plan(job.split), keys.LABELS
        self._plan = _load(plan, faults, lambda: read_plan(store, job.split, job))
        self._labels = _load(labels, faults, lambda: read_labels(store, {job.split: job}))
        # Samples within archives or records may have file names of their own.
        self._named = self._plan is not None and not self._plan.containers
        names = format_names()
        self._listed = {
            info.key: info for info in store.list() if keys.belongs_to(job.split, info.key, names)
        }

    def shard(self, shard: int) -> tuple[Receipt | None, list[Fault]]:
        """The receipt of a shard, if it can be used, and everything wrong in that shard."""
        faults: list[Fault] = []
        job, key = self._job, self._receipt_key(shard)
        receipt = _load(
            key, faults, lambda: Receipt.from_json(self._store.get(key), key), remedy=key
        )
        if receipt is None:
            return None, faults
        files = receipt.files
        whose = receipt.fingerprint, receipt.split, receipt.shard
        expected = {*keys_of_shard(job, shard)}
        if whose != (job.fingerprint, job.split, shard) or {f.key for f in files} != expected:
            return None, [Fault(key, "belongs to another job or shard", remedy=key)]
        if self._depth != "quick":
            deep = self._depth == "deep"
            for name in receipt.formats:
                faults += _shard_faults(
                    self._store, job, receipt, name, named=self._named, deep=deep
                )
        listing = self._listing_faults(files, etags=not faults)
        problems = islice(self._account(receipt), _MOST_FAULTS)
        account = [Fault(key, what, remedy=key) for what in problems]
        return receipt, [*listing, *faults, *account]

    def table_faults(
        self, manifest: Manifest, receipts: Sequence[Receipt], table: SampleTable
    ) -> Iterator[Fault]:
        """Manifest and table of samples against the receipts, whose rows ``table`` has."""
        if self._plan is None or self._labels is None:
            return
        if manifest.share is None:
            table.add(self._plan.entries_without_shard(self._labels), None)
        job, key = self._job, keys.manifest(self._job.split)
        formats = format_entries(receipts, job.label_offsets)
        wanted = replace(
            manifest,
            split=job.split,
            fingerprint=job.fingerprint,
            config=job.config,
            versions={**manifest.versions, **job.versions},
            formats=formats,
            samples=table.counts,
            warnings={**table.warnings(formats), **job.warnings},
        )
        for field in fields(manifest):
            if getattr(manifest, field.name) != getattr(wanted, field.name):
                what = f"its {field.name!r} does not match the receipts"
                yield Fault(key, what, remedy=key)
        key, entry = keys.samples(job.split), manifest.table
        try:
            data = self._store.get(key)
        except ObjectNotFound:
            yield Fault(key, "missing", remedy="")
            return
        intact = entry is not None and entry.sha256 == hashlib.sha256(data).hexdigest()
        differing = table.differences(data)
        if not differing:
            if entry and not intact:
                yield Fault(key, "checksum does not match the manifest", remedy=key)
            return
        shards = [shard for shard in differing if shard is not None] if intact else []
        for receipt in map(self._receipt_key, shards):
            yield Fault(receipt, f"its samples are not those of {key}", remedy=receipt)
        if not shards:
            yield Fault(key, "does not match the receipts", remedy=key)

    def whole_table_faults(self, share: Share | None) -> Iterator[Fault]:
        """The table of the whole split in a host's share, against the manifest."""
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

    def strangers(self) -> list[Fault]:
        """Objects among those of the split that do not belong to it."""
        job, split = self._job, self._job.split
        expected = {keys.job(split), keys.plan(split), keys.samples(split), keys.manifest(split)}
        expected.add(keys.whole_samples(split))  # of a share
        for shard in self._shards:
            expected |= {self._receipt_key(shard), *keys_of_shard(job, shard)}
        strangers = sorted(self._listed.keys() - expected)
        return [Fault(key, "does not belong to this data set", remedy=key) for key in strangers]

    def _listing_faults(self, files: Sequence[StoredFile], *, etags: bool) -> Iterator[Fault]:
        """Sizes against the receipt, and ETags if they are wanted and the store has them."""
        for file in files:
            info = self._listed.get(file.key)
            if info is None:
                what = "missing"
            elif info.bytes != file.bytes:
                what = f"has {info.bytes:,} bytes, its receipt says {file.bytes:,}"
            elif etags and info.etag and file.etag and info.etag != file.etag:
                what = f"its ETag is {info.etag}, its receipt says {file.etag}"
            else:
                continue
            yield Fault(file.key, what, remedy="")

    def _account(self, receipt: Receipt) -> Iterator[str]:
        """How a receipt differs from the plan, which has every source sample exactly once."""
        rows, plan, labels = receipt.rows, self._plan, self._labels
        written = sum(row.status == "written" for row in rows)
        for name, stored in receipt.formats.items():
            placed = sum(name in (row.records or {}) for row in rows)
            if not stored.records == placed == written:
                yield f"{written:,} samples written, {placed:,} of {stored.records:,} in {name}"
        if plan is None or labels is None:
            return
        place = plan.rows_of(receipt.shard)
        names = escape_all(plan.names[place])
        numbers = range(place.start, place.stop)
        classes = plan.labels[place].tolist()
        synsets = [escape(labels.synset_of(label)) for label in classes]
        planned = Counter(zip(names, numbers, classes, synsets, strict=True))
        found = Counter((row.source, row.number, row.label, row.synset) for row in rows)
        for sample in sorted((planned - found) | (found - planned)):
            name, number, label, synset = sample
            yield (
                f"{name} with number {number}, label {label} and class {synset} is "
                f"{found[sample]} times in it, {planned[sample]} times in the plan"
            )

    def _receipt_key(self, shard: int) -> str:
        return keys.receipt(self._job.split, shard, self._job.shards)


def _shard_faults(
    store: Store, job: JobFile, receipt: Receipt, name: str, *, named: bool, deep: bool
) -> list[Fault]:
    """Faults of a shard in the format ``name`` and of its indexes.

    With ``named``, records have the base names of their sources.
    """
    stored = receipt.formats[name]
    record_format, options = get_format(name), job.record_options(name)
    rows = [(row, row.records[name]) for row in receipt.rows if row.records and name in row.records]
    differ = partial(_differences, record_format, options, named, deep)
    faults = _record_faults(store, stored.file, record_format.trailer, rows, differ)
    found = list(islice(faults, _MOST_FAULTS))
    entries = []
    for row, (offset, length, _) in rows:
        label = row.label + options.label_offset
        values = row.values or ()
        entries.append(IndexEntry(row.number, label, offset, length, row.source, values))
    wanted = record_format.indexes(entries).values()
    for file, content in zip(stored.indexes, wanted, strict=True):
        with suppress(ObjectNotFound):  # reported by the comparison with the listing
            data = store.get(file.key)
            if data != content or hashlib.sha256(data).hexdigest() != file.sha256:
                found.append(Fault(file.key, "does not match its receipt", remedy=file.key))
    return found


def _record_faults(
    store: Store,
    file: StoredFile,
    trailer: bytes,
    rows: Sequence[tuple[Row, RecordLocation]],
    differ: Callable[[Buffer, Row], Iterable[str]],
) -> Iterator[Fault]:
    """Faults of records, at the places that the receipt gives, and of what follows them."""
    key = file.key
    try:
        data = memoryview(store.get(key))
    except ObjectNotFound:
        return  # reported by the comparison with the listing
    end = 0
    sound = True
    for number, (row, (offset, length, crc)) in enumerate(rows):
        record = data[offset : offset + length]
        problems: Iterable[str]
        if offset != end:
            problems = [f"begins at byte {offset:,}, the record before it ends at byte {end:,}"]
        elif offset + length > len(data):
            problems = [f"the shard ends at byte {len(data):,}, inside this record or before it"]
        elif crc32c(record) != crc:
            problems = ["checksum does not match its receipt"]
        else:
            problems = differ(record, row)
        end = offset + length
        for what in problems:
            sound = False
            yield Fault(key, what, number, offset, key)
    if end <= len(data) and data[end:] != trailer:
        what = f"{len(data) - end:,} bytes that the receipt does not list"
        if trailer:
            what = f"{len(data) - end:,} bytes follow the records, not the end of such a shard"
        yield Fault(key, what, len(rows), end, key)
    elif sound and hashlib.sha256(data).hexdigest() != file.sha256:
        yield Fault(key, "its SHA-256 does not match its receipt, its records do", remedy=key)


def _differences(
    record_format: RecordFormat,
    options: RecordOptions,
    named: bool,
    deep: bool,
    data: Buffer,
    row: Row,
) -> Iterator[str]:
    """What is wrong in a record whose checksum matches."""
    try:
        (record,) = record_format.read(data, "record")
        sample = record_format.decode(record.payload, options)
        shape = check(bytes(sample.image)) if deep else None
    except ValueError as error:
        what = str(error) if isinstance(error, DataprepError) else "not exactly one record"
        yield f"{without_place(what)} ({row.source})"
        return
    wanted = {
        "label": row.label,
        "synset": to_bytes(unescape(row.synset)),
        "number": row.number,
        "width": row.width,
        "height": row.height,
    }
    if named:
        source = to_bytes(unescape(row.source))
        wanted |= {"source": source, "filename": source.rpartition(b"/")[2]}
    for what, value in wanted.items():
        found = getattr(sample, what)
        # Formats keep different fields; what they do not keep is 0 or empty.
        if found != value and (found or what == "label"):
            yield f"{what} is {found!r}, the receipt says {value!r} ({row.source})"
    boxes = len(sample.boxes)
    if record_format.keeps_boxes(options) and boxes != (row.boxes or 0):
        yield f"{boxes} boxes, the receipt says {row.boxes or 0} ({row.source})"
    if shape and shape != (row.width, row.height, sample.channels or shape[2]):
        yield f"the image is {shape}, the receipt says {row.width} x {row.height} ({row.source})"
