"""One stored shard against its receipt."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from crc32c import crc32c

from dataprep.counted import counted
from dataprep.errors import ImageError, ObjectNotFound, RecordError
from dataprep.formats import IndexEntry, RecordFormat, Sample, get_format
from dataprep.formats.protocol import RawRecord, without_place
from dataprep.image import check
from dataprep.job.jobfile import JobFile
from dataprep.manifest import Receipt, Row, ShardEntry, StoredFile
from dataprep.names import to_bytes, unescape
from dataprep.stores import Store
from dataprep.verification.faults import Depth, Fault
from dataprep.verification.listed import other_etag, receipt_key

_MOST_FAULTS_A_SHARD = 20


class ShardCheck:
    """Reads one shard in each format.

    ``entries`` is what the manifest says of shards by key. ``named`` says that records carry the
    base names of their sources, ``trusted`` that the receipt has the samples of the plan: only then
    can it tell whether a record is of the right one.
    """

    def __init__(
        self,
        store: Store,
        receipt: Receipt,
        job: JobFile,
        depth: Depth,
        entries: Mapping[str, ShardEntry],
        *,
        named: bool,
        trusted: bool,
    ) -> None:
        self._store = store
        self._receipt = receipt
        self._entries = entries
        self._options = {name: job.record_options(name) for name in job.label_offsets}
        self._deep = depth == "deep"
        self._named = named
        self._trusted = trusted
        self.labels: dict[str, Counter[int]] = {}
        """Labels of the records, by format, where all of a shard's could be read."""

    def faults(self) -> Iterator[Fault]:
        """Everything wrong with it, with its place."""
        for name, stored in self._receipt.formats.items():
            record_format = get_format(name)
            rows = [row for row in self._receipt.rows if name in (row.records or {})]
            yield from self._data_faults(name, record_format, stored.file, rows)
            first = self._options[name].label_offset
            entries = [
                IndexEntry(
                    row.number,
                    first + row.label,
                    *_place(row, name)[:2],
                    row.source,
                    row.values or (),
                )
                for row in rows
            ]
            wanted = record_format.indexes(entries)
            if len(stored.indexes) != len(wanted):
                found, known = len(stored.indexes), len(wanted)
                yield self._receipt_fault(f"{name!r} has {found} index files in it, not {known}")
                continue
            for file, content in zip(stored.indexes, wanted.values(), strict=True):
                yield from self._index_faults(file, content)

    def _data_faults(
        self, name: str, record_format: RecordFormat, file: StoredFile, rows: Sequence[Row]
    ) -> Iterator[Fault]:
        try:
            data = self._store.get(file.key)
        except ObjectNotFound:
            return  # said already
        found = list(self._record_faults(name, record_format, file.key, data, rows))
        sha256 = hashlib.sha256(data).hexdigest()
        entry = self._entries.get(file.key)
        witnesses = {file.sha256} | ({entry.sha256} if entry else set())
        if sha256 in witnesses:  # the shard is as it was written
            found = [self._of_receipt(fault) for fault in found]
            if etag := other_etag(self._store, file):
                what = f"its ETag of {file.key} is {file.etag}, the store's {etag}"
                found.append(self._receipt_fault(what))
        if sha256 != file.sha256 and (sha256 in witnesses or not found):
            yield self._receipt_fault(f"its SHA-256 of {file.key} is not that of the shard")
        yield from found[:_MOST_FAULTS_A_SHARD]
        if len(found) > _MOST_FAULTS_A_SHARD:
            more = counted(len(found) - _MOST_FAULTS_A_SHARD, "more fault")
            yield Fault(found[0].key, f"and {more}", remedy=found[0].remedy)

    def _receipt_fault(self, what: str) -> Fault:
        key = receipt_key(self._receipt)
        return Fault(key, what, remedy=key)

    def _of_receipt(self, fault: Fault) -> Fault:
        """Of an intact shard: what its receipt says of it is wrong, but for what --deep finds."""
        if fault.remedy is None:
            return fault
        what = f"does not agree with {fault.place}, which is as it was written"
        return self._receipt_fault(what)

    def _record_faults(
        self,
        name: str,
        record_format: RecordFormat,
        key: str,
        data: bytes,
        rows: Sequence[Row],
    ) -> Iterator[Fault]:
        """Each record where the receipt says it is; then the framing of the whole shard."""
        damaged = False
        view = memoryview(data)
        for i, row in enumerate(rows):
            offset, length, crc = _place(row, name)
            found = list(
                self._one_record(
                    record_format, row, key, i, view[offset : offset + length], offset, crc
                )
            )
            damaged = damaged or bool(found)
            yield from found
        if damaged:
            return
        try:
            records = list(record_format.read(data, key))
        except RecordError as error:
            place = (_known(error.record), _known(error.offset))
            yield Fault(key, str(error).removeprefix(f"{key}: "), *place, key)
            return
        if [record[:2] for record in records] != [_place(row, name)[:2] for row in rows]:
            what = f"holds {len(records):,} records, not the {len(rows):,} of the receipt"
            yield Fault(key, what, remedy=key)
            return
        if self._trusted:
            yield from self._identity_faults(record_format, key, records, rows)

    def _identity_faults(
        self,
        record_format: RecordFormat,
        key: str,
        records: Sequence[RawRecord],
        rows: Sequence[Row],
    ) -> Iterator[Fault]:
        """Each record is of the sample that the receipt has in its place."""
        counts: Counter[int] = Counter()
        options = self._options[record_format.name]
        for i, (record, row) in enumerate(zip(records, rows, strict=True)):
            try:
                sample = record_format.decode(record.payload, options)
            except RecordError as error:
                yield Fault(key, without_place(str(error)), i, record.offset, key)
                return
            counts[sample.label] += 1
            for what in _strangeness(sample, row, named=self._named):
                yield Fault(key, what, i, record.offset)
        self.labels[record_format.name] = counts

    def _one_record(
        self,
        record_format: RecordFormat,
        row: Row,
        key: str,
        record: int,
        data: memoryview,
        offset: int,
        crc: int,
    ) -> Iterator[Fault]:
        if crc32c(data) == crc and not self._deep:
            return
        length = _place(row, record_format.name)[1]
        if len(data) < length:
            what = f"cut short: {len(data):,} of its {length:,} bytes are there"
            yield Fault(key, what, record, offset, key)
            return
        try:
            (raw,) = record_format.read(data, key)
            sample = record_format.decode(raw.payload, self._options[record_format.name])
        except ValueError as error:
            what = str(error) if isinstance(error, RecordError) else "not one whole record"
            yield Fault(key, without_place(what), record, offset, key)
            return
        if crc32c(data) != crc:
            what = "its bytes changed since they were written (CRC-32C)"
            yield Fault(key, what, record, offset, key)
        keeps_boxes = record_format.keeps_boxes(self._options[record_format.name])
        if keeps_boxes and len(sample.boxes) != (row.boxes or 0):
            what = f"record has {counted(len(sample.boxes), 'box')}, its receipt {row.boxes or 0}"
            yield Fault(key, f"{what} ({row.source})", record, offset)
        for what in _sample_faults(sample, row):
            yield Fault(key, what, record, offset)

    def _index_faults(self, file: StoredFile, wanted: bytes) -> Iterator[Fault]:
        try:
            found = self._store.get(file.key)
        except ObjectNotFound:
            return  # said already
        if found == wanted:
            if (len(wanted), hashlib.sha256(wanted).hexdigest()) != (file.bytes, file.sha256):
                yield self._receipt_fault(f"what it says of {file.key} is not true")
            return
        if hashlib.sha256(found).hexdigest() == file.sha256:
            what = f"does not agree with {file.key}, which is as it was written"
            yield self._receipt_fault(what)
            return
        lines, wanted_lines = found.splitlines(), wanted.splitlines()
        for i, (line, expected) in enumerate(zip(lines, wanted_lines, strict=False)):
            if line != expected:
                what = f"line is {line!r}, the records say {expected!r}"
                yield Fault(file.key, what, i, remedy=file.key)
                return
        what = f"has {len(lines):,} lines, the records need {len(wanted_lines):,}"
        yield Fault(file.key, what, remedy=file.key)


