"""ShardConfig: the settings of a job, checked before anything is done."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from dataprep.config_file import read_config
from dataprep.credentials import check_no_credentials
from dataprep.errors import ConfigError, ObjectNotFound
from dataprep.formats import DEFAULT_FORMAT, get_format
from dataprep.formats.layout import Layout
from dataprep.formats.protocol import RecordOptions
from dataprep.image.policy import ImagePolicy
from dataprep.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
from dataprep.labels.options import BoxOptions, LabelOptions
from dataprep.processors import usable_processors
from dataprep.sources import reads_runs
from dataprep.sources.exclusion import check_glob
from dataprep.sources.options import (
    ILSVRCOptions,
    ListingOptions,
    ParquetOptions,
    RecordsOptions,
    WebDatasetOptions,
)
from dataprep.stores import StoreOptions, open_store

Names = TypeVar("Names", bound=Iterable[str])

_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")

# Inputs stay out of pydantic's own messages, since one may hold a password.
_STRICT = ConfigDict(
    frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


def check_split(name: str) -> str:
    """``name`` itself. Raises ValueError if files cannot be named after it."""
    if not _SPLIT.fullmatch(name):
        raise ValueError("give letters, digits and underscores only")
    return name


def parse_share(value: str) -> Fraction:
    """``5%`` as 1/20. Raises ConfigError."""
    match = _SHARE.fullmatch(value.strip())
    if not match or Fraction(match[1]) > 100:
        raise ConfigError("give a share such as 5%, up to 100%")
    return Fraction(match[1]) / 100


def allowed_failures(limit: int | str, samples: int) -> int:
    """How many of ``samples`` may fail under ``max_failures``.

    Raises:
        ConfigError: not a count, a share or ``unlimited``.
    """
    text = str(limit).strip().lower()
    if text.endswith("%"):
        return int(samples * parse_share(text))
    if text == "unlimited":
        return samples
    if text == "none":
        raise ConfigError(
            "'none' can be read as no failure or as no limit: give 0 to allow no failure, or "
            "unlimited to allow any number"
        )
    if not re.fullmatch("[0-9]+", text):
        raise ConfigError("give a number of failures, a share such as 1%, or unlimited")
    return int(text)


def _place(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str) and (not value.strip() or "\0" in value):
        raise ValueError("give a path or an address such as s3://bucket/prefix")
    return value


def _known_formats(names: Names) -> Names:
    for name in names:
        get_format(name)
    return names


def _globs(globs: tuple[str, ...]) -> tuple[str, ...]:
    for glob in globs:
        check_glob(glob)
    return globs


def _failure_limit(value: Any) -> Any:
    """YAML's null is refused as the word ``none`` is."""
    return "none" if value is None else _as_share(value)


def _as_share(value: Any) -> Any:
    """YAML's 0.05 is 5%."""
    return f"{Decimal(str(value)) * 100:f}%" if isinstance(value, float) else value


Place = Annotated[str, BeforeValidator(_place), AfterValidator(check_no_credentials)]
Positive = Annotated[int, Field(ge=1)]


class SampleLimit(NamedTuple):
    """How long one conversion may last, and what happens to a sample that takes longer."""

    seconds: float = 600.0
    hung: Literal["stop", "fail"] = "stop"


USUAL_LIMIT = SampleLimit()


class TLSOptions(BaseModel):
    """PEM files for a cluster whose addresses begin with ``tls://``."""

    model_config = _STRICT

    ca_file: str
    """CA certificate of the cluster."""

    cert: str
    """This machine's certificate."""

    key: str
    """Its private key."""


