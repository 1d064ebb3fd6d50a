"""The job file ``SPLIT.job.json``: everything that determines the bytes of a split.

It is stored before the first shard is made. The schema is 1. The key ``file_versions`` was added
later, so that the files of earlier versions do not have it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dataprep.config.shard_config import ShardConfig
from dataprep.errors import DatasetError
from dataprep.formats import RecordOptions
from dataprep.schema import malformed_as, parse, typed

SCHEMA = 1
UNREADABLE_FOLDERS = "unreadable_folders"
"""A key in ``source`` and in the ``warnings`` of the manifest: the number of unreadable folders."""


@dataclass(frozen=True, slots=True)
class JobFile:
    """Everything that determines the bytes of one split. The field names are keys of the file.

    Attributes:
        split: the name of the split.
        config: the settings that determine the content of the output (``ShardConfig.content``).
        versions: the versions of the libraries that determine bytes, by the name of the library.
        source: the number of entries (``files``), their total size (``bytes``), and the digest of
            the listing (``sha256``). If folders cannot be read, also their number.
        calibration: the points from which record sizes were predicted (``Calibration``), for
            information.
        label_offsets: the number that records add to a label, by format.
        labels_sha256: the SHA-256 of labels.json.
        plan_sha256: the SHA-256 of SPLIT.plan.parquet.
        shards: the number of shards.
        schema: the schema number of the file.
        file_versions: the version of each source file with many entries
            (``Listing.file_versions``). They do not determine bytes, so that the fingerprint does
            not include them.
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
        """Return the options with which records of a format are written and read.

        Raises:
            ConfigError: the job has a layout that this version does not know.
        """
        return RecordOptions.of(self.config, self.label_offsets[format_name])

    @property
    def warnings(self) -> dict[str, int]:
        """The counts in the manifest's ``warnings`` that concern the whole source, if not 0."""
        count = self.source.get(UNREADABLE_FOLDERS, 0)
        return {UNREADABLE_FOLDERS: count} if count else {}

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of all fields except ``file_versions``, as JSON with sorted keys."""
        content = asdict(self)
        del content["file_versions"]
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> bytes:
        """Return the content of the file. The fingerprint comes first."""
        content = {"fingerprint": self.fingerprint, **asdict(self)}
        return json.dumps(content, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes, name: str) -> JobFile:
        """Read a file that ``to_json`` wrote; ``name`` is the file's name in errors.

        Raises:
            DatasetError: the data are not a job file, or were edited by hand.
            SchemaTooNew: a newer version wrote the file.
        """
        with malformed_as(DatasetError, f"{name}: not a job file"):
            content = parse(data, name, SCHEMA)
            fingerprint = content.pop("fingerprint", None)
            job = typed(cls, content)
        if job.fingerprint != fingerprint:
            raise DatasetError(f"{name}: its content does not match its fingerprint")
        return job


def content_of_split(config: ShardConfig, split: str) -> dict[str, object]:
    """Return the settings of ``config`` that determine the content of one of its splits."""
    return {**config.content(), "split": split}


def with_defaults(
    config: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a stored config with defaults for the keys that it does not have.

    The default of a key that was added later is the behaviour of earlier versions. Keys without a
    default are kept.

    Args:
        config: the stored config, or a section of it.
        defaults: the default of each key; None for those of the whole config.
    """
    if defaults is None:
        defaults = ShardConfig(source="-", output="-").content()
    filled = {**defaults, **config}
    for key, default in defaults.items():
        value = filled[key]
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            filled[key] = with_defaults(value, default)
    return filled


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe each key whose value differs, such as ``image.size: 256 before, 224 now``.

    A key that only one side has counts as having the value None on the other side.
    """
    flat_before = dict(_flatten(before))
    flat_now = dict(_flatten(now))
    lines = []
    for key in sorted(flat_before.keys() | flat_now.keys()):
        value_before = flat_before.get(key)
        value_now = flat_now.get(key)
        if value_before != value_now:
            lines.append(f"{key}: {_as_text(value_before)} before, {_as_text(value_now)} now")
    return lines


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value that is not a mapping, with its keys joined by dots."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, list(value) if isinstance(value, tuple) else value


def _as_text(value: Any) -> str:
    """A value of a config as a message shows it."""
    return "nothing" if value is None else json.dumps(value)
