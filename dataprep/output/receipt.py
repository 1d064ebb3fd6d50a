"""PURE. The receipt of a shard: its files, and a row for each of its samples.

Receipts have the schema 1. ``image_bytes`` was added later, so that receipts of earlier versions
lack it. Unknown keys are ignored, so that later versions can add keys. A receipt has no time
stamps, so that the same shard always gives the same receipt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any, NamedTuple, TypeAlias, get_type_hints

from pydantic import Field, PlainValidator, create_model

from dataprep.errors import CorruptRecord
from dataprep.schema import malformed_as, parse, require, typed

SCHEMA = 1

# Types of numbers in receipts and manifests: 64 bits, 32 bits with -1, and one byte.
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
SmallInteger: TypeAlias = Annotated[int, Field(strict=True, ge=-1, lt=2**31)]
ByteInteger: TypeAlias = Annotated[int, Field(strict=True, ge=0, lt=128)]

RecordLocation: TypeAlias = tuple[Count, Count, Count]
"""The offset of a record in its shard, its length in bytes, and its CRC-32C."""


class Row(NamedTuple):
    """A row of the samples table: one source sample.

    Unknown values are 0 or empty. The field names are the columns of the table, and the keys in
    receipts.

    Attributes:
        number: the position of the sample in the plan; -1 if it is in no shard.
        source: the name of the sample, escaped.
        label: the 0-based label; -1 if the sample has no class.
        synset: the name of the class, escaped.
        status: ``written``, ``failed`` or ``skipped``.
        reason: why the sample was not written.
        kind: the kind of the failure or skip; the manifest counts samples by kind.
        action: what was done to the image, such as ``passthrough`` or ``reencoded``.
        notes: the kinds of quirks of the image and its boxes, separated by commas.
        source_width, source_height: the size of the source image, in pixels.
        source_bytes: the size of the source file.
        source_sha256: the SHA-256 of the source file, as hexadecimal digits.
        colorspace: the colour space of the source image.
        exif_orientation: the orientation in the Exif data of the source image.
        width, height: the size of the written image, in pixels.
        image_bytes: the size of the written image, in bytes.
        boxes: the number of boxes that were written; None if the job has no boxes.
        values: all labels; None if the sample has one label.
        records: the location of the record, by the name of the format; None if it is not known yet.
    """

    number: Count
    source: str
    label: SmallInteger
    synset: str
    status: str
    reason: str = ""
    kind: str = ""
    action: str = ""
    notes: str = ""
    source_width: SmallInteger = 0
    source_height: SmallInteger = 0
    source_bytes: Count = 0
    source_sha256: str = ""
    colorspace: str = ""
    exif_orientation: ByteInteger = 0
    width: SmallInteger = 0
    height: SmallInteger = 0
    image_bytes: Count = 0
    boxes: SmallInteger | None = None
    values: tuple[float, ...] | None = None
    records: Mapping[str, RecordLocation] | None = None


# Columns that are absent if no sample has them, and columns that a receipt may lack.
_OPTIONAL_COLUMNS = ("boxes", "values")
_LATER_COLUMNS = ("image_bytes", *_OPTIONAL_COLUMNS)
COLUMN_TYPES: Mapping[str, Any] = get_type_hints(Row, include_extras=True)
"""The type of each column of the samples table."""


def _column_fields() -> dict[str, Any]:
    """The fields of the pydantic model that checks the ``samples`` of a receipt."""
    fields: dict[str, Any] = {}
    for name, column_type in COLUMN_TYPES.items():
        list_type = GenericAlias(list, column_type)
        if name in _LATER_COLUMNS:
            fields[name] = (list_type | None, None)
        else:
            fields[name] = (list_type, ...)
    fields["records"] = (dict[str, list[RecordLocation | None]], ...)
    return fields


_Columns = create_model("_Columns", **_column_fields())


@dataclass(frozen=True)
class Samples:
    """Rows of the samples table, stored as columns.

    Attributes:
        columns: the values of each field of ``Row`` except ``records``, by the name of the field.
            ``boxes`` and ``values`` are absent if no sample has them.
        records: for each format, the location of each sample's record; None for a sample that was
            not written. The mapping is empty if the locations are not known.
    """

    columns: Mapping[str, Sequence[Any]]
    records: Mapping[str, Sequence[RecordLocation | None]]

    def __len__(self) -> int:
        return len(self.columns["number"])

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Samples:
        """Return rows as columns. The locations of their records are left out."""
        columns = {name: list(map(attrgetter(name), rows)) for name in Row._fields}
        del columns["records"]
        for name in _OPTIONAL_COLUMNS:
            if columns[name].count(None) == len(rows):
                del columns[name]
        return cls(columns, {})

    @classmethod
    def from_json(cls, content: Any) -> Samples:
        """Read the ``samples`` of a receipt. Raises ValueError if they are malformed."""
        columns = dict(typed(_Columns, content))
        records = columns.pop("records")
        count = len(columns["number"])
        columns["image_bytes"] = columns["image_bytes"] or [0] * count
        columns = {name: values for name, values in columns.items() if values is not None}
        lengths = {len(values) for values in (*columns.values(), *records.values())}
        require(lengths == {count}, "the columns of 'samples' differ in length")
        return cls(columns, records)

    @cached_property
    def rows(self) -> list[Row]:
        """The samples as rows, with the locations of their records. The list is computed once."""
        no_values = [None] * len(self)
        columns = [self.columns.get(name, no_values) for name in Row._fields[:-1]]
        records: list[dict[str, RecordLocation]] = [{} for _ in no_values]
        for name, locations in self.records.items():
            for record, location in zip(records, locations, strict=True):
                if location:
                    record[name] = location
        return [Row(*values) for values in zip(*columns, records, strict=True)]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An object of the output, as it was stored.

    Attributes:
        key: the key of the object.
        bytes: the size of the object.
        sha256: the SHA-256 of its bytes, as hexadecimal digits.
        etag: the ETag of the object; None if the store has no ETags.
    """

    key: str
    bytes: Count
    sha256: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard in one format.

    Attributes:
        file: the file with the records.
        records: the number of records in the shard.
        indexes: the index files of the shard.
    """

    file: StoredFile
    records: Count
    indexes: tuple[StoredFile, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The content of a receipt, which describes a stored shard completely.

    Attributes:
        fingerprint: the fingerprint of the job.
        split: the split that the shard belongs to.
        shard: the number of the shard, from 0.
        shards: the number of shards of the split.
        formats: the stored shard in each format.
        samples: the samples of the shard, including those that were not written.
    """

    fingerprint: str
    split: str
    shard: SmallInteger
    shards: SmallInteger
    formats: Mapping[str, StoredShard]
    samples: Annotated[Samples, PlainValidator(Samples.from_json)]

    @property
    def rows(self) -> Sequence[Row]:
        """The samples as rows."""
        return self.samples.rows

    @property
    def files(self) -> list[StoredFile]:
        """The objects of the shard: in each format the file with the records, then its indexes."""
        files = []
        for shard in self.formats.values():
            files.append(shard.file)
            files.extend(shard.indexes)
        return files

    def without_rows(self) -> Receipt:
        """Return the receipt without its samples, to save memory."""
        return replace(self, samples=Samples.of([]))

    def to_json(self) -> bytes:
        """Return the content of the receipt file, with its keys in a fixed order."""
        samples = {**self.samples.columns, "records": self.samples.records}
        content = {"schema": SCHEMA, **asdict(self.without_rows()), "samples": samples}
        return json.dumps(content, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Receipt:
        """Read a file that ``to_json`` wrote; ``name`` is the file's name in errors.

        Raises:
            CorruptRecord: the data are not a receipt.
            SchemaTooNew: a newer version wrote the file.
        """
        with malformed_as(CorruptRecord, f"{name}: not a receipt"):
            return typed(cls, parse(data, name, SCHEMA))
