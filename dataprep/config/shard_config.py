"""The settings of a job, ``ShardConfig``. They are checked before the job does anything."""

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

from dataprep.config.files import read_config
from dataprep.credentials import check_no_credentials
from dataprep.errors import ConfigError, ObjectNotFound
from dataprep.formats import DEFAULT_FORMAT, get_format
from dataprep.formats.layout import Layout
from dataprep.formats.protocol import RecordOptions
from dataprep.image.policy import ImagePolicy
from dataprep.labels.options import BoxOptions, LabelOptions
from dataprep.machine.processors import usable_processors
from dataprep.output.keys import MAX_SHARD_BYTES, MIN_SHARD_BYTES
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

_SPLIT_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
_SHARE_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*%")

# Keep values out of pydantic's own messages, because a value may contain a password.
_STRICT = ConfigDict(
    frozen=True, extra="forbid", hide_input_in_errors=True, use_attribute_docstrings=True
)


def check_split(name: str) -> str:
    """Check the name of a split, and return it.

    Raises:
        ValueError: the name is empty, begins with an underscore, or has characters other than
            ASCII letters, digits and underscores.
    """
    if not _SPLIT_PATTERN.fullmatch(name):
        raise ValueError(
            "give letters, digits and underscores only, and begin with a letter or a digit"
        )
    return name


def parse_share(value: str) -> Fraction:
    """Return a percentage as a fraction: ``5%`` is 1/20.

    Raises:
        ConfigError: the text is not a percentage up to 100%.
    """
    match = _SHARE_PATTERN.fullmatch(value.strip())
    if not match or Fraction(match[1]) > 100:
        raise ConfigError("give a share such as 5%, up to 100%")
    return Fraction(match[1]) / 100


def allowed_failures(limit: int | str, samples: int) -> int:
    """Return the number of samples that may fail. A percentage is rounded down.

    Args:
        limit: the setting ``max_failures``: a number, a percentage, or ``unlimited``.
        samples: the number of samples of the job.

    Raises:
        ConfigError: the setting has another form.
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


def _as_location(value: Any) -> Any:
    """Return a path or an address as text. Values of other types are left to pydantic.

    Raises:
        ValueError: the text is empty, or has a zero byte.
    """
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str) and (not value.strip() or "\0" in value):
        raise ValueError("give a path or an address such as s3://bucket/prefix")
    return value


def _registered_formats(names: Names) -> Names:
    """Check that record formats are registered. Raises ConfigError if a format is not."""
    for name in names:
        get_format(name)
    return names


def _valid_globs(globs: tuple[str, ...]) -> tuple[str, ...]:
    """Check globs. Raises ValueError if a glob cannot match any file."""
    for glob in globs:
        check_glob(glob)
    return globs


def _failure_limit(value: Any) -> Any:
    """Prepare the setting ``max_failures``: do as ``_as_share``, and refuse YAML's null.

    Null becomes the text ``none``, which ``allowed_failures`` refuses with an explanation.
    """
    return "none" if value is None else _as_share(value)


def _as_share(value: Any) -> Any:
    """Return a float as a percentage: 0.05 becomes ``5.00%``. Other values stay unchanged."""
    return f"{Decimal(str(value)) * 100:f}%" if isinstance(value, float) else value


Location = Annotated[str, BeforeValidator(_as_location), AfterValidator(check_no_credentials)]
Positive = Annotated[int, Field(ge=1)]


class SampleLimit(NamedTuple):
    """How long the conversion of one sample may last, and what happens if it takes longer.

    Attributes:
        seconds: the maximum duration.
        on_hung: what happens if a sample takes longer: the job stops, or the sample fails.
    """

    seconds: float = 600.0
    on_hung: Literal["stop", "fail"] = "stop"


DEFAULT_SAMPLE_LIMIT = SampleLimit()


class TLSOptions(BaseModel):
    """PEM files for a cluster whose address begins with ``tls://``."""

    model_config = _STRICT

    ca_file: str
    """CA certificate of the cluster."""

    cert: str
    """This machine's certificate."""

    key: str
    """Private key of this machine's certificate."""


