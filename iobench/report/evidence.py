"""PURE. The charts below the first screen, each with a sentence that says what to see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from markupsafe import Markup

from dataprep.counted import counted
from iobench.analysis.analyse import Analysis
from iobench.analysis.hosts import on_all_hosts
from iobench.analysis.loops import Loop, costliest_rung
from iobench.analysis.repeats import (
    Repeats,
    by_settings,
    cold_label,
    estimate_of,
    rate_bounds,
    rate_of,
)
from iobench.ladder import START, THREE
from iobench.report import hosts
from iobench.report.charts import SERIES, Bar, Curve, Guide, Point, bars, lines, thinned
from iobench.report.numbers import number, percent, seconds, with_interval
from iobench.stats import Estimate
from iobench.trial import Params, Trial
from iobench.words import params_words, size_words

Pair = tuple[float, float]
Series = Mapping[str, Mapping[str, Sequence[float]]]
Readings = Mapping[str, Mapping[str, Sequence[Pair]]]

_MOST_BARS, _MOST_POINTS = 10, 240
_RUNG_COLOURS = {"synthetic": "device", "warm": "read", "cold": "storage"}
_PANELS = (
    ("CPUs and device", r"cpu\.(user|system|iowait)_share|gpu\.(.*utilisation)_share", 100, "%"),
    ("Disk and network", r"((?:disk|network)\..*)_bytes_per_s", 1e-6, "MB/s"),
)


@dataclass(frozen=True, slots=True)
class Card:
    """A chart with its heading and caption."""

    title: str
    caption: str
    chart: Markup
    wide: bool = False


def cards(found: Analysis, series: Series, readings: Readings) -> list[Card]:
    """The charts for which there is data."""
    made = [_hosts(found), _over_hosts(found)]
    found = replace(found, result=on_all_hosts(found.result))
    made += [_loops(found), _ladder(found.loop), _workers(found), _loaders(found)]
    made += [_disk(found), _store(found)]
    made += _meanwhile(found, series, readings)
    return [card for card in made if card is not None]


def _hosts(found: Analysis) -> Card | None:
    """The rate of each host of the point that stands for the run."""
    rates = hosts.rates(found.result)
    if rates is None:
        return None
    point, rows = rates
    named = f"{point.description}: the sum is {number(point.total.median)} {hosts.unit(point)}."
    more = f" The {len(rows)} slowest of {point.hosts}." if len(rows) < point.hosts else ""
    return Card("Hosts at the same time", f"{named}{more}", bars(rows, hosts.unit(point)))


def _over_hosts(found: Analysis) -> Card | None:
    """How the sum grows with the number of hosts, where several numbers were measured."""
    drawn: list[Curve] = []
    for name, growth in hosts.growth(found.result)[: len(SERIES)]:
        points = [_point(count, times) for count, times in growth.items()]
        drawn.append(Curve(name, SERIES[len(drawn)], points))
    if not drawn:
        return None
    counts = sorted({point.x for curve in drawn for point in curve.points})
    ticks = [(count, f"{count:.0f}") for count in counts]
    caption = (
        "The sum over hosts / the rate of a host where the fewest measured. In proportion it is "
        "the number of hosts; where it no longer grows, the hosts share what there is."
    )
    chart = lines(drawn, "hosts", "times one host", label=caption, x_ticks=ticks)
    return Card("Sum by the number of hosts", caption, chart)


def _loops(found: Analysis) -> Card | None:
    """Several loops beside each other."""
    rows = []
    for loop in found.loops:
        share = loop.au_ceiling
        if share is not None:
            text = with_interval(share, percent)
            rows.append(Bar(loop.group, share.median, text, "device", share.low, share.high))
    if len(rows) < 2:
        return None
    caption = "Samples/s of each loop as a share of what its device consumes from its own memory."
    return Card("Training loops", caption, bars(rows[:_MOST_BARS], "share of the device's rate"))


def _ladder(loop: Loop | None) -> Card | None:
    if loop is None or len(loop.ladder.rungs) < 2:
        return None
    rows = []
    for rung in loop.ladder.rungs:
        found = rung.seconds
        scaled = Estimate(
            *(found.median * 1e3, found.low * 1e3, found.high * 1e3),
            *(found.coverage, found.repeats),
        )
        prepares = rung.rung == "warm" and "decode" not in loop.inputs
        colour = "prepare" if prepares else _RUNG_COLOURS.get(rung.rung, rung.rung)
        text = with_interval(scaled)
        words = loop.rung_words(rung)
        rows.append(Bar(words, scaled.median, text, colour, scaled.low, scaled.high))
    most = costliest_rung(loop)
    caption = "Milliseconds a sample as one real part more is added each time."
    if most is not None:
        caption += f" The rung {most[0]} adds most: {percent(most[1].median)} of the whole."
    elif loop.has_all_rungs and all(rung in (*THREE, START) for rung in loop.ladder.path):
        caption += " iobench ladder CONFIG measures the parts in between."
    return Card("One real part more at a time", caption, bars(rows, "ms per sample"))


def _workers(found: Analysis) -> Card | None:
    """Rates by number of workers: the loader alone, and loops."""
    if found.situation is None:
        return None
    now, capacities = found.situation.setting, found.capacities
    curves = []
    for name, colour, table in (
        ("loader alone", "s0", capacities.loaders),
        ("training loop", "s1", capacities.loops),
    ):
        points: dict[int, Estimate] = {}
        for setting, repeats in table.items():
            alike = (setting.loader, setting.data, setting.source, setting.work)
            wanted = (now.loader, now.data, now.source if colour == "s1" else "warm", now.work)
            rate = rate_of(repeats)
            if alike == wanted and rate is not None:
                points[setting.all_workers] = rate
        if points:
            curves.append(Curve(name, colour, [_point(w, points[w]) for w in sorted(points)]))
    counts = sorted({point.x for curve in curves for point in curve.points})
    if len(counts) < 2:
        return None
    guides = []
    if capacities.consumption is not None:
        guides.append(Guide("the device's rate", capacities.consumption.median))
    best = max((point for curve in curves for point in curve.points), key=lambda point: point.y)
    most = f"the best is {number(best.y)} with {counted(int(best.x), 'worker')}"
    caption = f"{now.loader} over {now.data}: {most}."
    ticks = [(count, f"{count:.0f}") for count in counts]
    chart = lines(curves, "workers", "samples/s", label=caption, guides=guides, x_ticks=ticks)
    return Card("Workers", caption, chart)


def _loaders(found: Analysis) -> Card | None:
    """The fastest loaders alone, where no training loop has the page."""
    if found.loop is not None:
        return None
    rows = []
    for params, repeats in by_settings(found.result.trials, "loader"):
        rate = rate_of(repeats)
        words = params_words("loader", params).removeprefix("loader ")
        if rate is not None:
            text = with_interval(rate)
            rows.append(Bar(words, rate.median, text, "s0", rate.low, rate.high))
        elif (bounds := rate_bounds(repeats)) is not None:
            low, high = bounds
            text = f"between {number(low)} and {number(high)}"
            rows.append(Bar(words, low, text, "s0", low, high))
    rows.sort(key=lambda row: -row.value)
    if not rows:
        return None
    more = f" The {_MOST_BARS} fastest of {len(rows)}." if len(rows) > _MOST_BARS else ""
    caption = f"Loaders with nothing behind them.{more}"
    return Card("Loaders alone", caption, bars(rows[:_MOST_BARS], "samples/s"))


def _disk(found: Analysis) -> Card | None:
    """MB/s by block size; where one size was measured, by reads in parallel."""
    points = by_settings(found.result.trials, "disk")
    proved = [one for one in points if cold_label(one[1]) in ("cold", "direct")]
    named = []
    for params, repeats in proved or points:
        state = cold_label(repeats) or str(params.get("cache"))
        name = f"{params['target']}, {params['pattern']} {params['operation']}, {state}"
        named.append((name, params, repeats))
    return _storage_card(found, "Disk", named, ("block_bytes", "parallelism"))


def _store(found: Analysis) -> Card | None:
    """MB/s by object size; where one size was measured, by connections."""
    named = [
        (f"{params['store']}, {params['operation']} by {params['client']}", params, repeats)
        for params, repeats in by_settings(found.result.trials, "object")
    ]
    return _storage_card(found, "Object store", named, ("object_bytes", "connections"))


def _storage_card(
    found: Analysis, title: str, named: Sequence[tuple[str, Params, Repeats]], axes: tuple[str, str]
) -> Card | None:
    """The best rate at each size, or at each number of lanes where there is one size."""
    sizes = {params[axes[0]] for _, params, _ in named}
    axis = axes[0] if len(sizes) > 1 else axes[1]
    curves: dict[str, dict[float, Estimate]] = {}
    for name, params, repeats in named:
        x, rate = float(params[axis]), estimate_of(repeats, "mb_per_s")
        points = curves.setdefault(name, {})
        if rate is not None and (x not in points or rate.median > points[x].median):
            points[x] = rate
    drawn = [
        Curve(name, SERIES[place % len(SERIES)], [_point(x, points[x]) for x in sorted(points)])
        for place, (name, points) in enumerate(list(curves.items())[: len(SERIES)])
        if points
    ]
    if not drawn:
        return None
    best = max(point.y for curve in drawn for point in curve.points)
    caption, guides = f"At most {number(best)} MB/s.", []
    demand = _demand(found)
    if demand is not None:
        guides = [Guide("what the device would read", demand)]
        caption = f"The device would read {number(demand)} MB/s; this gives up to {number(best)}."
    xs = sorted({point.x for curve in drawn for point in curve.points})
    ticks = [(x, size_words(int(x)) if axis.endswith("bytes") else f"{x:.0f}") for x in xs]
    names = {
        "block_bytes": "block size",
        "object_bytes": "object size",
        "parallelism": "reads in parallel",
    }
    log_x = len(xs) > 1 and xs[0] > 0
    label = names.get(axis, axis)
    chart = lines(drawn, label, "MB/s", label=caption, guides=guides, log_x=log_x, x_ticks=ticks)
    return Card(title, caption, chart)


def _demand(found: Analysis) -> float | None:
    """MB/s that the leading loop would read at its device's rate."""
    loop = found.loop
    if loop is None or loop.device_rate is None or (rate := loop.rate()) is None:
        return None
    read = loop.metric("mb_per_s")
    return read * loop.device_rate.median / rate.median if read and loop.farthest else None


