"""PURE. From what one machine was seen to supply to what a cluster needs."""

from __future__ import annotations

from iobench.scale.cluster import scale
from iobench.scale.shared import shared

__all__ = ["scale", "shared"]
