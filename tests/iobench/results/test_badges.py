"""The badge beside a figure: what the page cache held."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.results.badges import badge, badge_with_reason, trial_badge
from iobench.results.trial import Cold


def cold(ratio: float | None = 1.0, **more: Any) -> Cold:
    """Return the label of a trial that was proved cold."""
    return Cold("cold", "cold", 0.0, ratio, **more)


WARMED = Cold("cold", "warm", 0.5, 0.4, why="50 % of the pages were resident before")


@pytest.mark.parametrize(
    ("repeats", "message"),
    [
        ([], ""),
        ([Cold("", "not applicable")], ""),
        ([cold()], "cold 100 %"),
        ([cold(), cold(0.9996)], "cold 99.9 %"),
        ([cold(1.4)], "cold 100 %"),
        ([cold(1.4, amplification=1.4)], "cold, amplification 1.4"),
        ([cold(1.0, amplification=1.0)], "cold 100 %"),
        ([cold(), cold(None)], "cold, by residency"),
        ([cold(), WARMED], "cold requested, not proved"),
        ([WARMED], "cold requested, not proved"),
        ([Cold("warm", "warm", 1.0, 0.0)], "warm"),
        ([Cold("warm", "warm", 1.0, None)], "warm"),
        ([Cold("warm", "warm", 0.7, 0.3)], "warm, 30 % from storage"),
        ([Cold("direct", "direct")], "direct"),
        (
            [Cold("direct", "direct", 0.0, 0.03, why="only 3 % of the bytes")],
            "direct, 3 % counted from a device",
        ),
        ([Cold("store", "server cache unknown")], "server cache unknown"),
        (
            [Cold("cold", "first epoch cold", 0.0, 0.5)],
            "first epoch cold, 50 % of all bytes from storage",
        ),
        ([Cold("cold", "first epoch cold", 0.0, None)], "first epoch cold"),
        (
            [Cold("cold", "first epoch cold", 0.0, 1.4, amplification=1.4)],
            "first epoch cold, amplification 1.4",
        ),
        ([Cold("warm", "warm", 0.1, 1.5)], "warm, 100 % from storage"),
        ([Cold("cold", "first epoch cold"), cold()], "cold requested, not proved"),
        ([Cold("warm", "warm"), Cold("direct", "direct")], "direct, warm"),
    ],
)
def test_a_badge_says_what_was_shown(repeats: list[Cold], message: str) -> None:
    """The badge has the smallest share of all repeats that came from storage."""
    assert badge(repeats) == message


def test_a_line_has_the_reason_and_whether_the_data_fit_in_memory() -> None:
    """The badge of one trial has its reason, and says if the data may stay in memory."""
    assert trial_badge(None) == ""
    assert trial_badge(WARMED) == f"cold requested, not proved: {WARMED.why}"
    assert trial_badge(cold(cache_resident=True)) == "cold 100 %, cache-resident"
    assert trial_badge(Cold("", "not applicable", cache_resident=True)) == ""


def test_one_repeat_decides_for_all() -> None:
    """The badge is that of the repeat with the least proof, with its reason."""
    assert badge_with_reason([cold(), WARMED]) == f"cold requested, not proved: {WARMED.why}"
    assert badge_with_reason([cold(), cold(cache_resident=True)]) == "cold 100 %, cache-resident"
    assert badge_with_reason([cold(), cold(cache_resident=False)]) == "cold 100 %"


@given(st.floats(0.95, 1), st.floats(0.95, 1))
def test_no_share_is_rounded_up(first_share: float, other: float) -> None:
    """A badge says 100 % only if all bytes of every repeat came from storage."""
    message = badge([cold(first_share), cold(other)])
    share = float(message.removeprefix("cold ").removesuffix(" %"))
    assert share <= 100 * min(first_share, other) + 1e-9
    assert (message == "cold 100 %") == (min(first_share, other) == 1)
