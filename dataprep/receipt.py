"""What one stored shard holds: the truth from which the manifest is built.

A receipt has no time stamps: the same shard gives the same receipt.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dataprep.errors import CorruptRecord
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

_NO_SAMPLES = json.dumps({**dict.fromkeys(_SCALARS, ()), "records": {}}).encode()


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
            content = parse(data, name, SCHEMA)
            return cls(
                fingerprint=content["fingerprint"],
                split=content["split"],
                shard=content["shard"],
                shards=content["shards"],
                formats={
                    key: StoredShard(
                        StoredFile(**value["file"]),
                        value["records"],
                        tuple(StoredFile(**index) for index in value["indexes"]),
                    )
                    for key, value in content["formats"].items()
                },
                rows=_rows(content["samples"]),
            )


def stored_files(data: bytes, name: str) -> tuple[StoredFile, ...]:
    """The objects that a receipt speaks of, its samples not read: a thousandth of the work.

    Raises:
        CorruptRecord: not a receipt, or one that is cut short.
        SchemaTooNew: written by a newer version.
    """
    head, samples, _ = data.partition(b',"samples":')
    if samples and data.endswith(b"}}\n"):
        data = head + b',"samples":' + _NO_SAMPLES + b"}"
    shards = Receipt.from_json(data, name).formats.values()
    return tuple(file for shard in shards for file in shard.files)


def _rows(samples: dict[str, Any]) -> list[Row]:
    count = len(samples["number"])
    # Receipts of earlier versions do not know how large images are.
    samples.setdefault("image_bytes", [0] * count)
    formats = samples["records"]
    records = [
        {name: tuple(place) for name, place in zip(formats, places, strict=True) if place}
        for places in (zip(*formats.values(), strict=True) if formats else [()] * count)
    ]
    boxes = samples.get("boxes") or [None] * count
    labels = [tuple(each) if each else None for each in samples.get("values") or [None] * count]
    columns = [samples[name] for name in _SCALARS]
    return [Row(*values) for values in zip(*columns, boxes, labels, records, strict=True)]
