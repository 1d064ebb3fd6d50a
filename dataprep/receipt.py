"""What one stored shard holds: the truth from which the manifest is built.

A receipt has no time stamps: the same shard gives the same receipt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dataprep.errors import CorruptRecord
from dataprep.json_types import require, same_type, typed
from dataprep.schema import malformed_as, parse

SCHEMA = 1


class Row(NamedTuple):
    """One source sample. ``source`` is the escaped name; sizes in pixels and bytes.

    ``notes`` are comma-separated kinds; ``records`` maps a format to offset, length and
    CRC-32C of the encoded record, ``image_bytes`` how many of it are the image. What is not known
    is 0 or empty. ``boxes``, how many were written, is None where the job has none, and ``values``
    where a sample has one label.
    """

    number: int
    source: str
    label: int
    synset: str
    status: str
    reason: str = ""
    kind: str = ""
    action: str = ""
    notes: str = ""
    source_width: int = 0
    source_height: int = 0
    source_bytes: int = 0
    source_sha256: str = ""
    colorspace: str = ""
    exif_orientation: int = 0
    width: int = 0
    height: int = 0
    image_bytes: int = 0
    boxes: int | None = None
    values: tuple[float, ...] | None = None
    records: Mapping[str, tuple[int, int, int]] | None = None


# Columns that only some jobs have, and receipts of before not at all.
_OPTIONAL = ("boxes", "values")
_SCALARS = tuple(name for name in Row._fields if name not in ("records", *_OPTIONAL))
_SIDES = ("source_width", "source_height", "width", "height")
_MOST = {**dict.fromkeys(("label", *_SIDES), 2**31 - 1), "exif_orientation": 127}
_KINDS = {name: type(Row._field_defaults.get(name, 0)) for name in _SCALARS}
_KINDS |= dict.fromkeys(("source", "synset", "status"), str)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """An object of the output: its size, SHA-256 and the store's ETag, if it has one."""

    key: str
    bytes: int
    sha256: str
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class StoredShard:
    """A shard in one format, and the index files beside it."""

    file: StoredFile
    records: int
    indexes: tuple[StoredFile, ...]

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """All of them, the shard first."""
        return self.file, *self.indexes


@dataclass(frozen=True, slots=True)
class _Told:
    """A receipt but for its samples."""

    fingerprint: str
    split: str
    shard: int
    shards: int
    formats: Mapping[str, StoredShard]
    samples: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Everything known of one shard."""

    fingerprint: str
    split: str
    shard: int
    shards: int
    formats: Mapping[str, StoredShard]
    rows: Sequence[Row]

    def without_rows(self) -> Receipt:
        """What it says of the shard alone."""
        return replace(self, rows=())

    def to_json(self) -> bytes:
        """As stored: rows become columns."""
        every = zip(*self.rows, strict=True) if self.rows else [()] * len(Row._fields)
        columns = dict(zip(Row._fields, every, strict=True))
        samples = {name: columns[name] for name in _SCALARS}
        for name in _OPTIONAL:
            if any(value is not None for value in columns[name]):
                samples[name] = columns[name]
        records = {
            name: [(placed or {}).get(name) for placed in columns["records"]]
            for name in self.formats
        }
        content = {
            "schema": SCHEMA,
            "fingerprint": self.fingerprint,
            "split": self.split,
            "shard": self.shard,
            "shards": self.shards,
            "formats": {name: asdict(shard) for name, shard in self.formats.items()},
            "samples": {**samples, "records": records},
        }
        return json.dumps(content, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Receipt:
        """Read what ``to_json`` wrote.

        Raises:
            CorruptRecord: not a receipt.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(CorruptRecord, f"{name}: not a receipt"):
            told = _told(parse(data, name, SCHEMA))
            rows = _rows(dict(told.samples))
            return cls(told.fingerprint, told.split, told.shard, told.shards, told.formats, rows)


def stored_files(data: bytes, name: str) -> tuple[StoredFile, ...]:
    """The objects that a receipt speaks of, its samples not read: a thousandth of the work.

    Raises:
        CorruptRecord: not a receipt, or one that is cut short.
        SchemaTooNew: written by a newer version.
    """
    head, samples, _ = data.partition(b',"samples":')
    if samples and data.endswith(b"}}\n"):
        data = head + b',"samples":{}}'
    with malformed_as(CorruptRecord, f"{name}: not a receipt"):
        shards = _told(parse(data, name, SCHEMA)).formats.values()
        return tuple(file for shard in shards for file in shard.files)


def _told(content: dict[str, Any]) -> _Told:
    told = typed(_Told, content)
    most = max(told.shard, told.shards)
    require(0 <= min(told.shard, told.shards) <= most < 2**31, "'shard' is out of bounds")
    for key, shard in told.formats.items():
        least = min(shard.records, *(file.bytes for file in shard.files))
        require(least >= 0, f"'formats.{key}' has a number below 0")
    return told


def _rows(samples: dict[str, Any]) -> list[Row]:
    count = len(samples["number"])
    # Receipts of earlier versions do not know how large images are.
    samples.setdefault("image_bytes", [0] * count)
    columns = [_column(samples, name) for name in _SCALARS]
    placed = typed(_Records, samples).records
    records = [
        {name: place for name, place in zip(placed, places, strict=True) if place}
        for places in (zip(*placed.values(), strict=True) if placed else [()] * count)
    ]
    for name, places in placed.items():
        written = [place for place in places if place]
        least = min((number for place in written for number in place), default=0)
        require(least >= 0, f"'samples.records.{name}' has a number below 0")
    optional = typed(_Optional, samples)
    most = max((number for number in optional.boxes or () if number is not None), default=0)
    require(most < 2**31, "'samples.boxes' is out of bounds")
    boxes = optional.boxes or [None] * count
    values = [each or None for each in optional.values or [None] * count]
    return [Row(*row) for row in zip(*columns, boxes, values, records, strict=True)]


def _column(samples: dict[str, Any], name: str) -> list[Any]:
    if name not in samples:
        raise KeyError(f"'samples.{name}' is missing")
    found = same_type(samples[name], _KINDS[name], f"samples.{name}")
    most = _MOST.get(name)
    if most is not None and found:
        require(-1 <= min(found) <= max(found) <= most, f"'samples.{name}' is out of bounds")
    return found


@dataclass(frozen=True, slots=True)
class _Records:
    records: Mapping[str, tuple[tuple[int, int, int] | None, ...]]


@dataclass(frozen=True, slots=True)
class _Optional:
    boxes: tuple[int | None, ...] | None = None
    values: tuple[tuple[float, ...] | None, ...] | None = None
