"""PURE. How large shards should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dataprep.counted import counted
from iobench.access.modes import DIRECT
from iobench.advice.entry import Advice, unknown
from iobench.advice.situation import Situation, paired
from iobench.summary.points import by_point
from iobench.summary.supplies import object_stores
from iobench.trial import Params, Trial
from iobench.whatif.capacities import rate_of
from iobench.whatif.setting import kind_of

SHARDS_A_READER = 4
"""Shards that each worker of each rank should have at least, so that their ends come together."""

_ENOUGH = 0.95
_LEAST_BYTES, _MOST_BYTES = 1_000_000, 128_000_000
_USUAL_BYTES = 64 * 2**20  # what dataprep makes unless told
_SHARDED = ("shards", "originals")
_Sized = dict[int, Sequence[Trial]]


def shard_size(found: Situation, *, packs: bool, readers: int) -> Advice:
    """The smallest that reaches 95 % of the peak, and leaves each of ``readers`` a few shards."""
    of, now = found.of, _size_now(found)
    most, bound = _most_bytes(found, readers)
    gain = None
    if (swept := _sweep(found)) is not None:
        reader, points = swept
        rates = {size: rate.median for size in points if (rate := rate_of(points[size]))}
        enough = [size for size, rate in rates.items() if rate >= _ENOUGH * max(rates.values())]
        told = ", ".join(f"{size / 1e6:g} MB: {rates[size]:,.0f}" for size in sorted(rates))
        value, evidence = min(enough), f"samples/s by shard size {told} ({reader})"
        between = now is not None and now not in rates and value <= now <= max(enough)
        reaches = now in enough or between
        gain = paired(points[value], points[now]) if now in points and now != value else None
    elif (size := _of_objects(found)) is not None:
        value, evidence = size
        reaches = now is not None and now >= value
    else:
        why = "one size of shards was read: iobench run configs/bench/shard-size.yaml measures it"
        if not packs or most is None or most >= _USUAL_BYTES:
            return unknown("shard_size", of, why)
        value, evidence, reaches = _USUAL_BYTES, why, False
    if now is not None and reaches and (most is None or now <= most):
        small = f"; {bound}" if most == _LEAST_BYTES else ""
        why = f"{_bound(found)}{_mb(now)} reaches 95 % of the best: {evidence}{small}"
        return Advice("shard_size", "keep", of, why, now, now, basis="measured")
    if most is not None and (most < value or most == _LEAST_BYTES):
        value, gain = most, None if most < value else gain
        evidence += f"; {bound}"
    if value == now:
        return Advice("shard_size", "keep", of, evidence, value, now, basis="measured")
    if found.now.packing not in _SHARDED and not packs:
        why = f"its data are no shards; if they were, {_mb(value)}: {evidence}"
        return Advice("shard_size", "keep", of, why, basis="measured")
    return Advice(
        *("shard_size", "change", of, evidence, value, now, gain),
        basis="measured",
        config={"shard_size": value},
        command="dataprep shard",
    )


def _bound(found: Situation) -> str:
    if found.limited_by != "decode":
        return ""
    return "you are decode-bound, resharding will not help: "


def _size_now(found: Situation) -> int | None:
    """By their name, else as the run made them; shards that were given have the size they have."""
    if found.now.packing not in _SHARDED:
        return None
    if (named := _named_bytes(found.now.form)) is not None:
        return named
    data = found.result.config.get("data") or {}
    if data.get("shards"):
        size = found.known.object_bytes.get(found.now.form)
        return round(size) if size else None
    return int(data["shard_size"]) if isinstance(data.get("shard_size"), int) else None


def _mb(size: float) -> str:
    return f"{size / 1e6:.3g} MB"


def _named_bytes(form: str) -> int | None:
    """16,000,000 for ``shards-16MB``."""
    kind, _, size = form.partition("-")
    number = size.removesuffix("MB")
    return int(number) * 10**6 if kind == "shards" and number.isdecimal() else None


def _sweep(found: Situation) -> tuple[str, _Sized] | None:
    """Trials by shard size, all else alike: of now's loader, from a cold disk or a store first."""
    groups: dict[str, tuple[Params, str, _Sized]] = {}
    for kind in ("loader", "layout"):
        for params, repeats in by_point(found.result.trials, kind):
            form, _, place = str(params.get("data", "")).partition("@")
            size = _named_bytes(form)
            if size is not None and rate_of(repeats) is not None and _is_whole(params):
                key = repr([kind, place, {**params, "data": ""}])
                groups.setdefault(key, (params, kind, {}))[2][size] = repeats
    several = [group for group in groups.values() if len(group[2]) > 1]
    if not several:
        return None

    def distance(group: tuple[Params, str, _Sized]) -> tuple[Any, ...]:
        params, kind, points = group
        return (
            kind != "loader",
            params.get("loader") != found.now.loader,
            params.get("cache") == "warm",
            params.get("workers") != found.now.workers,
            -len(points),
        )

    params, kind, points = min(several, key=distance)
    place = str(params.get("data", "")).partition("@")[2]
    reader = params.get("loader") or f"{params.get('access')} read by no loader"
    many = f", {counted(int(params['workers']), 'worker')}" if "workers" in params else ""
    state = f" {params['cache']}" if place == "disk" and "cache" in params else ""
    return f"{reader}{many}, {place}{state}", points


