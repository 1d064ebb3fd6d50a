"""BenchConfig: all settings of a run, checked before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field, field_validator, model_validator

from dataprep.config_file import read_config
from iobench.data.settings import DataSettings, check_home
from iobench.loops.loader_grid import LoaderGrid
from iobench.loops.training_plan import Training
from iobench.machine.page_cache import DropCaches
from iobench.machine.sampling import SamplingSettings
from iobench.probes.settings import DiskSettings, ObjectStoreSettings
from iobench.several import Settings

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
Label = Annotated[str, Field(min_length=1, max_length=64)]


class TargetLimit(Settings):
    """What a disk or a folder of data can give, where this machine cannot tell."""

    volume: str | None = None
    """Type of an EBS volume as in the file of limits, such as `gp3`."""

    mb_per_s: Positive | None = None
    """MB/s (10^6 bytes) that the volume or device gives at most: your own figure."""


class LimitSettings(Settings):
    """What link, volume and device can do at most, where you know more than the machine tells."""

    file: Annotated[str, AfterValidator(check_home)] | None = None
    """A file such as `configs/limits.yaml`; that example where none is named."""

    instance: str | None = None
    """Type of this machine in that file, such as `g5.12xlarge`, where no metadata tells it."""

    network_gbit_per_s: Positive | None = None
    """What this machine's network carries, Gbit/s (10^9 bits)."""

    targets: dict[Label, TargetLimit] = {}  # noqa: RUF012  pydantic copies it
    """By the label of a disk target; `data` is `data.folder`, `source`, `shards` and `mount` what
    is given there."""

    stores: dict[Label, Positive] = {}  # noqa: RUF012  pydantic copies it
    """MB/s that an object store gives to this machine at most, by the target's label; `data` is
    `data.bucket`."""


class ScaleSettings(Settings):
    """A cluster, on paper: what its devices need of hosts like this one."""

    devices: Count
    """That train together."""

    images_per_s: Positive | None = None
    """What all of them consume together; unless told, what the run's own training loop consumes a
    device, times their number."""

    images_per_s_per_device: Positive | None = None
    """The same of one device."""

    devices_per_host: Count | None = None
    """Of each host; unless told, this machine's GPUs, else 1."""

    @model_validator(mode="after")
    def _one_rate(self) -> ScaleSettings:
        if self.images_per_s is not None and self.images_per_s_per_device is not None:
            raise ValueError("give images_per_s (of all devices) or images_per_s_per_device")
        return self


class CostSettings(Settings):
    """What training costs with what the run's training loop gets. Prices are those of the file
    that `prices` names, or your own."""

    group: str | None = None
    """The training loop that is meant; unless told, the one of which the run's verdict speaks."""

    epochs: Count = 90
    """Until training is done."""

    samples: Annotated[int, Field(ge=1)] | None = None
    """Of the whole data set; unless told, of what the run reads."""

    instance: str | None = None
    """Type of the machine in the file of prices, where it is another than the one that measures
    says it is."""

    instance_usd_per_h: Dollars | None = None
    """What an hour of the machine costs you, all its devices included."""

    disk_usd_per_gb_month: Dollars | None = None
    """What a GB (2^30 bytes) of the disk that data lie on costs a month; 0 for disks that the
    machine has anyhow."""


class BenchConfig(Settings):
    """One run. What is left out is not measured."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = "bench"
    """Of the run, and of its default folder."""

    repeats: Annotated[int, Field(ge=1, le=1000)] = 6
    """Trials of each point, each in a process of its own; from 6 on intervals cover 95 %."""

    trial_timeout_s: Annotated[float, Field(gt=0, le=1_000_000)] = 600.0
    """Seconds after which a trial has failed."""

    more_workers_gain: Annotated[float, Field(ge=0, le=1)] | None = 0.02
    """Share of its rate that more workers must have brought a loader for even more to be tried;
    `null` tries all that a grid has."""

    cost_limit_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 5.0
    """US dollars: a run whose requests to Amazon's S3 may cost more is begun only after a question,
    or with `--yes`."""

    prices: Annotated[str, AfterValidator(check_home)] | None = None
    """A file of prices, such as `configs/prices.yaml`; that example where none is named."""

    drop_caches: DropCaches = "when-needed"
    """Of the whole machine, as root, before what is to be cold: `never`; `when-needed`, where more
    than 1 % of a file's pages stay after its own eviction; `always`, names and inodes too, which
    everybody on the machine feels. See docs/cold.md."""

    data: DataSettings = DataSettings()
    """Which images are read, and where copies of them are made."""

    disk: DiskSettings | None = None
    """Disks alone."""

    object_store: ObjectStoreSettings | None = None
    """Object stores alone."""

    loaders: tuple[LoaderGrid, ...] = ()
    """Loaders with nothing behind them; each entry is a grid."""

    training: tuple[Training, ...] = ()
    """Training loops."""

    sampling: SamplingSettings = SamplingSettings()
    """What the machine does while trials run."""

    limits: LimitSettings = LimitSettings()
    """The most that link, volume and device can carry; higher figures are reported as cached."""

    cost: CostSettings | None = None
    """What training costs with these figures."""

    scale: ScaleSettings | None = None
    """A cluster whose needs are worked out from the figures."""

    @field_validator("training")
    @classmethod
    def _groups_differ(cls, value: tuple[Training, ...]) -> tuple[Training, ...]:
        labels = [training.label for training in value]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"two of them are called {label!r}: give each a group of its own")
        return value


BOUNDS = frozenset({"trial_timeout_s", "cost_limit_usd", "prices", "limits", "cost", "scale"})
"""Keys that bound a run, or that its figures are held against, and that are no part of what it
measures: a resumed run may have others."""


def load(path: Path | None, overrides: Mapping[str, Any]) -> BenchConfig:
    """A config from a YAML file and dotted overrides; raises what ``read_config`` does."""
    return read_config(BenchConfig, path, overrides)


def dump(config: BenchConfig) -> str:
    """The whole config as YAML, defaults included; ``load`` reads it back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
