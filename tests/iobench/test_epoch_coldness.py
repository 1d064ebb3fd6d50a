"""Epochs that were judged one by one, as one trial."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.epoch_coldness import FIRST_EPOCH_COLD, LEFT, whole
from iobench.trial import Cold

COLD = Cold("cold", "cold", 0.0, 1.0, True, limits=("no root",))
WARM = Cold("cold", "warm", 0.4, 0.6, True, "40 % of the pages were resident before")
KEPT = Cold(LEFT, "warm", 1.0, 0.0, True, "100 % of the pages were resident before")


def test_one_epoch_is_the_trial() -> None:
    """Nothing is added to it."""
    assert whole([WARM], [10]) is WARM


def test_cold_is_what_was_cold_in_every_epoch() -> None:
    """One that was not takes it from all, by its number."""
    found = whole([COLD, replace(COLD, resident_before=0.005)], [10, 10])
    assert (found.label, found.why, found.resident_before) == ("cold", "", 0.005)
    found = whole([COLD, WARM, COLD], [10, 10, 10])
    assert (found.label, found.asked) == ("warm", "cold")
    assert found.why == "epoch 2 of 3: 40 % of the pages were resident before"
    assert whole([WARM, COLD], [10, 10]).label == "warm"


def test_later_epochs_may_be_left_to_the_page_cache() -> None:
    """The first alone was to be cold: that is what it is called."""
    found = whole([COLD, KEPT], [10, 10])
    assert (found.label, found.physical_ratio, found.resident_before) == (
        FIRST_EPOCH_COLD,
        0.5,
        0.0,
    )
    assert found.why == "epoch 2 of 2: 100 % of the pages were resident before"


def test_reading_ahead_makes_up_for_nothing() -> None:
    """Half of an epoch's samples are taken and all of its shards read: the next is from memory."""
    ahead = replace(COLD, physical_ratio=1.6)
    assert whole([ahead, KEPT], [10, 10]).physical_ratio == 0.5
    amplified = replace(COLD, physical_ratio=1.6, amplification=1.6)
    kept = replace(KEPT, amplification=0.0)
    found = whole([amplified, kept], [10, 10])
    assert (found.physical_ratio, found.amplification) == (0.8, 0.8)
    assert whole([ahead], [10]).physical_ratio == 1.6


def test_what_no_cache_could_keep_is_cold_throughout() -> None:
    """Later epochs of data that do not fit in memory come from storage too."""
    assert whole([COLD, replace(COLD, asked=LEFT)], [10, 10]).label == "cold"


def test_a_first_epoch_that_was_not_shown_cold_is_warm() -> None:
    """Whatever the later ones are."""
    found = whole([WARM, KEPT], [10, 10])
    assert (found.label, found.why) == ("warm", WARM.why)


def test_warm_epochs_have_the_first_doubt() -> None:
    """Warm is not warm where an epoch came from storage."""
    warm = Cold("warm", "warm", 1.0, 0.0)
    partly = replace(warm, physical_ratio=0.3, why="30 % of the bytes read came from storage")
    assert whole([warm, warm], [10, 10]).why == ""
    found = whole([warm, partly], [10, 10])
    assert (found.label, found.physical_ratio) == ("warm", 0.15)
    assert found.why.startswith("epoch 2 of 2: 30 %")


def test_a_store_stays_unknown() -> None:
    """Its word is said once."""
    store = Cold("store", "server cache unknown", why="cannot be seen")
    assert whole([store, store], [1, 1]) == store


@pytest.mark.parametrize("unknown", ["resident_before", "physical_ratio", "amplification"])
def test_what_one_epoch_does_not_know_is_unknown(unknown: str) -> None:
    """Nothing is made up for it."""
    told = replace(COLD, amplification=1.0)
    untold = Cold(**{**asdict(told), unknown: None})
    assert getattr(whole([told, untold], [1, 1]), unknown) is None
    assert getattr(whole([told, told], [1, 1]), unknown) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from([COLD, WARM, KEPT]), st.integers(1, 100)), min_size=1, max_size=6
    )
)
def test_cold_is_never_claimed_for_more_than_was_shown(
    epochs: list[tuple[Cold, int]],
) -> None:
    """Its label needs every epoch's; its ratio lies within theirs; limits are said once."""
    colds, samples = [one for one, _ in epochs], [count for _, count in epochs]
    found = whole(colds, samples)
    assert (found.label == "cold") == all(one.label == "cold" for one in colds)
    ratios = [one.physical_ratio or 0.0 for one in colds]
    assert found.physical_ratio is not None
    assert min(ratios) - 1e-9 <= found.physical_ratio <= max(ratios) + 1e-9
    assert len(set(found.limits)) == len(found.limits)