def _meanwhile(found: Analysis, series: Series, readings: Readings) -> list[Card]:
    """Steps, CPUs, device, disk and network of the leading loop's first repeat, over time."""
    trial = _shown_trial(found, readings)
    if trial is None:
        return []
    charts = [*_steps(series.get(trial.id, {})), *_panels(readings.get(trial.id, {}))]
    if not charts:
        return []
    params = trial.params
    named = ", ".join(str(params[key]) for key in ("group", "input", "loader") if params.get(key))
    caption = f"One trial: {named}. Time since the first batch was asked for."
    drawn = Markup("").join(Markup("<div>{}</div>").format(chart) for chart in charts)
    return [Card("During the run", caption, drawn, wide=True)]


def _shown_trial(found: Analysis, readings: Readings) -> Trial | None:
    if found.loop is not None and found.loop.trials:
        return found.loop.trials[0]
    done = [trial for trial in found.result.trials if trial.id in readings]
    watched = [trial for trial in done if trial.kind == "watch"]
    loaders = [trial for trial in done if trial.kind == "loader"]
    loaders.sort(key=lambda trial: -float(trial.metrics.get("samples_per_s") or 0))
    return next(iter([*watched, *loaders]), None)


def _steps(steps: Mapping[str, Sequence[float]]) -> Iterator[Markup]:
    """How long each step took, and how much of it was waiting; older runs have no times."""
    times, ends, waits = (steps.get(name, ()) for name in ("time_s", "step_end_s", "wait_s"))
    if len(times) < 3 or len(times) != len(ends) or len(times) != len(waits):
        return
    lasted = [after - before for before, after in pairwise(ends)]
    steps_s = _over_time(list(zip(times[1:], lasted, strict=True)), 1e3)
    waits_s = _over_time(list(zip(times, waits, strict=True)), 1e3)
    # Between some steps the loop did something else: a replay, a validation, a cache to prepare.
    breaks = [
        before_s
        for (before_s, time_s), step_s in zip(pairwise(times), lasted, strict=True)
        if time_s - step_s - before_s > max(lasted)
    ]
    curves = [
        Curve("step", "s0", steps_s, marks=False, breaks=breaks),
        Curve("waiting for data", "s1", waits_s, marks=False, breaks=breaks),
    ]
    label = f"Steps over time: the longest takes {seconds(max(lasted))}"
    yield lines(curves, "seconds", "ms of a step", label=label)


def _panels(readings: Mapping[str, Sequence[Pair]]) -> Iterator[Markup]:
    for title, pattern, scale, unit in _PANELS:
        curves: list[Curve] = []
        for column, points in readings.items():
            named = re.fullmatch(pattern, column)
            shown = [pair for pair in points if pair[0] >= 0]
            moves = any(value for _, value in shown)
            if named and moves and len(shown) > 1 and len(curves) < len(SERIES):
                words = next(filter(None, named.groups())).replace("_", " ").replace(".", ", ")
                colour = SERIES[len(curves)]
                curves.append(Curve(words, colour, _over_time(shown, scale), marks=False))
        if curves:
            label = f"{title} over time, {unit}"
            yield lines(curves, "seconds", f"{title}, {unit}", label=label)


def _over_time(pairs: Sequence[Pair], scale: float) -> list[Point]:
    return thinned([Point(time_s, value * scale) for time_s, value in pairs], _MOST_POINTS)


def _point(x: float, found: Estimate) -> Point:
    return Point(x, found.median, found.low, found.high, f"{number(x)}: {with_interval(found)}")
