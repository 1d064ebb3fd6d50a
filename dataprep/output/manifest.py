"""The manifest of a split, which is built from the receipts of its shards.

The manifest has the schema 1. ``table`` was added later, so that manifests of earlier versions lack
it. Unknown keys are ignored, so that later versions can add keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from dataprep.errors import DatasetError
from dataprep.formats import RecordOptions
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.output.receipt import Count, Receipt
from dataprep.schema import malformed_as, parse, typed

SCHEMA = 1
OUT_OF_BOUNDS = "shards_out_of_bounds"
"""A key in ``warnings``: the number of shards that are smaller than 1 MB or larger than 128 MB."""


def quirk_name(kind: str) -> str:
    """Return a key of the manifest's ``warnings`` as words for the user."""
    return kind.replace("icc_", "colour profile_").replace("_", " ")


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
    """A table of samples in the manifest: the size and SHA-256 of its Parquet file."""

    bytes: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class SampleCounts:
    """Counts of source entries. Each entry is counted once as written, failed or skipped.

    Attributes:
        total: the number of entries, including those that are in no shard.
        written: the number of samples that were written.
        failed: the number of entries that failed.
        skipped: the number of entries that were skipped.
        passthrough: the number of images that were stored unchanged, or with changed metadata only.
        reencoded: the number of images that were encoded again.
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
        samples: the number of samples in each share, in the order of the shares.
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
        """The fraction of samples that is not read if all hosts read the same number of samples.

        Each host can then read only as many samples as the smallest share has.
        """
        return 1 - self.count * min(self.samples) / max(sum(self.samples), 1)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of ``SPLIT.manifest.json``. The field names are keys of the file.

    Attributes:
        split: the name of the split.
        created: when the manifest was written, in UTC, as an ISO 8601 text.
        fingerprint: the fingerprint of the job.
        config: the settings that determine the content of the data set.
        run: properties of the run that wrote the manifest, such as its number of workers. They do
            not affect the content of the data set.
        versions: the versions of libraries, by the name of the library.
        formats: the shards in each format.
        samples: counts of source entries.
        warnings: the number of samples with each quirk, and counts of other problems.
        table: the table of samples, ``SPLIT.samples.parquet``; None in manifests of earlier
            versions.
        share: the share of one host, in a copy with only some of the shards (``dataprep stage``);
            None in a complete data set.
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
    """Return the number of shards outside 1 to 128 MB.

    The size of a shard is that in its largest format.
    """
    sizes = _max_shard_sizes(formats)
    return sum(not MIN_SHARD_BYTES <= size <= MAX_SHARD_BYTES for size in sizes)


def spread(formats: Formats) -> float:
    """Return the largest deviation of a shard from the mean size, as a fraction of the mean.

    The result is 0 if there are no shards. The size of a shard is that in its largest format.
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