class DaskOptions(BaseModel):
    """Where a job runs: in worker processes, on a cluster, or in this process."""

    model_config = _STRICT

    workers: Positive | None = None
    """Number of workers. (default: one per usable CPU)"""

    processes: bool | Literal["auto"] = "auto"
    """`auto`, `true`: run in worker processes. `false`: run in this process, for notebooks and
    tests; a crash of a codec ends it."""

    memory_limit: ByteSize = ByteSize(2 * 10**9)
    """Memory limit of each worker process."""

    scheduler: Annotated[str, AfterValidator(check_no_credentials)] | None = None
    """Address of a running cluster: `tcp://host:8786`."""

    tls: TLSOptions | None = None
    """Certificates for the cluster. (default: Dask's own configuration)"""

    cluster: str | None = None
    """A cluster class, such as `dask_jobqueue.SLURMCluster`. It starts programs, so read a config
    that you did not write before you run it."""

    cluster_args: dict[str, Any] = {}
    """Arguments of the class in `cluster`."""

    dashboard: str | None = None
    """The address on which Dask's dashboard listens: a host and a port, separated by a colon."""

    max_concurrent_uploads: Positive = 32
    """Maximum number of shards that all workers together store at the same time."""

    sample_timeout_s: Annotated[float, Field(gt=0, le=86_400)] = DEFAULT_SAMPLE_LIMIT.seconds
    """Maximum time for one image in seconds; see `hung_samples`."""

    retries: Annotated[int, Field(ge=0, le=20)] = 2
    """How often a shard is repeated after a temporary error of the store."""

    @property
    def is_external(self) -> bool:
        """Whether tasks run on a cluster, where they may continue after this process has ended."""
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
    """Settings of the command ``plan``. None of them changes the bytes of an output."""

    model_config = _STRICT

    readers: Positive | None = None
    """Number of readers (ranks times loader workers). `plan` warns if there are too few shards."""

    prices: Path | None = None
    """File of prices. (default: `configs/prices.yaml`)"""

    instance: str | None = None
    """Machine type whose price is used, such as `c7i.16xlarge`. (default: this machine, on EC2)"""

    upload_mb_per_s: Annotated[float, Field(gt=0)] | None = None
    """MB/s (10^6 bytes) that each worker stores. (default: 85 on S3; elsewhere, storing is not
    counted)"""


