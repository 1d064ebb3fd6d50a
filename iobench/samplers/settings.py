"""What is sampled while trials run, and how often."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from iobench.samplers import SAMPLERS
from iobench.samplers.opened import USUAL
from iobench.several import AnyNumber

SamplerName = Annotated[str, AfterValidator(SAMPLERS.check)]


class SamplingSettings(BaseModel):
    """Series of the machine, on the clock of the steps."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    per_s: Annotated[float, Field(ge=1, le=10)] = 2.0
    """Readings a second."""

    samplers: AnyNumber[SamplerName] = USUAL
    """What is read: `cpu` (of the machine), `tree` (of the trial and its workers), `disk`,
    `network`, `page-cache`, `gpu` (NVIDIA, with the extra `gpu`), and those of other packages;
    `[]` for nothing. What a machine does not have is left out."""
