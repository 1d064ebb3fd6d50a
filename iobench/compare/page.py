"""PURE. A comparison as what its page says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iobench.compare import charts
from iobench.compare.comparison import Change, Comparison, Saved
from iobench.compare.figures import Figure
from iobench.compare.sentence import DRIFT, chance, coverage, percent, sentence
from iobench.compare.text import change_words, ratio_words
from iobench.compare.trend import Row, Trend
from iobench.compare.verdict import VERDICTS, Verdict, more_words
from iobench.report.model.bounds import bounded
from iobench.report.model.numbers import between, number, seconds, size
from iobench.report.model.shapes import (
    Badge,
    Block,
    Definition,
    Definitions,
    Entry,
    Report,
    Section,
    Table,
    Tone,
    Words,
)
from iobench.stats import Estimate

_RAW = "comparison.json"


def comparison_page(found: Comparison) -> Report:
    """Of two runs."""
    lines = (coverage(found), *filter(None, [chance(found)]), DRIFT)
    blocks: list[Block] = [Words(lines), *charts.bars(found), _table(found)]
    sections = [
        Section("differences", "What differs", tuple(_differences(found))),
        Section("ratios", "New / base", tuple(blocks)),
        *_apart([_apart_table(found)]),
        _definitions(found.threshold),
    ]
    facts = (f"base: {_run(found.base)}", f"new: {_run(found.new)}")
    return _page(found, "comparison", facts, sections)


def trend_page(found: Trend) -> Report:
    """Of several runs."""
    others = [index for index in range(len(found.runs)) if index != found.base]
    differing: list[Block] = []
    for index, each in zip(others, found.comparisons, strict=True):
        differing += _differences(each, f"#{index + 1} against the base: ")
    rows = tuple(
        (Entry(_mark(found, index)), Entry(_run(run))) for index, run in enumerate(found.runs)
    )
    order = () if found.in_order else (Words(("A run does not say when it started.",)),)
    runs = Table("Runs, in order of time", ("run", "is"), rows)
    said = Words((coverage(found.newest), DRIFT))
    drawn: tuple[Block, ...] = (said, *charts.curves(found), _trend_table(found))
    apart = _apart(
        [
            _apart_table(each, f"#{index + 1} against the base: ")
            for index, each in zip(others, found.comparisons, strict=True)
        ]
    )
    sections = [
        Section("runs", "Runs", (runs, *order)),
        Section("differences", "What differs", tuple(differing)),
        Section("ratios", "Run / base", drawn),
        *apart,
        _definitions(found.newest.threshold),
    ]
    base = f"base: {_run(found.runs[found.base])}"
    facts = (base, f"newest: {_run(found.newest.new)}", f"{len(found.runs)} runs")
    return _page(found.newest, "trend", facts, sections)


def _page(
    found: Comparison, kind: str, facts: tuple[str, ...], sections: Sequence[Section]
) -> Report:
    badges: list[Badge] = [Badge("drift between the runs not excluded", "caution")]
    if found.unlike:
        badges.insert(0, Badge("unlike machines", "alert"))
    tones: dict[Verdict, Tone] = {
        "regression": "alert",
        "improvement": "good",
        "underpowered": "caution",
        "no evidence": "plain",
    }
    counts = {verdict: len(found.of(verdict)) for verdict in VERDICTS}
    badges += [Badge(f"{counts[each]} {each}", tones[each]) for each in VERDICTS if counts[each]]
    return Report(
        found.new.result.name,
        facts,
        sentence(found),
        tuple(badges),
        (),
        tuple(bounded(sections)),
        kind,
        _RAW,
    )


def _run(run: Saved) -> str:
    return f"{run.where}, {run.result.started}, {run.counts}"


def _differences(found: Comparison, prefix: str = "") -> Iterator[Block]:
    every = (*found.environment, *found.config)
    if not found.unlike:
        yield Words((f"{prefix}the same machine, as far as both runs tell.".capitalize(),))
    if every:
        rows = tuple(
            (Entry(each.sort), Entry(each.path), Entry(each.base), Entry(each.new))
            for each in every
        )
        title = f"{prefix}differences ({len(rows)})"
        yield Table(title.capitalize(), ("of", "what", "base", "new"), rows, folded=len(rows) > 30)


def _table(found: Comparison) -> Table:
    ordered = [change for verdict in VERDICTS for change in found.of(verdict)]
    columns = ("point", "figure", "verdict", "change", "ratio and interval", "base", "new")
    return Table("Every figure", columns, tuple(map(_row, ordered)))


def _row(change: Change) -> tuple[Entry, ...]:
    found, figure = change.ratio, change.figure
    repeats = f"{found.base_repeats} against {found.new_repeats} repeats"
    return (
        Entry(change.point.title),
        Entry(figure.name),
        Entry(change.verdict, note=more_words(change.judgement.more) or change.judgement.why),
        Entry(change_words(change), repr(found.ratio - 1), is_number=True),
        Entry(ratio_words(change), repr(found.ratio), note=repeats),
        _median(figure, change.base),
        _median(figure, change.new),
    )


def _median(figure: Figure, found: Estimate) -> Entry:
    say = {"": number, "s": seconds, "bytes": size}[figure.unit]
    return Entry(say(found.median), repr(found.median), True, between(found, say))


def _trend_table(found: Trend) -> Table:
    marks = [_mark(found, index) for index in range(len(found.runs))]
    rows = tuple(_trend_row(row, len(marks)) for row in found.rows)
    columns = ("point", "figure", "last against base", "against the one before", *marks)
    return Table("Medians in order of time", columns, rows)


def _trend_row(row: Row, runs: int) -> tuple[Entry, ...]:
    steps = {step.run: step for step in row.steps}
    medians = [
        _median(row.figure, steps[run].found) if run in steps else Entry("", is_number=True)
        for run in range(runs)
    ]
    last = row.steps[-1]
    return (
        Entry(row.point.title),
        Entry(row.figure.name),
        _verdict(last.from_base),
        _verdict(last.from_previous),
        *medians,
    )


def _verdict(change: Change | None) -> Entry:
    if change is None:
        return Entry("")
    return Entry(change_words(change), repr(change.ratio.ratio - 1), True, change.judgement.words)


def _mark(found: Trend, index: int) -> str:
    return f"#{index + 1}{' base' if index == found.base else ''}"


def _apart(tables: Sequence[Table]) -> list[Section]:
    some = tuple(table for table in tables if table.rows)
    return [Section("apart", "Not compared, or not fully", some)] if some else []


def _apart_table(found: Comparison, prefix: str = "") -> Table:
    rows = tuple((Entry(each.name), Entry(each.why), Entry(each.said)) for each in found.apart)
    return Table(f"{prefix}worth knowing ({len(rows)})".capitalize(), ("point", "why", "is"), rows)


def _definitions(threshold: float) -> Section:
    size = percent(threshold)
    entries = (
        Definition(
            "ratio",
            "New / base: the ratio of the medians, with the interval of the Mann-Whitney test "
            "turned round. From 4 repeats against 4 on it covers 95 %.",
            "Hollander, Wolfe and Chicken, “Nonparametric Statistical Methods”, 3rd ed., 4.2, 4.3",
        ),
        Definition(
            "regression, improvement",
            f"The interval leaves 1 out, and the change is {size} or more.",
        ),
        Definition(
            "no evidence",
            f"The interval holds 1 and stays within {size}, or the change is smaller than that.",
        ),
        Definition(
            "underpowered",
            f"Too few repeats for 95 %, or an interval that holds both no change and one of {size}."
            " How many more repeats each run needs is foreseen from how much the repeats scatter.",
        ),
    )
    return Section("definitions", "How to read this", (Definitions(entries),))