class DaskOptions(BaseModel):
    """Who does the work."""

    model_config = _STRICT

    workers: Positive | None = None
    """Workers. (default: one per usable CPU)"""

    processes: bool | Literal["auto"] = "auto"
    """`auto`, `true`: worker processes. `false`: this process alone, for notebooks and tests; a
    crash of a codec ends it."""

    memory_limit: ByteSize = ByteSize(2 * 10**9)
    """Memory of each worker process."""

    scheduler: Annotated[str, AfterValidator(check_no_credentials)] | None = None
    """Address of a running cluster: `tcp://host:8786`."""

    tls: TLSOptions | None = None
    """Certificates for it. (default: Dask's own configuration)"""

    cluster: str | None = None
    """A cluster class, such as `dask_jobqueue.SLURMCluster`. It starts programs: read a stranger's
    config before you run it."""

    cluster_args: dict[str, Any] = {}
    """Arguments of that class."""

    dashboard: str | None = None
    """Address of Dask's dashboard, such as `127.0.0.1:8787`."""

    max_concurrent_uploads: Positive = 32
    """Shards that all workers store at a time."""

    sample_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = USUAL_LIMIT.seconds
    """Most seconds for one image; see `hung_samples`."""

    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """How often a shard is tried again after an error of the store that may pass."""

    @property
    def is_external(self) -> bool:
        """Whether tasks run on a cluster, where they may go on when this process has ended."""
        return bool(self.scheduler or self.cluster)

    @property
    def uses_workers(self) -> bool:
        """Whether a job runs in worker processes or on a cluster, not in this process."""
        return bool(self.scheduler or self.cluster or self.processes)

    @property
    def worker_count(self) -> int:
        """``workers``, or one for each processor that affinity and control group allow."""
        return self.workers or usable_processors()


class PlanOptions(BaseModel):
    """Options of ``plan`` beside those of the job; none of them changes a byte."""

    model_config = _STRICT

    readers: Positive | None = None
    """Ranks times loader workers, for a warning."""

    prices: Path | None = None
    """File of prices. (default: `configs/prices.yaml`)"""

    instance: str | None = None
    """Machine type to price, such as `c7i.16xlarge`. (default: this one's, on EC2)"""

    upload_mb_per_s: Annotated[float, Field(gt=0)] | None = None
    """MB/s (10^6 bytes) that a worker stores. (default: 85 on S3, elsewhere not counted)"""


