"""What a run's figures are carried over to: a cluster's needs, and what training costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]
_SETTINGS = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ScaleSettings(BaseModel):
    """A cluster, on paper: what its devices need of hosts like this one."""

    model_config = _SETTINGS

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


class CostSettings(BaseModel):
    """What training costs with what the run's training loop gets. Prices are those of the file
    that `prices` names, or your own."""

    model_config = _SETTINGS

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
