"""What was made: the manifest and the table of samples.

Schema history: 1, the first.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.plan import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.receipt import Receipt, Row

SCHEMA = 1


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
    schema: int = SCHEMA

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
        try:
            content = json.loads(data)
            if content["schema"] > SCHEMA:
                raise SchemaTooNew(
                    f"{name}: schema {content['schema']}; this version reads up to {SCHEMA}: "
                    "upgrade dataprep-iobench"
                )
            formats = {
                key: FormatEntry(
                    value["label_offset"],
                    value["records"],
                    value["bytes"],
                    tuple(ShardEntry(**shard) for shard in value["shards"]),
                )
                for key, value in content.pop("formats").items()
            }
            counts = SampleCounts(**content.pop("samples"))
            return cls(formats=formats, samples=counts, **content)
        except SchemaTooNew:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise DatasetError(f"{name}: not a manifest: {error}") from None


def count(rows: Iterable[Row]) -> SampleCounts:
    """Totals over all samples."""
    statuses: Counter[str] = Counter()
    actions: Counter[str] = Counter()
    for row in rows:
        statuses[row.status] += 1
        actions[row.action] += 1
    return SampleCounts(
        total=statuses.total(),
        written=statuses["written"],
        failed=statuses["failed"],
        skipped=statuses["skipped"],
        passthrough=actions["passthrough"] + actions["retagged"],
        reencoded=actions["reencoded"],
    )


def warnings(rows: Iterable[Row], formats: Mapping[str, FormatEntry]) -> dict[str, int]:
    """How often each policy was met, and how many shards left their bounds."""
    kinds: Counter[str] = Counter()
    for row in rows:
        kinds.update(note for note in row.notes.split(",") if note)
        if row.status == "failed":
            kinds[f"failed_{row.kind}"] += 1
    largest = [max(sizes) for sizes in _sizes_by_shard(formats)]
    kinds["shards_out_of_bounds"] += sum(not in_bounds(size) for size in largest)
    return {kind: kinds[kind] for kind in sorted(kinds) if kinds[kind]}


def in_bounds(shard_bytes: int) -> bool:
    """Whether a shard has 1 to 128 MB."""
    return MIN_SHARD_BYTES <= shard_bytes <= MAX_SHARD_BYTES


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


_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("source", pa.string()),
    ("label", pa.int32()),
    ("synset", pa.string()),
    ("status", pa.string()),
    ("reason", pa.string()),
    ("action", pa.string()),
    ("source_width", pa.int32()),
    ("source_height", pa.int32()),
    ("source_bytes", pa.int64()),
    ("source_sha256", pa.string()),
    ("colorspace", pa.string()),
    ("exif_orientation", pa.int8()),
    ("width", pa.int32()),
    ("height", pa.int32()),
    ("notes", pa.string()),
)


def samples_parquet(
    receipts: Sequence[Receipt], rest: Sequence[Row], format_names: Sequence[str]
) -> bytes:
    """``SPLIT.samples.parquet``: every sample in plan order, then those in no shard.

    Nulls stand where nothing is known: no size of a file that is no image, no shard and no
    place of a sample that was not written.
    """
    rows = [row for receipt in receipts for row in receipt.rows]
    shards = [receipt.shard for receipt in receipts for _ in receipt.rows]
    rows = [*rows, *rest]
    columns: dict[str, pa.Array] = {}
    for name, kind in _COLUMNS:
        values = [getattr(row, name) for row in rows]
        if name != "source_bytes":
            # A label counts from 0; -1 marks what belongs to no class.
            empty = -1 if name == "label" else (0 if pa.types.is_integer(kind) else "")
            values = [None if value == empty else value for value in values]
        columns[name] = pa.array(values, kind)
    columns["shard"] = pa.array([*shards, *[None] * len(rest)], pa.int32())
    for name in format_names:
        placed = [(row.records or {}).get(name) for row in rows]
        columns[f"{name}_offset"] = pa.array([p and p[0] for p in placed], pa.int64())
        columns[f"{name}_length"] = pa.array([p and p[1] for p in placed], pa.int64())
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="zstd")
    return sink.getvalue()
