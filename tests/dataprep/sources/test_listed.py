"""Tests of dataprep.sources.listed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataprep.sources.listed import are_contiguous, listed, listed_values, no_number


@given(labels=st.lists(st.text(max_size=4), max_size=6))
def test_every_row_has_a_class_or_a_reason(labels: list[str]) -> None:
    """Exactly one of them."""
    found = listed(["x"] * len(labels), labels)
    unclassed = {row for row, group in enumerate(found.classes) if not group}
    assert unclassed == found.problems.keys()


@given(numbers=st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_numbers_are_numbers_in_text_and_as_floats(numbers: list[int]) -> None:
    """3, 3.0 and 3.000000 are one class."""
    expected = [str(number) for number in numbers]
    for form in ("{}", "{}.0", "{:f}", "+{}"):
        found = listed(["x"] * len(numbers), [form.format(number) for number in numbers])
        assert (found.classes, found.numbered) == (expected, True)
    rows = [[float(number)] for number in numbers]
    assert listed_values(["x"] * len(numbers), rows).classes == expected


def test_contiguous_means_from_zero_without_a_gap() -> None:
    """Order does not matter."""
    assert are_contiguous(["2", "0", "1"])
    assert are_contiguous([])
    assert not are_contiguous(["1", "2"])
    assert not are_contiguous(["0", "2"])


def test_a_name_among_numbers_is_found() -> None:
    """Only where there are both."""
    assert no_number({"1", "2.0", "NA"}) == "NA"
    for alike in ({"1", "2"}, {"a", "b"}, set()):
        assert no_number(alike) is None
