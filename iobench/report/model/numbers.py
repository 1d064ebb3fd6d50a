"""PURE. Numbers as the page says them: three significant digits, units, intervals.

Thousands are set apart by a narrow no-break space. MB is 10^6 bytes, MiB 2^20.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from iobench.stats import Estimate

_THIN = "\u202f"
_NO_BREAK = "\u00a0"
_MINUS = "\u2212"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_DECIMAL = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def number(value: float) -> str:
    """Three significant digits: ``0.0123``, ``12.3``, ``12 300``; whole numbers below 1,000 whole.

    Beyond 10^-3 to 10^9 in powers of ten; ``∞`` and ``n/a`` where there is no such number.
    """
    if not math.isfinite(value):
        return "n/a" if math.isnan(value) else f"{_MINUS if value < 0 else ''}∞"
    sign, size = (_MINUS if value < 0 else ""), abs(value)
    if size == int(size) and size < 1000:
        return f"{sign}{int(size)}"
    mantissa, exponent = f"{size:.2e}".split("e")
    power = int(exponent)
    if power < -3 or power >= 9:
        return f"{sign}{mantissa}×10{str(power).translate(_SUPERSCRIPT)}"
    rounded = float(f"{mantissa}e{power}")
    return f"{sign}{rounded:,.{max(0, 2 - power)}f}".replace(",", _THIN)


def tick_words(value: float) -> str:
    """A round number on an axis: no more digits than it has."""
    if value and not 1e-4 <= abs(value) < 1e9:
        return number(value)
    return f"{value:,.10g}".replace(",", _THIN).replace("-", _MINUS)


def percent(share: float) -> str:
    """``0.612`` as ``61.2 %``: one decimal, two below 1 %."""
    size = abs(share * 100)
    text = f"{size:.2f}" if 0.005 <= size < 0.995 else f"{size:.1f}"
    sign = _MINUS if share < 0 and float(text) else ""
    return f"{sign}{text.removesuffix('.0') if float(text) in (0, 100) else text}{_NO_BREAK}%"


def seconds(value: float) -> str:
    """With the unit that fits: ``12.3 ms``."""
    size = abs(value)
    scale, unit = next(((scale, unit) for scale, unit in _SECONDS if size >= scale), (1e-9, "ns"))
    if size == 0:
        scale, unit = 1.0, "s"
    return f"{number(value / scale)}{_NO_BREAK}{unit}"


def size(value: float) -> str:
    """Bytes: in binary units where they are a small whole number of them, else in decimal ones."""
    if value == int(value) and value > 0:
        for unit_bytes, unit in _BINARY:
            if value % unit_bytes == 0 and value // unit_bytes < 1024:
                return f"{number(value // unit_bytes)}{_NO_BREAK}{unit}"
    for unit_bytes, unit in _DECIMAL:
        if value >= unit_bytes:
            return f"{number(value / unit_bytes)}{_NO_BREAK}{unit}"
    return f"{number(value)}{_NO_BREAK}B"


def as_estimate(stored: Any) -> Estimate | None:
    """An estimate as ``summary`` keeps it; None where there is none or it is not finite."""
    if not isinstance(stored, Mapping) or not is_number(stored.get("median")):
        return None
    middle = float(stored["median"])
    low, high = (
        float(stored[key]) if is_number(stored.get(key)) else middle for key in ("low", "high")
    )
    coverage = stored.get("coverage")
    repeats = stored.get("repeats")
    return Estimate(
        middle,
        low,
        high,
        float(coverage) if is_number(coverage) else 0.0,
        int(repeats) if is_number(repeats) else 1,
    )


def interval(found: Estimate, say: Callable[[float], str] = number) -> str:
    """What the median may lie between, and how often it was measured.

    ``say`` words one number. Fewer repeats than 95 % take are said to be no such interval.
    """
    if found.repeats <= 1:
        return "1 repeat, no interval"
    between = f"{say(found.low)} to {say(found.high)}"
    if found.coverage < 0.95:
        return f"{between}, all of {found.repeats} repeats (no 95 % interval)"
    return f"{between}, {percent(found.coverage)} interval, {found.repeats} repeats"


def between(found: Estimate, say: Callable[[float], str] = number) -> str:
    """The interval alone; nothing where there is none."""
    return f"{say(found.low)} to {say(found.high)}" if found.repeats > 1 else ""


def is_number(value: object) -> TypeGuard[float]:
    """Whether it can be drawn: a finite number, and no truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
