"""PURE. What trials tell of each part's capacity: decoding, storage, what a device takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iobench.loaders.own import UNDECODED
from iobench.stats import Estimate, estimate, median
from iobench.summary.points import by_point, cold_label
from iobench.trial import Params, Trial
from iobench.whatif.laws import WorkerLaw, fit_law
from iobench.whatif.objects import Fetched, FetchLaw, fit_fetch
from iobench.whatif.setting import Setting, of_loader

TAKES = ("synthetic", "copy", "collate")
"""Rungs of a training loop whose samples no loader has decoded: what the loop can take."""

_ON_PROCESSOR = re.compile(r"\d+ threads?$")


@dataclass(frozen=True, slots=True)
class Rates:
    """Samples/s of one loader by workers, all else alike; ``law`` is of one worker or more."""

    setting: Setting
    points: Mapping[int, Estimate]
    law: WorkerLaw | None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a training loop takes without a loader: samples/s by rung.

    ``on_processor``: it computes on the processors that its workers use.
    """

    group: str
    rungs: Mapping[str, Estimate]
    on_processor: bool
    emulated: bool


@dataclass(frozen=True, slots=True)
class Fetching:
    """How an object store answers a client's whole reads."""

    store: str
    client: str
    law: FetchLaw
    points: tuple[Fetched, ...]


@dataclass(frozen=True, slots=True)
class Capacities:
    """Everything that was measured of the parts.

    ``read`` has rates of reading alone from a cold disk, ``streamed`` those from a store, ``laid``
    the best rates of reading without any loader, each by form of data; ``disk_bytes_per_s`` is
    that of the fastest disk, None where none was measured. ``sample_bytes`` and ``object_bytes``
    are means by form.
    """

    decoded: tuple[Rates, ...] = ()
    read: tuple[Rates, ...] = ()
    streamed: tuple[Rates, ...] = ()
    laid: Mapping[str, Estimate] = field(default_factory=dict)
    disk_bytes_per_s: float | None = None
    fetching: tuple[Fetching, ...] = ()
    loops: Mapping[str, Taken] = field(default_factory=dict)
    sample_bytes: Mapping[str, float] = field(default_factory=dict)
    object_bytes: Mapping[str, float] = field(default_factory=dict)
    processors: int | None = None


def measured(trials: Sequence[Trial], environment: Mapping[str, Any]) -> Capacities:
    """The capacities of a run."""
    processors = processors_of(environment)
    return Capacities(
        decoded=_rates(trials, processors, _is_decoding),
        read=_rates(trials, processors, _is_cold_reading),
        streamed=_rates(trials, processors, _is_streaming),
        laid=_laid(trials),
        disk_bytes_per_s=_disk(trials),
        fetching=_fetching(trials),
        loops=_loops(trials),
        sample_bytes=_sample_bytes(trials),
        object_bytes=_by_form(trials, "mean_object_bytes"),
        processors=processors,
    )


