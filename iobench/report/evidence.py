"""PURE. The charts below the first screen, each with a caption."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markupsafe import Markup

from dataprep.message_text import counted
from iobench.analysis.analyse import Analysis
from iobench.analysis.hosts import without_fewer_hosts
from iobench.analysis.loader_setting import Setting
from iobench.analysis.loops import Loop
from iobench.analysis.repeats import (
    Repeats,
    by_settings,
    cold_label,
    estimate_of,
    rate_bounds,
    rate_of,
)
from iobench.analysis.step_parts import costliest_rung
from iobench.report import hosts
from iobench.report.charts import SERIES, Bar, Curve, Guide, Point, bars, lines, thinned
from iobench.results.numbers import duration, exact_size, number, precise_percent, with_interval
from iobench.results.statistics import Estimate
from iobench.results.trial import Params, Trial
from iobench.results.wording import params_words
from iobench.trials.ladder import PIPELINE_RUNGS, START

TimeAndValue = tuple[float, float]
"""A time in seconds, and a value."""
Series = Mapping[str, Mapping[str, Sequence[float]]]
"""The columns of the steps of each trial, by the id of the trial."""
Readings = Mapping[str, Mapping[str, Sequence[TimeAndValue]]]
"""The readings of each column during each trial, by the id of the trial."""

_MAX_BARS, _MAX_POINTS = 10, 240
"""The maximum number of bars of a chart, and of points of a curve over time."""
_RUNG_COLOURS = {"synthetic": "device", "warm": "read", "cold": "storage"}
"""The colours of rungs. A rung that is not listed has its own name as the colour."""
_AXIS_NAMES = {
    "block_bytes": "block size",
    "object_bytes": "object size",
    "parallelism": "reads in parallel",
}
"""The text below a horizontal axis, by the name of the parameter. A parameter that is not listed
has its own name as the text."""


@dataclass(frozen=True, slots=True)
class _Panel:
    """A chart of readings of the machine.

    Attributes:
        title: the quantity that is drawn.
        columns: a pattern that matches the whole name of each column of readings that is drawn.
        scale: the factor that converts a reading into ``unit``.
        unit: the unit of the vertical axis.
    """

    title: str
    columns: re.Pattern[str]
    scale: float
    unit: str


_PANELS = (
    _Panel(
        "CPUs and device",
        re.compile(r"cpu\.(user|system|iowait)_share|gpu\..*utilisation_share"),
        100,
        "%",
    ),
    _Panel("Disk and network", re.compile(r"(disk|network)\..*_bytes_per_s"), 1e-6, "MB/s"),
)


@dataclass(frozen=True, slots=True)
class Card:
    """A chart with its heading and caption; ``wide`` if it takes the whole width of the page."""

    title: str
    caption: str
    chart: Markup
    wide: bool = False


def cards(analysis: Analysis, series: Series, readings: Readings) -> list[Card]:
    """The charts of the run. A chart without data is left out.

    Args:
        analysis: the analysed result.
        series: the columns of the steps of each trial.
        readings: the readings of the machine during each trial.
    """
    # Only the first two charts compare numbers of hosts. The others are about all hosts.
    on_full_hosts = replace(analysis, result=without_fewer_hosts(analysis.result))
    cards_or_none = [
        _hosts(analysis),
        _over_hosts(analysis),
        _loops(on_full_hosts),
        _ladder(on_full_hosts.loop),
        _workers(on_full_hosts),
        _loaders(on_full_hosts),
        _disk(on_full_hosts),
        _store(on_full_hosts),
        _over_time(on_full_hosts, series, readings),
    ]
    return [card for card in cards_or_none if card is not None]


def _hosts(analysis: Analysis) -> Card | None:
    """The rate of each host in the trial that represents the run."""
    point_and_bars = hosts.host_bars(analysis.result)
    if point_and_bars is None:
        return None
    point, rows = point_and_bars
    caption = (
        f"{point.description}: the sum over hosts is {number(point.total.median)} "
        f"{hosts.unit(point)}."
    )
    if len(rows) < point.hosts:
        caption += f" The chart shows the {len(rows)} slowest of {point.hosts} hosts."
    return Card("Rate of each host, all at the same time", caption, bars(rows, hosts.unit(point)))


def _over_hosts(analysis: Analysis) -> Card | None:
    """How the sum over hosts grows with their number, if several numbers were measured."""
    curves: list[Curve] = []
    growth_by_name = hosts.growth(analysis.result)
    for name, growth in growth_by_name[: len(SERIES)]:
        points = [_point(count, times) for count, times in growth.items()]
        curves.append(Curve(name, SERIES[len(curves)], points))
    if not curves:
        return None
    counts = sorted({point.x for curve in curves for point in curve.points})
    ticks = [(count, f"{count:.0f}") for count in counts]
    caption = (
        "The sum over hosts, divided by the rate of a host in the trial on the fewest hosts. If "
        "this multiple is as large as the number of hosts, the hosts do not slow each other down. "
        "Where the curve no longer grows, the storage or the network is the limit."
    )
    if len(growth_by_name) > len(SERIES):
        caption += f" The chart shows the first {len(SERIES)} of {len(growth_by_name)} trials."
    chart = lines(curves, "hosts", "multiple of one host's rate", label=caption, x_ticks=ticks)
    return Card("Sum over hosts by the number of hosts", caption, chart)


def _loops(analysis: Analysis) -> Card | None:
    """The rates of loops as shares of their devices' rates, if there are at least two loops."""
    rows = []
    for loop in analysis.loops:
        share = loop.au_ceiling
        if share is not None:
            text = with_interval(share, precise_percent)
            rows.append(Bar(loop.group, share.median, text, "device", share.low, share.high))
    if len(rows) < 2:
        return None
    caption = (
        "The samples/s of each loop as a share of the samples/s with data in the device's memory."
    )
    if len(rows) > _MAX_BARS:
        caption += f" The chart shows the first {_MAX_BARS} of {len(rows)} loops."
    return Card("Training loops", caption, bars(rows[:_MAX_BARS], "share of the device's rate"))


