"""PURE. How data on a store are reached, and by which client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iobench.access.modes import DIRECT
from iobench.advice.entry import WORTH, Advice, times, unknown
from iobench.advice.situation import Situation
from iobench.stats import Estimate, ratio
from iobench.summary.access import access_modes
from iobench.summary.points import by_point, in_pairs
from iobench.summary.supplies import object_stores
from iobench.trial import Trial


def access(found: Situation) -> Advice:
    """The mode with the highest rate from the second epoch on, where that can be told."""
    if found.place != "s3":
        why = "its data lie on a disk: modes are for data on a store"
        return Advice("access", "keep", found.of, why, DIRECT, DIRECT, basis="measured")
    entries = [e for e in access_modes(found.result.trials) if e["loader"] == found.now.loader]
    steady = [(e, e["steady_samples_per_s"]) for e in entries if e["steady_samples_per_s"]]
    if len({e["access"] for e, _ in steady}) < 2:
        why = "one mode was measured: iobench run configs/bench/access.yaml measures them"
        return unknown("access", found.of, why)
    best, rate = max(steady, key=lambda pair: float(pair[1]["median"]))
    told = ", ".join(f"{e['access']}: {r['median']:,.0f}" for e, r in steady)
    evidence = f"samples/s from the second epoch on {told} ({best['loader']})"
    direct = found.rate if not found.now.loop else None
    gain = _times(rate, direct) if direct is not None else None
    if gain is not None and gain.low <= 1:
        evidence += f"; direct: {found.rate.median:,.0f}, not told apart from the best"
        return Advice("access", "keep", found.of, evidence, DIRECT, DIRECT, gain, "measured")
    config = {f"{found.key}.access": best["access"]}
    return Advice(
        *("access", "change", found.of, evidence, best["access"], DIRECT, gain),
        basis="measured",
        config=config,
        command="iobench run",
    )


def _times(rate: Mapping[str, Any], now: Estimate) -> Estimate:
    """Of figures that were measured apart: the widest that their intervals allow."""
    low, high = rate["low"] / now.high, rate["high"] / now.low
    return Estimate(rate["median"] / now.median, low, high, 0.0, min(rate["repeats"], now.repeats))


def client(found: Situation) -> Advice:
    """The client with the highest peak of whole reads; this package's loaders use boto3."""
    peaks = [s for s in object_stores(found.result.trials) if s["operation"] == "get"]
    stores: dict[str, list[Mapping[str, Any]]] = {}
    for peak in peaks:
        stores.setdefault(peak["store"], []).append(peak)
    for store, members in stores.items():
        if len(members) < 2:
            continue
        ranked = sorted(members, key=lambda s: -float(s["peak_mb_per_s"]))
        best = ranked[0]
        now = next((s for s in members if s["client"] == "boto3"), ranked[-1])
        told = ", ".join(f"{s['client']}: {s['peak_mb_per_s']:,.0f}" for s in ranked)
        evidence = f"peak MB/s of whole reads from {store} {told}; {best['client']}: {best['said']}"
        gain = _between(found.result.trials, best, now) if best is not now else None
        better = gain is not None and gain.low > 1 and gain.median >= WORTH
        if not better:
            said = f"{evidence}; nothing is better beyond doubt"
            return Advice(
                *("client", "keep", store, said, now["client"], now["client"], gain), "measured"
            )
        said = f"{evidence}: {times(gain)}; loaders of this package read by boto3" if gain else ""
        return Advice(
            *("client", "change", store, said, best["client"], now["client"], gain), "measured"
        )
    if found.place != "s3" and not peaks:
        why = "its data lie on a disk: clients are for data on a store"
        return Advice("client", "keep", found.of, why, basis="measured")
    why = "one client was measured: iobench run configs/bench/s3.yaml measures two"
    return unknown("client", found.of, why)


def _between(
    trials: Sequence[Trial], best: Mapping[str, Any], now: Mapping[str, Any]
) -> Estimate | None:
    """The ratio of two clients' peaks, within rounds."""

    def repeats(peak: Mapping[str, Any]) -> Sequence[Trial]:
        keys = ("store", "client", "operation", "object_bytes", "connections")
        for params, found in by_point(trials, "object"):
            if all(params.get(key) == peak[key] for key in keys):
                return found
        return ()

    pairs = in_pairs(repeats(best), repeats(now), "mb_per_s")
    usable = [pair for pair in pairs if pair[1] > 0]
    return ratio([a for a, _ in usable], [b for _, b in usable]) if usable else None
