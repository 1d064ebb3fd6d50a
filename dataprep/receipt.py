"""What one stored shard holds: the truth from which the manifest is built.

A receipt has no time stamps: the same shard gives the same receipt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from dataprep.errors import CorruptRecord
from dataprep.json_types import require, same_type, typed
from dataprep.schema import malformed_as, parse

SCHEMA = 1


Place: TypeAlias = tuple[int, int, int]
"""Offset, length and CRC-32C of an encoded record."""


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
    records: Mapping[str, Place] | None = None


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
    def of(cls, rows: Sequence[Row], formats: Iterable[str] = ()) -> Samples:
        """The columns of some rows."""
        every = zip(*rows, strict=True) if rows else [()] * len(Row._fields)
        columns = {name: list(values) for name, values in zip(Row._fields, every, strict=True)}
        places = columns.pop("records")
        for name in _OPTIONAL:
            if columns[name].count(None) == len(columns[name]):
                del columns[name]
        return cls(columns, {name: [(one or {}).get(name) for one in places] for name in formats})

    @cached_property
    def rows(self) -> list[Row]:
        """A ``Row`` for each sample."""
        none = [None] * len(self)
        columns = [self.columns[name] for name in _SCALARS]
        optional = [self.columns.get(name, none) for name in _OPTIONAL]
        places: Iterable[tuple[Place | None, ...]] = [()] * len(self)
        if self.records:
            places = zip(*self.records.values(), strict=True)
        records = [
            {name: place for name, place in zip(self.records, each, strict=True) if place}
            for each in places
        ]
        return [Row(*values) for values in zip(*columns, *optional, records, strict=True)]


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
    samples: Samples

    @property
    def rows(self) -> Sequence[Row]:
        """A ``Row`` for each sample."""
        return self.samples.rows

    def without_rows(self) -> Receipt:
        """What it says of the shard alone."""
        return replace(self, samples=Samples.of([]))

    def to_json(self) -> bytes:
        """As stored."""
        content = {
            "schema": SCHEMA,
            "fingerprint": self.fingerprint,
            "split": self.split,
            "shard": self.shard,
            "shards": self.shards,
            "formats": {name: asdict(shard) for name, shard in self.formats.items()},
            "samples": {**self.samples.columns, "records": self.samples.records},
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
            samples = _samples(dict(told.samples))
            return cls(told.fingerprint, told.split, told.shard, told.shards, told.formats, samples)


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


def _samples(samples: dict[str, Any]) -> Samples:
    count = len(samples["number"])
    # Receipts of earlier versions do not know how large images are.
    samples.setdefault("image_bytes", [0] * count)
    columns: dict[str, Sequence[Any]] = {name: _column(samples, name) for name in _SCALARS}
    records = {
        name: _places(places, f"samples.records.{name}")
        for name, places in typed(_Records, samples).records.items()
    }
    optional = typed(_Optional, samples)
    if optional.boxes is not None:
        most = max((number for number in optional.boxes if number is not None), default=0)
        require(most < 2**31, "'samples.boxes' is out of bounds")
        columns["boxes"] = list(optional.boxes)
    if optional.values is not None:
        columns["values"] = [each or None for each in optional.values]
    for name, values in (*columns.items(), *records.items()):
        require(len(values) == count, f"'samples.{name}' has {len(values)} values, not {count}")
    return Samples(columns, records)


def _places(places: Any, key: str) -> list[Place | None]:
    """Offset, length and CRC-32C of each record, or None where a sample has no record."""
    require(type(places) is list, f"{key!r} is not a list")
    written = [place for place in places if place is not None]
    require({*map(type, written)} <= {list}, f"{key!r} has a place that is no list")
    require({*map(len, written)} <= {3}, f"{key!r} has a place of other than three numbers")
    least = min(same_type([*chain.from_iterable(written)], int, key), default=0)
    require(least >= 0, f"{key!r} has a number below 0")
    return [None if place is None else (place[0], place[1], place[2]) for place in places]


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
    records: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Optional:
    boxes: tuple[int | None, ...] | None = None
    values: tuple[tuple[float, ...] | None, ...] | None = None
