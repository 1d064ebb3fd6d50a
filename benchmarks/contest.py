"""What is compared with what, and the result as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iobench.results.statistics import Estimate, estimate, ratio


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing the work of a contest.

    ``run`` is ``module:function``; it is called with ``arguments`` in a process of its own and
    returns a ``Measured``. Without the modules and programs in ``needs`` it is not run.
    ``unable`` is the reason why it cannot do this work at all; then ``run`` is empty.
    """

    name: str
    run: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    unable: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process did: an amount in the contest's unit, and the seconds that it took.

    ``others`` are more figures by name, such as peak memory, with the unit in the name.
    """

    amount: float
    seconds: float
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Amount per second."""
        return self.amount / self.seconds


@dataclass(frozen=True, slots=True)
class Contest:
    """Contenders, of which the first is ours.

    ``unit`` is that of ``Measured.amount``. ``cores`` is how many processors a contender may use.
    ``repeats`` is the number of rounds where none was asked for. ``notes`` go below the table.
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
    """What the contenders of a contest did, by their names.

    The same position in two sequences of ``measured`` is the same round. ``reasons`` says why a
    contender has no figures.
    """

    measured: Mapping[str, Sequence[Measured]]
    reasons: Mapping[str, str] = field(default_factory=dict)


def page(contests: Iterable[tuple[Contest, Rounds]]) -> str:
    """A section for each contest."""
    return "\n".join(
        f"### {contest.title}\n\n{table(contest, rounds)}\n" for contest, rounds in contests
    )


def table(contest: Contest, rounds: Rounds) -> str:
    """A line for each contender: its rate, ours divided by it, its other figures.

    Medians with intervals, see ``iobench.results.statistics``. A contender without figures
    has the reason.
    """
    measured = rounds.measured
    others = sorted({name for runs in measured.values() for run in runs for name in run.others})
    head = ["", f"{contest.unit}/s", "ours ÷ it", *(name.replace("_", " ") for name in others)]
    lines = [_row(head), _row(["---"] * len(head))]
    ours = [run.rate for run in measured[contest.contenders[0].name]]
    for contender in contest.contenders:
        runs = measured.get(contender.name, ())
        if len(runs) != len(ours) or not runs:
            reason = rounds.reasons.get(contender.name, "")
            lines.append(
                _row([contender.name, reason.replace("|", "\\|"), *[""] * (len(head) - 2)])
            )
            continue
        rates = [run.rate for run in runs]
        beside = "" if contender is contest.contenders[0] else worded(ratio(ours, rates))
        lines.append(_row([contender.name, worded(estimate(rates)), beside, *_cells(runs, others)]))
    return "\n".join([*lines, *(f"\n{note}" for note in contest.notes)])


def worded(value: Estimate) -> str:
    """The median and, of several rounds, its interval, in three significant digits."""
    if value.repeats == 1:
        return _digits(value.median)
    return f"{_digits(value.median)} ({_digits(value.low)} to {_digits(value.high)})"


def _cells(runs: Sequence[Measured], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        values = [run.others[name] for run in runs if name in run.others]
        yield worded(estimate(values)) if values else ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _digits(value: float) -> str:
    # From 999.5 on, three digits would be 1e+03.
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
