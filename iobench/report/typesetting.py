"""PURE. Typography for numbers on the page.

The texts of ``iobench.results.numbers`` are plain. On the page, a no-break space keeps a number and
its unit on one line, a minus sign replaces the hyphen, and exponents are raised.
"""

from __future__ import annotations

import re

_NO_BREAK_SPACE = "\u00a0"
_MINUS = "\u2212"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_BEFORE_A_UNIT = re.compile(r"(?<=\d) (?=(?:%|[nµm]?s|[kMGT]B|[KMGT]iB|B)(?![\w/]))")
_MINUS_SIGN = re.compile(r"(?<![^\s(])-(?=[\d.])")
_EXPONENT = re.compile(r"(?<=\d)e(-?)0*(\d+)\b")


def typeset(text: str) -> str:
    """The text with no-break spaces before units, minus signs and raised exponents."""
    text = _BEFORE_A_UNIT.sub(_NO_BREAK_SPACE, text)
    text = _MINUS_SIGN.sub(_MINUS, text)
    return _EXPONENT.sub(_raised, text)


def _raised(exponent: re.Match[str]) -> str:
    """The exponent ``e-05`` as a raised ``×10⁻⁵``."""
    return f"×10{(exponent[1] + exponent[2]).translate(_SUPERSCRIPTS)}"
