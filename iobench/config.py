"""BenchConfig: all settings of a run, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator

from dataprep.config_file import read_config
from iobench.data.settings import DataSettings, check_home
from iobench.loops.loader_grid import LoaderGrid
from iobench.loops.training_settings import Training
from iobench.machine.page_cache import DropCaches
from iobench.machine.sampling import SamplingSettings
from iobench.probes.settings import DiskSettings, ObjectStoreSettings
from iobench.several import Settings

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Label = Annotated[str, Field(min_length=1, max_length=64)]


class TargetLimit(Settings):
    """The limit of a disk or a folder of data, if this machine cannot find it out."""

    volume: str | None = None
    """EBS volume type in the file of limits, such as `gp3`."""

    mb_per_s: Positive | None = None
    """MB/s (10^6 bytes) that the volume or device reads at most."""


class LimitSettings(Settings):
    """Limits of network, volumes and devices, if you know more than the machine reports."""

    file: Annotated[str, AfterValidator(check_home)] | None = None
    """File of limits. (default: `configs/limits.yaml`)"""

    instance: str | None = None
    """Type of this machine in that file, such as `g5.12xlarge`. (default: from the cloud)"""

    network_gbit_per_s: Positive | None = None
    """Gbit/s (10^9 bits) of this machine's network."""

    targets: dict[Label, TargetLimit] = {}  # noqa: RUF012  pydantic copies it
    """By the label of a disk target, or `data` (`data.folder`), `source`, `shards`, `mount`."""

    stores: dict[Label, Positive] = {}  # noqa: RUF012  pydantic copies it
    """Highest MB/s of an object store, by the target's label; `data` is `data.bucket`."""


class ScaleSettings(Settings):
    """A planned cluster: what its devices need of hosts like this one."""

    devices: Count
    """Devices that train together."""

    images_per_s: Positive | None = None
    """Images/s of all devices together. (default: that of the run's loop times `devices`)"""

    images_per_s_per_device: Positive | None = None
    """Images/s of one device."""

    devices_per_host: Count | None = None
    """Devices of each host. (default: this machine's GPUs, else 1)"""

    @model_validator(mode="after")
    def _one_rate(self) -> ScaleSettings:
        if self.images_per_s is not None and self.images_per_s_per_device is not None:
            raise ValueError("give images_per_s (of all devices) or images_per_s_per_device")
        return self


class CostSettings(Settings):
    """The cost of training at the rate of the run's training loop, with prices of the file `prices`
    or your own."""

    group: str | None = None
    """The training loop. (default: that of the verdict)"""

    epochs: Count = 90
    """Epochs of the training."""

    samples: Annotated[int, Field(ge=1)] | None = None
    """Samples of the data set. (default: those that the run reads)"""

    instance: str | None = None
    """Machine type in the file of prices. (default: this machine's)"""

    instance_usd_per_h: Dollars | None = None
    """Your price per hour of the machine with its devices."""

    disk_usd_per_gb_month: Dollars | None = None
    """Your price of a GB (2^30 bytes) of the data's disk; 0 if the machine includes it."""


class BenchConfig(Settings):
    """One run. Parts that are left out are not measured."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = "bench"
    """Name of the run and of its default folder."""

    repeats: Annotated[int, Field(ge=1, le=1000)] = 6
    """Trials per point, each in its own process; from 6 on, intervals cover 95 %."""

    order_seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the order of trials: each round of repeats has its own random order."""

    trial_timeout_s: Annotated[float, Field(gt=0, le=1_000_000)] = 600.0
    """Seconds after which a trial has failed."""

    more_workers_gain: Annotated[float, Field(ge=0, le=1)] | None = 0.02
    """Try more workers only if the last step raised the rate by this share; `null` tries all."""

    cost_limit_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """If requests to Amazon's S3 may cost more, the run asks first; `--yes` answers."""

    prices: Annotated[str, AfterValidator(check_home)] | None = None
    """File of prices. (default: `configs/prices.yaml`)"""

    drop_caches: DropCaches = "when-needed"
    """When to drop the whole machine's caches (root) before a cold trial; see docs/cold.md."""

    data: DataSettings = DataSettings()
    """The images and their copies."""

    disk: DiskSettings | None = None
    """Disks alone."""

    object_store: ObjectStoreSettings | None = None
    """Object stores alone."""

    loaders: tuple[LoaderGrid, ...] = ()
    """Loaders alone; each entry is a grid."""

    training: tuple[Training, ...] = ()
    """Training loops."""

    sampling: SamplingSettings = SamplingSettings()
    """Readings of the machine."""

    limits: LimitSettings = LimitSettings()
    """Limits of hardware; higher figures are reported as cached."""

    cost: CostSettings | None = None
    """The cost of a training."""

    scale: ScaleSettings | None = None
    """The needs of a cluster."""

    @model_validator(mode="before")
    @classmethod
    def _loaders_normalise_as_loops_do(cls, values: Any) -> Any:
        """Measure the loaders of training loops with the images that the loops take.

        Only then can the rate of a loop be predicted from that of its loader. If a loop takes
        float32 and could take uint8, both are measured, so that the gain is known.
        """
        if not isinstance(values, Mapping) or not isinstance(values.get("loaders"), list | tuple):
            return values
        loops = _valid_loops(values.get("training"))
        loaders = [_normalising_as(loops, entry) for entry in values["loaders"]]
        return {**values, "loaders": loaders}

    @field_validator("training")
    @classmethod
    def _groups_differ(cls, value: tuple[Training, ...]) -> tuple[Training, ...]:
        labels = [training.label for training in value]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two are called {label!r}: give each its own group")
        return value


def _valid_loops(entries: Any) -> list[Training]:
    """The training loops of a config that are valid. The others are reported later."""
    loops = []
    for entry in entries if isinstance(entries, list | tuple) else ():
        with suppress(ValidationError):
            loops.append(Training.model_validate(entry))
    return loops


def _normalising_as(loops: Sequence[Training], entry: Any) -> Any:
    """An entry of ``loaders`` with the values of ``normalise`` that loops with its loader need."""
    if not isinstance(entry, Mapping) or entry.get("normalise") is not None:
        return entry
    names = entry.get("loader")
    names = names if isinstance(names, list | tuple) else [names]
    needed = set()
    for loop in loops:
        if loop.loader in names:
            needed.add(loop.normalise)
            if loop.can_normalise_on_device:
                needed.add(False)
    return {**entry, "normalise": sorted(needed, reverse=True) or [True]}


BOUNDS = frozenset({"trial_timeout_s", "cost_limit_usd", "prices", "limits", "cost", "scale"})
"""Keys that do not change what a run measures; a resumed run may have other values."""


def load(path: Path | None, overrides: Mapping[str, Any]) -> BenchConfig:
    """A config from a YAML file and dotted overrides; raises what ``read_config`` does."""
    return read_config(BenchConfig, path, overrides)


def dump(config: BenchConfig) -> str:
    """The whole config as YAML, with defaults, for ``load``."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
