"""PURE. A run's figures held against what others say: limits, prices, a cluster's needs."""

from __future__ import annotations

from dataclasses import replace

from iobench import roofline
from iobench.result import Result


def held(result: Result) -> Result:
    """The same, its summary and findings with what follows from them."""
    rows = roofline.roofline(result)
    return replace(
        result,
        summary={**result.summary, "roofline": rows},
        findings=(*result.findings, *roofline.findings(rows)),
    )