def _ladder(loop: Loop | None) -> Card | None:
    """The time per sample on each rung of a loop's ladder, if it has at least two rungs."""
    if loop is None or len(loop.ladder.rungs) < 2:
        return None
    rows = []
    for rung in loop.ladder.rungs:
        seconds = rung.seconds
        low_ms, median_ms, high_ms = seconds.low * 1e3, seconds.median * 1e3, seconds.high * 1e3
        text = with_interval(replace(seconds, median=median_ms, low=low_ms, high=high_ms))
        colour = _RUNG_COLOURS.get(rung.rung, rung.rung)
        includes_decoding = rung.rung == "warm" and "decode" not in loop.inputs
        if includes_decoding:
            colour = "prepare"
        rows.append(Bar(loop.rung_words(rung), median_ms, text, colour, low_ms, high_ms))
    largest_part = costliest_rung(loop)
    caption = (
        "Milliseconds per sample. Each row adds one real part of the input to the row above it."
    )
    if largest_part is not None:
        name, share = largest_part
        caption += f" The rung {name} costs most: {precise_percent(share.median)} of the step."
    elif loop.has_all_rungs and all(rung in (*PIPELINE_RUNGS, START) for rung in loop.ladder.path):
        caption += " iobench ladder CONFIG measures the stages within these parts."
    return Card("Cost per pipeline stage", caption, bars(rows, "ms per sample"))


