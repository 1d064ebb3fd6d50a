"""PURE. Trials in words, for terminals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dataprep.counted import counted
from dataprep.names import escape
from iobench import badges
from iobench.numbers import exact_size, precise_number, precise_percent, rate_with_unit
from iobench.together import main_rate
from iobench.trial import Params, Together, Trial, TrialSpec

_MODELS = {
    "resnet50": "ResNet-50",
    "resnet18": "ResNet-18",
    "lenet": "LeNet",
    "retinanet": "RetinaNet",
}


_HEAD = ("rung", "s/1,000 samples", "adds", "between", "share", "cache")


def point_words(spec: TrialSpec) -> str:
    """``disk here read sequential 1 MiB x4 cold #2``; repeats count from 1."""
    return f"{params_words(spec.kind, spec.params)} #{spec.repeat + 1}"


def params_words(kind: str, params: Params) -> str:
    """The point that is measured, without the repeat."""
    words = {
        "disk": _disk,
        "layout": _layout,
        "object": _object,
        "loader": _loader,
        "train": _train,
        "watch": _watch,
    }.get(kind)
    plain = {key: value for key, value in params.items() if key != "hosts"}
    text = words(plain) if words else kind
    if "hosts" in params:
        text += f" on {counted(int(params['hosts']), 'host')}"
    return escape(text)


def result_words(trial: Trial) -> str:
    """The outcome of a trial in one line."""
    point = point_words(TrialSpec(trial.kind, trial.params, trial.repeat))
    if trial.status != "done":
        return f"{trial.status} {point}: {escape(trial.reason)}"
    hosts = trial.hosts if trial.hosts is not None and trial.hosts.hosts > 1 else None
    figures = [*_together(hosts)] if hosts is not None else []
    if samples := samples_words(trial.metrics):
        figures.append(samples)
    if "mb_per_s" in trial.metrics:
        figures.append(rate_with_unit(trial.metrics["mb_per_s"] * 1e6, "bytes"))
    if hosts is not None:
        figures[-1] += " on host 0"
    marks = ["emulated"] if trial.metrics.get("emulated") else []
    if shown := badges.words(trial.cold):
        marks.append(shown)
    return f"{point}: {', '.join(figures)}" + (f" ({', '.join(marks)})" if marks else "")


def rates_words(rates: Mapping[str, float], number: Callable[[float], str] | None = None) -> str:
    """Rates by the name of their metric: ``1,234 samples/s, 12.3 MB/s``."""
    say = number or precise_number
    units = {"mb_per_s": "MB/s", "requests_per_s": "requests/s", "iops": "IOPS"}
    figures = [samples_words(rates, say)]
    figures += [f"{say(rates[name])} {unit}" for name, unit in units.items() if name in rates]
    return ", ".join(filter(None, figures))


def _together(hosts: Together) -> Iterator[str]:
    """The sum over hosts, the slowest host, and the spread of starts; then follows host 0."""
    measured = [part for part in hosts.parts if part.status == "done"]
    missing = f" of {hosts.hosts}" if hosts.missing else ""
    yield f"{len(measured)}{missing} hosts together {rates_words(hosts.sums)}"
    slowest = next((part for part in measured if part.host == hosts.slowest), None)
    if slowest is not None:
        rate = main_rate(slowest.metrics)
        if rate is not None:
            yield f"slowest host {slowest.host} with {rates_words(dict([rate]))}"
    if hosts.start_spread_s is not None:
        yield f"all started within {hosts.start_spread_s:.2f} s"


def samples_words(metrics: Mapping[str, Any], number: Callable[[float], str] | None = None) -> str:
    """``1,234 samples/s``; ``between 290 and 1,256 samples/s`` where only bounds are known."""
    say = number or precise_number
    if (rate := metrics.get("samples_per_s")) is not None:
        return f"{say(rate)} samples/s"
    low, high = (metrics.get(f"samples_per_s_{end}") for end in ("low", "high"))
    if low is None or high is None:
        return ""
    return f"between {say(low)} and {say(high)} samples/s"


def model_words(name: str) -> str:
    """``ResNet-50`` for ``resnet50``; other names as they are."""
    return _MODELS.get(name, name)


def _disk(params: Params) -> str:
    return (
        f"disk {params['target']} {params['operation']} {params['pattern']} "
        f"{exact_size(params['block_bytes'])} x{params['parallelism']} {params['cache']}"
        + (f" by {params['engine']}" if "engine" in params else "")
    )


def _layout(params: Params) -> str:
    return f"layout {params['data']} {params['access']} x{params['parallelism']} {params['cache']}"


def _object(params: Params) -> str:
    return (
        f"store {params['store']} {params['client']} {params['operation']} "
        f"{exact_size(params['object_bytes'])} x{params['connections']}"
    )


def _loader(params: Params) -> str:
    shown = {"loader", "data", "cache", "workers", "batch_size", "prefetch", "seconds"}
    rest = "".join(f" {key}={_short(params[key])}" for key in params if key not in shown)
    where = f" {params['data']} {params['cache']}" if params["data"] else ""
    return (
        f"loader {params['loader']}{where} workers={params['workers']} "
        f"batch={params['batch_size']}{rest}"
    )


def _train(params: Params) -> str:
    several = f" devices={params['devices']}" if "devices" in params else ""
    epochs = f" epochs={params['epochs']} evict={params['evict']}" if "epochs" in params else ""
    return (
        f"train {params['group']} {params['input']} batch={params['batch_size']}{several}{epochs}"
    )


def _watch(params: Params) -> str:
    return f"your loop over {params['loader']}"


def _short(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def ladder_table(entry: Mapping[str, Any]) -> str:
    """The ladder of a training loop, from the summary, as a table for terminals."""
    rows = [_HEAD, *(_rung(rung) for rung in entry["rungs"])]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if place in (0, len(_HEAD) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    emulated = " (emulated)" if entry.get("emulated") else ""
    missing: dict[str, list[str]] = {}
    for rung, why in entry["not_measured"].items():
        missing.setdefault(why, []).append(rung)
    left_out = [f"not measured: {', '.join(rungs)}: {why}" for why, rungs in missing.items()]
    return "\n".join(map(escape, [f"{entry['group']}{emulated}", *lines, *left_out]))


def _rung(rung: Mapping[str, Any]) -> tuple[str, ...]:
    part, share = rung["part"], rung["share"]
    marked = "" if part is None or rung["tells"] else " ?"
    return (
        str(rung["words"]),
        _of_1000(rung["seconds_per_sample"]["median"]),
        _of_1000(part["median"]) + marked if part else "",
        f"{_of_1000(part['low'])} to {_of_1000(part['high'])}"
        if part and part["repeats"] > 1
        else "",
        precise_percent(share["median"]) if share else "",
        str(rung["badge"]),
    )


def _of_1000(a_sample: float) -> str:
    return precise_number(a_sample * 1000)