def _is_whole(params: Params) -> bool:
    """Shards that are read as wholes: single records are found in a shard of any size."""
    return params.get("access", DIRECT) in (DIRECT, "shards")


def _of_objects(found: Situation) -> tuple[int, str] | None:
    """What an object store's own sweep says, within what shards may have."""
    reads = [s for s in object_stores(found.result.trials) if s["operation"] == "get"]
    for store in sorted(reads, key=lambda s: s["client"] != "boto3"):
        if (size := store["object_bytes_95"]) is not None:
            bounded = min(max(int(size), _LEAST_BYTES), _MOST_BYTES)
            return bounded, f"{store['store']}, {store['client']}: {store['said']}"
    return None


def _most_bytes(found: Situation, readers: int) -> tuple[int | None, str]:
    """The largest shards of which every reader has a few, of all that the run's data hold."""
    kind = found.now.kind if found.now.packing == "shards" else "shards"
    total = _data_bytes(found.result.trials, kind)
    if total is None:
        return None, ""
    each = "worker and rank" if found.now.devices > 1 else "worker"
    fair = total / (SHARDS_A_READER * readers)
    if fair < _LEAST_BYTES:
        shards = max(round(total / _LEAST_BYTES), 1)
        return _LEAST_BYTES, (
            f"these {total / 1e6:,.1f} MB are {counted(shards, 'shard')} of {_LEAST_BYTES / 1e6:g} "
            f"MB, the least there is: too few for {SHARDS_A_READER} for every {each} ({readers})"
        )
    most = min(_rounded(fair), _MOST_BYTES)
    return most, (
        f"at most {most / 1e6:g} MB, so that every {each} ({readers}) has "
        f"{SHARDS_A_READER} shards of these {total / 1e6:,.0f} MB"
    )


def _rounded(size: float) -> int:
    """Down to two digits, of a million bytes or more."""
    step = 10 ** max(len(str(int(size))) - 2, 0)
    return int(size // step * step)


def _data_bytes(trials: Sequence[Trial], kind: str) -> float | None:
    """Of all shards of those images: how many there are, times their mean size."""
    sizes = [
        float(trial.metrics["objects"]) * float(trial.metrics["mean_object_bytes"])
        for trial in trials
        if kind_of(str(trial.params.get("data", "")).partition("@")[0]) == kind
        if trial.metrics.get("objects") and trial.metrics.get("mean_object_bytes")
    ]
    return max(sizes, default=None)
