"""PURE. Each measured rate beside its ceiling: share, and what a rate above it is.

``verdict``: ``within`` the ceiling, ``beyond`` it (a cache gave the rest), ``cache`` where the
page cache was asked or nothing else was shown, so that no ceiling binds, ``above-guaranteed``
where more than what is promised came, as it may for a while, ``unknown`` where no ceiling is known.
"""

from __future__ import annotations

from typing import Any

from iobench.result import Result
from iobench.roofline.ceilings import Ceiling, binding, of_store, of_target
from iobench.roofline.rates import Rate, rates


def roofline(result: Result) -> list[dict[str, Any]]:
    """A row a rate, in the order of what was measured; JSON values."""
    return [_row(rate, result) for rate in rates(result)]


def _row(rate: Rate, result: Result) -> dict[str, Any]:
    of = of_target if rate.side == "target" else of_store
    ceilings, unknown = of(rate.place, result)
    ceiling = binding(ceilings)
    median = float(rate.mb_per_s["median"])
    return {
        "side": rate.side,
        "place": rate.place,
        "by": rate.by,
        "what": rate.what,
        "mb_per_s": dict(rate.mb_per_s),
        "sample_bytes": rate.sample_bytes,
        "samples_per_s": rate.samples_per_s,
        "limit_mb_per_s": ceiling.mb_per_s if ceiling else None,
        "limit_of": ceiling.what if ceiling else "",
        "limit_source": ceiling.source if ceiling else "",
        "guaranteed": ceiling.guaranteed if ceiling else False,
        "share": median / ceiling.mb_per_s if ceiling else None,
        "verdict": _verdict(rate, median, ceiling),
        "why": unknown,
    }


def _verdict(rate: Rate, median: float, ceiling: Ceiling | None) -> str:
    if rate.cached:
        return "cache"
    if ceiling is None:
        return "unknown"
    if median <= ceiling.mb_per_s:
        return "within"
    return "above-guaranteed" if ceiling.guaranteed else "beyond"
