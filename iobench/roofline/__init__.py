"""PURE. Measured rates against what link, volume and device can do at most."""

from __future__ import annotations

from iobench.roofline.rows import roofline

__all__ = ["roofline"]
