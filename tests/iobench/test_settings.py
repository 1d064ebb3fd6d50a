"""Settings take one value or a list, and a grid has every combination."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from iobench.settings import OneOrMore, grid

axes = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True),
    max_size=4,
)


class Settings(BaseModel):
    """Settings that take one value or several."""

    counts: OneOrMore[int] = (1,)
    names: OneOrMore[str] = ("a",)


def test_one_value_is_a_grid_of_one() -> None:
    """A single value stands for a list of one."""
    assert Settings(counts=3, names="xyz") == Settings(counts=(3,), names=("xyz",))  # type: ignore[arg-type]


def test_equal_values_count_once() -> None:
    """Equal values count once, in the order of their first occurrence."""
    assert Settings.model_validate({"counts": [2, 1, "2", 1]}).counts == (2, 1)


@pytest.mark.parametrize("wrong", [[], [1, "many"], None, {"a": 1}])
def test_wrong_values_are_refused(wrong: object) -> None:
    """An empty list is refused, and so is a value that does not fit."""
    with pytest.raises(ValidationError):
        Settings.model_validate({"counts": wrong})


@given(axes)
def test_grid_holds_every_combination_once(given_axes: dict[str, list[int]]) -> None:
    """The points are the product of the axes, all different, each with every key in order."""
    points = list(grid(given_axes))
    assert len(points) == math.prod(map(len, given_axes.values()))
    assert len({tuple(point.items()) for point in points}) == len(points)
    assert all(list(point) == list(given_axes) for point in points)
    assert all(point[name] in values for point in points for name, values in given_axes.items())


def test_the_last_axis_is_the_fastest() -> None:
    """Neighbouring points differ in the axis that is named last."""
    points = list(grid({"a": [1, 2], "b": [3, 4]}))
    assert points == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]
