"""PURE. Ratios and figures of contests as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from iobench.sidebyside.contest import Contest, Rounds, Verdict, estimates, verdicts
from iobench.stats import Estimate

_WORDS = {True: "yes", False: "**no**", None: "not measured"}


def goals_table(contests: Iterable[tuple[Contest, Rounds]]) -> str:
    """One line a goal: what was asked, what was measured, whether it was reached."""
    head = ["what", "figure", "beside", "asked", "measured", "reached"]
    lines = [_row(head), _row(["---"] * len(head))]
    for contest, rounds in contests:
        lines += [_goal_line(contest, verdict) for verdict in verdicts(contest, rounds)]
    return "\n".join(lines)


def figures_table(contest: Contest, rounds: Rounds) -> str:
    """One line a contender: its rate and its other figures, medians with intervals."""
    others = sorted({name for runs in rounds.values() for one in runs for name in one.others})
    rates = estimates(rounds)
    by_other = {name: estimates(rounds, name) for name in others}
    head = ["", *(_figure(contest, name) for name in ("rate", *others))]
    lines = [_row(head), _row(["---"] * len(head))]
    for contender in contest.contenders:
        if contender.name in rates:
            cells = [by_other[name].get(contender.name) for name in others]
            shown = [worded(rates[contender.name]), *(worded(cell) for cell in cells)]
            lines.append(_row([contender.name, *shown]))
    return "\n".join([*lines, *(f"\n{note}" for note in contest.notes)])


def worded(value: Estimate | None) -> str:
    """Median and, of several rounds, the interval in three significant digits; empty for None."""
    if value is None:
        return ""
    if value.repeats == 1:
        return _digits(value.median)
    return f"{_digits(value.median)} ({_digits(value.low)} to {_digits(value.high)})"


def page(contests: Iterable[tuple[Contest, Rounds]]) -> str:
    """The goals, then each contest's figures."""
    listed = list(contests)
    return "\n".join([goals_table(listed), "", *_sections(listed)])


def _sections(contests: Iterable[tuple[Contest, Rounds]]) -> Iterator[str]:
    for contest, rounds in contests:
        yield f"### {contest.title}\n\n{figures_table(contest, rounds)}\n"


def _goal_line(contest: Contest, verdict: Verdict) -> str:
    goal = verdict.goal
    times = " times" if goal.beside else ""
    return _row(
        [
            contest.title,
            _figure(contest, goal.figure),
            goal.beside,
            f"{goal.bound} {goal.value:g}{times}",
            worded(verdict.measured),
            _WORDS[verdict.reached],
        ]
    )


def _figure(contest: Contest, name: str) -> str:
    named = {"rate": f"{contest.unit}/s", "seconds": "s"}
    return named.get(name, name.replace("_", " "))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _digits(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
