"""A comparison in one sentence."""

from __future__ import annotations

import pytest

from iobench.compare.comparison import compare
from iobench.compare.sentence import chance, coverage, percent, sentence
from iobench.trial import Trial
from tests.iobench.compare.saved_runs import (
    MACHINE,
    NOISY,
    STEADY,
    params,
    repeats,
    saved,
    scaled,
    stopped,
)


def figures(*pairs: tuple[tuple[float, ...], float]) -> tuple[list[Trial], list[Trial]]:
    """Points with repeats in the base, and the factor by which the new run has others."""
    base, new = [], []
    for number, (values, factor) in enumerate(pairs):
        base += repeats(values, params(f"loader-{number}"))
        new += repeats(scaled(values, factor), params(f"loader-{number}"))
    return base, new


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (
            [(STEADY, 0.8), (STEADY, 1.2), (STEADY, 1.0), (NOISY, 1.0)],
            "Regression: 1 of 4 figures is worse, 1 better by 5 % or more, 1 without evidence, "
            "1 underpowered.",
        ),
        ([(STEADY, 0.8), (STEADY, 0.7)], "Regression: 2 of 2 figures are worse by 5 % or more."),
        (
            [(STEADY, 1.2), (STEADY, 1.0)],
            "Improvement: 1 of 2 figures is better, none is worse by 5 % or more, "
            "1 without evidence.",
        ),
        ([(STEADY, 1.0)], "No evidence of a change of 5 % in 1 of 1 figure."),
        (
            [(STEADY, 1.0), (NOISY, 1.0)],
            "No evidence of a change of 5 % in 1 of 2 figures, 1 underpowered.",
        ),
        ([(NOISY, 1.0)], "Underpowered: none of 1 figure can be told from the base."),
    ],
)
def test_the_gravest_comes_first(pairs: list[tuple[tuple[float, ...], float]], said: str) -> None:
    """Counts alone: figures come after what the machines differ in."""
    base, new = figures(*pairs)
    assert sentence(compare(saved(*base), saved(*new), 0.05)) == said


def test_what_qualifies_everything_is_in_it() -> None:
    """Points that failed or are in one run only, and machines that are unlike."""
    base, new = figures((STEADY, 1.0))
    base += repeats(STEADY, params("null"))
    new += stopped("failed", "it broke", loader="raw")
    other = saved(*new, environment={**MACHINE, "processor": "Intel"})
    assert sentence(compare(saved(*base), other, 0.05, force=True)) == (
        "No evidence of a change of 5 % in 1 of 1 figure, "
        "2 points not compared or not in full, of unlike machines."
    )


def test_chance_and_coverage_are_told_with_numbers() -> None:
    """Of intervals that have 95 %, and only of those."""
    base, new = figures((STEADY, 0.8), (STEADY, 1.0), (STEADY[:2], 1.0), (STEADY[:4], 1.0))
    found = compare(saved(*base), saved(*new), 0.05)
    assert chance(found) == (
        "1 of 3 intervals leaves 1 out; had nothing changed, about 0.1 would by chance."
    )
    assert coverage(found) == (
        "Ratios are new / base; their intervals (Mann-Whitney) cover 95.9 to 97.1 %."
    )


def test_without_an_interval_nothing_is_said_of_chance() -> None:
    """But what an interval takes."""
    base, new = figures((STEADY[:1], 0.5))
    found = compare(saved(*base), saved(*new), 0.05)
    assert chance(found) == ""
    assert "4 against 4" in coverage(found)


def test_shares_are_said_as_they_were_given() -> None:
    """Without digits that they do not have."""
    assert [percent(share) for share in (0.05, 0.025, 0.5)] == ["5 %", "2.5 %", "50 %"]
