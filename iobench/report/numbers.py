"""PURE. Numbers for the page: three significant digits, units, intervals.

Thousands have a comma. MB is 10^6 bytes, MiB 2^20.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from iobench.stats import Estimate

_NO_BREAK = "\u00a0"
_MINUS = "\u2212"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_DECIMAL = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def number(value: float) -> str:
    """Three significant digits: ``0.0123``, ``12.3``, ``12,300``; whole numbers below 1,000 whole.

    Beyond 10^-3 to 10^9 in powers of ten; ``n/a`` where it is not finite.
    """
    if not math.isfinite(value):
        return "n/a"
    sign, size_ = (_MINUS if value < 0 else ""), abs(value)
    if size_ == int(size_) and size_ < 1000:
        return f"{sign}{int(size_)}"
    mantissa, exponent = f"{size_:.2e}".split("e")
    power = int(exponent)
    if power < -3 or power >= 9:
        return f"{sign}{mantissa}×10{str(power).translate(_SUPERSCRIPT)}"
    rounded = float(f"{mantissa}e{power}")
    return f"{sign}{rounded:,.{max(0, 2 - power)}f}"


def percent(share: float) -> str:
    """``0.612`` as ``61.2 %``; below 1 % with two decimals."""
    scaled = abs(share * 100)
    text = f"{scaled:.2f}" if 0.005 <= scaled < 0.995 else f"{scaled:.1f}"
    sign = _MINUS if share < 0 and float(text) else ""
    return f"{sign}{text.removesuffix('.0') if float(text) in (0, 100) else text}{_NO_BREAK}%"


def seconds(value: float) -> str:
    """With the unit that fits: ``12.3 ms``."""
    scaled = abs(value)
    fitting = [(scale, unit) for scale, unit in _SECONDS if scaled >= scale]
    scale, unit = fitting[0] if fitting else _SECONDS[0 if scaled == 0 else -1]
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


def between(found: Estimate, say: Callable[[float], str] = number) -> str:
    """The interval; empty where there is none."""
    return f"{say(found.low)} to {say(found.high)}" if found.repeats > 1 else ""


def with_interval(found: Estimate, say: Callable[[float], str] = number) -> str:
    """``1,404 (1,380 to 1,430)``; of values that differ by a factor of 1.5 the range alone."""
    if found.repeats > 2 and found.low > 0 and found.high > 1.5 * found.low:
        return f"{say(found.low)} to {say(found.high)}, scattered"
    told = between(found, say)
    return f"{say(found.median)} ({told})" if told else say(found.median)
