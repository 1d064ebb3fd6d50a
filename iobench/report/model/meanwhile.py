"""PURE. What the machine did while a loop ran, beneath the loop's steps on one axis of time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from iobench.report.model.bounds import MOST_CHARTS
from iobench.report.model.cells import cache_badges
from iobench.report.model.drawings import Curve, Curves, Point, Tip
from iobench.report.model.numbers import number, seconds
from iobench.report.model.shapes import Badge, Block, Chart, Key, Section, Words
from iobench.report.model.thinning import Pair, thinned
from iobench.report.model.verdict import farthest, training_groups
from iobench.result import Result
from iobench.trial import Trial

Readings: TypeAlias = Mapping[str, Mapping[str, Sequence[Pair]]]
Series: TypeAlias = Mapping[str, Mapping[str, Sequence[float]]]

_MOST_TRIALS, _MOST_CURVES = 3, 8
# Of a curve, and of all curves together, as long as each keeps what shows its outliers.
_MOST_POINTS, _ALL_POINTS, _FEWEST_POINTS = 300, 4_000, 50


@dataclass(frozen=True, slots=True)
class _Panel:
    """One chart: columns that ``pattern`` finds, in ``unit`` after ``scale``."""

    title: str
    pattern: str
    unit: str
    scale: float
    say: Callable[[float], str]


def _megabytes(value: float) -> str:
    return f"{number(value)} MB/s"


def _gigabytes(value: float) -> str:
    return f"{number(value)} GB"


_PANELS = (
    _Panel("GPU", r"gpu\.(.*utilisation)_share", "share of time with a kernel (%)", 100, number),
    _Panel("GPU memory", r"gpu\.(.*memory)_bytes", "memory in use (GB)", 1e-9, _gigabytes),
    _Panel("GPU clock", r"gpu\.(.*clock)_mhz", "of its multiprocessors (MHz)", 1, number),
    _Panel("GPU power", r"gpu\.(.*power)_w", "power (W)", 1, number),
    _Panel(
        "Processors", r"cpu\.(user|system|iowait|steal)_share", "of all processors (%)", 100, number
    ),
    _Panel("Loop and workers", r"tree\.(user|system)_cores", "processors kept busy", 1, number),
    _Panel(
        "Disk and network",
        r"((?:disk|network)\..*)_bytes_per_s",
        "MB/s of the machine",
        1e-6,
        _megabytes,
    ),
    _Panel("Page cache", r"page-cache\.(.*)_bytes", "files in memory (GB)", 1e-9, _gigabytes),
)
_STEPS = ("step", "waiting for data")


def section(result: Result, series: Series, readings: Readings) -> Section | None:
    """A few trials, each with its steps above what the machine did; and what is missing."""
    charts: list[Chart] = []
    shown = _representative(result, readings)
    curves = sum(len(_STEPS) + len(readings[trial.id]) for trial in shown)
    most = max(_FEWEST_POINTS, min(_MOST_POINTS, _ALL_POINTS // max(curves, 1)))
    for trial in shown:
        more = _charts(trial, series.get(trial.id, {}), readings[trial.id], most)
        # A trial is drawn whole or not at all.
        if charts and len(charts) + len(more) > MOST_CHARTS:
            break
        charts += more
    notes = dict.fromkeys(
        str(note) for trial in result.trials for note in trial.metrics.get("sampling_notes") or ()
    )
    if not charts:
        return None
    words = (Words(tuple(notes), listed=True),) if notes else ()
    blocks: tuple[Block, ...] = (*charts, *words)
    return Section("meanwhile", "The machine meanwhile", blocks)


def _representative(result: Result, readings: Readings) -> list[Trial]:
    """The first repeat of each loop from the farthest input; each watched loop; else a loader's."""
    wanted = {(group.get("group"), farthest(group)) for group in training_groups(result)}
    done = [trial for trial in result.trials if trial.status == "done" and trial.id in readings]
    loops = [
        trial
        for trial in done
        if trial.kind == "watch"
        or (
            trial.kind == "train"
            and trial.repeat == 0
            and (trial.params.get("group"), trial.params.get("input")) in wanted
        )
    ]
    loaders = [trial for trial in done if trial.kind == "loader" and trial.repeat == 0]
    fastest = sorted(loaders, key=lambda trial: -float(trial.metrics.get("samples_per_s") or 0))
    return (loops or fastest[:1])[:_MOST_TRIALS]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What the charts of one trial share: its name, reach along time, badges, points a curve."""

    named: str
    reach: tuple[float, float]
    badges: tuple[Badge, ...]
    most: int


def _charts(
    trial: Trial,
    steps: Mapping[str, Sequence[float]],
    readings: Mapping[str, Sequence[Pair]],
    most: int,
) -> list[Chart]:
    times = [time_s for points in readings.values() for time_s, _ in points]
    emulated = (Badge("emulated", "alert"),) if trial.metrics.get("emulated") else ()
    badges = (*emulated, *cache_badges([trial]))
    reach = (0.0, max([*times, *steps.get("time_s", ())], default=0.0))
    frame = _Frame(_named(trial), reach, badges, most)
    made = [_steps(frame, steps)]
    for panel in _PANELS:
        curves = {}
        for column, points in readings.items():
            if found := re.fullmatch(panel.pattern, column):
                # Before the first batch was asked for nothing of the loop ran.
                shown = [(time_s, value * panel.scale) for time_s, value in points if time_s >= 0]
                curves[_words(found[1])] = shown
        made.append(_chart(frame, panel.title, panel.unit, curves, panel.say))
    return [chart for chart in made if chart is not None]


def _steps(frame: _Frame, steps: Mapping[str, Sequence[float]]) -> Chart | None:
    """How long each step took at the time of its end. Old runs have no times of steps."""
    times, ends, waits = (steps.get(name, ()) for name in ("time_s", "step_end_s", "wait_s"))
    if not times or len(times) != len(ends) or len(times) != len(waits):
        return None
    lasted = [after - before for before, after in pairwise(ends)]
    longest = max([*lasted, *waits], default=0.0)
    scale, unit = (1.0, "s") if longest >= 2 else (1e3, "ms")
    curves = {
        _STEPS[0]: [(at, value * scale) for at, value in zip(times[1:], lasted, strict=True)],
        _STEPS[1]: [(at, value * scale) for at, value in zip(times, waits, strict=True)],
    }

    def said(value: float) -> str:
        return seconds(value / scale)

    return _chart(frame, "Steps", f"of a step ({unit})", curves, said)


def _chart(
    frame: _Frame,
    title: str,
    unit: str,
    columns: Mapping[str, Sequence[Pair]],
    say: Callable[[float], str],
) -> Chart | None:
    """None where nothing of it was read twice."""
    drawn = [(name, points) for name, points in columns.items() if len(points) > 1]
    drawn = drawn[:_MOST_CURVES]
    if not drawn:
        return None
    curves = tuple(
        Curve(
            name,
            colour,
            tuple(
                Point(x, y, y, y, Tip(f"{name}, at {seconds(x)}", say(y)))
                for x, y in thinned(points, frame.most)
            ),
        )
        for colour, (name, points) in enumerate(drawn)
    )
    keys = tuple(Key(curve.name, "━", curve.colour) for curve in curves)
    label = "seconds since the first batch was asked for"
    drawing = Curves(label, unit, curves, markers=False, x_range=frame.reach)
    cut = any(len(points) > frame.most for _, points in drawn)
    note = "Of neighbouring values the least and the greatest are drawn." if cut else ""
    return Chart(f"{title}: {frame.named}", drawing, keys, note, frame.badges)


def _named(trial: Trial) -> str:
    if trial.kind == "train":
        return f"{trial.params.get('group', '')}, {trial.params.get('input', '')}"
    return " ".join(str(trial.params[key]) for key in ("loader", "data") if trial.params.get(key))


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", ", ").strip()
