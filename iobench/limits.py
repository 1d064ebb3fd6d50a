"""What instances, volumes and stores can give at most: a dated file that people edit, and a
config's own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from dataprep.config_file import EXAMPLES, read_config
from iobench.data.settings import check_home

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Label = Annotated[str, Field(min_length=1, max_length=64)]
_STRICT = ConfigDict(frozen=True, extra="forbid")
_SETTINGS = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class InstanceLimits(BaseModel):
    """Of one type of machine; ``baseline`` is what is guaranteed where more is had for a while."""

    model_config = _STRICT

    network_gbit_per_s: Rate | None = None
    network_baseline_gbit_per_s: Rate | None = None
    ebs_gbit_per_s: Rate | None = None


class VolumeLimits(BaseModel):
    """Of one volume of a type."""

    model_config = _STRICT

    mib_per_s: Rate


class StoreLimits(BaseModel):
    """Of an object store, by its kind in ``iobench.machine``."""

    model_config = _STRICT

    gets_per_s_per_prefix: Rate | None = None


class Limits(BaseModel):
    """A file of limits, and where and when they were read."""

    model_config = _STRICT

    as_of: str
    source: str
    instances: dict[str, InstanceLimits] = {}
    volumes: dict[str, VolumeLimits] = {}
    stores: dict[str, StoreLimits] = {}

    @field_validator("as_of", mode="before")
    @classmethod
    def _date_as_text(cls, value: object) -> object:
        return str(value)


class TargetLimit(BaseModel):
    """What a disk or a folder of data can give, where this machine cannot tell."""

    model_config = _SETTINGS

    volume: str | None = None
    """Type of an EBS volume as in the file of limits, such as `gp3`."""

    mb_per_s: Rate | None = None
    """MB/s (10^6 bytes) that the volume or device gives at most: your own figure."""


class LimitSettings(BaseModel):
    """What link, volume and device can do at most, where you know more than the machine tells."""

    model_config = _SETTINGS

    file: Annotated[str, AfterValidator(check_home)] | None = None
    """A file such as `configs/limits.yaml`; that example where none is named."""

    instance: str | None = None
    """Type of this machine in that file, such as `g5.12xlarge`, where no metadata tells it."""

    network_gbit_per_s: Rate | None = None
    """What this machine's network carries, Gbit/s (10^9 bits)."""

    targets: dict[Label, TargetLimit] = {}
    """By the label of a disk target; `data` is `data.folder`, `source`, `shards` and `mount` what
    is given there."""

    stores: dict[Label, Rate] = {}
    """MB/s that an object store gives to this machine at most, by the target's label; `data` is
    `data.bucket`."""


def read_limits(path: Path | None) -> Limits:
    """Limits from a file, else from the example that comes with the package.

    Raises:
        ConfigError: no such file, or it is not such a file.
    """
    return read_config(Limits, path or EXAMPLES / "limits.yaml", {})