def _workers(analysis: Analysis) -> Card | None:
    """Rates by the number of workers, of the loader alone and in the loop.

    There is no chart if fewer than two numbers of workers were measured.
    """
    if analysis.situation is None:
        return None
    current, capacities = analysis.situation.setting, analysis.capacities
    # The loader alone is measured on data in the page cache.
    alone = _points_by_workers(capacities.loaders, replace(current, source="warm"))
    in_loop = _points_by_workers(capacities.loops, current)
    curves = []
    if alone:
        curves.append(Curve("loader alone", "s0", alone))
    if in_loop:
        curves.append(Curve("training loop", "s1", in_loop))
    points = [*alone, *in_loop]
    counts = sorted({point.x for point in points})
    if len(counts) < 2:
        return None
    guides = []
    if capacities.consumption is not None:
        guides.append(Guide("the device's rate", capacities.consumption.median))
    best = max(points, key=lambda point: point.y)
    caption = (
        f"{current.loader} over {current.data}: the highest rate is {number(best.y)} samples/s "
        f"with {counted(int(best.x), 'worker')}."
    )
    ticks = [(count, f"{count:.0f}") for count in counts]
    chart = lines(curves, "workers", "samples/s", label=caption, guides=guides, x_ticks=ticks)
    return Card("Rate by the number of workers", caption, chart)


def _points_by_workers(table: Mapping[Setting, Repeats], current: Setting) -> list[Point]:
    """The rates by the number of workers, in ascending order.

    Args:
        table: the trials of each setting.
        current: the setting from which the others differ only in their number of workers.
    """
    rates: dict[int, Estimate] = {}
    for setting, repeats in table.items():
        differs_only_in_workers = (
            setting.loader == current.loader
            and setting.data == current.data
            and setting.source == current.source
            and setting.work == current.work
        )
        rate = rate_of(repeats)
        if differs_only_in_workers and rate is not None:
            rates[setting.all_workers] = rate
    return [_point(workers, rates[workers]) for workers in sorted(rates)]


def _loaders(analysis: Analysis) -> Card | None:
    """The fastest loaders without training, if the run has no training loop."""
    if analysis.loop is not None:
        return None
    rows = []
    for params, repeats in by_settings(analysis.result.trials, "loader"):
        rate = rate_of(repeats)
        bounds = rate_bounds(repeats)
        name = params_words("loader", params).removeprefix("loader ")
        if rate is not None:
            text = with_interval(rate)
            rows.append(Bar(name, rate.median, text, "s0", rate.low, rate.high))
        elif bounds is not None:
            low, high = bounds
            text = f"between {number(low)} and {number(high)}"
            rows.append(Bar(name, low, text, "s0", low, high))
    rows.sort(key=lambda row: -row.value)
    if not rows:
        return None
    caption = "The rates of loaders whose batches are discarded."
    if len(rows) > _MAX_BARS:
        caption += f" The chart shows the {_MAX_BARS} fastest of {len(rows)}."
    return Card("Loader throughput without training", caption, bars(rows[:_MAX_BARS], "samples/s"))


def _disk(analysis: Analysis) -> Card | None:
    """MB/s by block size, or by reads in parallel if only one block size was measured.

    If the run has trials that read from the disk, trials that read from memory are not drawn.
    """
    points = by_settings(analysis.result.trials, "disk")
    from_storage = []
    for params, repeats in points:
        if cold_label(repeats) in ("cold", "direct"):
            from_storage.append((params, repeats))
    named_points = []
    for params, repeats in from_storage or points:
        state = cold_label(repeats) or str(params.get("cache"))
        name = f"{params['target']}, {params['pattern']} {params['operation']}, {state}"
        named_points.append((name, params, repeats))
    return _storage_card(analysis, "Disk", named_points, ("block_bytes", "parallelism"))


def _store(analysis: Analysis) -> Card | None:
    """MB/s by object size, or by connections if only one size was measured."""
    named_points = [
        (f"{params['store']}, {params['operation']} by {params['client']}", params, repeats)
        for params, repeats in by_settings(analysis.result.trials, "object")
    ]
    return _storage_card(analysis, "Object store", named_points, ("object_bytes", "connections"))


