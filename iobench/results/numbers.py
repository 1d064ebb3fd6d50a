"""PURE. Numbers as text: counts, rates, percentages, sizes and durations.

Thousands have a comma. MB is 10^6 bytes, MiB is 2^20 bytes. The text is plain, so that it fits
terminals and JSON; ``iobench.report.typesetting`` adds no-break spaces and minus signs for the
page.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from iobench.results.statistics import Estimate

_SECOND_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BINARY_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_DECIMAL_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_WHOLE_PERCENTS_FROM = 0.095
"""From this share on, ``percent`` shows no decimals: it rounds to 10 % or more."""


def number(value: float) -> str:
    """Round to three significant digits: ``0.0123``, ``12.3``, ``12,300``.

    Whole numbers below 1,000 have no decimals. Numbers below 10^-3 or from 10^9 on have an
    exponent: ``1.23e-05``. Infinity and not-a-number are ``n/a``.
    """
    if not math.isfinite(value):
        return "n/a"
    sign, magnitude = ("-" if value < 0 else ""), abs(value)
    if magnitude == int(magnitude) and magnitude < 1000:
        return f"{sign}{int(magnitude)}"
    mantissa, exponent_text = f"{magnitude:.2e}".split("e")
    exponent = int(exponent_text)
    if exponent < -3 or exponent >= 9:
        return f"{sign}{mantissa}e{exponent_text.replace('+', '')}"
    rounded = float(f"{mantissa}e{exponent}")
    decimals = max(0, 2 - exponent)
    return f"{sign}{rounded:,.{decimals}f}"


def precise_number(value: float) -> str:
    """All digits before the decimal point, and three significant digits below 100.

    ``24,757``, ``12.3``. For figures that are compared with others.
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rough_number(value: float) -> str:
    """All digits before the decimal point, and two significant digits below 100: ``1.2``, ``120``.

    For figures in sentences, such as a number of CPUs.
    """
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.2g}"


def rate_with_unit(per_s: float, unit: str) -> str:
    """A rate with its unit: ``1,234 samples/s``; bytes are shown as ``12.3 MB/s``."""
    if unit == "bytes":
        return f"{precise_number(per_s / 1e6)} MB/s"
    return f"{precise_number(per_s)} {unit}/s"


def percent(share: float, decimals: int | None = None) -> str:
    """A share of 1 as a rounded percentage for sentences: ``32 %``, ``3.2 %``.

    Args:
        share: the share, such as 0.32.
        decimals: digits after the decimal point. The default is none from 10 % on, and one below.
    """
    if decimals is None:
        decimals = 0 if abs(share) >= _WHOLE_PERCENTS_FROM else 1
    return f"{share * 100:.{decimals}f} %"


def exact_percent(share: float) -> str:
    """A share that is a setting or a limit, with all its digits: ``5 %``, ``2.5 %``."""
    return f"{share * 100:g} %"


def precise_percent(share: float) -> str:
    """A share of 1 as a percentage for tables: ``61.2 %``; below 1 % with two decimals."""
    magnitude = abs(share * 100)
    decimals = 2 if 0.005 <= magnitude < 0.995 else 1
    text = f"{magnitude:.{decimals}f}"
    if float(text) in (0, 100):
        text = text.removesuffix(".0")
    sign = "-" if share < 0 and float(text) > 0 else ""
    return f"{sign}{text} %"


def percent_rounded_down(share: float) -> str:
    """A share of 1 as a percentage, rounded down to 0.1 %: 99.97 % is not shown as 100 %."""
    return f"{int(share * 1000) / 10:g} %"


def percent_change(change: float) -> str:
    """A relative change with its sign: ``+3.2 %`` for 0.032."""
    rounded = round(change * 100, 1) + 0.0  # adding 0.0 turns -0.0 into 0.0
    return f"{rounded:+.1f} %"


def size(size_bytes: float) -> str:
    """A measured size in bytes with the unit that fits: ``64 KiB``, ``1 MiB``, ``1.23 GB``.

    The unit is binary if the size is a whole number below 1,024 of it, and decimal otherwise.
    """
    if size_bytes == int(size_bytes) and size_bytes > 0:
        for unit_bytes, unit in _BINARY_UNITS:
            if size_bytes % unit_bytes == 0 and size_bytes // unit_bytes < 1024:
                return f"{size_bytes // unit_bytes:,.0f} {unit}"
    for unit_bytes, unit in _DECIMAL_UNITS:
        if size_bytes >= unit_bytes:
            return f"{number(size_bytes / unit_bytes)} {unit}"
    return f"{number(size_bytes)} B"


def exact_size(size_bytes: int) -> str:
    """A size that is a setting, with all its digits: ``5 kB``, ``64 KiB``, ``4,097 B``.

    The unit is the largest of which the size is a whole number, so that two settings never look
    the same.
    """
    units = sorted((*_BINARY_UNITS, *_DECIMAL_UNITS), reverse=True)
    for unit_bytes, unit in units:
        if size_bytes > 0 and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes:,} {unit}"
    return f"{size_bytes:,} B"


def duration(seconds: float) -> str:
    """A measured time with the unit that fits: ``12.3 ms``, ``4 s``, ``1,230 s``."""
    magnitude = abs(seconds)
    unit_s, unit = _SECOND_UNITS[0]
    if magnitude > 0:
        unit_s, unit = _SECOND_UNITS[-1]
        for candidate_s, candidate in _SECOND_UNITS:
            if magnitude >= candidate_s:
                unit_s, unit = candidate_s, candidate
                break
    return f"{number(seconds / unit_s)} {unit}"


def rough_duration(seconds: float) -> str:
    """An estimated time: ``45.0 s``, ``12 min``, ``3 h 20 min``, ``4 days``."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    hours, minutes = divmod(int(seconds / 60 + 0.5), 60)
    if hours >= 72:
        return f"{hours / 24:,.0f} days"
    if not hours:
        return f"{minutes} min"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def rough_duration_range(low_s: float, high_s: float) -> str:
    """``3 to 8 min``, ``45.0 s to 3 min``, or one duration if both have the same text."""
    low, high = rough_duration(low_s), rough_duration(high_s)
    if low == high:
        return low
    low_number, *low_rest = low.split(" ")
    _, *high_rest = high.split(" ")
    has_one_unit = len(low_rest) == 1 and low_rest == high_rest  # ``3 h 20 min`` has two.
    return f"{low_number if has_one_unit else low} to {high}"


def interval(estimate: Estimate, text_of: Callable[[float], str] = number) -> str:
    """``1,380 to 1,430``; empty if there was only one repeat."""
    if estimate.repeats < 2:
        return ""
    return f"{text_of(estimate.low)} to {text_of(estimate.high)}"


def with_interval(estimate: Estimate, text_of: Callable[[float], str] = number) -> str:
    """``1,404 (1,380 to 1,430)``; only the median if there was only one repeat.

    If there are three repeats or more, and the ends of the interval differ by more than a factor of
    1.5, the text is ``900 to 1,430, scattered``.
    """
    if estimate.repeats > 2 and estimate.low > 0 and estimate.high > 1.5 * estimate.low:
        return f"{interval(estimate, text_of)}, scattered"
    if estimate.repeats < 2:
        return text_of(estimate.median)
    return f"{text_of(estimate.median)} ({interval(estimate, text_of)})"
