"""What the machine does meanwhile: samplers by name, through entry points."""

from __future__ import annotations

from dataprep.registry import Registry
from iobench.samplers.protocol import Sampler

__all__ = ["SAMPLERS", "Sampler"]

SAMPLERS: Registry[Sampler] = Registry("iobench.samplers", "sampler")
