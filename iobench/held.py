"""PURE. A run's figures held against what others say: limits, prices, a cluster's needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from iobench.cost import cost
from iobench.result import Result
from iobench.roofline import roofline
from iobench.scale import scale, shared


def held(result: Result) -> Result:
    """The same, its summary with what follows from them."""
    return replace(result, summary={**result.summary, **dict(_parts(result))})


def _parts(result: Result) -> Iterator[tuple[str, Any]]:
    yield "roofline", roofline(result)
    yield "processes", shared(result.trials)
    if asked := result.config.get("cost"):
        yield "cost", cost(result, asked)
    if asked := result.config.get("scale"):
        yield "scale", scale(result, asked)
