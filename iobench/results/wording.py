"""PURE. Trials, rates, shares, models and ladders in words, for terminals and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.results import badges
from iobench.results.host_sums import common_rate
from iobench.results.numbers import exact_size, percent, precise_number, rate_with_unit
from iobench.results.statistics import Estimate
from iobench.results.trial import Params, Together, Trial, TrialSpec

_MODELS = {
    "resnet50": "ResNet-50",
    "resnet18": "ResNet-18",
    "lenet": "LeNet",
    "retinanet": "RetinaNet",
}
_LOADER_KEYS_NOT_APPENDED = {
    "loader",
    "data",
    "cache",
    "workers",
    "batch_size",
    "prefetch",
    "seconds",
}
"""Parameters of a loader that are not appended to its description as ``key=value``. The description
has them in another form, or leaves them out."""

_LADDER_COLUMNS = ("rung", "s/1,000 samples", "adds", "between", "share", "cache")
_TEXT_COLUMNS = (0, len(_LADDER_COLUMNS) - 1)
"""Indices of the ladder's columns that are aligned to the left."""


def point_words(spec: TrialSpec) -> str:
    """Return a trial in words: ``disk here read sequential 1 MiB x4 cold #2``.

    Repeats count from 1.
    """
    return f"{params_words(spec.kind, spec.params)} #{spec.repeat + 1}"


def params_words(kind: str, params: Params) -> str:
    """Return the settings of a trial in words, without the number of the repeat."""
    describe = _DESCRIPTIONS.get(kind)
    without_hosts = {key: value for key, value in params.items() if key != "hosts"}
    text = describe(without_hosts) if describe is not None else kind
    if "hosts" in params:
        text += f" on {counted(int(params['hosts']), 'host')}"
    return escape(text)


def result_words(trial: Trial) -> str:
    """Return the outcome of a trial in one line."""
    point = point_words(TrialSpec(trial.kind, trial.params, trial.repeat))
    if trial.status != "done":
        return f"{trial.status} {point}: {escape(trial.reason)}"
    figures = []
    if samples := samples_words(trial.metrics):
        figures.append(samples)
    if "mb_per_s" in trial.metrics:
        figures.append(rate_with_unit(trial.metrics["mb_per_s"] * 1e6, "bytes"))
    if trial.hosts is not None and trial.hosts.hosts > 1:
        if figures:
            figures[-1] += " on host 0"
        figures = [*_hosts_words(trial.hosts), *figures]
    marks = ["emulated"] if trial.metrics.get("emulated") else []
    if badge := badges.trial_badge(trial.cold):
        marks.append(badge)
    line = f"{point}: {', '.join(figures) or 'no rate'}"
    return f"{line} ({', '.join(marks)})" if marks else line


def rates_words(rates: Mapping[str, float], number: Callable[[float], str] | None = None) -> str:
    """Return rates in words: ``1,234 samples/s, 12.3 MB/s``.

    Args:
        rates: the rates by the names of their metrics.
        number: the format of a number; None for ``precise_number``.
    """
    number = number or precise_number
    figures = []
    if samples := samples_words(rates, number):
        figures.append(samples)
    for metric, unit in (("mb_per_s", "MB/s"), ("requests_per_s", "requests/s"), ("iops", "IOPS")):
        if metric in rates:
            figures.append(f"{number(rates[metric])} {unit}")
    return ", ".join(figures)


def samples_words(metrics: Mapping[str, Any], number: Callable[[float], str] | None = None) -> str:
    """Return ``1,234 samples/s``, or ``between 290 and 1,256 samples/s`` if only bounds are known.

    With a single bound, the text is ``290 samples/s or more`` or ``1,256 samples/s or less``.

    Args:
        metrics: the metrics of a trial.
        number: the format of a number; None for ``precise_number``.

    Returns:
        The text; empty without a rate.
    """
    number = number or precise_number
    rate = metrics.get("samples_per_s")
    if rate is not None:
        return f"{number(rate)} samples/s"
    low, high = metrics.get("samples_per_s_low"), metrics.get("samples_per_s_high")
    if low is not None and high is not None:
        return f"between {number(low)} and {number(high)} samples/s"
    if low is not None:
        return f"{number(low)} samples/s or more"
    if high is not None:
        return f"{number(high)} samples/s or less"
    return ""


