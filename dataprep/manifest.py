"""The manifest of a split, and the receipts of its shards that it is built from.

Schema history of both: 1, the first. The manifest's ``table`` and the receipts' ``image_bytes``
came later; files of earlier versions are read without them. Unknown keys are ignored, so that a
later version can add some. A receipt has no time stamps: the same shard gives the same receipt.
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
from dataprep.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.schema import malformed_as, parse, require, typed

SCHEMA = 1
OUT_OF_BOUNDS = "shards_out_of_bounds"
"""Among ``warnings``: how many shards are outside 1 to 128 MB."""

Count: TypeAlias = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Small: TypeAlias = Annotated[int, Field(strict=True, ge=-1, lt=2**31)]
Byte: TypeAlias = Annotated[int, Field(strict=True, ge=0, lt=128)]

Place: TypeAlias = tuple[Count, Count, Count]
"""Offset, length and CRC-32C of an encoded record."""


class Row(NamedTuple):
    """One source sample. ``source`` is the escaped name; sizes are in pixels and bytes.

    ``notes`` are comma-separated kinds; ``records`` maps a format to offset, length and CRC-32C of
    the encoded record, of which the image has ``image_bytes``. Unknown values are 0 or empty.
    ``boxes``, how many were written, is None where the job has none, and ``values`` where a sample
    has one label.
    """

    number: Count
    source: str
    label: Small
    synset: str
    status: str
    reason: str = ""
    kind: str = ""
    action: str = ""
    notes: str = ""
    source_width: Small = 0
    source_height: Small = 0
    source_bytes: Count = 0
    source_sha256: str = ""
    colorspace: str = ""
    exif_orientation: Byte = 0
    width: Small = 0
    height: Small = 0
    image_bytes: Count = 0
    boxes: Small | None = None
    values: tuple[float, ...] | None = None
    records: Mapping[str, Place] | None = None


_OPTIONAL = ("boxes", "values")
_LATER = ("image_bytes", *_OPTIONAL)
KINDS: Mapping[str, Any] = get_type_hints(Row, include_extras=True)
"""The type of each column."""

_COLUMNS: dict[str, Any] = {
    **{name: (GenericAlias(list, kind), ...) for name, kind in KINDS.items()},
    **{name: (GenericAlias(list, KINDS[name]) | None, None) for name in _LATER},
    "records": (dict[str, list[Place | None]], ...),
}
_Columns = create_model("_Columns", **_COLUMNS)


def quirk_name(kind: str) -> str:
    """A kind that ``warnings`` of a manifest counts, in words."""
    return kind.replace("icc_", "colour profile_").replace("_", " ")


@dataclass(frozen=True)
class Samples:
    """Rows of the samples table as columns: by the fields of ``Row``, and places by format.

    ``boxes`` and ``values`` are absent where no sample has any.
    """

    columns: Mapping[str, Sequence[Any]]
    records: Mapping[str, Sequence[Place | None]]

    def __len__(self) -> int:
        return len(self.columns["number"])

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Samples:
        """The columns of some rows, without their places."""
        columns = {name: list(map(attrgetter(name), rows)) for name in Row._fields}
        del columns["records"]
        for name in _OPTIONAL:
            if columns[name].count(None) == len(rows):
                del columns[name]
        return cls(columns, {})

    @classmethod
    def from_json(cls, stored: Any) -> Samples:
        """The ``samples`` of a receipt. Raises ValueError."""
        columns = dict(typed(_Columns, stored))
        records = columns.pop("records")
        count = len(columns["number"])
        columns["image_bytes"] = columns["image_bytes"] or [0] * count
        columns = {name: values for name, values in columns.items() if values is not None}
        lengths = {len(values) for values in (*columns.values(), *records.values())}
        require(lengths == {count}, "the columns of 'samples' differ in length")
        return cls(columns, records)

    @cached_property
    def rows(self) -> list[Row]:
        """A ``Row`` for each sample."""
        unknown = [None] * len(self)
        columns = [self.columns.get(name, unknown) for name in Row._fields[:-1]]
        records: list[dict[str, Place]] = [{} for _ in unknown]
        for name, places in self.records.items():
            for record, place in zip(records, places, strict=True):
                if place:
                    record[name] = place
        return [Row(*values) for values in zip(*columns, records, strict=True)]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An object of the output: its size, SHA-256 and the store's ETag, if it has one."""

    key: str
    bytes: Count
    sha256: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard in one format, and the index files beside it."""

    file: StoredFile
    records: Count
    indexes: tuple[StoredFile, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Everything known of one stored shard."""

    fingerprint: str
    split: str
    shard: Small
    shards: Small
    formats: Mapping[str, StoredShard]
    samples: Annotated[Samples, PlainValidator(Samples.from_json)]

    @property
    def rows(self) -> Sequence[Row]:
        """A ``Row`` for each sample."""
        return self.samples.rows

    @property
    def files(self) -> list[StoredFile]:
        """The objects that it lists: of each format the shard, then its indexes."""
        return [file for shard in self.formats.values() for file in (shard.file, *shard.indexes)]

    def without_rows(self) -> Receipt:
        """The same shard with no samples, to save memory."""
        return replace(self, samples=Samples.of([]))

    def to_json(self) -> bytes:
        """As stored."""
        samples = {**self.samples.columns, "records": self.samples.records}
        content = {"schema": SCHEMA, **asdict(self.without_rows()), "samples": samples}
        return json.dumps(content, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Receipt:
        """Read what ``to_json`` wrote.

        Raises:
            CorruptRecord: not a receipt.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(CorruptRecord, f"{name}: not a receipt"):
            return typed(cls, parse(data, name, SCHEMA))


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One shard in the manifest."""

    key: str
    bytes: Count
    records: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """All shards of one format. ``label_offset`` is what records add to the 0-based label."""

    label_offset: int
    records: Count
    bytes: Count
    shards: tuple[ShardEntry, ...]


Formats: TypeAlias = Mapping[str, FormatEntry]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """``SPLIT.samples.parquet`` in the manifest."""

    bytes: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Every sample of the source, once. ``passthrough`` includes those only retagged."""

    total: Count
    written: Count
    failed: Count
    skipped: Count
    passthrough: Count
    reencoded: Count


@dataclass(frozen=True, slots=True)
class Share:
    """Which share of a split a host has: ``number`` of ``count``.

    Attributes:
        samples: how many samples each share has.
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
        """The part of all samples that steps of equal number on all hosts leave out."""
        return 1 - self.count * min(self.samples) / max(sum(self.samples), 1)


@dataclass(frozen=True, slots=True)
class Manifest:
    """``SPLIT.manifest.json``. ``config`` determines content, ``run`` does not.

    ``share`` is that of a host which has only some of the shards (``dataprep stage``).
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
        """How the records of one of its formats are read.

        Raises:
            ConfigError: its layout is not one that this version knows.
        """
        return RecordOptions.of(self.config, self.formats[format_name].label_offset)

    @property
    def encoding(self) -> str:
        """The format of its images: ``JPEG``, ``PNG`` or ``WEBP``."""
        image = self.config.get("image")
        return str(image.get("encoding", "jpeg")).upper() if isinstance(image, dict) else "JPEG"

    def to_json(self) -> bytes:
        """As stored, in the documented order of keys."""
        content = asdict(self)
        if self.share is None:
            del content["share"]
        return json.dumps({"schema": content.pop("schema"), **content}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Manifest:
        """Read what ``to_json`` wrote.

        Raises:
            DatasetError: not a manifest.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(DatasetError, f"{name}: not a manifest"):
            return typed(cls, parse(data, name, SCHEMA))


def out_of_bounds(formats: Formats) -> int:
    """The number of shards outside 1 to 128 MB, by the larger format."""
    sizes = _largest_sizes(formats)
    return sum(not MIN_SHARD_BYTES <= size <= MAX_SHARD_BYTES for size in sizes)


def spread(formats: Formats) -> float:
    """Largest deviation of a shard from the mean size, as a share, by the larger format."""
    sizes = _largest_sizes(formats)
    mean = sum(sizes) / len(sizes) if sizes else 0
    return max(abs(size - mean) / mean for size in sizes) if mean else 0.0


def _largest_sizes(formats: Formats) -> list[int]:
    """The size of each shard in its larger format."""
    columns = [[shard.bytes for shard in entry.shards] for entry in formats.values()]
    return [max(sizes) for sizes in zip(*columns, strict=True)]


def format_entries(
    receipts: Sequence[Receipt], label_offsets: Mapping[str, int]
) -> dict[str, FormatEntry]:
    """The manifest's ``formats``, from receipts in shard order."""
    entries = {}
    for name, offset in label_offsets.items():
        stored = [receipt.formats[name] for receipt in receipts]
        shards = tuple(
            ShardEntry(shard.file.key, shard.file.bytes, shard.records, shard.file.sha256)
            for shard in stored
        )
        records = sum(shard.records for shard in shards)
        entries[name] = FormatEntry(offset, records, sum(shard.bytes for shard in shards), shards)
    return entries
