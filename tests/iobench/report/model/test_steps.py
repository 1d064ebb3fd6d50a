"""Charts of steps."""

from __future__ import annotations

from collections.abc import Sequence

from iobench.report.model.drawings import Curves
from iobench.report.model.steps import step_charts
from tests.iobench.summary.made import loop, result

MADE = result([*loop("warm", [1.0]), *loop("cold", [1.0])])


def curves(steps: int, epoch: Sequence[float] | None = None) -> Curves:
    """The step times of both inputs, of which each step but the first takes a second."""
    columns: dict[str, Sequence[float]] = {"step_end_s": range(steps), "wait_s": [0.0] * steps}
    if epoch is not None:
        columns["epoch"] = epoch
    chart, _ = step_charts(MADE, {trial.id: columns for trial in MADE.trials})
    assert [key.name for key in chart.keys] == ["warm: warm", "cold: cold 100 %"]
    assert isinstance(chart.drawing, Curves)
    return chart.drawing


def steps_of(drawn: Curves, name: str) -> list[list[float]]:
    """By line."""
    return [[point.x for point in curve.points] for curve in drawn.curves if curve.name == name]


def test_a_line_ends_with_its_epoch() -> None:
    """What lies between two is no step; one colour and one key for all of an input."""
    drawn = curves(7, [0, 0, 0, 1, 1, 2, 2])
    for name in ("warm", "cold"):
        assert steps_of(drawn, name) == [[2, 3], [4, 5], [6, 7]]
    assert len({(curve.name, curve.colour) for curve in drawn.curves}) == 2


def test_epochs_of_many_steps_are_thinned_and_still_apart() -> None:
    """No line holds steps of two."""
    drawn = curves(4000, [step // 1000 for step in range(4000)])
    for line in steps_of(drawn, "warm"):
        assert len({(step - 1) // 1000 for step in line}) == 1
    assert len(steps_of(drawn, "warm")) == 4


def test_steps_of_unknown_epochs_are_one_line() -> None:
    """Older results, and loops of one epoch."""
    assert steps_of(curves(4), "cold") == steps_of(curves(4, []), "cold") == [[2, 3, 4]]
