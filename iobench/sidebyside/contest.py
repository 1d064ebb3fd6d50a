"""PURE. What is compared with what, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from iobench.stats import Estimate, estimate, ratio


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing the work of a contest.

    ``run`` is ``module:function``; it is called with ``arguments`` in a process of its own and
    returns a ``Measured``. ``needs`` are modules and programs without which it is left out.
    """

    name: str
    run: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process did: an amount of the contest's unit and the seconds that it took.

    ``others`` are further figures by name, such as peak memory, with the unit in the name.
    """

    amount: float
    seconds: float
    others: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Amount a second."""
        return self.amount / self.seconds


@dataclass(frozen=True, slots=True)
class Goal:
    """What the first contender of a contest is to reach.

    With ``beside``: at least ``value`` times that contender's figure. Without: ``at least`` or
    ``at most`` so much of its own. ``figure`` is ``rate``, ``seconds``, or one of ``others``.
    """

    value: float
    beside: str = ""
    figure: str = "rate"
    bound: Literal["at least", "at most"] = "at least"


@dataclass(frozen=True, slots=True)
class Contest:
    """Contenders of which the first is ours; ``unit`` is that of ``Measured.amount``.

    ``cores`` is how many processors a contender may use; ``repeats`` how many rounds there are,
    where that is not as asked; ``notes`` are printed below the table. ``together``: one run of the
    first contender measures them all, taking turns in one process, and returns them by name.
    """

    name: str
    title: str
    unit: str
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...] = ()
    cores: int = 1
    repeats: int = 0
    notes: tuple[str, ...] = ()
    together: bool = False


Rounds = Mapping[str, Sequence[Measured]]
"""By the contender's name; the same position is the same round."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A goal, and the figure or ratio that was measured; None where its peer did not run."""

    goal: Goal
    measured: Estimate | None

    @property
    def reached(self) -> bool | None:
        """Whether the median is on the right side of the goal."""
        if self.measured is None:
            return None
        if self.goal.bound == "at most":
            return self.measured.median <= self.goal.value
        return self.measured.median >= self.goal.value


def figure(measured: Measured, name: str) -> float:
    """One figure of a measurement. Raises KeyError for a name that it does not have."""
    match name:
        case "rate":
            return measured.rate
        case "seconds":
            return measured.seconds
        case _:
            return measured.others[name]


def estimates(rounds: Rounds, name: str = "rate") -> dict[str, Estimate]:
    """Median and interval of one figure for each contender that has it."""
    return {
        contender: estimate([figure(one, name) for one in measured])
        for contender, measured in rounds.items()
        if measured and all(name in ("rate", "seconds", *one.others) for one in measured)
    }


def verdicts(contest: Contest, rounds: Rounds) -> list[Verdict]:
    """Every goal of a contest against what was measured."""
    own = rounds.get(contest.contenders[0].name, ())
    return [Verdict(goal, _against(goal, own, rounds)) for goal in contest.goals]


def _against(goal: Goal, own: Sequence[Measured], rounds: Rounds) -> Estimate | None:
    if not own:
        return None
    values = [figure(one, goal.figure) for one in own]
    if not goal.beside:
        return estimate(values)
    peer = rounds.get(goal.beside, ())
    if len(peer) != len(own):
        return None
    return ratio(values, [figure(one, goal.figure) for one in peer])
