"""PURE. A forecast in words, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from dataprep.counted import counted
from dataprep.forecast import Duration, Forecast, SplitForecast


def forecast_json(forecast: Forecast) -> str:
    """One JSON object; times in seconds, sizes in bytes."""
    content = asdict(forecast)
    content["duration"] = {**content["duration"], "total": forecast.duration.total}
    content["outcome"]["met"] = {
        kind: {"seen": seen, "expected": expected}
        for kind, (seen, expected) in forecast.outcome.met.items()
    }
    return json.dumps(content)


def forecast_text(forecast: Forecast) -> str:
    """What a person reads before a job."""
    return "\n".join(
        [
            *_splits(forecast),
            _time(forecast),
            *_policies(forecast),
            *_requests(forecast),
            *(f"  assumed: {line}" for line in forecast.assumptions),
            *(f"  warning: {line}" for line in forecast.warnings),
            f"  nothing was written to {forecast.output}",
        ]
    )


def _splits(forecast: Forecast) -> list[str]:
    lines = [
        f"{forecast.source}: {counted(forecast.entries, 'file')}, "
        f"{counted(forecast.classes, 'class')}"
    ]
    lines += [f"  {reason}: {count:,}" for reason, count in sorted(forecast.refused.items())]
    for one in forecast.splits:
        lines += _fate(one)
        for name, size in one.bytes_by_format.items():
            lines.append(
                f"  {name}: {counted(one.shards, 'shard')}, about {size / 1e6:,.1f} MB, "
                f"{size / one.shards / 1e6:,.1f} MB each; labels in records from "
                f"{forecast.label_offsets[name]}"
            )
    return lines


def _fate(one: SplitForecast) -> list[str]:
    """How many samples there are, and how many of them are stored."""
    fate, about = one.fate, "" if one.fate.exact else "about "
    lost = "" if one.written == one.samples else f", {about}{one.written:,} of them written"
    lines = [f"{one.split}: {counted(one.samples, 'sample')}{lost}"]
    if fate.failures:
        lines.append(
            f"  {about}{fate.failures:,} of {counted(fate.entries, 'file')} fail: "
            f"{fate.refused:,} as listed, {about}{fate.failing:,} when converted"
        )
    return lines


def _time(forecast: Forecast) -> str:
    steps = asdict(forecast.duration)
    shown = ", ".join(f"{step} {seconds:,.1f} s" for step, seconds in steps.items() if seconds)
    workers = counted(forecast.machine.workers, "worker")
    return f"  time: about {_clock(forecast.duration)} with {workers} ({shown})"


def _clock(duration: Duration) -> str:
    seconds = duration.total
    if seconds < 100:
        return f"{seconds:,.1f} s"
    minutes = int(seconds / 60 + 0.5)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest:02} min" if hours else f"{minutes} min"


def _policies(forecast: Forecast) -> list[str]:
    found = forecast.outcome
    basis = (
        "all samples were converted"
        if found.trial == found.samples
        else f"an estimate from {found.trial:,} conversions"
    )
    lines = [
        f"  {found.passthrough:.1%} pass through, {found.reencoded:.1%} are re-encoded; to be met "
        f"({basis}):"
    ]
    if not found.met:
        return [*lines, "    nothing that a policy is about"]
    width = max(map(len, found.met))
    for kind, (seen, expected) in found.met.items():
        about = "" if found.trial == found.samples else f" ({seen:,} of {found.trial:,} seen)"
        lines.append(f"    {kind:<{width}}  {expected:,}{about}")
    return lines


def _requests(forecast: Forecast) -> list[str]:
    lines = [
        f"  requests to the {place}: {one.puts:,} PUT, {one.gets:,} GET and HEAD, "
        f"{one.lists:,} LIST"
        for place, one in forecast.requests.items()
    ]
    cost = forecast.cost
    if cost is not None:
        lines.append(
            f"  cost: {_money(cost.requests)} {cost.currency} for requests, {_money(cost.month)} "
            f"{cost.currency} a month to keep the shards ({cost.prices})"
        )
    return lines


def _money(amount: float) -> str:
    """Cents, or the digits of what is less than one."""
    if amount >= 0.005 or amount < 0.000_001:
        return f"{amount:,.2f}"
    return f"{amount:.6f}".rstrip("0")
