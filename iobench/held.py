"""PURE. A run's figures held against what others say: limits, prices, a cluster's needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iobench import roofline, scale
from iobench.cost import cost
from iobench.result import Result


def held(result: Result) -> Result:
    """The same, its summary and findings with what follows from them."""
    summary = dict(_parts(result))
    return replace(
        result,
        summary={**result.summary, **summary},
        findings=(
            *result.findings,
            *roofline.findings(summary["roofline"]),
            *scale.findings(summary["processes"]),
        ),
    )


def _parts(result: Result) -> Iterator[tuple[str, Any]]:
    yield "roofline", roofline.roofline(result)
    yield "processes", scale.shared(result.trials)
    if asked := result.config.get("cost"):
        yield "cost", cost(result, asked)
    if asked := result.config.get("scale"):
        yield "scale", scale.scale(result, asked)
