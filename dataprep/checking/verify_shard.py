"""Verify the content of a shard: its records, its trailer and its index files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from crc32c import crc32c

from dataprep.checking.result import Fault
from dataprep.errors import DataprepError, ObjectNotFound
from dataprep.formats import IndexEntry, RecordFormat, RecordOptions, get_format
from dataprep.formats.protocol import Buffer, without_location
from dataprep.image import check
from dataprep.job.job_file import JobFile
from dataprep.name_encoding import to_bytes, unescape
from dataprep.output.receipt import Receipt, RecordLocation, Row, StoredFile
from dataprep.stores import Store

MAX_FAULTS = 20
"""The maximum number of faults that are listed for one object."""


class _LocatedRow(NamedTuple):
    """A row of a receipt, and the location and the checksum of its record in one format."""

    row: Row
    location: RecordLocation


def format_faults(
    store: Store,
    job: JobFile,
    receipt: Receipt,
    format_name: str,
    *,
    has_file_names: bool,
    decodes_images: bool,
) -> list[Fault]:
    """Read a shard in one format and its index files, and compare them with the receipt.

    Args:
        store: the store that contains the output.
        job: the job that wrote the shard.
        receipt: the receipt of the shard.
        format_name: the format.
        has_file_names: whether records store the names of their source files.
        decodes_images: whether all pixels are decoded.

    Returns:
        All faults of index files, and at most ``MAX_FAULTS`` faults of the shard itself. Missing
        files are not among them, because the comparison with the listing reports them.
    """
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
        islice(_shard_faults(store, stored_format.file, trailer, rows, checks), MAX_FAULTS)
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
