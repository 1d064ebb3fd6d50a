"""A forecast in words: a line a trial, sums, and what they rest on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iobench.forecast import Facts
from iobench.forecast.bounds import Bounds
from iobench.forecast.words import dollars, duration, text
from tests.iobench.forecast.made import AMAZON, OTHER, forecast_of
from tests.iobench.forecast.test_whole import DISK, NULL, STORE


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.25, "0.2 s"),
        (99, "99.0 s"),
        (120, "2 min"),
        (3600, "1 h"),
        (3600 * 30 + 60, "30 h 1 min"),
        (86400 * 3, "3 days"),
        (float("inf"), "unknown"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    """In the units that people use."""
    assert duration(seconds) == words


def test_dollars() -> None:
    """An upper bound; without one the price is unknown."""
    assert dollars(Bounds(0, 12.345)) == "$12.35 at most"
    assert dollars(Bounds(0, 0.001234)) == "$0.0012 at most"
    assert dollars(Bounds(0, None)) == dollars(None) == "at an unknown price"


def test_only_columns_that_hold_anything() -> None:
    """A trial of no disk and no store has its time."""
    head, *lines = text(forecast_of(loaders=NULL, repeats=1), "made").splitlines()
    assert head.split() == ["about", "<=", "time", "trial"]
    assert lines[0].split()[:4] == ["1.5", "s", "10", "min"]
    assert lines[0].endswith("loader null workers=0 batch=64 #1")
    assert lines[2] == (
        "made: 2 trials to come; about 3.0 s, at most 20 min if each trial went on to "
        "trial_timeout_s"
    )


def test_stores_are_told_with_their_price() -> None:
    """Whose it is; of another server, that nobody knows it."""
    priced = text(forecast_of(Facts(stores={"store/s3": AMAZON}), object_store=STORE), "made")
    assert "  store s3: " in priced
    assert "at most (made up)" in priced
    assert "<= USD" in priced
    free = text(forecast_of(Facts(stores={"store/s3": OTHER}), object_store=STORE), "made")
    assert "no price: http://127.0.0.1:9000 is not Amazon's S3" in free
    assert "<= USD" not in free
    unknown = replace(AMAZON, price=None, prices="nobody knows")
    said = text(forecast_of(Facts(stores={"store/s3": unknown}), object_store=STORE), "made")
    assert "no price: nobody knows" in said


def test_what_is_unknown_assumed_and_wrong_is_said() -> None:
    """A line each; names that would move a terminal's cursor do not."""
    facts = Facts(problems=("data.source \x1b[2J is odd",))
    found = forecast_of(facts, disk=DISK, loaders=[{"loader": "raw"}])
    lines = text(found, "made").splitlines()
    assert "  unknown: what shards@disk holds: it could not be looked at" in lines
    assert any(line.startswith("  assumed: a disk trial takes 0.5 s") for line in lines)
    assert [line for line in lines if line.startswith("  warning: data.source")]
    assert "\x1b" not in "".join(lines)
