"""``BenchConfig``: all settings of a run. They are checked before the first trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from dataprep.config.files import read_config
from iobench.data.settings import DataSettings, check_home
from iobench.machine.page_cache import DropCaches
from iobench.machine.sampling import SamplingSettings
from iobench.probes.settings import DiskSettings, ObjectStoreSettings
from iobench.settings import Settings
from iobench.trials.loader_grid import LoaderGrid
from iobench.trials.training_settings import Training
from iobench.trials.trial_timeout import DEFAULT_TIMEOUT_S

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Label = Annotated[str, Field(min_length=1, max_length=64)]


class TargetLimit(Settings):
    """The limit of a disk or of a data folder. It is needed if this machine does not report it."""

    volume: str | None = None
    """EBS volume type in the file of limits, such as `gp3`."""

    mb_per_s: Positive | None = None
    """Highest MB/s (10^6 bytes) that the volume or device reads."""


class LimitSettings(Settings):
    """Limits of network, volumes and devices that the machine does not report."""

    file: Annotated[str, AfterValidator(check_home)] | None = None
    """File of limits. (default: `configs/limits.yaml`)"""

    instance: str | None = None
    """Type of this machine in that file, such as `g5.12xlarge`. (default: from the cloud)"""

    network_gbit_per_s: Positive | None = None
    """Bandwidth of this machine's network in Gbit/s (10^9 bits)."""

    targets: dict[Label, TargetLimit] = {}  # noqa: RUF012  pydantic copies it
    """Limits by the label of a disk target, or by `data` (for `data.folder`), `source`, `shards` or
    `mount`."""

    stores: dict[Label, Positive] = {}  # noqa: RUF012  pydantic copies it
    """Highest MB/s of an object store, by the label of the target. `data` stands for
    `data.bucket`."""


class ScaleSettings(Settings):
    """A planned cluster of hosts that are like this host, and the rate that its devices need."""

    devices: Count
    """Number of devices that train together."""

    images_per_s: Positive | None = None
    """Images/s of all devices together. (default: the rate of the run's loop times `devices`)"""

    images_per_s_per_device: Positive | None = None
    """Images/s of one device."""

    devices_per_host: Count | None = None
    """Number of devices of each host. (default: the number of this machine's GPUs, or 1)"""

    @model_validator(mode="after")
    def _check_rates(self) -> ScaleSettings:
        if self.images_per_s is not None and self.images_per_s_per_device is not None:
            raise ValueError("give images_per_s (of all devices) or images_per_s_per_device")
        return self


class CostSettings(Settings):
    """The cost of a training at the rate of the run's training loop.

    Prices come from the file `prices`, or from the keys below.
    """

    group: str | None = None
    """Group of the training loop. (default: the loop of the verdict)"""

    epochs: Count = 90
    """Number of epochs of the training."""

    samples: Annotated[int, Field(ge=1)] | None = None
    """Number of samples in the data set. (default: the number of samples that the run reads)"""

    instance: str | None = None
    """Machine type in the file of prices. (default: the type of this machine)"""

    instance_usd_per_h: Dollars | None = None
    """Your price per hour of the machine with its devices."""

    disk_usd_per_gb_month: Dollars | None = None
    """Your price per month of 2^30 bytes on the disk with the data; 0 if the price of the machine
    includes the disk."""


