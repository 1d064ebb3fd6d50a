"""PURE. The fastest that each place was seen to give, by what it was measured with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from iobench.data.given import read_from
from iobench.result import Result
from iobench.summary.points import by_point, cold_label, figure

_CACHED = {"warm", "not applicable", ""}


@dataclass(frozen=True, slots=True)
class Rate:
    """``mb_per_s`` as an estimate, read from or written to ``place``.

    Attributes:
        side: whether ``place`` is the label of a target or of a store.
        by: what measured: ``disk``, ``object``, ``loader``, ``train``.
        what: which of its figures, in words.
        cached: it was asked of the page cache, or not shown to be from anywhere else.
        sample_bytes: stored bytes of a sample, where samples were read.
        samples_per_s: median, where samples were read.
    """

    side: Literal["target", "store"]
    place: str
    by: str
    what: str
    mb_per_s: Mapping[str, Any]
    cached: bool = False
    sample_bytes: float | None = None
    samples_per_s: float | None = None


def rates(result: Result) -> list[Rate]:
    """One each of what was measured; of several settings the fastest."""
    best: dict[tuple[str, ...], Rate] = {}
    for rate in _all(result):
        key = (rate.side, rate.place, rate.by, rate.what, str(rate.cached))
        if key not in best or rate.mb_per_s["median"] > best[key].mb_per_s["median"]:
            best[key] = rate
    return list(best.values())


def _all(result: Result) -> Iterator[Rate]:
    yield from _disks(result)
    yield from _stores(result)
    yield from _loops(result)


def _disks(result: Result) -> Iterator[Rate]:
    for params, trials in by_point(result.trials, "disk"):
        if found := figure(trials, "mb_per_s"):
            asked = str(params.get("cache", ""))
            shown = cold_label(trials) or ("warm" if asked == "cold" else asked)
            what = f"{params.get('pattern')} {params.get('operation')}, {shown}"
            yield Rate("target", str(params["target"]), "disk", what, found, shown in _CACHED)


def _stores(result: Result) -> Iterator[Rate]:
    for params, trials in by_point(result.trials, "object"):
        if found := figure(trials, "mb_per_s"):
            what = f"{params.get('operation')} by {params.get('client')}"
            yield Rate("store", str(params["store"]), "object", what, found)


def _loops(result: Result) -> Iterator[Rate]:
    targets = result.environment.get("targets") or {}
    for kind in ("loader", "train"):
        for params, trials in by_point(result.trials, kind):
            data = str(params.get("data") or "")
            found = figure(trials, "mb_per_s")
            speed = figure(trials, "samples_per_s")
            if not found or not speed or not data or found["median"] <= 0:
                continue
            remote = data.endswith("@s3")
            label = cold_label(trials)
            named = params.get("group") if kind == "train" else params.get("loader")
            shown = label if not remote else "from the store"
            yield Rate(
                "store" if remote else "target",
                "data" if remote else read_from(data, targets),
                kind,
                ", ".join(filter(None, (str(named), data, shown))),
                found,
                cached=not remote and label in _CACHED,
                sample_bytes=found["median"] * 1e6 / speed["median"],
                samples_per_s=speed["median"],
            )