def processors_of(environment: Mapping[str, Any]) -> int | None:
    """Processors that may be used, their quota rounded up; None where nobody knows."""
    known = [environment.get("processors"), environment.get("processor_quota")]
    numbers = [float(n) for n in known if isinstance(n, (int, float)) and n > 0]
    return -int(-min(numbers) // 1) if numbers else None


def rate_of(trials: Sequence[Trial]) -> Estimate | None:
    """Median samples/s over repeats; None where there is none above 0."""
    rates = [float(trial.metrics.get("samples_per_s") or 0) for trial in trials]
    positive = [rate for rate in rates if rate > 0]
    return estimate(positive) if positive else None


def is_direct(params: Params) -> bool:
    """Whether data are reached as the loader reads by itself: no other mode is modelled."""
    return str(params.get("access", "direct")) == "direct"


def _is_decoding(params: Params, label: str) -> bool:
    if params["loader"] in UNDECODED - {"mock"} or not params.get("decode", True):
        return False
    is_warm = label in ("", "warm") and str(params.get("cache", "warm")) == "warm"
    return is_warm and not _remote(params)


def _is_cold_reading(params: Params, label: str) -> bool:
    return bool(params["loader"] == "raw") and label == "cold"


def _is_streaming(params: Params, label: str) -> bool:
    return bool(params["loader"] == "raw") and _remote(params)


def _remote(params: Params) -> bool:
    return str(params.get("data", "")).endswith("@s3")


def _rates(
    trials: Sequence[Trial], processors: int | None, wanted: Callable[[Params, str], bool]
) -> tuple[Rates, ...]:
    groups: dict[Setting, dict[int, list[Trial]]] = {}
    for params, repeats in by_point(trials, "loader"):
        if is_direct(params) and wanted(params, cold_label(repeats)):
            setting = of_loader(params, "warm")
            points = groups.setdefault(setting.changed(workers=0), {})
            points.setdefault(setting.workers, []).extend(repeats)
    found = []
    for setting, points in groups.items():
        rates = {w: rate for w in sorted(points) if (rate := rate_of(points[w])) is not None}
        several = {w: rate.median for w, rate in rates.items() if w > 0}
        if rates:
            found.append(Rates(setting, rates, fit_law(several, processors) if several else None))
    return tuple(found)


def _laid(trials: Sequence[Trial]) -> dict[str, Estimate]:
    """Shards as wholes, and files, from a cold disk: the best over reads in parallel."""
    best: dict[str, Estimate] = {}
    for params, repeats in by_point(trials, "layout"):
        form = str(params.get("data", "")).partition("@")[0]
        rate = rate_of(repeats)
        if rate is None or cold_label(repeats) != "cold" or params.get("access") == "records":
            continue
        if form not in best or rate.median > best[form].median:
            best[form] = rate
    return best


def _disk(trials: Sequence[Trial]) -> float | None:
    rates = [
        median([float(trial.metrics.get("mb_per_s") or 0) for trial in repeats]) * 1e6
        for params, repeats in by_point(trials, "disk")
        if params.get("operation") == "read" and cold_label(repeats) in ("cold", "direct")
    ]
    return max(rates, default=0.0) or None


def _fetching(trials: Sequence[Trial]) -> tuple[Fetching, ...]:
    sweeps: dict[tuple[str, str], list[Fetched]] = {}
    for params, repeats in by_point(trials, "object"):
        rates = [float(trial.metrics.get("mb_per_s") or 0) for trial in repeats]
        if params.get("operation") == "get" and (rate := median(rates)) > 0:
            first = [trial.metrics.get("first_byte_s_p50") for trial in repeats]
            told = [float(value) for value in first if value is not None]
            sweeps.setdefault((str(params["store"]), str(params["client"])), []).append(
                Fetched(
                    int(params["object_bytes"]),
                    int(params["connections"]),
                    rate * 1e6,
                    median(told) if told else None,
                )
            )
    return tuple(
        Fetching(store, client, fit_fetch(points), tuple(points))
        for (store, client), points in sweeps.items()
    )


def _loops(trials: Sequence[Trial]) -> dict[str, Taken]:
    groups: dict[str, dict[str, list[Trial]]] = {}
    for params, repeats in by_point(trials, "train"):
        rungs = groups.setdefault(str(params["group"]), {})
        rungs.setdefault(str(params["input"]), []).extend(repeats)
    return {group: _taken(group, rungs) for group, rungs in groups.items()}


def _taken(group: str, rungs: Mapping[str, Sequence[Trial]]) -> Taken:
    rates = {rung: rate for rung in TAKES if (rate := rate_of(rungs.get(rung, ()))) is not None}
    first = next(iter(rungs.values()))[0]
    emulated = bool(first.metrics.get("emulated"))
    told = str(first.metrics.get("device", ""))
    on_processor = first.params.get("device") == "cpu" or bool(_ON_PROCESSOR.search(told))
    return Taken(group, rates, on_processor and not emulated, emulated)


def _sample_bytes(trials: Iterable[Trial]) -> dict[str, float]:
    """As stored: MB/s of a loader or a layout over its samples/s."""
    found: dict[str, list[float]] = {}
    for trial in trials:
        if trial.kind in ("loader", "layout", "train") and trial.status == "done":
            rate, moved = trial.metrics.get("samples_per_s"), trial.metrics.get("mb_per_s")
            form = str(trial.params.get("data", "")).partition("@")[0]
            if rate and moved and form:
                found.setdefault(form, []).append(float(moved) * 1e6 / float(rate))
    return {form: median(values) for form, values in found.items()}


def _by_form(trials: Iterable[Trial], metric: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for trial in trials:
        value = trial.metrics.get(metric)
        form = str(trial.params.get("data", "")).partition("@")[0]
        if value and form:
            found.setdefault(form, []).append(float(value))
    return {form: median(values) for form, values in found.items()}
