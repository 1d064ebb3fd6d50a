"""What a run's figures are carried over to: a cluster's needs, and what training costs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
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