class ShardConfig(BaseModel):
    """One sharding job. docs/shard-config.md lists all keys."""

    model_config = _STRICT

    source: Place
    """The images: a path or `s3://bucket/prefix`."""

    output: Place
    """The shards: a path or `s3://bucket/prefix`."""

    kind: str = "imagefolder"
    """Kind of source: `imagefolder`, `flat`, `ilsvrc`, `webdataset`, `parquet`, `listing`,
    `records`, or another package's."""

    exclude: Annotated[tuple[str, ...], AfterValidator(_globs)] = ()
    """Files and folders of the source to leave out, as globs: a name at any depth, or a path with
    a slash."""

    split: Annotated[str, AfterValidator(check_split)] = "train"
    """Name of the split."""

    format: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_known_formats)] = (
        DEFAULT_FORMAT,
    )
    """`tfrecord`, `recordio`, `webdataset`, or several of them from one decode."""

    image: ImagePolicy = ImagePolicy()
    """How images are converted (docs/images.md)."""

    shard_size: ByteSize = ByteSize(64 * 2**20)
    """Size of a shard, 1MB to 128MB; of several formats, the largest's."""

    shuffle: bool = True
    """Random order, by `seed` and names. `parquet` keeps the order of its rows: `false` is the
    default there, and `true` is refused."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    """Of the order and the validation split."""

    validation: Annotated[str | None, BeforeValidator(_as_share)] = None
    """Share of each class for the split `validation`, such as `5%`."""

    labels: LabelOptions = LabelOptions()
    """Files with classes (docs/labels.md)."""

    layout: str | dict[str, str] = "imagenet"
    """Features of Examples: `imagenet`, `tfds`, or a mapping (docs/layouts.md)."""

    boxes: BoxOptions | None = None
    """Bounding boxes (docs/boxes.md); a path alone is their `source`."""

    label_offset: Annotated[
        dict[str, Annotated[int, Field(ge=-1000, le=1000)]], AfterValidator(_known_formats)
    ] = {}
    """Added to labels inside records, by format. (default: 1 for TFRecord of synsets in the layout
    `imagenet`, else 0)"""

    unlabelled: bool = False
    """Images without classes, such as a contest's test images: each label is -1."""

    max_failures: Annotated[int | str, BeforeValidator(_failure_limit)] = "1%"
    """Samples that may fail: a number, a share, or `unlimited`."""

    hung_samples: Literal["stop", "fail"] = "stop"
    """A sample that exceeds `dask.sample_timeout_s` even alone stops the job (resumable) or
    fails."""

    ilsvrc: ILSVRCOptions = ILSVRCOptions()
    """Tar archives as source (docs/folders-and-tars.md)."""

    listing: ListingOptions = ListingOptions()
    """Listings as source (docs/listings-and-records.md)."""

    records: RecordsOptions = RecordsOptions()
    """Existing shards as source (docs/listings-and-records.md)."""

    webdataset: WebDatasetOptions = WebDatasetOptions()
    """WebDataset tars as source (docs/folders-and-tars.md)."""

    parquet: ParquetOptions = ParquetOptions()
    """Parquet files with images as source (docs/folders-and-tars.md)."""

    source_concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    """Reads in flight per worker. (default: 1 from a disk, 32 from S3)"""

    store: StoreOptions = StoreOptions()
    """S3 options of the output, and of the source unless it has its own."""

    source_store: StoreOptions | None = None
    """S3 options of the source."""

    dask: DaskOptions = DaskOptions()
    """Processes or a cluster."""

    plan: PlanOptions = PlanOptions()
    """For `dataprep plan` (docs/plan.md)."""

    @model_validator(mode="before")
    @classmethod
    def _order_of_kind(cls, values: Any) -> Any:
        if not isinstance(values, Mapping) or "shuffle" in values:
            return values
        kind = values.get("kind")
        return {**values, "shuffle": not (isinstance(kind, str) and reads_runs(kind))}

    @field_validator("shuffle")
    @classmethod
    def _order_is_kept(cls, value: bool, info: ValidationInfo) -> bool:
        kind = info.data.get("kind")
        if value and kind is not None and reads_runs(kind):
            raise ValueError(
                f"kind {kind} keeps the order of its source, since one sample cannot be read "
                "without its neighbours: leave shuffle out, and shard the output again with --kind "
                "records to shuffle it"
            )
        return value

    @field_validator("format", "exclude", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("format")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))

    @field_validator("boxes", mode="before")
    @classmethod
    def _source_of_boxes(cls, value: Any) -> Any:
        return {"source": _place(value)} if isinstance(value, str | os.PathLike) else value

    @field_validator("layout")
    @classmethod
    def _readable_layout(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        Layout.of(value)
        return value

    @field_validator("shard_size")
    @classmethod
    def _within_bounds(cls, value: ByteSize) -> ByteSize:
        if not MIN_SHARD_BYTES <= value <= MAX_SHARD_BYTES:
            raise ValueError("shards are 1 MB to 128 MB")
        return value

    @field_validator("validation")
    @classmethod
    def _share_between(cls, value: str | None) -> str | None:
        if value is not None and not 0 < parse_share(value) < 1:
            raise ValueError("give a share between 0% and 100%, such as 5%")
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
        return RecordOptions.of({"layout": self.layout, "unlabelled": self.unlabelled}, 0)

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

        What was read of a source as ``exclude``, ``labels`` and the part of its kind say is in
        the digest of the source, in the plan and in labels.json.
        ``unlabelled`` is absent where it is false, as in outputs of earlier versions.
        """
        content = self.model_dump(
            mode="json",
            include={
                *("kind", "split", "format", "image", "shard_size", "shuffle", "seed"),
                *("validation", "layout", "boxes", "label_offset"),
            },
            exclude={"boxes": {"source"}},  # the plan holds what was found there
        )
        return {**content, "unlabelled": True} if self.unlabelled else content


class _StoreOnly(BaseModel):
    model_config = _STRICT

    store: StoreOptions = StoreOptions()


def load(
    path: str | Path | None, overrides: Mapping[str, Any], flags: Mapping[str, str] | None = None
) -> ShardConfig:
    """A config from a YAML file and dotted overrides; see ``read_config``. Raises ConfigError.

    The file may be ``s3://bucket/key``; the ``store.*`` overrides say how it is reached.
    """
    content = None
    if "://" in str(path):
        folder, _, name = str(path).rpartition("/")
        reach = {key: value for key, value in overrides.items() if key.startswith("store.")}
        try:
            content = open_store(folder, store_options(reach)).get(name)
        except ObjectNotFound:
            raise ConfigError(f"cannot read config file {path}: there is no such object") from None
    return read_config(ShardConfig, path, overrides, flags, content)


def store_options(overrides: Mapping[str, Any]) -> StoreOptions:
    """Store options alone, from overrides such as ``store.profile``. Raises ConfigError."""
    return read_config(_StoreOnly, None, overrides, {"store.endpoint_url": "--endpoint-url"}).store


def dump(config: ShardConfig) -> str:
    """The whole config as YAML, defaults included; ``load`` reads it back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
