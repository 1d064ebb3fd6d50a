"""Numbers in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.report.model.numbers import (
    as_estimate,
    interval,
    number,
    percent,
    seconds,
    size,
    tick_words,
)
from iobench.stats import Estimate, estimate


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (6.0, "6"),
        (0.0123456, "0.0123"),
        (12.345, "12.3"),
        (99.96, "100"),
        (999.9, "1\u202f000"),
        (1234.5, "1\u202f230"),
        (1_234_567, "1\u202f230\u202f000"),
        (-0.5, "\u22120.500"),
        (1.5e-7, "1.50×10⁻⁷"),
        (float("nan"), "n/a"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, said: str) -> None:
    """And thin spaces between thousands."""
    assert number(value) == said


@given(st.floats(min_value=1e-3, max_value=9.9e8))
def test_a_number_is_within_half_a_percent_of_what_is_said(value: float) -> None:
    """Three digits are never further off."""
    said = float(number(value).replace("\u202f", ""))
    assert abs(said - value) <= 0.0051 * value


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.612, "61.2"),
        (1.0, "100"),
        (0.0, "0"),
        (0.0912, "9.1"),
        (-0.05, "\u22125.0"),
        (0.0004, "0.04"),
        (1.2, "120.0"),
    ],
)
def test_shares_are_percent(share: float, said: str) -> None:
    """One decimal; two where there would be nothing but a zero."""
    assert percent(share) == f"{said}\u00a0%"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (4096, "4 KiB"),
        (1 << 20, "1 MiB"),
        (128 * 2**30, "128 GiB"),
        (5_000, "5 kB"),
        (32_000_000, "32 MB"),
        (128_000_000, "128 MB"),
        (64 * 10**9, "64 GB"),
        (17, "17 B"),
        (0, "0 B"),
    ],
)
def test_sizes_take_the_unit_in_which_they_are_whole(value: int, said: str) -> None:
    """KiB and MiB for powers of two, kB and MB for everything else."""
    assert size(value) == said.replace(" ", "\u00a0")


@pytest.mark.parametrize(
    ("value", "said"), [(0.0123, "12.3 ms"), (2, "2 s"), (3.5e-6, "3.50 µs"), (0, "0 s")]
)
def test_times_take_the_unit_that_fits(value: float, said: str) -> None:
    """Seconds to nanoseconds."""
    assert seconds(value) == said.replace(" ", "\u00a0")


def test_ticks_have_no_digits_that_they_do_not_need() -> None:
    """0.05, not 0.0500."""
    assert [tick_words(x) for x in (0.0, 0.05, 1.0, 2500.0)] == ["0", "0.05", "1", "2\u202f500"]


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=12))
def test_an_interval_says_how_many_repeats_and_whether_they_suffice(values: list[float]) -> None:
    """Fewer than six are never called an interval of 95 %."""
    said = interval(estimate(values))
    if len(values) == 1:
        assert said == "1 repeat, no interval"
    else:
        assert f"{len(values)} repeats" in said
        assert ("no 95 % interval" in said) is (len(values) < 6)


@pytest.mark.parametrize("stored", [None, {}, 3, {"median": None}, {"median": float("nan")}])
def test_what_is_no_estimate_is_none(stored: object) -> None:
    """A summary may lack any figure."""
    assert as_estimate(stored) is None


def test_an_estimate_may_lack_everything_but_its_median() -> None:
    """Then it is one value of which nothing else is known."""
    assert as_estimate({"median": 2}) == Estimate(2.0, 2.0, 2.0, 0.0, 1)
    assert not re.search("interval,", interval(Estimate(2.0, 2.0, 2.0, 0.0, 1)))
