"""The manifest of a split, and the receipts of its shards, from which the manifest is built.

Both have the schema 1. The manifest's ``table`` and the receipts' ``image_bytes`` were added later.
Files of earlier versions lack them. Unknown keys are ignored, so that later versions can add keys.
A receipt has no time stamps, so that the same shard always gives the same receipt.
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

from dataprep.errors import CorruptRecord, DatasetError
from dataprep.formats import RecordOptions
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.schema import malformed_as, parse, require, typed

SCHEMA = 1
OUT_OF_BOUNDS = "shards_out_of_bounds"
"""The key in ``warnings`` with the number of shards that are smaller than 1 MB or larger than 128
MB."""

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
        source_sha256: the SHA-256 of the source file.
        colorspace: the colour space of the source image.
        exif_orientation: the orientation in the Exif data of the source image.
        width, height: the size of the written image, in pixels.
        image_bytes: the size of the written image, in bytes.
        boxes: the number of boxes that were written; None if the job has no boxes.
        values: all labels; None if the sample has one label.
        records: the location of the record in each format.
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


_OPTIONAL_COLUMNS = ("boxes", "values")
_LATER_COLUMNS = ("image_bytes", *_OPTIONAL_COLUMNS)
COLUMN_TYPES: Mapping[str, Any] = get_type_hints(Row, include_extras=True)
"""The type of each column of the samples table."""


def _column_fields() -> dict[str, Any]:
    """The fields of the pydantic model that checks the ``samples`` of a receipt."""
    fields: dict[str, Any] = {}
    for name, column_type in COLUMN_TYPES.items():
        list_type = GenericAlias(list, column_type)
        if name in _LATER_COLUMNS:  # receipts of earlier versions do not have this column
            fields[name] = (list_type | None, None)
        else:
            fields[name] = (list_type, ...)
    fields["records"] = (dict[str, list[RecordLocation | None]], ...)
    return fields


_Columns = create_model("_Columns", **_column_fields())


def quirk_name(kind: str) -> str:
    """Return a key of the manifest's ``warnings`` as words for the user."""
    return kind.replace("icc_", "colour profile_").replace("_", " ")


