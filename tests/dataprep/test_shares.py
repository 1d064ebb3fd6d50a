"""Tests of dataprep.shares."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dataprep.shares import allowed_failures, parse_share


@pytest.mark.parametrize(
    ("text", "share"),
    [("5%", "1/20"), ("0.1%", "1/1000"), (" 12.5 % ", "1/8"), ("100%", "1"), ("0%", "0")],
)
def test_shares_are_exact(text: str, share: str) -> None:
    """Shares are fractions, not floats."""
    assert parse_share(text) == Fraction(share)


@pytest.mark.parametrize("text", ["5", "%", "-5%", "5%%", "1e3%", ".5%", "five%", ""])
def test_other_texts_are_no_shares(text: str) -> None:
    """A share is digits and a per cent sign."""
    with pytest.raises(ValueError, match="is not a share such as 5%"):
        parse_share(text)


@pytest.mark.parametrize(
    ("limit", "samples", "allowed"),
    [
        (0, 10, 0),
        (7, 10, 7),
        ("7", 10, 7),
        ("none", 10, 0),
        ("1%", 99, 0),
        ("1%", 100, 1),
        ("29%", 100, 29),
        ("100%", 10, 10),
        ("0.1%", 1_281_167, 1281),
    ],
)
def test_allowed_failures(limit: int | str, samples: int, allowed: int) -> None:
    """A number is itself, a share is rounded down without floats, none is 0."""
    assert allowed_failures(limit, samples) == allowed


@pytest.mark.parametrize("limit", ["101%", "-1", "few", "", "1.5", -1])
def test_limits_that_are_none(limit: int | str) -> None:
    """Neither a count, a share nor none."""
    with pytest.raises(ValueError, match=r"at most 100%|give a number|not negative"):
        allowed_failures(limit, 100)
