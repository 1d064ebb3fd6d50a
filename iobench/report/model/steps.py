"""PURE. Steps over time: how long each took, and how long it waited for data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from iobench import badges
from iobench.ladder import RUNGS
from iobench.report.model.drawings import Curve, Curves, Point, Tip
from iobench.report.model.numbers import seconds
from iobench.report.model.shapes import Badge, Chart, Key
from iobench.result import Result
from iobench.trial import Trial

_PLACES = {rung: place for place, rung in enumerate(RUNGS)}
_COLOURS = dict(zip(RUNGS, (2, 4, 5, 6, 7, 0, 1, 3), strict=True))
_MOST_LOOPS = 6
# Of a curve, and of all curves together, as long as each keeps what shows its outliers.
_MOST_POINTS, _ALL_POINTS, _FEWEST_POINTS = 600, 9_600, 100


def step_charts(
    result: Result, series: Mapping[str, Mapping[str, Sequence[float]]]
) -> tuple[Chart, ...]:
    """Two charts a loop, from its first repeat of each input; the first step is left out."""
    loops: dict[str, dict[str, Trial]] = {}
    for trial in result.trials:
        if trial.kind == "train" and trial.status == "done" and trial.id in series:
            inputs = loops.setdefault(str(trial.params.get("group", "")), {})
            inputs.setdefault(str(trial.params.get("input", "")), trial)
    shown = list(loops.items())[:_MOST_LOOPS]
    curves = 2 * sum(len(inputs) for _, inputs in shown)
    most = max(_FEWEST_POINTS, min(_MOST_POINTS, _ALL_POINTS // max(curves, 1)))
    return tuple(chart for group, inputs in shown for chart in _loop(group, inputs, series, most))


def _loop(
    group: str,
    inputs: Mapping[str, Trial],
    series: Mapping[str, Mapping[str, Sequence[float]]],
    most_points: int,
) -> list[Chart]:
    durations, waits, epochs = {}, {}, {}
    for name, trial in inputs.items():
        columns = series[trial.id]
        ends = columns.get("step_end_s", ())
        durations[name] = [after - before for before, after in pairwise(ends)]
        waits[name] = list(columns.get("wait_s", ()))[1:]
        epochs[name] = list(columns.get("epoch", ()))[1:]
    shown = {name: badges.words(trial.cold) for name, trial in inputs.items()}
    emulated = any(trial.metrics.get("emulated") for trial in inputs.values())
    marks = (Badge("emulated", "alert"),) if emulated else ()
    made = []
    for words, values in (("Step time", durations), ("Waiting for data", waits)):
        chart = _chart(
            f"{words}: {group}", words.lower(), values, epochs, marks, shown, most_points
        )
        if chart is not None:
            made.append(chart)
    return made


def _chart(
    title: str,
    words: str,
    values: Mapping[str, Sequence[float]],
    epochs: Mapping[str, Sequence[float]],
    marks: tuple[Badge, ...],
    shown: Mapping[str, str],
    most_points: int,
) -> Chart | None:
    curves, thinned = [], False
    for name in sorted(values, key=lambda name: (_PLACES.get(name, len(RUNGS)), name)):
        column = values[name]
        if len(column) < 2:
            continue
        points, group = _thin(column, most_points)
        thinned = thinned or group > 1
        colour = _COLOURS.get(name, 6)
        curves += [
            Curve(name, colour, tuple(_point(name, *point) for point in part))
            for part in _by_epoch(points, epochs[name])
        ]
    if not curves:
        return None
    note = "The first repeat of each input."
    if thinned:
        note += " Of neighbouring steps the slowest and the fastest are drawn."
    largest = max(point.y for curve in curves for point in curve.points)
    scale, unit = (1.0, "s") if largest >= 2 else (1e3, "ms")
    scaled = tuple(
        Curve(
            curve.name,
            curve.colour,
            tuple(Point(p.x, p.y * scale, p.y * scale, p.y * scale, p.tip) for p in curve.points),
        )
        for curve in curves
    )
    colours = {curve.name: curve.colour for curve in scaled}
    keys = tuple(
        Key(": ".join(filter(None, (name, shown.get(name)))), "━", colour)
        for name, colour in colours.items()
    )
    drawing = Curves("step", f"{words} ({unit})", scaled, markers=False)
    return Chart(title, drawing, keys, note, marks)


def _thin(column: Sequence[float], most: int) -> tuple[list[tuple[int, float]], int]:
    """At most so many points, outliers kept: each group's least and most, in order."""
    group = -(-len(column) * 2 // most) if len(column) > most else 1
    if group == 1:
        return list(enumerate(column, start=2)), 1
    kept: list[tuple[int, float]] = []
    for start in range(0, len(column), group):
        places = range(start, min(start + group, len(column)))
        ends = {min(places, key=column.__getitem__), max(places, key=column.__getitem__)}
        kept.extend((place + 2, column[place]) for place in sorted(ends))
    return kept, group


def _by_epoch(
    points: Sequence[tuple[int, float]], epochs: Sequence[float]
) -> Iterator[list[tuple[int, float]]]:
    """Lines that end with an epoch: between two of them is a pause, which is no step.

    ``epochs`` of all steps but the first; where they are not known there is one.
    """
    known = dict(enumerate(epochs, start=2))
    for _, part in groupby(points, key=lambda point: known.get(point[0])):
        yield list(part)


def _point(name: str, step: int, value: float) -> Point:
    return Point(step, value, value, value, Tip(f"{name}, step {step}", seconds(value)))