def _storage_card(
    analysis: Analysis,
    title: str,
    named_points: Sequence[tuple[str, Params, Repeats]],
    axes: tuple[str, str],
) -> Card | None:
    """The highest rate at each size, or at each parallelism if there is only one size.

    Args:
        analysis: the analysed result.
        title: the heading of the card.
        named_points: the points of all curves: the name of the curve, and the parameters and the
            trials of the point.
        axes: the names of the parameters for the size and for the parallelism.
    """
    size_axis, parallelism_axis = axes
    sizes = {params[size_axis] for _, params, _ in named_points}
    axis = size_axis if len(sizes) > 1 else parallelism_axis
    curves = _storage_curves(named_points, axis)
    if not curves:
        return None
    best = max(point.y for curve in curves for point in curve.points)
    caption, guides = f"The highest rate is {number(best)} MB/s.", []
    demand = _demand(analysis)
    if demand is not None:
        guides = [Guide("demand of the device", demand)]
        caption = (
            f"At its own rate the device would need {number(demand)} MB/s. The highest measured "
            f"rate is {number(best)} MB/s."
        )
    xs = sorted({point.x for curve in curves for point in curve.points})
    if axis.endswith("bytes"):
        ticks = [(x, exact_size(int(x))) for x in xs]
    else:
        ticks = [(x, f"{x:.0f}") for x in xs]
    log_x = len(xs) > 1 and xs[0] > 0
    x_label = _AXIS_NAMES.get(axis, axis)
    chart = lines(curves, x_label, "MB/s", label=caption, guides=guides, log_x=log_x, x_ticks=ticks)
    return Card(title, caption, chart)


def _storage_curves(named_points: Sequence[tuple[str, Params, Repeats]], axis: str) -> list[Curve]:
    """A curve for each name, with the highest rate at each value of the parameter ``axis``."""
    rates_by_name: dict[str, dict[float, Estimate]] = {}
    for name, params, repeats in named_points:
        x, rate = float(params[axis]), estimate_of(repeats, "mb_per_s")
        rates = rates_by_name.setdefault(name, {})
        if rate is not None and (x not in rates or rate.median > rates[x].median):
            rates[x] = rate
    curves = []
    for colour, (name, rates) in zip(SERIES, rates_by_name.items(), strict=False):
        if rates:
            curves.append(Curve(name, colour, [_point(x, rates[x]) for x in sorted(rates)]))
    return curves


def _demand(analysis: Analysis) -> float | None:
    """The MB/s that the leading loop would read if it ran at its device's rate.

    It is None if one of the rates is unknown.
    """
    loop = analysis.loop
    if loop is None or loop.device_rate is None or not loop.farthest:
        return None
    rate, read_mb_per_s = loop.rate(), loop.metric("mb_per_s")
    if rate is None or not read_mb_per_s:
        return None
    return read_mb_per_s * loop.device_rate.median / rate.median


def _over_time(analysis: Analysis, series: Series, readings: Readings) -> Card | None:
    """Steps, CPUs, device, disk and network of one trial, over time."""
    trial = _trial_to_draw(analysis, readings)
    if trial is None:
        return None
    charts = [*_steps(series.get(trial.id, {})), *_panels(readings.get(trial.id, {}))]
    if not charts:
        return None
    params = trial.params
    name = ", ".join(str(params[key]) for key in ("group", "input", "loader") if params.get(key))
    caption = f"One trial: {name}. The time is counted from the request of the first batch."
    drawn = Markup("").join(Markup("<div>{}</div>").format(chart) for chart in charts)
    return Card("During the trial", caption, drawn, wide=True)


