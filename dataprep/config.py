"""ShardConfig: everything a job can be told, checked before anything is done."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ByteSize, ConfigDict, Field, field_validator

from dataprep.config_file import read_config
from dataprep.credentials import check_no_credentials
from dataprep.execution import DaskOptions, Hung, PlanOptions, SampleLimit
from dataprep.formats.layout import Layout
from dataprep.formats.protocol import RecordOptions
from dataprep.image.policy import ImagePolicy
from dataprep.labels.options import BoxOptions, LabelOptions
from dataprep.plan import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.shares import allowed_failures, parse_share
from dataprep.sources.options import ILSVRCOptions, ListingOptions, RecordsOptions
from dataprep.stores.options import StoreOptions

_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")


def check_split(name: str) -> str:
    """``name`` itself.

    Raises:
        ValueError: files cannot be called after it.
    """
    if not _SPLIT.fullmatch(name):
        raise ValueError("a split's name has letters, digits and underscores only")
    return name


class ShardConfig(BaseModel):
    """One sharding job. docs/shard-config.md lists all keys."""

    # Hidden, since an endpoint that is refused may hold a password.
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
    )

    source: str
    """Where the images are: a path or `s3://bucket/prefix`."""

    output: str
    """Where the shards go: a path or `s3://bucket/prefix`."""

    kind: str = "imagefolder"
    """What the source is: `imagefolder`, `flat`, `ilsvrc`, `listing`, `records`, or what another
    package registers."""

    split: str = "train"
    """Name of the split."""

    format: tuple[str, ...] = ("tfrecord",)
    """`tfrecord`, `recordio`, or both from one decode."""

    image: ImagePolicy = ImagePolicy()
    """What becomes of each image (docs/images.md)."""

    shard_size: ByteSize = ByteSize(64 * 2**20)
    """Of the larger format, 1MB to 128MB."""

    shuffle: bool = True
    """Whether samples are put into an order that depends on `seed` and their names alone."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    """Of the order and of the validation split."""

    validation: str | None = None
    """Share of each class that goes to a split of that name, as in `5%`."""

    labels: LabelOptions = LabelOptions()
    """Files that say what the classes are, where folders do not (docs/labels.md)."""

    layout: str | dict[str, str] = "imagenet"
    """Of the Examples: `imagenet`, `tfds`, or features of one's own (docs/layouts.md)."""

    boxes: BoxOptions | None = None
    """Bounding boxes that lie beside the images (docs/boxes.md). A path alone is their `source`."""

    label_offset: dict[str, Annotated[int, Field(ge=-1000, le=1000)]] = {}
    """What is added to the 0-based label inside records, by format. (default: 1 for TFRecord of
    synsets in the layout `imagenet`, else 0)"""

    max_failures: int | str = "1%"
    """Samples that may fail: a number, a share, or `none`."""

    hung_samples: Hung = "stop"
    """What becomes of a sample that takes longer than `dask.sample_timeout_s`, in a process of its
    own too: `stop` ends the job, resumable, and names it; `fail` records it as failed, so that
    the speed of the machine has a say in what is written."""

    ilsvrc: ILSVRCOptions = ILSVRCOptions()
    """How tar archives are read (docs/tars.md)."""

    listing: ListingOptions = ListingOptions()
    """How listings are read (docs/listings-and-records.md)."""

    records: RecordsOptions = RecordsOptions()
    """How shards that exist are read (docs/listings-and-records.md)."""

    source_concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    """Reads that each worker keeps in flight. (default: 1 from a disk, 32 from S3)"""

    store: StoreOptions = StoreOptions()
    """How the output on S3 is reached, and the source unless `source_store` says otherwise."""

    source_store: StoreOptions | None = None
    """How the source on S3 is reached."""

    dask: DaskOptions = DaskOptions()
    """Threads, processes or a cluster, and how many."""

    plan: PlanOptions = PlanOptions()
    """For `dataprep plan` alone (docs/plan.md)."""

    @field_validator("source", "output", mode="before")
    @classmethod
    def _path_or_uri(cls, value: Any) -> Any:
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    @field_validator("validation", "max_failures", mode="before")
    @classmethod
    def _fraction_is_a_share(cls, value: Any) -> Any:
        """YAML's 0.05 is 5%."""
        return f"{Decimal(str(value)) * 100:f}%" if isinstance(value, float) else value

    @field_validator("source", "output")
    @classmethod
    def _not_empty(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be empty")
        if "\0" in value:
            raise ValueError("holds a NUL, which no path and no key has")
        return check_no_credentials(value)

    @field_validator("split")
    @classmethod
    def _names_files(cls, value: str) -> str:
        return check_split(value)

    @field_validator("format", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("format")
    @classmethod
    def _known_formats(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from dataprep.formats import format_names

        unknown = [name for name in value if name not in format_names()]
        if unknown or not value:
            problem = f"no format {', '.join(map(repr, unknown))}" if unknown else "it is empty"
            raise ValueError(f"{problem}: use one or more of {', '.join(format_names())}")
        return tuple(dict.fromkeys(value))

    @field_validator("boxes", mode="before")
    @classmethod
    def _source_of_boxes(cls, value: Any) -> Any:
        return {"source": value} if isinstance(value, (str, os.PathLike)) else value

    @field_validator("layout")
    @classmethod
    def _can_be_read(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        Layout.of(value)
        return value

    @field_validator("label_offset")
    @classmethod
    def _offsets_of_formats(cls, value: dict[str, int]) -> dict[str, int]:
        from dataprep.formats import format_names

        for name in value.keys() - set(format_names()):
            near = difflib.get_close_matches(name, format_names(), n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(format_names())}"
            raise ValueError(f"no format {name!r}: {hint}")
        return value

    @field_validator("shard_size")
    @classmethod
    def _within_bounds(cls, value: ByteSize) -> ByteSize:
        if not MIN_SHARD_BYTES <= value <= MAX_SHARD_BYTES:
            raise ValueError(
                f"{int(value):,} bytes; shards have 1 to 128 MB (1,000,000 to 128,000,000 bytes)"
            )
        return value

    @field_validator("validation")
    @classmethod
    def _share_between(cls, value: str | None) -> str | None:
        if value is not None and not 0 < parse_share(value) < 1:
            raise ValueError("a share between 0 % and 100 %, such as 5%")
        return value

    @field_validator("max_failures")
    @classmethod
    def _count_or_share(cls, value: int | str) -> int | str:
        allowed_failures(value, 100)
        return value

    @property
    def validation_share(self) -> Fraction | None:
        """``validation`` as an exact fraction."""
        return None if self.validation is None else parse_share(self.validation)

    @property
    def record_options(self) -> RecordOptions:
        """How records are written, label offsets aside."""
        return RecordOptions(layout=Layout.of(self.layout))

    @property
    def sample_limit(self) -> SampleLimit:
        """How long one sample may take, and what becomes of one that takes longer."""
        return SampleLimit(self.dask.sample_timeout_s, self.hung_samples)

    def source_section(self) -> object | None:
        """The part that is called as ``kind`` is, for kinds that have one."""
        if self.kind == "records":
            return self.records.model_copy(update={"split": self.records.split or self.split})
        return getattr(self, self.kind, None)

    def content(self) -> dict[str, Any]:
        """What determines the bytes: goes into the fingerprint and the manifest's ``config``.

        What was read of a source as ``ilsvrc``, ``listing``, ``records`` and ``labels`` say is in
        the digest of the source, in the plan and in labels.json.
        """
        return self.model_dump(
            mode="json",
            include={
                *("kind", "split", "format", "image", "shard_size", "shuffle", "seed"),
                *("validation", "layout", "boxes", "label_offset"),
            },
            exclude={"boxes": {"source"}},  # the plan holds what was found there
        )


class _StoreOnly(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    store: StoreOptions = StoreOptions()


def load(path: Path | None, overrides: Mapping[str, Any]) -> ShardConfig:
    """A config from a YAML file and dotted overrides; raises what ``read_config`` does."""
    return read_config(ShardConfig, path, overrides, options=("source", "output"))


def store_options(overrides: Mapping[str, Any]) -> StoreOptions:
    """Store options alone, from dotted overrides such as ``store.profile``.

    Raises:
        ConfigError: a key is none of the store's, or a value is wrong.
    """
    return read_config(_StoreOnly, None, overrides).store


def dump(config: ShardConfig) -> str:
    """The whole config as YAML, defaults included; ``load`` reads it back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
