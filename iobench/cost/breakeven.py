"""PURE. When it pays to resize the images beforehand, and to stage them on a local disk.

Both cost once and save some of each epoch. They pay from the first epoch on at which what was saved
is no less than what was spent. What lay somewhere before stays there, so that storage is only
added. Where an hour of the machine has no price, hours are compared: the same machine does both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

from iobench.cost.epochs import epoch
from iobench.cost.prices import Known
from iobench.cost.rates import Rate, Side, alike
from iobench.result import Result
from iobench.summary.points import by_point, figure

_UNRESIZED = ("originals", "photos")
_RESIZED = ("shards", "files")
_SIDES: tuple[Side, ...] = ("disk", "store")


def resizing(
    result: Result, group: Mapping[str, Any], samples: float, epochs: int, prices: Known
) -> dict[str, Any]:
    """Images resized once, beside images resized whenever they are read."""
    what = "resizing beforehand"
    pair = _pair(result, group)
    if pair is None:
        return _lacking(what, "measure the same data resized and not: shards@… and originals@…")
    before, after = pair
    made = _made(result)
    if made is None:
        return _lacking(what, "how long resizing takes is not known: no shards were made of images")
    once_h = samples / made["images_per_s"] / 3600
    puts = samples * (after.objects or 0.0) if after.side == "store" else 0.0
    once_usd = _sum(prices.hours(once_h), prices.requests(puts=puts))
    basis = (
        f"{made['images_per_s']:,.0f} images/s by {made['workers'] or 'unknown'} workers on this "
        f"machine; {before.basis}; {after.basis}"
    )
    return _paid(what, before, after, once_h, once_usd, samples, epochs, prices, group, basis)


def staging(
    result: Result, group: Mapping[str, Any], samples: float, epochs: int, prices: Known
) -> dict[str, Any]:
    """Shards copied to a local disk once, beside shards read from the store in each epoch."""
    what = "staging to a local disk"
    pair = _far_and_near(result, group)
    if pair is None:
        return _lacking(what, "measure the same data from both: shards@s3 and shards@disk")
    far, near = pair
    copied = _copied_mb_per_s(result)
    if copied is None:
        return _lacking(what, "measure how fast they can be copied: object_store, or access: file")
    rate_mb, by = copied
    once_h = samples * far.sample_bytes / (rate_mb * 1e6) / 3600
    gets = samples * far.objects if far.objects is not None else None
    once_usd = _sum(prices.hours(once_h), prices.requests(gets=gets) if gets is not None else None)
    basis = f"copied at {rate_mb:,.0f} MB/s ({by}); {far.basis}; {near.basis}"
    return _paid(what, far, near, once_h, once_usd, samples, epochs, prices, group, basis)


def _paid(
    what: str,
    before: Rate,
    after: Rate,
    once_h: float,
    once_usd: float | None,
    samples: float,
    epochs: int,
    prices: Known,
    group: Mapping[str, Any],
    basis: str,
) -> dict[str, Any]:
    consumes = group["consumes"]["median"] if group.get("consumes") else None
    rows = [epoch(rate, consumes, samples, epochs, prices) for rate in (before, after)]
    saved_h = rows[0]["hours"] - rows[1]["hours"]
    saved_usd = None
    if once_usd is not None and rows[0]["usd"] is not None and rows[1]["usd"] is not None:
        # A part that one of them lacks cannot be held against the other's.
        both = [key for key in ("busy", "idle", "requests") if _told(rows, key)]
        saved_usd = sum(rows[0][f"{key}_usd"] - rows[1][f"{key}_usd"] for key in both)
        # What was there before stays where it is: what is new is kept beside it.
        saved_usd -= rows[1]["storage_usd"] or 0.0
    by_usd = saved_usd is not None and once_usd is not None
    saved, once = (saved_usd, once_usd) if by_usd else (saved_h, once_h)
    assert saved is not None and once is not None  # noqa: S101, PT018  both or neither
    from_epoch = max(1, math.ceil(once / saved)) if saved > 0 else None
    return {
        "what": what,
        "from": rows[0]["data"],
        "to": rows[1]["data"],
        "once_hours": once_h,
        "once_usd": once_usd,
        "saved_hours": saved_h,
        "saved_usd": saved_usd,
        "compared": "usd" if by_usd else "hours",
        "pays_from_epoch": from_epoch,
        "pays": from_epoch is not None and from_epoch <= epochs,
        "without": sorted({*rows[0]["without"], *rows[1]["without"]} - _kept(rows)),
        "basis": basis,
        "unknown": "",
    }


def _told(rows: list[dict[str, Any]], key: str) -> bool:
    return all(row[f"{key}_usd"] is not None for row in rows)


def _kept(rows: list[dict[str, Any]]) -> set[str]:
    """What the first has and the second need not have: storage that stays as it is."""
    return {"storage"} if rows[1]["storage_usd"] is not None else set()


def _pair(result: Result, group: Mapping[str, Any]) -> tuple[Rate, Rate] | None:
    """Unresized and resized data from one place, the disk first."""
    for side, one, other in product(_SIDES, _UNRESIZED, _RESIZED):
        if (found := alike(result, group, (one, side), (other, side))) is not None:
            return found
    return None


def _far_and_near(result: Result, group: Mapping[str, Any]) -> tuple[Rate, Rate] | None:
    """One form of data from a store and from a disk."""
    for form in (*_RESIZED, *_UNRESIZED):
        if (found := alike(result, group, (form, "store"), (form, "disk"))) is not None:
            return found
    return None


def _made(result: Result) -> dict[str, Any] | None:
    """Images/s of the job that resized them; None where no job re-encoded any."""
    making = result.references.get("making")
    made = making if isinstance(making, Mapping) else {}
    for name, told in made.items():
        if str(name).startswith("shards") and told.get("reencoded"):
            rate = told["samples"] / told["seconds"]
            return {"images_per_s": rate, "workers": told.get("workers")}
    return None


def _copied_mb_per_s(result: Result) -> tuple[float, str] | None:
    """The fastest GETs of whole objects."""
    found = []
    for params, repeats in by_point(result.trials, "object"):
        rate = figure(repeats, "mb_per_s")
        if rate and params.get("operation") == "get":
            found.append((float(rate["median"]), f"GETs by {params['client']}"))
    return max(found, default=None)


def _lacking(what: str, why: str) -> dict[str, Any]:
    return {"what": what, "unknown": why}


def _sum(*parts: float | None) -> float | None:
    told = [part for part in parts if part is not None]
    return sum(told) if len(told) == len(parts) else None
