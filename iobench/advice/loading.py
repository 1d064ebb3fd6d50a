"""PURE. Workers, prefetch, batch size, pinned memory: what the training script sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dataprep.counted import counted
from iobench.advice.entry import WORTH, Advice, times, unknown
from iobench.advice.situation import Situation
from iobench.advice.variation import Variation, varied
from iobench.stats import Estimate

_MEASURE = "iobench run configs/bench/advise.yaml measures it"
_SAID = {
    "prefetch": "batches ahead",
    "batch_size": "samples in a batch",
}


def loading(found: Situation) -> Iterator[Advice]:
    """One entry each of workers, prefetch, batch size and pinned memory."""
    yield workers(found)
    yield _smallest(found, "prefetch")
    batch = _smallest(found, "batch_size")
    yield batch
    yield pinned(found)


def workers(found: Situation) -> Advice:
    """The smallest number within 2 % of the best: of the loop, by the model, or of the loader."""
    seen = varied(found, "workers")
    if seen is not None and seen.in_loop:
        return _entry(found, seen, seen.enough(), _more_to_try(found, seen))
    if (modelled := _by_model(found)) is not None:
        return modelled
    if seen is None:
        why = f"one number of workers was measured: {_MEASURE}"
        return unknown("workers", found.of, why)
    if not found.now.loop:
        return _entry(found, seen, seen.enough(), _more_to_try(found, seen))
    # Of this loop nothing is known but its loader, alone.
    because = (
        "training computes on the processors that workers need"
        if found.shares_processors
        else "the model does not hold for the loop"
    )
    wanted = "so that the loop may want others: measure loops with several workers"
    evidence = f"{seen.said}; {because}, {wanted}"
    return Advice("workers", "unknown", found.of, evidence, None, found.now.workers)


def _by_model(found: Situation) -> Advice | None:
    """Of the numbers that the loader was measured with, where the model holds for a loop."""
    if not found.now.loop or not found.holds:
        return None
    numbers = sorted({s.workers for s in found.alone if _same_images(found, s.loader, s.kind)})
    told_of = {n: found.predicted(found.now.changed(workers=n)) for n in numbers}
    rates = {n: found_of for n, found_of in told_of.items() if found_of.is_whole}
    untold = dict.fromkeys(part for p in told_of.values() for part in p.missing)
    lacking = f"not measured: {', '.join(untold)}, by loader raw" if untold else ""
    if len(rates) < 2:
        return unknown("workers", found.of, f"{lacking} ({_MEASURE})") if lacking else None
    medians = {number: p.rate.median for number, p in rates.items() if p.rate is not None}
    value = min(n for n, rate in medians.items() if rate * WORTH >= max(medians.values()))
    told = ", ".join(f"{number}: {rate:,.0f}" for number, rate in medians.items())
    gained = found.gain_of(found.now.changed(workers=value))
    gain, now, more = gained[0] if gained else None, found.now.workers, ""
    if gain is not None and value != now and not _told_apart(gain, saves=value < now):
        more = f"; {value}: {times(gain)}, not told apart from what is used now"
        value, gain = now, None
    limit = rates[value].limited_by if value in rates else ""
    basis = next((p.basis for p in rates[value].parts if p.name == limit), "") if limit else ""
    evidence = (
        f"samples/s by workers {told}, as the capacities of loader and device predict"
        f"{f'; with {value} the loop is limited by {limit} ({basis})' if limit else ''}{more}"
        f"{f'; {lacking}' if lacking else ''}"
    )
    return _said(found, "workers", value, gain, "model", evidence)


def _told_apart(gain: Estimate, *, saves: bool) -> bool:
    """Whether a change is worth making: better beyond doubt, or as fast with fewer workers."""
    if saves:
        return gain.median * WORTH >= 1
    return gain.low > 1 and gain.median >= WORTH


def _same_images(found: Situation, loader: str, kind: str) -> bool:
    return (loader, kind) == (found.now.loader, found.now.kind)


def _more_to_try(found: Situation, seen: Variation) -> str:
    """Where the rate still rises at the last number that was tried, and there are processors."""
    tried, processors = max(seen.points), found.known.processors
    if seen.enough() != tried:
        return ""
    if processors is not None and tried >= processors:
        return f"the rate still rises, and this machine has {counted(processors, 'processor')}"
    return f"the rate still rises at {tried}, the most that was tried: try more"


def _smallest(found: Situation, key: str) -> Advice:
    """That of now where it is within 2 % of the best, else the smallest that is."""
    seen = varied(found, key)
    if seen is None:
        return unknown(key, found.of, f"one number of {_SAID[key]} was measured: {_MEASURE}")
    more = "" if key != "batch_size" else "another batch size is another training: see to its rate"
    value, now = seen.enough(), getattr(found.now, key)
    if seen.reaches(now) and value != now:
        return _entry(found, seen, now, f"{value} would do as well")
    return _entry(found, seen, value, more)


def pinned(found: Situation) -> Advice:
    """Page-locked batches, where a GPU copies them."""
    now = found.now.pin_memory
    if not found.has_gpu:
        why = "page-locked memory is for copies to a GPU, and this machine has none"
        return Advice("pin_memory", "keep", found.of, why, False, now, basis="measured")
    seen = varied(found, "pin_memory")
    if seen is None:
        return unknown("pin_memory", found.of, f"one way was measured: {_MEASURE}")
    pays = seen.times(True, False)
    value = pays is not None and pays.low > 1 and pays.median >= WORTH
    return _entry(found, seen, value, "")


def _entry(
    found: Situation, seen: Variation, value: Any, more: str, gain: Estimate | str | None = ""
) -> Advice:
    """Advice by what was measured. ``gain`` is that of the loop, or of the loader alone.

    What is advised must be better than now beyond doubt, or as fast with fewer workers.
    """
    now = getattr(found.now, seen.key)
    alone = seen.times(value, now) if now in seen.points and value != now else None
    evidence = seen.said if alone is None else f"{seen.said}: {times(alone)} with {value}"
    saves = seen.key == "workers" and value < now
    if alone is not None and not _told_apart(alone, saves=saves):
        value, more = now, "not told apart from what is used now"
    if isinstance(gain, str):
        gain = alone if value != now and (seen.in_loop or not found.now.loop) else None
    evidence = f"{evidence}; {more}" if more else evidence
    return _said(found, seen.key, value, gain, "measured", evidence)


def _said(
    found: Situation, key: str, value: Any, gain: Estimate | None, basis: Any, evidence: str
) -> Advice:
    now = getattr(found.now, key)
    differs = value != now
    config = {f"{found.key}.{key}": value} if differs else {}
    command = "iobench run" if differs else ""
    state: Any = "change" if differs else "keep"
    return Advice(key, state, found.of, evidence, value, now, gain, basis, config, command)
