"""PURE. A comparison for a terminal: verdict, what differs, figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dataprep.names import escape
from iobench.compare.comparison import Change, Comparison, Saved
from iobench.compare.differences import Difference
from iobench.compare.points import Apart
from iobench.compare.sentence import DRIFT, chance, coverage, sentence
from iobench.compare.trend import Row, Trend
from iobench.compare.verdict import VERDICTS

_TITLES = {
    "regression": "Regressions",
    "improvement": "Improvements",
    "underpowered": "Underpowered",
    "no evidence": "No evidence of a change",
}
_APART = {
    "stopped": "Failed or skipped",
    "coldness": "Repeats not compared: what the cache was shown to hold differs",
    "missing": "Not compared: in one run only",
    "figure": "Not compared: a figure that repeats lack",
    "device": "Compared, although it ran on something else",
}
_SORTS = {
    "machine": "The machines differ:",
    "untold": "Only one run tells:",
    "software": "Software differs:",
    "config": "The configs differ:",
}
_MOST = 20  # differences of a sort


def comparison_text(found: Comparison) -> str:
    """The whole, lines of at most 100 characters but for long names."""
    lines = [
        sentence(found),
        "",
        f"base  {_run(found.base)}",
        f"new   {_run(found.new)}",
        "",
        *_differences(found),
        "",
        *_changes(found),
        *_apart(found.apart),
        coverage(found),
        *filter(None, [chance(found)]),
        DRIFT,
    ]
    return "\n".join(lines)


def trend_text(found: Trend) -> str:
    """The newest run's verdict, what differs from the base, then each figure through the runs."""
    lines = [f"Newest run against the base: {_lowered(sentence(found.newest))}", ""]
    for index, run in enumerate(found.runs):
        lines.append(f"{_mark(found, index)}  {_run(run)}")
    if not found.in_order:
        lines.append("A run does not say when it started: the order is that of the command line.")
    for number, each in zip(_others(found), found.comparisons, strict=True):
        lines += ["", f"#{number + 1} against the base", *_indented(_differences(each))]
    lines += [
        "",
        f"{'run':<9}{'median (interval)':>17}{'against the base':>33}{'the one before':>21}",
    ]
    for row in found.rows:
        lines += _row(found, row)
    for number, each in zip(_others(found), found.comparisons, strict=True):
        if each.apart:
            lines += [f"#{number + 1} against the base", *_indented(_apart(each.apart))]
    return "\n".join([*lines, coverage(found.newest), DRIFT])


def change_words(change: Change) -> str:
    """``-18.0 %``."""
    return f"{(change.ratio.ratio - 1) * 100:+.1f} %"


def ratio_words(change: Change) -> str:
    """``0.820 (0.801 to 0.843)``, with what is covered where that is less than 95 %."""
    found = change.ratio
    if found.coverage == 0:
        return f"{found.ratio:.3f} (no interval)"
    covered = "" if found.told else f", {found.coverage * 100:.0f} %"
    return f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f}{covered})"


def _run(run: Saved) -> str:
    started = escape(run.result.started.replace("+00:00", "Z"))
    names = dict.fromkeys((escape(run.where), escape(run.result.name)))
    return f"{', '.join(names)}, {started}, {run.counts}"


def _differences(found: Comparison) -> Iterator[str]:
    if not found.unlike:
        yield "The same machine, as far as both runs tell."
    every = (*found.environment, *found.config)
    for sort, title in _SORTS.items():
        some = [each for each in every if each.sort == sort]
        if some:
            yield title
            yield from _listed(some)


def _listed(some: Sequence[Difference]) -> Iterator[str]:
    widest = min(36, max(len(each.path) for each in some[:_MOST]))
    for each in some[:_MOST]:
        yield f"  {each.path:<{widest}}  {each.base or 'none'} -> {each.new or 'none'}"
    if len(some) > _MOST:
        yield f"  and {len(some) - _MOST} more: --json has all"


def _changes(found: Comparison) -> Iterator[str]:
    for verdict in VERDICTS:
        changes = found.of(verdict)
        if not changes:
            continue
        yield f"{_TITLES[verdict]}: {len(changes)}"
        last = ""
        for change in changes:
            if change.point.title != last:
                last = change.point.title
                yield f"  {last}"
            yield f"    {_line(change)}"
            if change.verdict in ("regression", "improvement") and change.judgement.why:
                yield f"      of that {change.judgement.why}"
        yield ""


def _line(change: Change) -> str:
    say = change.figure.say
    medians = f"{say(change.base.median):>9} -> {say(change.new.median):<9}"
    more = change.judgement.more
    after = f"  {more.repeats:,}{'+' * more.at_least} more repeats" if more else ""
    if change.verdict == "no evidence" and change.ratio.leaves_1_out:
        after = "  a small change"
    named = f"{change.figure.name:<19}"
    return f"{named}{medians} {change_words(change):>9}  {ratio_words(change)}{after}"


def _apart(apart: Sequence[Apart]) -> Iterator[str]:
    for why, title in _APART.items():
        some = [each for each in apart if each.why == why]
        if some:
            yield f"{title}: {len(some)}"
            for each in some:
                yield f"  {each.name}: {each.said}"
            yield ""


def _row(found: Trend, row: Row) -> Iterator[str]:
    yield f"{row.point.title}, {row.figure.name}"
    for step in row.steps:
        say, of = row.figure.say, step.found
        value = f"{say(of.median):>9} ({say(of.low)} to {say(of.high)})"
        against = f"{_against(step.from_base):<23}{_against(step.from_previous)}"
        yield f"  {_mark(found, step.run)}{value:<33}{against}".rstrip()
    yield ""


def _against(change: Change | None) -> str:
    return f"{change_words(change):>9}  {change.verdict}" if change else ""


def _mark(found: Trend, index: int) -> str:
    return f"#{index + 1}{' base' if index == found.base else '     '}"


def _others(found: Trend) -> list[int]:
    return [index for index in range(len(found.runs)) if index != found.base]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)


def _lowered(said: str) -> str:
    return said[0].lower() + said[1:]
