"""Parts and rest of the time to the first batch."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.loaders import FirstBatch, LoaderSettings
from iobench.loops.first_batch import Split, first_batch
from tests.iobench.loops.fakes import SlowLoader, TellingLoader

part_s = st.none() | st.floats(0, 1e5)


def split(total_s: float, parts: FirstBatch | None) -> Split:
    """Of a loader that tells these parts."""
    loader = TellingLoader(None, LoaderSettings(), VirtualClock())
    loader.parts = parts
    return first_batch(loader, total_s)


@given(st.builds(FirstBatch, part_s, part_s, part_s, part_s), st.floats(0, 1e5))
def test_what_is_told_and_the_rest_add_up(parts: FirstBatch, rest_s: float) -> None:
    """None is below 0; of what is not told nothing is said."""
    told = {name: value for name, value in parts._asdict().items() if value is not None}
    total_s = math.fsum(told.values()) + rest_s
    found = split(total_s, parts)
    assert found.notes == ()
    expected = {f"first_batch_{name}": value for name, value in told.items()}
    if not told:
        assert found.metrics == {}
        return
    *_, last = found.metrics
    assert last == "first_batch_rest_s"
    assert {**expected, last: found.metrics[last]} == found.metrics
    assert found.metrics[last] >= 0
    assert sum(found.metrics.values()) == pytest.approx(total_s)


def test_a_part_of_no_time_is_told() -> None:
    """Nothing decoded is not the same as not told apart."""
    assert split(2.0, FirstBatch(decode_s=0.0)).metrics == {
        "first_batch_decode_s": 0.0,
        "first_batch_rest_s": 2.0,
    }


def test_a_loader_need_not_tell() -> None:
    """Nor one that can, as long as it knows nothing."""
    silent = SlowLoader(None, LoaderSettings(), VirtualClock())
    assert first_batch(silent, 1.0) == split(1.0, None) == Split()


@pytest.mark.parametrize(
    "parts",
    [
        FirstBatch(listing_s=0.75, fetch_s=0.5),
        FirstBatch(listing_s=-0.5, fetch_s=0.5),
        FirstBatch(listing_s=math.nan),
        FirstBatch(listing_s=math.inf),
    ],
    ids=["too long", "negative", "no number", "infinite"],
)
def test_parts_that_cannot_be_are_left_out(parts: FirstBatch) -> None:
    """All of them, with a word; the time itself stands."""
    found = split(1.0, parts)
    assert found.metrics == {}
    (note,) = found.notes
    assert "parts of its first batch are left out" in note
    assert "of 1 s" in note


def test_rounding_is_no_fault() -> None:
    """Differences of a clock's readings may miss their sum by the last digit."""
    found = split(math.nextafter(1.0, 0.0), FirstBatch(listing_s=0.5, fetch_s=0.5))
    assert found.metrics["first_batch_rest_s"] == 0.0
