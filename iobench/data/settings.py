"""Which images a run reads, and in which forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ByteSize, ConfigDict, Field, field_validator

from dataprep.config import check_split
from dataprep.plan import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.stores import StoreOptions

LOCAL = "local"
_NAME = re.compile(r"(photos|files|shards(?:-(\d+)MB)?)@(disk|s3)")


class BucketSettings(BaseModel):
    """Where copies on an object store go: ``s3://bucket/prefix``.

    ``local`` starts an S3 server (moto) on this machine for the time of the run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    uri: str = LOCAL
    store: StoreOptions = StoreOptions()

    @field_validator("uri")
    @classmethod
    def _is_s3(cls, value: str) -> str:
        if value != LOCAL and not re.fullmatch(r"s3://[^/]+(/.*)?", value):
            raise ValueError("give s3://bucket/prefix, or local for a server of this run's own")
        return value


class DataSettings(BaseModel):
    """The images, and the forms in which trials ask for them by name.

    ``shards``: an output of ``dataprep shard`` to read; else ``source``, class folders, is
    sharded; else images are drawn. Names in trials are ``photos@disk`` (the source's files),
    ``files@disk`` (the resized images as files), ``shards@disk``, ``shards-16MB@disk`` and the
    same with ``@s3``. What is made lies below ``folder``, and is used again by later runs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    shards: str | None = None
    split: str = "train"
    store: StoreOptions = StoreOptions()
    source: str | None = None
    images: Annotated[int, Field(ge=10, le=100_000_000)] = 1000
    classes: Annotated[int, Field(ge=2, le=1000)] = 10
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    size: Annotated[int, Field(ge=32, le=16_384)] = 256
    quality: Annotated[int, Field(ge=1, le=100)] = 95
    shard_size: ByteSize = ByteSize(16_000_000)
    folder: str = "reports/data"
    bucket: BucketSettings = BucketSettings()

    @field_validator("split")
    @classmethod
    def _names_files(cls, value: str) -> str:
        return check_split(value)

    @field_validator("folder", "source", "shards")
    @classmethod
    def _has_a_home(cls, value: str | None) -> str | None:
        return value if value is None else check_home(value)

    @field_validator("shard_size")
    @classmethod
    def _within_bounds(cls, value: ByteSize) -> ByteSize:
        if not MIN_SHARD_BYTES <= value <= MAX_SHARD_BYTES:
            raise ValueError(f"{int(value):,} bytes; shards have 1 to 128 MB")
        return value


def check_home(path: str) -> str:
    """``path`` itself.

    Raises:
        ValueError: no path, or one below the home of a user whom this machine does not know.
    """
    if "\0" in path:
        raise ValueError("a path holds no NUL")
    try:
        Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path!r}: there is no such user here") from None
    return path


def check_name(name: Any) -> Any:
    """A name of data as trials use it.

    Raises:
        ValueError: no such form or storage, or a shard size out of range.
    """
    match = _NAME.fullmatch(str(name))
    if not match:
        raise ValueError(
            f"{name!r}: data is called photos, files, shards or shards-16MB, then @disk or @s3"
        )
    if match[2] and not 1 <= int(match[2]) <= 128:
        raise ValueError(f"{name!r}: shards have 1 to 128 MB")
    return name


def split_name(name: str) -> tuple[str, int | None, bool]:
    """``shards-16MB@s3`` as ("shards", 16_000_000, True): form, shard size, on a store."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no name of data")
    size_bytes = int(match[2]) * 1_000_000 if match[2] else None
    return match[1].partition("-")[0], size_bytes, match[3] == "s3"