class ShardConfig(BaseModel):
    """The settings of one sharding job. docs/shard-config.md lists all keys."""

    model_config = _STRICT

    source: Location
    """Location of the images: a path or `s3://bucket/prefix`."""

    output: Location
    """Location of the shards: a path or `s3://bucket/prefix`."""

    kind: str = "imagefolder"
    """Kind of source: `imagefolder`, `flat`, `ilsvrc`, `webdataset`, `parquet`, `listing`,
    `records`, or another package's."""

    exclude: Annotated[tuple[str, ...], AfterValidator(_valid_globs)] = ()
    """Files and folders of the source to leave out, as globs: a name at any depth, or a path with
    a slash."""

    split: Annotated[str, AfterValidator(check_split)] = "train"
    """Name of the split."""

    format: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_registered_formats)] = (
        DEFAULT_FORMAT,
    )
    """Record format: `tfrecord`, `recordio`, `webdataset`, or several of them. Each image is
    decoded only once."""

    image: ImagePolicy = ImagePolicy()
    """How images are converted (docs/images.md)."""

    shard_size: ByteSize = ByteSize(64 * 2**20)
    """Size of a shard, 1MB to 128MB. With several formats, the size in the largest format."""

    shuffle: bool = True
    """Put the samples in a random order that depends on `seed` and their names. The kind `parquet`
    keeps the order of its rows: its default is `false`, and `true` is refused."""

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    """Seed of the sample order and of the validation split."""

    validation: Annotated[str | None, BeforeValidator(_as_share)] = None
    """Share of each class that becomes the split `validation`, such as `5%`."""

    labels: LabelOptions = LabelOptions()
    """Files that describe the classes (docs/labels.md)."""

    layout: str | dict[str, str] = "imagenet"
    """Names of the features in Examples: `imagenet`, `tfds`, or a mapping (docs/layouts.md)."""

    boxes: BoxOptions | None = None
    """Bounding boxes (docs/boxes.md); a path alone is their `source`."""

    label_offset: Annotated[
        dict[str, Annotated[int, Field(ge=-1000, le=1000)]], AfterValidator(_registered_formats)
    ] = {}
    """Number that is added to labels inside records, by format. (default: 1 for TFRecord of synsets
    in the layout `imagenet`, else 0)"""

    unlabelled: bool = False
    """The images have no classes, such as the test images of a contest. Each label is -1."""

    max_failures: Annotated[int | str, BeforeValidator(_failure_limit)] = "1%"
    """Maximum number of samples that may fail: a number, a share, or `unlimited`."""

    hung_samples: Literal["stop", "fail"] = "stop"
    """What to do if a sample exceeds `dask.sample_timeout_s` even when it is converted alone:
    `stop` the job, which can be resumed, or let the sample `fail`."""

    ilsvrc: ILSVRCOptions = ILSVRCOptions()
    """Settings of the kind `ilsvrc`, tar archives (docs/folders-and-tars.md)."""

    listing: ListingOptions = ListingOptions()
    """Settings of the kind `listing`, tables of paths (docs/listings-and-records.md)."""

    records: RecordsOptions = RecordsOptions()
    """Settings of the kind `records`, existing shards (docs/listings-and-records.md)."""

    webdataset: WebDatasetOptions = WebDatasetOptions()
    """Settings of the kind `webdataset`, WebDataset tars (docs/folders-and-tars.md)."""

    parquet: ParquetOptions = ParquetOptions()
    """Settings of the kind `parquet`, Parquet files with images (docs/folders-and-tars.md)."""

    source_concurrency: Annotated[int, Field(ge=1, le=256)] | None = None
    """Number of reads that each worker keeps in flight. (default: 1 from a disk, 32 from S3)"""

    store: StoreOptions = StoreOptions()
    """S3 options of the output, and of the source unless `source_store` is set."""

    source_store: StoreOptions | None = None
    """S3 options of the source."""

    dask: DaskOptions = DaskOptions()
    """Worker processes, or a cluster."""

    plan: PlanOptions = PlanOptions()
    """Settings of `dataprep plan` (docs/plan.md)."""

    @model_validator(mode="before")
    @classmethod
    def _default_shuffle(cls, values: Any) -> Any:
        """Set the default of ``shuffle``, which depends on the kind of the source."""
        if not isinstance(values, Mapping) or "shuffle" in values:
            return values
        kind = values.get("kind")
        keeps_order = isinstance(kind, str) and reads_runs(kind)
        return {**values, "shuffle": not keeps_order}

    @field_validator("shuffle")
    @classmethod
    def _check_shuffle(cls, value: bool, info: ValidationInfo) -> bool:
        """Refuse to shuffle a source that reads samples together with their neighbours."""
        kind = info.data.get("kind")
        if value and kind is not None and reads_runs(kind):
            raise ValueError(
                f"kind {kind} keeps the order of its source, because one sample cannot be read "
                "without its neighbours: leave shuffle out, and shard the output again with --kind "
                "records to shuffle it"
            )
        return value

    @field_validator("format", "exclude", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        """Accept a single name in place of a list."""
        return (value,) if isinstance(value, str) else value

    @field_validator("format")
    @classmethod
    def _without_repeats(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))

    @field_validator("boxes", mode="before")
    @classmethod
    def _as_box_options(cls, value: Any) -> Any:
        """Accept the location of the boxes in place of their options."""
        if isinstance(value, str | os.PathLike):
            return {"source": _as_location(value)}
        return value

    @field_validator("layout")
    @classmethod
    def _check_layout(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        Layout.of(value)
        return value

    @field_validator("shard_size")
    @classmethod
    def _check_shard_size(cls, value: ByteSize) -> ByteSize:
        if not MIN_SHARD_BYTES <= value <= MAX_SHARD_BYTES:
            raise ValueError("shards are 1 MB to 128 MB")
        return value

    @field_validator("validation")
    @classmethod
    def _check_validation(cls, value: str | None) -> str | None:
        if value is not None and not 0 < parse_share(value) < 1:
            raise ValueError("give a share between 0% and 100%, such as 5%")
        return value

    @field_validator("max_failures")
    @classmethod
    def _check_max_failures(cls, value: int | str) -> int | str:
        allowed_failures(value, 100)  # raises an error if the form is wrong
        return value

    @property
    def validation_share(self) -> Fraction | None:
        """``validation`` as an exact fraction; None if there is no validation split."""
        return None if self.validation is None else parse_share(self.validation)

    @property
    def record_options(self) -> RecordOptions:
        """How records are written, with a label offset of 0."""
        return RecordOptions.of({"layout": self.layout, "unlabelled": self.unlabelled}, 0)

    @property
    def sample_limit(self) -> SampleLimit:
        """How long one sample may take, and what happens if it takes longer."""
        return SampleLimit(self.dask.sample_timeout_s, self.hung_samples)

    def source_section(self) -> object | None:
        """Return the settings of the kind of the source; None if the kind has none."""
        # By default, the split that is read from records has the name of the split that is written.
        records_split = self.records.split or self.split
        sections = {
            "ilsvrc": self.ilsvrc,
            "listing": self.listing,
            "parquet": self.parquet,
            "records": self.records.model_copy(update={"split": records_split}),
            "webdataset": self.webdataset,
        }
        return sections.get(self.kind)

    def content(self) -> dict[str, Any]:
        """Return the settings that determine the bytes of the output.

        These settings are part of the job's fingerprint, and the manifest has them under
        ``config``. Some settings are left out although they affect the bytes: ``exclude``,
        ``labels``, the location of the boxes, and the settings of the kind of the source. Their
        effect is in the digest of the source, in the plan and in ``labels.json``. ``unlabelled`` is
        left out if it is false, as in outputs of earlier versions.
        """
        content = self.model_dump(
            mode="json",
            include={
                *("kind", "split", "format", "image", "shard_size", "shuffle", "seed"),
                *("validation", "layout", "boxes", "label_offset"),
            },
            exclude={"boxes": {"source"}},  # The plan contains the boxes themselves.
        )
        return {**content, "unlabelled": True} if self.unlabelled else content


class _StoreSection(BaseModel):
    """The part of a config that is needed to read the config itself from S3."""

    model_config = _STRICT

    store: StoreOptions = StoreOptions()


def load(
    path: str | Path | None, overrides: Mapping[str, Any], flags: Mapping[str, str] | None = None
) -> ShardConfig:
    """Read a config from a YAML file and overrides.

    Args:
        path: the YAML file: a path or ``s3://bucket/key``; None for overrides alone. An object on
            S3 is read with the overrides of ``store``.
        overrides: values by dotted key.
        flags: the command-line option for each dotted key that has one, for messages.

    Raises:
        ConfigError: the file does not exist or is not a mapping, or keys or values are wrong.
        StoreError: an object on S3 cannot be read.
    """
    content = None
    if "://" in str(path):
        folder, _, name = str(path).rpartition("/")
        options = store_options(
            {key: value for key, value in overrides.items() if key.startswith("store.")}
        )
        try:
            content = open_store(folder, options).get(name)
        except ObjectNotFound:
            raise ConfigError(f"cannot read config file {path}: there is no such object") from None
    return read_config(ShardConfig, path, overrides, flags, content)


def store_options(overrides: Mapping[str, Any]) -> StoreOptions:
    """Return store options from overrides such as ``store.profile``.

    Raises:
        ConfigError: a key or a value is wrong.
    """
    flags = {"store.endpoint_url": "--endpoint-url"}
    return read_config(_StoreSection, None, overrides, flags).store


def dump(config: ShardConfig) -> str:
    """Return all settings as YAML, including defaults. ``load`` reads it back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)
