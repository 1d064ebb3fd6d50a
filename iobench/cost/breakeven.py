"""PURE. When it pays to resize the images beforehand, and to stage them on a local disk.

Both cost once and save some of each epoch. They pay from the first epoch on at which what was saved
is no less than what was spent. What lay somewhere before stays there, so that storage is only
added. Where an hour of the machine has no price, hours are compared: the same machine does both.
Rates whose intervals overlap are not told apart, and no epoch is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from iobench.cost.epochs import epoch
from iobench.cost.prices import Known
from iobench.cost.rates import Rate, Side, alike
from iobench.result import Result
from iobench.summary.points import by_point, figure

Rows = Sequence[Mapping[str, Any]]
"""An epoch before, and one after."""

_UNRESIZED = ("originals", "photos")
_RESIZED = ("shards", "files")
_SIDES: tuple[Side, ...] = ("disk", "store")


@dataclass(frozen=True, slots=True)
class Training:
    """What a break-even is of: a loop of a run, ``epochs`` of so many samples."""

    result: Result
    group: Mapping[str, Any]
    samples: float
    epochs: int
    prices: Known

    def epoch(self, rate: Rate) -> dict[str, Any]:
        """One of them at a rate."""
        consumes = self.group["consumes"]["median"] if self.group.get("consumes") else None
        return epoch(rate, consumes, self.samples, self.epochs, self.prices)


@dataclass(frozen=True, slots=True)
class _Change:
    """From one rate to another, for so much once; ``once_usd`` is None without a price."""

    what: str
    before: Rate
    after: Rate
    once_hours: float
    once_usd: float | None
    basis: str


def resizing(training: Training) -> dict[str, Any]:
    """Images resized once, beside images resized whenever they are read."""
    what = "resizing beforehand"
    samples, prices = training.samples, training.prices
    pair = _pair(training)
    if pair is None:
        return _lacking(what, "measure the same data resized and not: shards@… and originals@…")
    before, after = pair
    made = _made(training.result)
    if made is None:
        return _lacking(what, "how long resizing takes is not known: no shards were made of images")
    once_h = samples / made["images_per_s"] / 3600
    puts = samples * (after.objects or 0.0) if after.side == "store" else 0.0
    writing = prices.requests(puts=puts) if puts else 0.0
    basis = (
        f"{made['images_per_s']:,.0f} images/s by {made['workers'] or 'unknown'} workers on this "
        f"machine; {before.basis}; {after.basis}"
    )
    once_usd = _sum(prices.hours(once_h), writing)
    return _paid(_Change(what, before, after, once_h, once_usd, basis), training)


def staging(training: Training) -> dict[str, Any]:
    """Shards copied to a local disk once, beside shards read from the store in each epoch."""
    what = "staging to a local disk"
    samples, prices = training.samples, training.prices
    pair = _far_and_near(training)
    if pair is None:
        return _lacking(what, "measure the same data from both: shards@s3 and shards@disk")
    far, near = pair
    copied = _copied_mb_per_s(training.result)
    if copied is None:
        return _lacking(what, "measure how fast they can be copied: object_store, or access: file")
    rate_mb, by = copied
    once_h = samples * far.sample_bytes / (rate_mb * 1e6) / 3600
    gets = samples * far.objects if far.objects is not None else None
    once_usd = _sum(prices.hours(once_h), prices.requests(gets=gets) if gets is not None else None)
    basis = f"copied at {rate_mb:,.0f} MB/s ({by}); {far.basis}; {near.basis}"
    return _paid(_Change(what, far, near, once_h, once_usd, basis), training)


def _paid(change: _Change, training: Training) -> dict[str, Any]:
    before, after, once_usd = change.before, change.after, change.once_usd
    rows = [training.epoch(rate) for rate in (before, after)]
    by_usd = once_usd is not None and all(row["usd"] is not None for row in rows)
    saved_h, saved_usd = _hours(rows), _dollars(rows) if by_usd else None
    saved, once = (saved_usd, once_usd) if by_usd else (saved_h, change.once_hours)
    assert saved is not None and once is not None  # noqa: S101, PT018  both or neither
    # Repeats may hide the difference: the change must save something at the worst of them too.
    worst = [
        training.epoch(replace(before, samples_per_s=before.high)),
        training.epoch(replace(after, samples_per_s=after.low)),
    ]
    apart = (_dollars(worst) if by_usd else _hours(worst)) > 0
    from_epoch = max(1, math.ceil(once / saved)) if saved > 0 and apart else None
    return {
        "what": change.what,
        "from": rows[0]["data"],
        "to": rows[1]["data"],
        "once_hours": change.once_hours,
        "once_usd": once_usd,
        "saved_hours": saved_h,
        "saved_usd": saved_usd,
        "compared": "usd" if by_usd else "hours",
        "told_apart": apart or saved <= 0,
        "pays_from_epoch": from_epoch,
        "pays": from_epoch is not None and from_epoch <= training.epochs,
        "without": sorted({*rows[0]["without"], *rows[1]["without"]} - _kept(rows)),
        "basis": change.basis,
        "unknown": "",
    }


def _hours(rows: Rows) -> float:
    """What the second saves of an epoch."""
    return float(rows[0]["hours"] - rows[1]["hours"])


def _dollars(rows: Rows) -> float:
    """The same in money, of rows that have any."""
    # A part that one of them lacks cannot be held against the other's.
    both = [key for key in ("busy", "idle", "requests") if _told(rows, key)]
    saved = sum(rows[0][f"{key}_usd"] - rows[1][f"{key}_usd"] for key in both)
    # What was there before stays where it is: what is new is kept beside it.
    return float(saved - (rows[1]["storage_usd"] or 0.0))


def _told(rows: Rows, key: str) -> bool:
    return all(row[f"{key}_usd"] is not None for row in rows)


def _kept(rows: Rows) -> set[str]:
    """What the first has and the second need not have: storage that stays as it is."""
    return {"storage"} if rows[1]["storage_usd"] is not None else set()


def _pair(training: Training) -> tuple[Rate, Rate] | None:
    """Unresized and resized data from one place, the disk first."""
    for side, one, other in product(_SIDES, _UNRESIZED, _RESIZED):
        found = alike(training.result, training.group, (one, side), (other, side))
        if found is not None:
            return found
    return None


def _far_and_near(training: Training) -> tuple[Rate, Rate] | None:
    """One form of data from a store and from a disk."""
    for form in (*_RESIZED, *_UNRESIZED):
        found = alike(training.result, training.group, (form, "store"), (form, "disk"))
        if found is not None:
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
