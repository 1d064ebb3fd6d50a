"""The settings of the images that a run reads, and the names of their forms."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ByteSize, Field, field_validator, model_validator

from dataprep.config.shard_config import check_split
from dataprep.credentials import check_no_credentials
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.stores import STORES, StoreOptions
from iobench.settings import Settings

LOCAL = "local"
"""The address of a server that the run starts itself."""

_OWN_SCHEMES = ("s3", "file", "memory")
"""The schemes of the stores of ``dataprep``. Of these, only S3 can be a bucket of a run."""

_NAME = re.compile(
    r"(?P<form>photos|files|pixels|(?:shards|originals)(?:-(?P<shard_mb>\d+)MB)?"
    r"|shards-(?P<side>\d+)px)@(?P<storage>disk|s3)"
)
_SIDES = (32, 16_384)
"""Smallest and largest short side of images in shards, in pixels."""

AS_FILES = frozenset({"photos", "files"})
"""Forms of data that are class folders; all others are shards."""


def check_home(path: str) -> str:
    """Check a path, and return it.

    Raises:
        ValueError: it has a NUL character, or is below the home of an unknown user.
    """
    if "\0" in path:
        raise ValueError("a path has no NUL character")
    try:
        Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path!r}: there is no such user here") from None
    return path


_PathOrUri = Annotated[str, AfterValidator(check_no_credentials), AfterValidator(check_home)]


class BucketSettings(Settings):
    """A bucket, and a prefix to write below."""

    uri: Annotated[str, AfterValidator(check_no_credentials)] = LOCAL
    """`s3://bucket/prefix`, a URI of another package's store, or `local`: moto, started by the
    run."""

    store: StoreOptions = StoreOptions()
    """Options of that store."""

    @field_validator("uri")
    @classmethod
    def _is_a_store(cls, value: str) -> str:
        if value == LOCAL or re.fullmatch(r"s3://[^/]+(/.*)?", value):
            return value
        scheme, colon, rest = value.partition("://")
        if colon and rest and scheme not in _OWN_SCHEMES and STORES.has(scheme):
            return value
        raise ValueError("give s3://bucket/prefix, or local for a server that the run starts")


class DataSettings(Settings):
    """The images that trials read.

    If ``shards`` is set, the images are read from these shards. If only ``source`` is set, they are
    made from the source. If neither is set, images are drawn.

    Trials name the form that they read:

    - ``photos@disk``: the source's files;
    - ``files@disk``: the resized images as files;
    - ``shards@disk``, ``shards-16MB@disk``: shards, of 16 MB each;
    - ``shards-320px@disk``: shards whose images have another short side;
    - ``originals@disk``, ``originals-16MB@disk``: shards of the source's images, not resized;
    - ``pixels@disk``: the shards with decoded images;
    - the same with ``@s3``.
    """

    shards: _PathOrUri | None = None
    """Existing shards: an output of `dataprep shard`, at a path or `s3://`. For `@disk`, shards on
    S3 are copied to `folder`."""

    split: Annotated[str, AfterValidator(check_split)] = "train"
    """Split of the shards that is read."""

    store: StoreOptions = StoreOptions()
    """Options of the store of `shards` or `source`."""

    mount: _PathOrUri | None = None
    """Path at which `shards` on S3 are also files (FUSE). `@disk` then reads there."""

    source: _PathOrUri | None = None
    """Class folders to shard, at a path or `s3://`. Without `shards` and `source`, images are
    drawn."""

    images: Annotated[int, Field(ge=10, le=100_000_000)] = 1000
    """Number of drawn images."""

    classes: Annotated[int, Field(ge=2, le=1000)] = 10
    """Number of classes of drawn images."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of drawn images, and of the order of samples in shards."""

    size: Annotated[int, Field(ge=_SIDES[0], le=_SIDES[1])] = 256
    """Short side of images in shards, in pixels."""

    quality: Annotated[int, Field(ge=1, le=100)] = 95
    """JPEG quality of images in shards."""

    shard_size: ByteSize = ByteSize(16_000_000)
    """Size of new shards, 1 to 128 MB."""

    folder: _PathOrUri = "reports/data"
    """Folder of data that the run makes, for `@disk`. Later runs use them again."""

    bucket: BucketSettings = BucketSettings()
    """Bucket for copies of data, for `@s3`. They go below `iobench-data/`."""

    @property
    def drawn_folder(self) -> str:
        """The name of the folder of drawn images, below ``folder``."""
        return f"drawn-{self.images}-{self.classes}-{self.seed}"

    @model_validator(mode="after")
    def _require_shards_of_mount(self) -> DataSettings:
        if self.mount is not None and "://" not in (self.shards or ""):
            raise ValueError("mount is the path of shards on a store: give shards: s3://...")
        return self

    @field_validator("shard_size")
    @classmethod
    def _check_shard_size(cls, value: ByteSize) -> ByteSize:
        if not MIN_SHARD_BYTES <= value <= MAX_SHARD_BYTES:
            raise ValueError(f"{int(value):,} bytes is out of range: shards have 1 to 128 MB")
        return value


def check_name(name: Any) -> Any:
    """Check a name of data, such as ``shards-16MB@s3``, and return it.

    Raises:
        ValueError: the form or the storage does not exist, or a size is out of range.
    """
    match = _NAME.fullmatch(str(name))
    if not match:
        raise ValueError(
            f"{name!r}: data is called photos, files, shards, shards-16MB or shards-320px, "
            "originals or originals-16MB, or pixels, then @disk or @s3"
        )
    if match["shard_mb"] and not 1 <= int(match["shard_mb"]) <= 128:
        raise ValueError(f"{name!r}: shards have 1 to 128 MB")
    if match["side"] and not _SIDES[0] <= int(match["side"]) <= _SIDES[1]:
        raise ValueError(f"{name!r}: images have {_SIDES[0]} to {_SIDES[1]:,} pixels")
    return name


def split_name(name: str) -> tuple[str, int | None, bool]:
    """Split a name of data into form, shard size in bytes, and whether it is on a store.

    ``shards-16MB@s3`` gives ("shards", 16_000_000, True).

    Raises:
        ValueError: the text is not a name of data.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not a name of data")
    form, _, _ = match["form"].partition("-")
    shard_bytes = int(match["shard_mb"]) * 1_000_000 if match["shard_mb"] else None
    return form, shard_bytes, match["storage"] == "s3"


def side_of(name: str) -> int | None:
    """Return the short side of images in a name of data: 320 for ``shards-320px@disk``.

    None if the name has no side.
    """
    match = _NAME.fullmatch(name)
    return int(match["side"]) if match and match["side"] else None