class BenchConfig(Settings):
    """The settings of a run. Sections that are left out are not measured."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = "bench"
    """Name of the run and of its default folder."""

    repeats: Annotated[int, Field(ge=1, le=1000)] = 6
    """Number of trials of each point, each in its own process. With 6 or more, intervals cover
    95 %."""

    order_seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the order of trials: each round of repeats has its own random order."""

    trial_timeout_s: Annotated[float, Field(gt=0, le=1_000_000)] = DEFAULT_TIMEOUT_S
    """Time limit of a trial in seconds. A trial that takes longer has failed."""

    more_workers_gain: Annotated[float, Field(ge=0, le=1)] | None = 0.02
    """Measure more workers only if the last increase of their number raised the rate by at least
    this share. `null`: measure all numbers of workers."""

    cost_limit_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """If requests to Amazon's S3 may cost more than this, the run asks before it starts. `--yes`
    answers yes."""

    prices: Annotated[str, AfterValidator(check_home)] | None = None
    """File of prices. (default: `configs/prices.yaml`)"""

    drop_caches: DropCaches = "when-needed"
    """When to drop all caches of the machine (as root) before a cold trial (docs/cold.md)."""

    data: DataSettings = DataSettings()
    """The images and their copies."""

    disk: DiskSettings | None = None
    """Measurements of disks, without loaders."""

    object_store: ObjectStoreSettings | None = None
    """Measurements of object stores, without loaders."""

    loaders: tuple[LoaderGrid, ...] = ()
    """Measurements of loaders without training; each entry is a grid."""

    training: tuple[Training, ...] = ()
    """Measurements of training loops."""

    sampling: SamplingSettings = SamplingSettings()
    """Readings of the machine during trials."""

    limits: LimitSettings = LimitSettings()
    """Limits of hardware. Rates above these limits are reported as cached."""

    cost: CostSettings | None = None
    """The cost of a training."""

    scale: ScaleSettings | None = None
    """The needs of a planned cluster."""

    @model_validator(mode="before")
    @classmethod
    def _normalise_loaders_as_in_loops(cls, values: Any) -> Any:
        """Set ``normalise`` of the loaders to the values that the training loops need.

        The rate of a loop can be predicted from the rate of its loader only if the loader hands
        over images of the same type. If a loop takes float32 images and could take uint8 images,
        both types are measured, so that the gain is known.
        """
        if not isinstance(values, Mapping) or not isinstance(values.get("loaders"), list | tuple):
            return values
        loops = _valid_loops(values.get("training"))
        loaders = [_with_normalise_of(loops, entry) for entry in values["loaders"]]
        return {**values, "loaders": loaders}

    @field_validator("training")
    @classmethod
    def _require_distinct_groups(cls, loops: tuple[Training, ...]) -> tuple[Training, ...]:
        labels = [loop.label for loop in loops]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(
                    f"two training loops are called {label!r}: give each its own group"
                )
        return loops


def _valid_loops(entries: Any) -> list[Training]:
    """Return the valid entries of ``training``. Invalid entries are reported later.

    Args:
        entries: the value of the key in the user's config. It may have any type.
    """
    if not isinstance(entries, list | tuple):
        return []
    loops = []
    for entry in entries:
        with suppress(ValidationError):
            loops.append(Training.model_validate(entry))
    return loops


def _with_normalise_of(loops: Sequence[Training], entry: Any) -> Any:
    """Return an entry of ``loaders`` with the values of ``normalise`` that the loops need.

    Args:
        loops: the training loops of the config.
        entry: the entry in the user's config. It may have any type.
    """
    if not isinstance(entry, Mapping) or entry.get("normalise") is not None:
        return entry
    names = entry.get("loader")
    names = names if isinstance(names, list | tuple) else [names]
    values: set[bool] = set()
    for loop in loops:
        if loop.loader in names:
            values.add(loop.normalise)
            if loop.can_normalise_on_device:
                values.add(False)
    return {**entry, "normalise": sorted(values, reverse=True) or [True]}


CHANGEABLE_KEYS = frozenset(
    {"trial_timeout_s", "cost_limit_usd", "prices", "limits", "cost", "scale"}
)
"""Keys that may have other values in a resumed run, because they do not change the measurements."""


def load(path: Path | None, overrides: Mapping[str, Any]) -> BenchConfig:
    """Read a config from a YAML file and dotted overrides.

    Raises:
        ConfigError: as ``read_config`` raises it.
    """
    return read_config(BenchConfig, path, overrides)


def dump(config: BenchConfig) -> str:
    """Return the complete config as YAML, with defaults, for ``load``."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
