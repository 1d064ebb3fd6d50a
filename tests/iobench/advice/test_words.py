"""Advice in words."""

from __future__ import annotations

import pytest

from iobench.advice.words import few_repeats_words, model_words, text
from iobench.whatif import whatif
from tests.iobench.advice.made import advice, forms, run
from tests.iobench.whatif.made import loader


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ({"coverage": 0.75, "repeats": 3}, "Intervals of 3 repeats cover 75%"),
        ({"coverage": 0.96875, "repeats": 6}, ""),
        ({"coverage": 0.0, "repeats": 1}, ""),
        (None, ""),
    ],
)
def test_intervals_of_few_repeats_are_called_so(gain: object, said: str) -> None:
    """What is predicted has no coverage, and says nothing of repeats."""
    assert few_repeats_words([{"gain": gain}]).startswith(said)
    assert bool(few_repeats_words([{"gain": gain}])) == bool(said)


def test_the_terminal_has_it_below_the_model() -> None:
    """Three repeats of each point."""
    result = run(forms(1), forms(2))
    model = whatif(result.trials, result.environment)
    said = text(list(advice(result).values()), model)
    assert said.splitlines()[-1].startswith("Intervals of 3 repeats cover 75%")


def test_a_model_that_nothing_tests_is_not_called_wrong() -> None:
    """One point of one loader."""
    result = run(loader(300.0, 2))
    said = model_words(whatif(result.trials, result.environment))
    assert said.startswith("The model of least capacities is not tested here: ")