def _place(row: Row, name: str) -> tuple[int, int, int]:
    return (row.records or {})[name]


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _strangeness(sample: Sample, row: Row, *, named: bool) -> Iterator[str]:
    """How a record shows that it is not the row's, by what it says of itself."""
    source = unescape(row.source)
    if sample.label != row.label:
        yield f"label {sample.label}, its receipt says {row.label} ({row.source})"
    if sample.synset and sample.synset != to_bytes(unescape(row.synset)):
        yield f"synset {sample.synset!r}, its receipt says {row.synset!r} ({row.source})"
    if sample.number and sample.number != row.number:
        yield f"its id is {sample.number}, the plan says {row.number} ({row.source})"
    if named and sample.filename and sample.filename != to_bytes(source.rpartition("/")[2]):
        yield f"it is of {sample.filename!r}, its receipt says {row.source}"


def _sample_faults(sample: Sample, row: Row) -> Iterator[str]:
    """Deep: the image decodes, and agrees with the table."""
    if sample.width and (sample.width, sample.height) != (row.width, row.height):
        yield (
            f"record says {sample.width} x {sample.height}, its receipt "
            f"{row.width} x {row.height} ({row.source})"
        )
    try:
        width, height, channels = check(bytes(sample.image))
    except ImageError as error:
        yield f"image does not decode: {error} ({row.source})"
        return
    if (width, height) != (row.width, row.height):
        yield (
            f"image is {width} x {height}, its receipt says {row.width} x {row.height} "
            f"({row.source})"
        )
    if sample.channels and sample.channels != channels:
        yield f"image has {channels} channels, the record says {sample.channels} ({row.source})"
