"""PURE. A forecast as JSON values: for machines, and beside the figures in ``result.json``."""

from __future__ import annotations

from typing import Any

from iobench.forecast.bounds import Bounds
from iobench.forecast.predicted import Predicted
from iobench.forecast.whole import Forecast, StoreTotal
from iobench.requests import Requests


def content(forecast: Forecast) -> dict[str, Any]:
    """All of it; bounds are ``[low, high]``, and high is null where nothing bounds them."""
    return {
        "trials": [
            {"id": spec.id, "kind": spec.kind, "params": dict(spec.params), "repeat": spec.repeat}
            | _predicted(found)
            for spec, found in forecast.trials
        ],
        "making": [{"what": made.words} | _predicted(made.predicted) for made in forecast.making],
        "total": totals(forecast),
        "from_other_packages": dict(forecast.others),
        "unknown": forecast.unknown,
        "assumed": forecast.assumed,
        "warnings": list(forecast.problems),
    }


def totals(forecast: Forecast) -> dict[str, Any]:
    """The sums, as ``result.json`` keeps them."""
    likely_s, unknown = forecast.likely_s
    return {
        "trials": len(forecast.trials),
        "measured_before": forecast.before,
        "likely_s": round(likely_s, 3),
        "steps_of_unknown_length": unknown,
        "most_s": forecast.most_s,
        **{f"{name}_bytes": list(bounds) for name, bounds in forecast.bytes.items()},
        "usd": _bounds(forecast.usd),
        "stores": {name: _store(store) for name, store in forecast.stores.items()},
    }


def _predicted(found: Predicted) -> dict[str, Any]:
    return {
        "seconds": list(found.seconds),
        "likely_s": found.likely_s,
        "disk_read_bytes": list(found.disk_read),
        "disk_written_bytes": list(found.disk_written),
        "store_read_bytes": list(found.store_read),
        "store_written_bytes": list(found.store_written),
        "store": found.store,
        "requests": [_requests(found.requests[0]), _requests(found.requests[1])],
        "unknown": list(found.unknown),
    }


def _store(store: StoreTotal) -> dict[str, Any]:
    return {
        "server": store.facts.server,
        "read_bytes": list(store.read),
        "written_bytes": list(store.written),
        "requests": [_requests(store.requests[0]), _requests(store.requests[1])],
        "usd": _bounds(store.usd),
        "prices": store.facts.prices,
    }


def _requests(found: Requests | None) -> dict[str, int] | None:
    if found is None:
        return None
    return {"puts": found.puts, "gets": found.gets, "lists": found.lists}


def _bounds(found: Bounds | None) -> list[float | None] | None:
    return None if found is None else list(found)
