"""``SPLIT.job.json``: what will be made of what, stored before the first shard.

Schema history: 1, the first; later ones of this schema have ``file_versions``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dataprep.errors import DatasetError
from dataprep.formats import RecordOptions
from dataprep.schema import malformed_as, parse, typed

SCHEMA = 1
UNREADABLE_FOLDERS = "unreadable_folders"
"""In ``source`` and in the manifest's ``warnings``: folders left out that cannot be read."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """Everything that determines the bytes of one split.

    Attributes:
        config: the content part of the configuration.
        versions: the libraries that determine bytes.
        source: number of entries, bytes and digest of the listing; where there are any, the number
            of folders left out that cannot be read.
        calibration: the points of the size prediction, for the record.
        label_offsets: format to offset.
        labels_sha256: of labels.json.
        plan_sha256: of SPLIT.plan.parquet.
        shards: how many.
        file_versions: those of the listing (``Listing.file_versions``). They do not determine
            bytes, so the fingerprint leaves them out.
    """

    split: str
    config: Mapping[str, Any]
    versions: Mapping[str, str]
    source: Mapping[str, Any]
    calibration: tuple[tuple[int, int], ...]
    label_offsets: Mapping[str, int]
    labels_sha256: str
    plan_sha256: str
    shards: int
    schema: int = SCHEMA
    file_versions: Mapping[str, str] = field(default_factory=dict)

    def record_options(self, format_name: str) -> RecordOptions:
        """How records of one of its formats are written and read.

        Raises:
            ConfigError: planned with a layout that this version does not know.
        """
        return RecordOptions.of(self.config, self.label_offsets[format_name])

    @property
    def warnings(self) -> dict[str, int]:
        """What the manifest's ``warnings`` count of the source as a whole."""
        count = self.source.get(UNREADABLE_FOLDERS, 0)
        return {UNREADABLE_FOLDERS: count} if count else {}

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all of it but the versions of files, in canonical form."""
        content = asdict(self)
        del content["file_versions"]
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> bytes:
        """As stored, the fingerprint first."""
        return (
            json.dumps({"fingerprint": self.fingerprint, **asdict(self)}, indent=1).encode() + b"\n"
        )

    @classmethod
    def from_json(cls, data: bytes, name: str) -> JobFile:
        """Read what ``to_json`` wrote.

        Raises:
            DatasetError: not a job file, or changed by hand.
            SchemaTooNew: written by a newer version.
        """
        with malformed_as(DatasetError, f"{name}: not a job file"):
            content = parse(data, name, SCHEMA)
            fingerprint = content.pop("fingerprint", None)
            job = typed(cls, content)
        if job.fingerprint != fingerprint:
            raise DatasetError(f"{name}: its content does not match its fingerprint")
        return job


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Each key whose value differs, as ``image.size: 256 before, 224 now``."""
    flat_before, flat_now = dict(_flat(before)), dict(_flat(now))
    keys = sorted(flat_before.keys() | flat_now.keys())
    return [
        f"{key}: {_shown(flat_before.get(key))} before, {_shown(flat_now.get(key))} now"
        for key in keys
        if flat_before.get(key) != flat_now.get(key)
    ]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value)
