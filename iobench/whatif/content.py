"""PURE. The model of a run as its summary keeps it: capacities, predictions, whether it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dataprep.counted import counted
from iobench.stats import Estimate
from iobench.trial import Trial
from iobench.whatif.capacities import Capacities, Rates, measured
from iobench.whatif.checks import ALLOWED, Check, checks

_MOST = 400  # predictions that a result keeps, those with the largest errors


def whatif(trials: Sequence[Trial], environment: Mapping[str, Any]) -> dict[str, Any]:
    """``capacities, predictions, scopes, holds, largest_error, why``; empty where nothing was fit.

    ``holds``: every prediction of a configuration that was held out is within 10 % of what it
    gave, and there is one at least. ``scopes`` say the same of each loop and loader.
    """
    known = measured(trials, environment)
    found = checks(trials, known)
    capacities = _capacities(known)
    if not capacities and not found:
        return {}
    scopes = [_scope(name, found, known) for name in dict.fromkeys(c.scope for c in found)]
    counted_ones = [scope for scope in scopes if scope["checks"]]
    errors = [abs(scope["largest_error"]) for scope in counted_ones]
    kept = sorted(found, key=lambda check: -abs(check.error or 0.0))[:_MOST]
    return {
        "capacities": capacities,
        "predictions": [check.as_dict() for check in found if check in kept],
        "predictions_left_out": len(found) - len(kept),
        "scopes": scopes,
        "holds": bool(counted_ones) and all(scope["holds"] for scope in counted_ones),
        "largest_error": max(errors, default=None),
        "why": _why(counted_ones),
    }


def _scope(name: str, found: Sequence[Check], known: Capacities) -> dict[str, Any]:
    counts = [check for check in found if check.scope == name and check.counts]
    worst = max(counts, key=lambda check: abs(check.error or 0.0), default=None)
    error = worst.error if worst is not None else None
    holds = error is not None and abs(error) <= ALLOWED
    return {
        "scope": name,
        "checks": len(counts),
        "holds": holds,
        "largest_error": error,
        "why": "" if holds else _missed(name, found, worst, known),
    }


def _missed(name: str, found: Sequence[Check], worst: Check | None, known: Capacities) -> str:
    """Where the model misses most, and what may be the reason."""
    if worst is None or worst.error is None or worst.prediction.rate is None:
        missing = {
            part for check in found if check.scope == name for part in check.prediction.missing
        }
        return f"not measured: {', '.join(sorted(missing))}"
    predicted, setting = worst.prediction.rate.median, worst.prediction.setting
    said = (
        f"{predicted:,.0f} samples/s predicted, {worst.measured.median:,.0f} measured "
        f"({worst.error:+.0%}) with {counted(setting.workers, 'worker')}, {setting.source}"
    )
    return f"{said}; {reason}" if (reason := _reason(worst, known)) else said


def _reason(worst: Check, known: Capacities) -> str:
    setting, error = worst.prediction.setting, worst.error or 0.0
    taken, serial = known.loops.get(setting.loop), worst.prediction.if_serial
    processors = known.processors
    if error > 0 and taken is not None and taken.on_processor and setting.workers:
        return (
            "training and its workers share the processors, so that none of them has the capacity "
            "that it has alone"
        )
    spread = max(_spread(worst.measured), _spread(worst.prediction.rate))
    if spread > 2 * ALLOWED:
        return (
            f"repeats differ by {spread:.0%}, so that other work on this machine may be the reason"
        )
    if error > 0 and processors is not None and setting.all_workers > processors:
        return f"{setting.all_workers} workers share {counted(processors, 'processor')}"
    if error > 0 and serial is not None and serial < worst.measured.median * (1 + ALLOWED):
        return "its parts do not run side by side as the model has it"
    if error < 0 and worst.kind == "loop":
        return "the loop is faster than the parts were alone: they were measured under other loads"
    return ""


def _spread(rate: Estimate | None) -> float:
    """From the least to the greatest that the median may be, of it."""
    return (rate.high - rate.low) / rate.median if rate is not None and rate.repeats > 1 else 0.0


def _why(scopes: Sequence[Mapping[str, Any]]) -> str:
    if not scopes:
        return "no configuration that was run could be predicted, so that nothing tests the model"
    failed = [scope for scope in scopes if not scope["holds"]]
    many = counted(sum(scope["checks"] for scope in scopes), "prediction")
    if not failed:
        return f"{many} of what was held out within {ALLOWED:.0%}"
    worst = max(failed, key=lambda scope: abs(scope["largest_error"]))
    return f"{worst['scope']}: {worst['why']}"


def _capacities(known: Capacities) -> list[dict[str, Any]]:
    """One entry a capacity: what it is of, and its law or its rate."""
    found: list[dict[str, Any]] = []
    for taken in known.loops.values():
        found += [
            {"part": "device" if rung == "synthetic" else rung, "of": taken.group, **_rate(rate)}
            for rung, rate in taken.rungs.items()
        ]
    for part, group in (("decode", known.decoded), ("disk", known.read), ("store", known.streamed)):
        found += [_of_workers(part, rates) for rates in group]
    found += [{"part": "disk", "of": form, **_rate(rate)} for form, rate in known.laid.items()]
    found += [
        {"part": "store", "of": f"{one.store}, {one.client}", **asdict(one.law)}
        for one in known.fetching
    ]
    return found


def _of_workers(part: str, rates: Rates) -> dict[str, Any]:
    setting = rates.setting
    told = {
        key: value for key, value in setting.as_dict().items() if key not in ("workers", "input")
    }
    return {
        "part": part,
        "of": f"{setting.loader} over {setting.form}" if setting.form else setting.loader,
        **told,
        "law": asdict(rates.law) if rates.law else None,
        "points": [{"workers": w, **_rate(rate)} for w, rate in rates.points.items()],
    }


def _rate(rate: Estimate) -> dict[str, Any]:
    return {"samples_per_s": asdict(rate)}
