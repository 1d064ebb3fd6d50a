"""PURE. Measured rates against what link, volume and device can do at most."""

from __future__ import annotations

from iobench.roofline.findings import findings
from iobench.roofline.rows import roofline

__all__ = ["findings", "roofline"]
