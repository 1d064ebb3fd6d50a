"""Numbers as text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.report.typesetting import typeset
from iobench.results import numbers
from iobench.results.statistics import Estimate


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999, "999"),
        (12.34, "12.3"),
        (12_345, "12,300"),
        (0.01234, "0.0123"),
        (-0.5, "-0.500"),
        (1.234e-5, "1.23e-05"),
        (2e9, "2.00e09"),
        (math.nan, "n/a"),
    ],
)
def test_a_number_has_three_significant_digits(value: float, text: str) -> None:
    """Whole numbers below 1,000 have no decimals, very small and large ones an exponent."""
    assert numbers.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.123, "0.12"), (12.3, "12"), (99.7, "100"), (127.6, "128"), (-1e5, "-100,000")],
)
def test_a_rough_number_has_no_exponent(value: float, text: str) -> None:
    """It has two significant digits, or all digits before the decimal point if there are more."""
    assert numbers.rough_number(value) == text


@pytest.mark.parametrize(
    ("share", "rounded", "precise", "rounded_down"),
    [
        (0.3249, "32 %", "32.5 %", "32.4 %"),
        (0.032, "3.2 %", "3.2 %", "3.2 %"),
        (0.0061, "0.6 %", "0.61 %", "0.6 %"),
        (0.9997, "100 %", "100 %", "99.9 %"),
        (1.0, "100 %", "100 %", "100 %"),
        (0.0, "0.0 %", "0 %", "0 %"),
    ],
)
def test_percentages(share: float, rounded: str, precise: str, rounded_down: str) -> None:
    """Sentences are rounded, tables are precise, and a proof is never rounded up."""
    assert numbers.percent(share) == rounded
    assert numbers.precise_percent(share) == precise
    assert numbers.percent_rounded_down(share) == rounded_down


@pytest.mark.parametrize(
    ("change", "text"), [(0.0321, "+3.2 %"), (-0.5, "-50.0 %"), (-0.0001, "+0.0 %")]
)
def test_a_change_has_its_sign(change: float, text: str) -> None:
    """A change that is rounded to zero has a plus sign."""
    assert numbers.percent_change(change) == text


@pytest.mark.parametrize(
    ("per_s", "unit", "text"),
    [
        (1234.4, "samples", "1,234 samples/s"),
        (12_340_000, "bytes", "12.3 MB/s"),
        (0.5, "samples", "0.5 samples/s"),
        (99.96, "requests", "100 requests/s"),
    ],
)
def test_rates(per_s: float, unit: str, text: str) -> None:
    """Rates have three digits, or are whole numbers from 100 on."""
    assert numbers.rate_with_unit(per_s, unit) == text


@pytest.mark.parametrize(
    ("size_bytes", "exact", "rounded"),
    [
        (5000, "5 kB", "5 kB"),
        (2**16, "64 KiB", "64 KiB"),
        (2**20, "1 MiB", "1 MiB"),
        (128_000_000, "128 MB", "128 MB"),
        (2**30, "1 GiB", "1 GiB"),
        (3 * 10**9, "3 GB", "3 GB"),
        (4097, "4,097 B", "4.10 kB"),
        (1024**2 + 1, "1,048,577 B", "1.05 MB"),
        (0, "0 B", "0 B"),
    ],
)
def test_sizes(size_bytes: int, exact: str, rounded: str) -> None:
    """A setting has all its digits, and a measured size has three; MB is not written for MiB."""
    assert numbers.exact_size(size_bytes) == exact
    assert numbers.size(size_bytes) == rounded


@given(st.integers(1, 2**40))
def test_an_exact_size_can_be_computed_back(size_bytes: int) -> None:
    """The number times the unit is the size."""
    number, unit = numbers.exact_size(size_bytes).split(" ")
    factors = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
    factors |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
    assert int(number.replace(",", "")) * factors[unit] == size_bytes


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.0, "1 s"), (0.0123, "12.3 ms"), (12.5e-6, "12.5 µs"), (0, "0 s"), (1234.0, "1,230 s")],
)
def test_measured_durations(seconds: float, text: str) -> None:
    """The largest unit is a second."""
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45.0, "45.0 s"), (700, "12 min"), (12_000, "3 h 20 min"), (3_600, "1 h"), (4e5, "5 days")],
)
def test_estimated_durations(seconds: float, text: str) -> None:
    """Durations are rounded to minutes from 100 seconds on."""
    assert numbers.rough_duration(seconds) == text


@pytest.mark.parametrize(
    ("low_s", "high_s", "text"),
    [
        (12.0, 45.0, "12.0 to 45.0 s"),
        (180, 480, "3 to 8 min"),
        (45, 180, "45.0 s to 3 min"),
        (3_600, 12_000, "1 h to 3 h 20 min"),
        (12_000, 19_200, "3 h 20 min to 5 h 20 min"),
        (10_800, 18_000, "3 to 5 h"),
        (180, 181, "3 min"),
    ],
)
def test_a_range_of_durations(low_s: float, high_s: float, text: str) -> None:
    """A range names its unit once, and is a single duration if both ends have the same text."""
    assert numbers.rough_duration_range(low_s, high_s) == text


@pytest.mark.parametrize(
    ("low", "high", "repeats", "text"),
    [
        (9.0, 11.0, 6, "10 (9 to 11)"),
        (10.0, 10.0, 1, "10"),
        (5.0, 20.0, 6, "5 to 20, scattered"),
    ],
)
def test_an_estimate_has_its_interval(low: float, high: float, repeats: int, text: str) -> None:
    """One repeat gives no interval; scattered repeats give only the interval."""
    assert numbers.with_interval(Estimate(10.0, low, high, 0.95, repeats)) == text


@pytest.mark.parametrize(
    ("plain", "typographic"),
    [
        ("61.2 % of 12.3 ms", "61.2\u00a0% of 12.3\u00a0ms"),
        ("1,230 MB/s", "1,230 MB/s"),
        ("(-5 to 3)", "(\u22125 to 3)"),
        ("1.23e-05 s", "1.23×10⁻⁵\u00a0s"),
        ("2.00e09", "2.00×10⁹"),
        ("2026-11-27 --workers -", "2026-11-27 --workers -"),
        ("run-1e5f/trial 3 samples", "run-1e5f/trial 3 samples"),
    ],
)
def test_the_page_sets_signs_and_spaces(plain: str, typographic: str) -> None:
    """Units stay beside their numbers; dates, names and options are left alone."""
    assert typeset(plain) == typographic