def _trial_to_draw(analysis: Analysis, readings: Readings) -> Trial | None:
    """The first trial of the leading loop; if there is none, a watched loop or the fastest loader.

    It is None if no watched loop and no loader has readings either.
    """
    if analysis.loop is not None and analysis.loop.trials:
        return analysis.loop.trials[0]
    with_readings = [trial for trial in analysis.result.trials if trial.id in readings]
    watched = [trial for trial in with_readings if trial.kind == "watch"]
    loaders = [trial for trial in with_readings if trial.kind == "loader"]
    loaders.sort(key=lambda trial: -float(trial.metrics.get("samples_per_s") or 0))
    candidates = [*watched, *loaders]
    return candidates[0] if candidates else None


def _steps(steps: Mapping[str, Sequence[float]]) -> Iterator[Markup]:
    """A chart of the duration and of the waiting of each step.

    There is no chart for fewer than three steps, or for a run of an earlier version, which did not
    store the times of steps.
    """
    times = steps.get("time_s", ())
    ends = steps.get("step_end_s", ())
    waits = steps.get("wait_s", ())
    if len(times) < 3 or len(times) != len(ends) or len(times) != len(waits):
        return
    durations_s = [after - before for before, after in pairwise(ends)]
    longest_s = max(durations_s)
    step_points = _curve_points(list(zip(times[1:], durations_s, strict=True)), 1e3)
    wait_points = _curve_points(list(zip(times, waits, strict=True)), 1e3)
    # Between two steps, the loop may do other work, such as a replay or a validation. The curves
    # are interrupted if this takes longer than the longest step.
    breaks = []
    for (before_s, time_s), step_s in zip(pairwise(times), durations_s, strict=True):
        between_steps_s = time_s - step_s - before_s
        if between_steps_s > longest_s:
            breaks.append(before_s)
    curves = [
        Curve("step", "s0", step_points, marks=False, breaks=breaks),
        Curve("waiting for data", "s1", wait_points, marks=False, breaks=breaks),
    ]
    label = f"Durations of steps over time. The longest step takes {duration(longest_s)}"
    yield lines(curves, "seconds", "ms per step", label=label)


def _panels(readings: Mapping[str, Sequence[TimeAndValue]]) -> Iterator[Markup]:
    """A chart for each of ``_PANELS`` that has readings other than 0."""
    for panel in _PANELS:
        curves: list[Curve] = []
        for column, points in readings.items():
            if panel.columns.fullmatch(column) is None or len(curves) == len(SERIES):
                continue
            in_loop = [(time_s, value) for time_s, value in points if time_s >= 0]
            is_always_zero = not any(value for _, value in in_loop)
            if len(in_loop) >= 2 and not is_always_zero:
                curve_points = _curve_points(in_loop, panel.scale)
                colour = SERIES[len(curves)]
                curves.append(Curve(_curve_name(column), colour, curve_points, marks=False))
        if curves:
            label = f"{panel.title} over time, {panel.unit}"
            yield lines(curves, "seconds", f"{panel.title}, {panel.unit}", label=label)


def _curve_name(column: str) -> str:
    """The legend of a column of readings.

    ``user`` for ``cpu.user_share``, ``GPU 0 utilisation`` for ``gpu.0_utilisation_share``, and
    ``disk, read`` for ``disk.read_bytes_per_s``.
    """
    sampler, _, value = column.partition(".")
    name = value.removesuffix("_share").removesuffix("_bytes_per_s").replace("_", " ")
    if sampler == "cpu":
        return name
    if sampler == "gpu":
        return f"GPU {name}"
    return f"{sampler}, {name}"


def _curve_points(pairs: Sequence[TimeAndValue], scale: float) -> list[Point]:
    """The points of a curve over time, whose values are multiplied by ``scale``."""
    return thinned([Point(time_s, value * scale) for time_s, value in pairs], _MAX_POINTS)


def _point(x: float, estimate: Estimate) -> Point:
    """A point with the interval of an estimate."""
    tooltip = f"{number(x)}: {with_interval(estimate)}"
    return Point(x, estimate.median, estimate.low, estimate.high, tooltip)
