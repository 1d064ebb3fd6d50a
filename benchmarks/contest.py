"""Contests and their contenders, and the result of a contest as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iobench.results.statistics import Estimate, estimate, ratio


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing the work of a contest.

    Attributes:
        name: its name in the table.
        run: ``module:function``. The function is called in a process of its own, and returns a
            ``Measured``.
        arguments: the keyword arguments of the function.
        needs: modules and programs that must be installed. Otherwise the contender is not run.
        unable: the reason why it cannot do this work at all; ``run`` is then empty.
    """

    name: str
    run: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    unable: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """The work of one process.

    Attributes:
        amount: the amount of work, in the unit of the contest.
        seconds: the time that it took.
        others: other figures by name, such as ``store_cpu_share``. The name includes the unit.
    """

    amount: float
    seconds: float
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """The amount per second."""
        return self.amount / self.seconds


@dataclass(frozen=True, slots=True)
class Contest:
    """A comparison of contenders that do the same work.

    Attributes:
        name: its name on the command line.
        title: the heading above its table.
        unit: the unit of ``Measured.amount``.
        contenders: the contenders. The first one is the contender of this package.
        cores: the number of processors that each contender may use.
        repeats: the number of rounds if the command line names none; 0 for the usual number.
        notes: paragraphs below the table.
    """

    name: str
    title: str
    unit: str
    contenders: tuple[Contender, ...]
    cores: int = 1
    repeats: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rounds:
    """The figures of all rounds of a contest.

    Attributes:
        measured: the work of each contender in each round, by the name of the contender. The same
            position in two sequences is the same round.
        reasons: the reasons why contenders have no figures, by their names.
    """

    measured: Mapping[str, Sequence[Measured]]
    reasons: Mapping[str, str] = field(default_factory=dict)


def page(contests: Iterable[tuple[Contest, Rounds]]) -> str:
    """Return a section with a table for each contest, as Markdown."""
    return "\n".join(
        f"### {contest.title}\n\n{table(contest, rounds)}\n" for contest, rounds in contests
    )


def table(contest: Contest, rounds: Rounds) -> str:
    """Return the table and the notes of a contest, as Markdown.

    A row has the rate of a contender, the rate of this package divided by it, and the other figures
    of the contender. Figures are medians with intervals (``iobench.results.statistics``). A
    contender without figures has the reason instead. Without figures of this package, there are no
    ratios.
    """
    measured = rounds.measured
    others = _names_of_others(rounds)
    head = ["", f"{contest.unit}/s", "ours ÷ it"]
    head += [name.replace("_", " ") for name in others]
    lines = [_row(head), _row(["---"] * len(head))]
    own = contest.contenders[0]
    own_rates = [run.rate for run in measured.get(own.name, ())]
    for contender in contest.contenders:
        runs = measured.get(contender.name, ())
        if not runs or (own_rates and len(runs) != len(own_rates)):
            reason = rounds.reasons.get(contender.name, "").replace("|", "\\|")
            empty_cells = [""] * (len(head) - 2)
            lines.append(_row([contender.name, reason, *empty_cells]))
            continue
        rates = [run.rate for run in runs]
        has_ratio = bool(own_rates) and contender is not own
        own_ratio = worded(ratio(own_rates, rates)) if has_ratio else ""
        cells = [contender.name, worded(estimate(rates)), own_ratio, *_cells(runs, others)]
        lines.append(_row(cells))
    lines += [f"\n{note}" for note in contest.notes]
    return "\n".join(lines)


def _names_of_others(rounds: Rounds) -> list[str]:
    """Return the names of all figures other than rates, sorted."""
    names: set[str] = set()
    for runs in rounds.measured.values():
        for run in runs:
            names.update(run.others)
    return sorted(names)


def worded(value: Estimate) -> str:
    """Return the median, with its interval if there were several rounds.

    Numbers have three significant digits, or all digits before the decimal point.
    """
    if value.repeats == 1:
        return _digits(value.median)
    return f"{_digits(value.median)} ({_digits(value.low)} to {_digits(value.high)})"


def _cells(runs: Sequence[Measured], names: Iterable[str]) -> Iterator[str]:
    """Yield the other figures of a contender by name; empty if the contender does not have one."""
    for name in names:
        values = [run.others[name] for run in runs if name in run.others]
        yield worded(estimate(values)) if values else ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _digits(value: float) -> str:
    # From 999.5 on, three digits would be 1e+03.
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
