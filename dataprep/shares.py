"""PURE. Shares of a whole, such as 5%, and how many samples may fail."""

from __future__ import annotations

import re
from fractions import Fraction

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def parse_share(value: str) -> Fraction:
    """``5%`` as 1/20."""
    match = _SHARE.fullmatch(value.strip())
    if not match:
        raise ValueError(f"{value!r} is not a share such as 5%")
    return Fraction(match[1]) / 100


def allowed_failures(limit: int | str, samples: int) -> int:
    """How many of ``samples`` may fail under ``max_failures``.

    Raises:
        ValueError: neither a count, a share nor ``none``.
    """
    if isinstance(limit, str):
        text = limit.strip().lower()
        if text == "none":
            return 0
        if text.endswith("%"):
            share = parse_share(text)
            if share > 1:
                raise ValueError("a share of failures is at most 100%")
            return int(samples * share)
        if not re.fullmatch("[0-9]+", text):
            raise ValueError(f"{limit!r}: give a number, a share such as 1%, or none")
        limit = int(text)
    if limit < 0:
        raise ValueError("a number of failures is not negative")
    return limit