def _hosts_words(hosts: Together) -> Iterator[str]:
    """Yield the sum over hosts, the rate of the slowest host, and the spread of the starts.

    Without a sum, the first text only says how many hosts measured. Without a rate that all hosts
    have, the slowest host is unknown.
    """
    measured = [part for part in hosts.parts if part.status == "done"]
    missing = f" of {hosts.hosts}" if hosts.missing else ""
    total = rates_words(hosts.sums)
    yield f"{len(measured)}{missing} hosts {f'together {total}' if total else 'measured'}"
    metric = common_rate(measured)
    for part in measured:
        if part.host == hosts.slowest and metric is not None:
            yield f"slowest host {part.host} with {rates_words({metric: part.metrics[metric]})}"
    if hosts.start_spread_s is not None:
        yield f"all started within {hosts.start_spread_s:.2f} s"


def share_words(share: Estimate) -> str:
    """Return a share with its interval: ``40 % (36 to 44 %)``; without it for a single repeat."""
    if share.repeats < 2:
        return percent(share.median)
    return f"{percent(share.median)} ({share_range_words(share)})"


def share_range_words(share: Estimate) -> str:
    """Return the interval of a share: ``36 to 44 %``."""
    return f"{percent(share.low).removesuffix(' %')} to {percent(share.high)}"


def model_words(name: str) -> str:
    """Return ``ResNet-50`` for ``resnet50``; other names are returned as they are."""
    return _MODELS.get(name, name)


def ladder_table(entry: Mapping[str, Any]) -> str:
    """Return the ladder of a training loop as a table for terminals.

    Args:
        entry: the ladder in the summary of a result.
    """
    rows: list[Sequence[str]] = [_LADDER_COLUMNS]
    rows += [_rung_cells(rung) for rung in entry["rungs"]]
    emulated = " (emulated)" if entry.get("emulated") else ""
    lines = [f"{entry['group']}{emulated}", *_aligned(rows)]
    rungs_by_reason: dict[str, list[str]] = {}
    for rung, reason in entry["not_measured"].items():
        rungs_by_reason.setdefault(reason, []).append(rung)
    for reason, rungs in rungs_by_reason.items():
        lines.append(f"not measured: {', '.join(rungs)}: {reason}")
    return "\n".join(escape(line) for line in lines)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a ladder as lines whose columns are aligned."""
    columns = zip(*rows, strict=True)
    widths = [max(len(cell) for cell in column) for column in columns]
    for row in rows:
        cells = []
        for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
            cells.append(cell.ljust(width) if index in _TEXT_COLUMNS else cell.rjust(width))
        yield "  ".join(cells).rstrip()


def _rung_cells(rung: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a rung. '?' marks a cost that cannot be distinguished from zero."""
    name = str(rung["words"])
    total = _of_1000_samples(rung["seconds_per_sample"]["median"])
    adds = between = share = ""
    part = rung["part"]
    if part:
        adds = _of_1000_samples(part["median"])
        if not rung["tells"]:
            adds += " ?"
        if part["repeats"] > 1:
            between = f"{_of_1000_samples(part['low'])} to {_of_1000_samples(part['high'])}"
    if rung["share"]:
        share = f"{rung['share']['median'] * 100:.1f} %"
    return name, total, adds, between, share, str(rung["badge"])


def _of_1000_samples(sample_s: float) -> str:
    """Return the seconds for 1,000 samples with three digits, and from 1,000 s on as an integer."""
    return precise_number(sample_s * 1000)


def _disk(params: Params) -> str:
    text = (
        f"disk {params['target']} {params['operation']} {params['pattern']} "
        f"{exact_size(params['block_bytes'])} x{params['parallelism']} {params['cache']}"
    )
    return f"{text} by {params['engine']}" if "engine" in params else text


def _layout(params: Params) -> str:
    return f"layout {params['data']} {params['access']} x{params['parallelism']} {params['cache']}"


def _object(params: Params) -> str:
    return (
        f"store {params['store']} {params['client']} {params['operation']} "
        f"{exact_size(params['object_bytes'])} x{params['connections']}"
    )


def _loader(params: Params) -> str:
    text = f"loader {params['loader']}"
    if params["data"]:
        text += f" {params['data']} {params['cache']}"
    text += f" workers={params['workers']} batch={params['batch_size']}"
    for key, value in params.items():
        if key not in _LOADER_KEYS_NOT_APPENDED:
            text += f" {key}={_value_words(value)}"
    return text


def _train(params: Params) -> str:
    text = f"train {params['group']} {params['input']} batch={params['batch_size']}"
    if "devices" in params:
        text += f" devices={params['devices']}"
    if "epochs" in params:
        text += f" epochs={params['epochs']} evict={params['evict']}"
    return text


def _watch(params: Params) -> str:
    return f"your loop over {params['loader']}"


def _value_words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


_DESCRIPTIONS: Mapping[str, Callable[[Params], str]] = {
    "disk": _disk,
    "layout": _layout,
    "object": _object,
    "loader": _loader,
    "train": _train,
    "watch": _watch,
}
"""The description of a trial's settings by its kind."""
