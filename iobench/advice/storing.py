"""PURE. How data on a store are reached, and by which client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dataprep.counted import counted
from iobench.access.modes import DIRECT
from iobench.advice.entry import WORTH, Advice, times, unknown
from iobench.advice.situation import Situation
from iobench.stats import Estimate, ratio
from iobench.summary.access import access_modes
from iobench.summary.points import by_point, in_pairs
from iobench.summary.supplies import object_stores
from iobench.trial import Trial
from iobench.whatif.capacities import rate_of

Rated = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A mode as it was measured, and its rate from the second epoch on."""


def access(found: Situation) -> Advice:
    """The mode with the highest rate from the second epoch on, where that can be told."""
    if found.place != "s3":
        why = "its data lie on a disk: modes are for data on a store"
        return Advice("access", "keep", found.of, why, DIRECT, DIRECT, basis="measured")
    kind, steady = _modes(found)
    if len({e["access"] for e, _ in steady}) < 2:
        why = "one mode was measured: iobench run configs/bench/access.yaml measures them"
        return unknown("access", found.of, why)
    best, rate = max(steady, key=lambda pair: float(pair[1]["median"]))
    told = ", ".join(f"{e['access']}: {r['median']:,.0f}" for e, r in steady)
    workers = counted(int(best.get("workers", 0)), "worker")
    evidence = f"samples/s from the second epoch on {told} ({best['loader']}, {workers})"
    direct = _direct(found, kind, best)
    if direct is None:
        why = "; direct, which is used now, was not measured with these workers"
        return unknown("access", found.of, f"{evidence}{why}")
    evidence += f"; direct: {direct.median:,.0f}"
    gain = _times(rate, direct)
    if gain.low <= 1 or gain.median < WORTH:
        evidence += ", not told apart from the best" if gain.high > 1 else ", which is the best"
        return Advice("access", "keep", found.of, evidence, DIRECT, DIRECT, gain, "measured")
    told_gain = gain if kind == "train" or not found.now.loop else None
    config = {f"{found.key}.access": best["access"]}
    return Advice(
        *("access", "change", found.of, evidence, best["access"], DIRECT, told_gain),
        basis="measured",
        config=config,
        command="iobench run",
    )


def _modes(found: Situation) -> tuple[str, list[Rated]]:
    """Modes over the data of now with one number of workers, that of now first: of the loop itself
    where it was measured so, else of its loader alone; and which."""
    entries: list[Rated] = [
        (e, e["steady_samples_per_s"])
        for e in access_modes(found.result.trials)
        if e["loader"] == found.now.loader and e["steady_samples_per_s"]
        if str(e.get("data", "")).partition("@")[0] == found.now.form
    ]
    best: tuple[str, list[Rated]] = ("loader", [])
    for kind in ("train", "loader") if found.now.loop else ("loader",):
        of_kind = [pair for pair in entries if pair[0]["kind"] == kind]
        numbers = {pair[0].get("workers") for pair in of_kind}
        for number in sorted(numbers, key=lambda n: (n != found.now.workers, n)):
            alike = [pair for pair in of_kind if pair[0].get("workers") == number]
            if len({e["access"] for e, _ in alike}) > len({e["access"] for e, _ in best[1]}):
                best = kind, alike
    return best


def _direct(found: Situation, kind: str, best: Mapping[str, Any]) -> Estimate | None:
    """What is had without any mode, by the same workers."""
    workers = best.get("workers")
    if workers == found.now.workers and (kind == "train" or not found.now.loop):
        return found.rate
    rates = [
        rate
        for setting, repeats in found.alone.items()
        if (setting.loader, setting.form, setting.source)
        == (best["loader"], found.now.form, "store")
        if setting.workers == workers and (rate := rate_of(repeats)) is not None
    ]
    return max(rates, key=lambda rate: rate.median, default=None)


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
        if found.now.loop and found.place != "s3":
            said = f"its data lie on a disk; were they on a store: {evidence}"
            said += f": {times(gain)}" if gain and better else "; nothing is better beyond doubt"
            return Advice("client", "keep", found.of, said, basis="measured")
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
