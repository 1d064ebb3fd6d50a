"""What was made: the manifest.

Schema history: 1, the first. ``table`` came later; manifests of before are read without it. Keys
that a later version adds to the same schema are left aside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dataprep.errors import DatasetError
from dataprep.formats import RecordOptions
from dataprep.json_types import require, typed
from dataprep.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.receipt import Receipt
from dataprep.schema import malformed_as, parse

SCHEMA = 1
OUT_OF_BOUNDS = "shards_out_of_bounds"
"""Among ``warnings``: how many shards have not 1 to 128 MB."""


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One shard in the manifest."""

    key: str
    bytes: int
    records: int
    sha256: str


@dataclass(frozen=True, slots=True)
class FormatEntry:
    """All shards of one format. ``label_offset`` is what records add to the 0-based label."""

    label_offset: int
    records: int
    bytes: int
    shards: tuple[ShardEntry, ...]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """``SPLIT.samples.parquet`` in the manifest."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Every sample of the source, once. ``passthrough`` includes those only retagged."""

    total: int
    written: int
    failed: int
    skipped: int
    passthrough: int
    reencoded: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """``SPLIT.manifest.json``. ``config`` determines content, ``run`` does not."""

    split: str
    created: str
    fingerprint: str
    config: Mapping[str, Any]
    run: Mapping[str, Any]
    versions: Mapping[str, str]
    formats: Mapping[str, FormatEntry]
    samples: SampleCounts
    warnings: Mapping[str, int]
    table: TableEntry | None = None
    schema: int = SCHEMA

    def record_options(self, format_name: str) -> RecordOptions:
        """How the records of one of its formats are read.

        Raises:
            ConfigError: made with a layout that this version does not know.
        """
        return RecordOptions.of(self.config, self.formats[format_name].label_offset)

    @property
    def encoding(self) -> str:
        """What its images are stored as: ``JPEG``, ``PNG`` or ``WEBP``."""
        image = self.config.get("image")
        return str(image.get("encoding", "jpeg")).upper() if isinstance(image, dict) else "JPEG"

    def to_json(self) -> bytes:
        """As stored, in the documented order of keys."""
        content = asdict(self)
        return json.dumps({"schema": content.pop("schema"), **content}, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> Manifest:
        """Read what ``to_json`` wrote.

        Raises:
            DatasetError: not a manifest.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(DatasetError, f"{name}: not a manifest"):
            found = typed(cls, parse(data, name, SCHEMA))
            _require_numbers(found)
            return found


def _require_numbers(manifest: Manifest) -> None:
    require(bool(manifest.formats), "it has no formats")
    require(min(asdict(manifest.samples).values()) >= 0, "'samples' has a number below 0")
    layout = manifest.config.get("layout", "imagenet")
    require(isinstance(layout, str | dict), "'config.layout' is neither a name nor a mapping")
    if isinstance(layout, dict):
        require(all(isinstance(field, str) for field in layout.values()), "'config.layout' is none")
    for name, entry in manifest.formats.items():
        numbers = [number for shard in entry.shards for number in (shard.bytes, shard.records)]
        require(min(numbers, default=0) >= 0, f"'formats.{name}' has a number below 0")


def require_sums(manifest: Manifest, name: str) -> Manifest:
    """The manifest, unless its totals are not those of its shards, which readers rely on.

    Raises:
        DatasetError: with what does not agree; ``name`` is what it is called.
    """
    with malformed_as(DatasetError, f"{name}: does not agree with itself"):
        for key, entry in manifest.formats.items():
            for what in ("records", "bytes"):
                total = sum(getattr(shard, what) for shard in entry.shards)
                wrong = f"'formats.{key}.{what}' is not what its shards come to"
                require(total == getattr(entry, what), wrong)
        counts = {len(entry.shards) for entry in manifest.formats.values()}
        require(len(counts) == 1, "its formats have not the same number of shards")
    return manifest


def in_bounds(shard_bytes: int) -> bool:
    """Whether a shard has 1 to 128 MB."""
    return MIN_SHARD_BYTES <= shard_bytes <= MAX_SHARD_BYTES


def out_of_bounds(formats: Mapping[str, FormatEntry]) -> int:
    """How many shards have not 1 to 128 MB, by the larger format."""
    return sum(not in_bounds(max(sizes)) for sizes in _sizes_by_shard(formats))


def spread(formats: Mapping[str, FormatEntry]) -> float:
    """Largest deviation of a shard from the mean size, as a share, by the larger format."""
    sizes = [max(sizes) for sizes in _sizes_by_shard(formats)]
    mean = sum(sizes) / len(sizes) if sizes else 0
    return max((abs(size - mean) / mean for size in sizes), default=0.0) if mean else 0.0


def _sizes_by_shard(formats: Mapping[str, FormatEntry]) -> list[tuple[int, ...]]:
    columns = [[shard.bytes for shard in entry.shards] for entry in formats.values()]
    return list(zip(*columns, strict=True))


def format_entries(
    receipts: Sequence[Receipt], label_offsets: Mapping[str, int]
) -> dict[str, FormatEntry]:
    """The manifest's ``formats``, from receipts in shard order."""
    entries = {}
    for name, offset in label_offsets.items():
        stored = [receipt.formats[name] for receipt in receipts]
        entries[name] = FormatEntry(
            label_offset=offset,
            records=sum(shard.records for shard in stored),
            bytes=sum(shard.file.bytes for shard in stored),
            shards=tuple(
                ShardEntry(shard.file.key, shard.file.bytes, shard.records, shard.file.sha256)
                for shard in stored
            ),
        )
    return entries
