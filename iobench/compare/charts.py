"""PURE. Ratios as charts: bars from 1, or curves over several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iobench.compare.comparison import Change, Comparison
from iobench.compare.sentence import percent
from iobench.compare.text import change_words, ratio_words
from iobench.compare.trend import Row, Step, Trend
from iobench.report.model.curves import MARKS
from iobench.report.model.drawings import Bar, Bars, Curve, Curves, Line, Point, Tip
from iobench.report.model.shapes import Chart, Key

_COLOURS = {"regression": 1, "improvement": 2, "underpowered": 4, "no evidence": 7}
_MOST_BARS = 40
_MOST_CURVES = 8
_LOG_FROM = 4


def bars(found: Comparison) -> tuple[Chart, ...]:
    """A chart for each figure of each kind, the worst on top."""
    groups: dict[tuple[str, str], list[Change]] = {}
    for change in sorted(found.changes, key=lambda change: -change.worse):
        groups.setdefault((change.point.kind, change.figure.name), []).append(change)
    return tuple(_bars(*names, changes, found.threshold) for names, changes in groups.items())


def _bars(kind: str, figure: str, changes: Sequence[Change], threshold: float) -> Chart:
    shown = changes[:_MOST_BARS]
    ends = [end for change in shown for end in (change.ratio.low, change.ratio.high, 1.0)]
    drawing = Bars(
        "new / base",
        tuple(_bar(change) for change in shown),
        (Line(1.0, 1 - threshold, 1 + threshold, f"no change, ±{percent(threshold)}"),),
        log=max(ends) / min(ends) > _LOG_FROM,
        origin=1.0,
        hover=("of", "is"),
    )
    better = "To the right is better." if shown[0].figure.higher_is_better else "To the left is."
    note = f"The worst on top. {better} Whiskers are intervals; the band is the threshold."
    if len(changes) > len(shown):
        note += f" {len(shown)} of {len(changes)} are drawn; the table has all."
    verdicts = [name for name in _COLOURS if any(each.verdict == name for each in shown)]
    keys = tuple(Key(name, "■", _COLOURS[name]) for name in verdicts)
    return Chart(f"{kind}: {figure}, new / base", drawing, keys, note, wide=True)


def _bar(change: Change) -> Bar:
    found = change.ratio
    return Bar(
        change.point.title.removeprefix(f"{change.point.kind} "),
        found.ratio,
        found.low,
        found.high,
        _COLOURS[change.verdict],
        _tip(change, change.point.title),
    )


def _tip(change: Change, name: str) -> Tip:
    found = change.ratio
    return Tip(
        name,
        f"{change_words(change)}: {change.judgement.words}",
        ratio_words(change),
        f"{found.base_repeats} against {found.new_repeats}",
        change.point.cache or "n/a",
    )


def curves(found: Trend) -> tuple[Chart, ...]:
    """Ratios to the base over the runs: charts of eight points, those that are worst now first."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(found.rows, key=_worst_first):
        if sum(step.from_base is not None for step in row.steps):
            groups.setdefault((row.point.kind, row.figure.name), []).append(row)
    made = []
    for (kind, figure), rows in groups.items():
        parts = [rows[i : i + _MOST_CURVES] for i in range(0, len(rows), _MOST_CURVES)]
        for number, part in enumerate(parts, start=1):
            of = f" ({number} of {len(parts)})" if len(parts) > 1 else ""
            made.append(_curves(f"{kind}: {figure}, run / base{of}", part, found))
    return tuple(made)


def _curves(title: str, rows: Sequence[Row], found: Trend) -> Chart:
    drawn = tuple(_curve(place, row, found.base) for place, row in enumerate(rows))
    names = [f"#{index + 1}" for index in range(len(found.runs))]
    names[found.base] += " base"
    ticks = tuple((float(place), name) for place, name in enumerate(names, start=1))
    keys = tuple(Key(curve.name, MARKS[curve.colour], curve.colour) for curve in drawn)
    higher = rows[0].figure.higher_is_better
    note = f"{'Higher' if higher else 'Lower'} is better. Whiskers are intervals."
    drawing = Curves("run, in order of time", "run / base", drawn, ticks, zero=False)
    return Chart(title, drawing, keys, note, wide=len(rows) > 3)


def _curve(colour: int, row: Row, base: int) -> Curve:
    title = row.point.title
    steps = [step for step in row.steps if step.from_base or step.run == base]
    return Curve(title, colour, tuple(_point(title, step) for step in steps))


def _point(title: str, step: Step) -> Point:
    name = f"{title}, #{step.run + 1}"
    change = step.from_base
    if change is None:
        return Point(step.run + 1.0, 1.0, 1.0, 1.0, Tip(name, "the base"))
    found = change.ratio
    return Point(step.run + 1.0, found.ratio, found.low, found.high, _tip(change, name))


def _worst_first(row: Row) -> float:
    changes: Iterable[Change] = (step.from_base for step in row.steps[::-1] if step.from_base)
    newest = next(iter(changes), None)
    return -newest.worse if newest else 0.0