@dataclass(frozen=True)
class Samples:
    """Rows of the samples table, stored as columns.

    Attributes:
        columns: the values of each field of ``Row`` except ``records``. ``boxes`` and ``values``
            are absent if no sample has them.
        records: for each format, the location of each sample's record; None for a sample that was
            not written.
    """

    columns: Mapping[str, Sequence[Any]]
    records: Mapping[str, Sequence[RecordLocation | None]]

    def __len__(self) -> int:
        return len(self.columns["number"])

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Samples:
        """Return rows as columns, without the locations of their records."""
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
        """The samples as rows, with the locations of their records."""
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
    """An object of the output.

    Attributes:
        key: its key.
        bytes: its size.
        sha256: the SHA-256 of its bytes.
        etag: its ETag; None if the store has no ETags.
    """

    key: str
    bytes: Count
    sha256: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard in one format.

    Attributes:
        file: the shard itself.
        records: the number of its records.
        indexes: the index files beside it.
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
        """The objects of the shard: in each format the shard itself, then its indexes."""
        files = []
        for shard in self.formats.values():
            files.append(shard.file)
            files.extend(shard.indexes)
        return files

    def without_rows(self) -> Receipt:
        """Return the receipt without its samples, to save memory."""
        return replace(self, samples=Samples.of([]))

    def to_json(self) -> bytes:
        """Return the content of the file."""
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


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A shard in the manifest: its key, its size, the number of its records, and its SHA-256."""

    key: str
    bytes: Count
    records: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """All shards of one format in the manifest.

    Attributes:
        label_offset: the number that records add to the 0-based label.
        records: the number of records in all shards.
        bytes: the size of all shards.
        shards: the shards, in the order of their numbers.
    """

    label_offset: int
    records: Count
    bytes: Count
    shards: tuple[ShardEntry, ...]


Formats: TypeAlias = Mapping[str, FormatEntry]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The table of samples in the manifest: the size and SHA-256 of ``SPLIT.samples.parquet``."""

    bytes: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Counts of source samples. Each sample is counted once.

    Attributes:
        total: the number of samples.
        written: how many were written.
        failed: how many failed.
        skipped: how many were skipped.
        passthrough: how many images were stored unchanged, or with changed metadata only.
        reencoded: how many images were encoded again.
    """

    total: Count
    written: Count
    failed: Count
    skipped: Count
    passthrough: Count
    reencoded: Count


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a split that a host has.

    Attributes:
        number: the number of the share, from 0.
        count: the number of shares.
        samples: the number of samples in each share.
        shards: the numbers of the shards of each share; empty in copies of earlier versions.
        table: ``SPLIT.whole-samples.parquet``, the table of samples of all shares; None in copies
            of earlier versions.
    """

    number: Count
    count: Count
    samples: tuple[Count, ...]
    shards: tuple[tuple[Count, ...], ...] = ()
    table: TableEntry | None = None

    @property
    def left_out(self) -> float:
        """The fraction of samples that is not read if all hosts read the same number of samples."""
        return 1 - self.count * min(self.samples) / max(sum(self.samples), 1)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of ``SPLIT.manifest.json``. The field names are keys of the file.

    Attributes:
        split: the name of the split.
        created: when the manifest was written, in UTC.
        fingerprint: the fingerprint of the job.
        config: the settings that determine the content of the data set.
        run: information about the run that does not affect the content.
        versions: the versions of libraries.
        formats: the shards in each format.
        samples: counts of source samples.
        warnings: the number of samples with each quirk, and counts of other problems.
        table: the table of samples; None in manifests of earlier versions.
        share: the share of one host, in a copy with only some of the shards (``dataprep stage``).
        schema: the schema number of the file.
    """

    split: str
    created: str
    fingerprint: str
    config: Mapping[str, Any]
    run: Mapping[str, Any]
    versions: Mapping[str, str]
    formats: Annotated[Formats, Field(min_length=1)]
    samples: SampleCounts
    warnings: Mapping[str, int]
    table: TableEntry | None = None
    share: Share | None = None
    schema: int = SCHEMA

    def record_options(self, format_name: str) -> RecordOptions:
        """Return the options with which the records of a format are read.

        Raises:
            ConfigError: the manifest has a layout that this version does not know.
        """
        return RecordOptions.of(self.config, self.formats[format_name].label_offset)

    @property
    def encoding(self) -> str:
        """The format of the images: ``JPEG``, ``PNG`` or ``WEBP``."""
        image = self.config.get("image")
        if not isinstance(image, dict):
            return "JPEG"
        return str(image.get("encoding", "jpeg")).upper()

    def to_json(self) -> bytes:
        """Return the content of the file, with its keys in the documented order."""
        content = asdict(self)
        if self.share is None:
            del content["share"]
        schema = content.pop("schema")
        return json.dumps({"schema": schema, **content}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Manifest:
        """Read a file that ``to_json`` wrote; ``name`` is the file's name in errors.

        Raises:
            DatasetError: the data are not a manifest.
            SchemaTooNew: a newer version wrote the file.
        """
        with malformed_as(DatasetError, f"{name}: not a manifest"):
            return typed(cls, parse(data, name, SCHEMA))


def out_of_bounds(formats: Formats) -> int:
    """Return the number of shards outside 1 to 128 MB. The largest format of each shard counts."""
    sizes = _max_shard_sizes(formats)
    return sum(not MIN_SHARD_BYTES <= size <= MAX_SHARD_BYTES for size in sizes)


def spread(formats: Formats) -> float:
    """Return the largest deviation of a shard from the mean size, as a fraction of the mean.

    The size of a shard is that in its largest format.
    """
    sizes = _max_shard_sizes(formats)
    mean = sum(sizes) / len(sizes) if sizes else 0
    return max(abs(size - mean) / mean for size in sizes) if mean else 0.0


def _max_shard_sizes(formats: Formats) -> list[int]:
    """The size of each shard in its largest format."""
    sizes_by_format = [[shard.bytes for shard in entry.shards] for entry in formats.values()]
    return [max(sizes) for sizes in zip(*sizes_by_format, strict=True)]


def format_entries(
    receipts: Sequence[Receipt], label_offsets: Mapping[str, int]
) -> dict[str, FormatEntry]:
    """Build the manifest's ``formats`` from the receipts.

    Args:
        receipts: the receipts of all shards, in the order of their numbers.
        label_offsets: the label offset of each format.
    """
    entries = {}
    for name, label_offset in label_offsets.items():
        shards = []
        for receipt in receipts:
            shard = receipt.formats[name]
            entry = ShardEntry(shard.file.key, shard.file.bytes, shard.records, shard.file.sha256)
            shards.append(entry)
        entries[name] = FormatEntry(
            label_offset=label_offset,
            records=sum(shard.records for shard in shards),
            bytes=sum(shard.bytes for shard in shards),
            shards=tuple(shards),
        )
    return entries
