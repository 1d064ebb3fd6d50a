"""PURE. What hovering over a figure shows."""

from __future__ import annotations

from collections.abc import Callable

from iobench.report.model.drawings import Tip
from iobench.report.model.numbers import number
from iobench.stats import Estimate

_NO_BREAK = "\u00a0"


def tip(
    name: str, found: Estimate, unit: str, cache: str = "", say: Callable[[float], str] = number
) -> Tip:
    """Value with unit, what it may lie between, how often it was measured, how cold."""
    between = f"{say(found.low)} to {say(found.high)}"
    covered = f"{found.coverage:.1%}".replace("%", f"{_NO_BREAK}%")
    if found.repeats <= 1:
        between = "none of one repeat"
    elif found.coverage < 0.95:
        between += " (all repeats, no 95 % interval)"
    else:
        between += f" ({covered})"
    return Tip(
        name, f"{say(found.median)} {unit}".strip(), between, str(found.repeats), cache or "n/a"
    )
