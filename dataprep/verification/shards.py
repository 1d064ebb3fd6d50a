"""Compare a stored shard with its receipt: framing, checksums, indexes, content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import zip_longest

from crc32c import crc32c

from dataprep.errors import DataprepError, ObjectNotFound
from dataprep.formats import IndexEntry, Sample, get_format
from dataprep.formats.records import without_place
from dataprep.image import check
from dataprep.job.jobfile import JobFile
from dataprep.names import to_bytes, unescape
from dataprep.receipt import Place, Receipt, Row, StoredFile
from dataprep.stores import Store
from dataprep.verification.result import Fault, limited


class ShardCheck:
    """Reads one shard in one format.

    Args:
        store: where it is stored.
        job: how it was made.
        receipt: what it is compared with.
        name: the format.
        named: whether records have the base names of their sources.
    """

    def __init__(
        self, store: Store, job: JobFile, receipt: Receipt, name: str, *, named: bool
    ) -> None:
        self._store, self._name, self._named = store, name, named
        self._stored = receipt.formats[name]
        self._rows = [row for row in receipt.rows if name in (row.records or {})]
        self._format, self._options = get_format(name), job.record_options(name)

    def faults(self, *, deep: bool, trusted: bool) -> list[Fault]:
        """All faults of the shard and its indexes.

        Args:
            deep: also decode every image.
            trusted: the receipt agrees with the plan, so that records can be compared with it.
        """
        found = limited(self._records(deep, trusted))
        offset = self._options.label_offset
        entries = [
            IndexEntry(
                row.number, row.label + offset, *self._place(row)[:2], row.source, row.values or ()
            )
            for row in self._rows
        ]
        wanted = self._format.indexes(entries).values()
        for file, content in zip(self._stored.indexes, wanted, strict=True):
            found += self._index_faults(file, content)
        return found

    def _records(self, deep: bool, trusted: bool) -> Iterator[Fault]:
        """Every record, at the place that the receipt gives."""
        key = self._stored.file.key
        try:
            data = memoryview(self._store.get(key))
        except ObjectNotFound:
            return  # reported by the comparison with the listing
        end, sound = 0, True
        for number, row in enumerate(self._rows):
            place = self._place(row)
            misplaced = _misplaced(data, place, end)
            end = place[0] + place[1]
            problems = (
                [misplaced]
                if misplaced
                else self._content(data[place[0] : end], row, deep, trusted)
            )
            for what in problems:
                sound = False
                yield Fault(key, what, number, place[0], key)
        if end < len(data):
            what = f"{len(data) - end:,} bytes that the receipt does not list"
            yield Fault(key, what, len(self._rows), end, key)
        elif sound and hashlib.sha256(data).hexdigest() != self._stored.file.sha256:
            yield Fault(key, "its SHA-256 does not match its receipt, its records do", remedy=key)

    def _content(self, data: memoryview, row: Row, deep: bool, trusted: bool) -> Iterator[str]:
        """What is wrong in a record whose checksum matches."""
        try:
            (record,) = self._format.read(data, "record")
            sample = self._format.decode(record.payload, self._options)
            shape = check(bytes(sample.image)) if deep else ()
        except ValueError as error:
            what = str(error) if isinstance(error, DataprepError) else "not exactly one record"
            yield f"{without_place(what)} ({row.source})"
            return
        if trusted:
            yield from self._differences(sample, row, shape)

    def _differences(self, sample: Sample, row: Row, shape: tuple[int, ...]) -> Iterator[str]:
        """Where a record says something else than the receipt; formats keep different fields.

        ``shape`` is width, height and channels of the decoded image, or empty.
        """
        name = to_bytes(unescape(row.source).rpartition("/")[2])
        boxes = self._format.keeps_boxes(self._options)
        for what, kept, found, wanted in (
            ("label", True, sample.label, row.label),
            ("synset", sample.synset, sample.synset, to_bytes(unescape(row.synset))),
            ("number", sample.number, sample.number, row.number),
            ("file name", self._named and sample.filename, sample.filename, name),
            ("number of boxes", boxes, len(sample.boxes), row.boxes or 0),
            ("width", sample.width, sample.width, row.width),
            ("height", sample.height, sample.height, row.height),
            ("size of the image", shape, shape[:2], (row.width, row.height)),
            ("channels of the image", shape and sample.channels, shape[2:], (sample.channels,)),
        ):
            if kept and found != wanted:
                yield f"{what} is {found!r}, the receipt says {wanted!r} ({row.source})"

    def _index_faults(self, file: StoredFile, wanted: bytes) -> Iterator[Fault]:
        """An index file against one made from the receipt."""
        try:
            found = self._store.get(file.key)
        except ObjectNotFound:
            return
        if found != wanted:
            lines = enumerate(zip_longest(found.splitlines(), wanted.splitlines()))
            line = next((number for number, (one, other) in lines if one != other), None)
            yield Fault(file.key, "this line does not match the receipt", line, remedy=file.key)
        elif hashlib.sha256(found).hexdigest() != file.sha256:
            yield Fault(file.key, "its SHA-256 does not match its receipt", remedy=file.key)

    def _place(self, row: Row) -> Place:
        return (row.records or {})[self._name]


def _misplaced(data: memoryview, place: Place, end: int) -> str:
    """How a record differs from its place in the receipt; ``end`` is where the one before ends."""
    offset, length, crc = place
    if offset != end:
        return f"it begins at byte {offset:,}, the record before it ends at byte {end:,}"
    if offset + length > len(data):
        return f"the shard ends at byte {len(data):,}, inside this record or before it"
    return (
        ""
        if crc32c(data[offset : offset + length]) == crc
        else "checksum does not match its receipt"
    )
