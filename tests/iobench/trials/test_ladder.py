"""The costs of the rungs of a ladder, from known times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.trials.ladder import (
    RUNGS,
    STAGES,
    START,
    first_from_memory,
    ladder,
    rung_above,
    rungs_between,
    with_starts,
)

times = st.floats(1e-4, 10)
loops = st.dictionaries(
    st.sampled_from(RUNGS),
    st.dictionaries(st.integers(0, 5), times, min_size=1, max_size=6),
    min_size=1,
)


def test_every_rung_is_what_it_adds() -> None:
    """Costs are differences in seconds per sample, and shares are of the last rung."""
    rungs = ladder({rung: {0: 1.0 + location} for location, rung in enumerate(RUNGS[:-1])})
    assert rungs.path == RUNGS[:-1]
    assert [rung.above for rung in rungs.rungs] == [None, *RUNGS[:-2]]
    assert [rung.cost and rung.cost.median for rung in rungs.rungs] == [None, *[1.0] * 6]
    assert [rung.share and rung.share.median for rung in rungs.rungs[1:]] == [1 / 7] * 6
    assert rungs.stall is not None
    assert rungs.stall.median == 6.0
    assert rungs.stall_share is not None
    assert rungs.stall_share.median == 6 / 7


def test_the_store_replaces_the_local_read() -> None:
    """The path to the store leaves out warm and cold, which stay rungs beside it."""
    rungs = ladder({rung: {0: 1.0 + location} for location, rung in enumerate(RUNGS)})
    assert rungs.path == ("synthetic", "copy", "collate", "augment", "decode", "store")
    by_rung = {rung.rung: rung for rung in rungs.rungs}
    assert by_rung["store"].above == "decode"
    assert by_rung["cold"].above == "warm"
    assert by_rung["warm"].above == "decode"


def test_without_the_rungs_between_the_store_is_compared_with_warm() -> None:
    """The difference is what fetching costs beyond the page cache."""
    assert rung_above("store", ("synthetic", "warm", "cold")) == "warm"
    assert rung_above("store", ("synthetic", "cold")) == "synthetic"
    assert rung_above("cold", ("synthetic",)) == "synthetic"


def test_a_rung_has_in_it_what_was_not_measured() -> None:
    """A rung contains the stages between it and the rung above that were not measured."""
    assert rungs_between("decode", "augment") == ()
    assert rungs_between("store", "decode") == ()
    assert rungs_between("store", "warm") == ()
    assert rungs_between("warm", "synthetic") == ("copy", "collate", "augment", "decode")
    assert rungs_between("cold", "decode") == ("warm",)
    assert rungs_between("store", "collate") == ("augment", "decode")


@given(loops, st.integers(0, 5))
def test_differences_add_up_to_the_whole_stall(
    seconds: dict[str, dict[int, float]], repeat: int
) -> None:
    """The costs of one repeat add up, whatever was measured and also if some are negative."""
    repeat_s = {rung: {0: values[repeat]} for rung, values in seconds.items() if repeat in values}
    rungs = ladder(repeat_s)
    by_rung = {rung.rung: rung for rung in rungs.rungs}
    assert set(by_rung) == set(repeat_s)
    if rungs.stall is None or rungs.stall_share is None:
        assert "synthetic" not in repeat_s or rungs.path == ("synthetic",)
        return
    parts = [by_rung[rung].cost for rung in rungs.path[1:]]
    shares = [by_rung[rung].share for rung in rungs.path[1:]]
    assert sum(part.median for part in parts if part) == pytest.approx(rungs.stall.median)
    last_s = repeat_s[rungs.path[-1]][0]
    assert rungs.stall.median == pytest.approx(last_s - repeat_s["synthetic"][0])
    sum_of_shares = sum(share.median for share in shares if share)
    tolerance = 1e-9 * max(1, 10 / last_s)
    assert sum_of_shares == pytest.approx(rungs.stall_share.median, abs=tolerance)


@given(loops)
def test_every_interval_holds_its_median(seconds: dict[str, dict[int, float]]) -> None:
    """This holds for times, costs and shares."""
    for rung in ladder(seconds).rungs:
        for estimate in (rung.seconds, rung.cost, rung.share):
            assert estimate is None or estimate.low <= estimate.median <= estimate.high


def test_differences_are_taken_within_repeats() -> None:
    """A machine that slows down between repeats hides nothing; unpaired repeats do not count."""
    synthetic = {repeat: 1.0 + repeat for repeat in range(6)}
    copy = {repeat: 1.5 + repeat for repeat in range(1, 8)}
    rungs = ladder({"synthetic": synthetic, "copy": copy})
    part = rungs.rungs[1].cost
    assert part is not None
    assert (part.low, part.median, part.high) == (0.5, 0.5, 0.5)
    assert part.repeats == 5
    assert rungs.rungs[1].differs_from_zero


def test_a_negative_part_is_kept_and_shown() -> None:
    """A negative cost is not replaced by 0."""
    rungs = ladder({"copy": dict.fromkeys(range(6), 3.0), "collate": dict.fromkeys(range(6), 2.0)})
    part = rungs.rungs[1].cost
    assert part is not None
    assert part.median == -1.0
    assert rungs.rungs[1].differs_from_zero


def test_uncertain_costs() -> None:
    """A cost is uncertain if its interval holds 0 or if there is a single repeat."""
    noisy = ladder({"copy": {0: 1.0, 1: 2.0}, "collate": {0: 2.0, 1: 1.5}})
    once = ladder({"copy": {0: 1.0}, "collate": {0: 2.0}})
    assert not noisy.rungs[1].differs_from_zero
    assert not once.rungs[1].differs_from_zero


@given(loops, st.integers(0, 5), st.floats(0.01, 1.0))
def test_rungs_add_up_with_the_starts_of_epochs(
    seconds: dict[str, dict[int, float]], repeat: int, share: float
) -> None:
    """The starts are a rung between the loops without a loader and those with one."""
    repeat_s = {rung: {0: values[repeat]} for rung, values in seconds.items() if repeat in values}
    nearest = first_from_memory(list(repeat_s))
    starts = {0: share * repeat_s[nearest][0]} if nearest is not None else {}
    rungs = ladder(with_starts(repeat_s, starts))
    by_rung = {rung.rung: rung for rung in rungs.rungs}
    if nearest is None or not {"synthetic", "copy"} & set(repeat_s):
        assert START not in by_rung
        return
    part = by_rung[START].cost
    assert part is not None
    assert part.median == pytest.approx(starts[0])
    assert by_rung[nearest].above == START
    assert by_rung[START].above == ("copy" if "copy" in repeat_s else "synthetic")
    if rungs.stall is not None:
        parts = [by_rung[rung].cost for rung in rungs.path[1:]]
        assert START in rungs.path
        assert sum(part.median for part in parts if part) == pytest.approx(rungs.stall.median)


def test_a_rung_below_the_starts_has_in_it_what_was_not_measured() -> None:
    """Stages that were not measured belong to the first rung with a loader, not to the starts."""
    rungs = ladder(with_starts({"synthetic": {0: 1.0}, "warm": {0: 4.0}}, {0: 2.0}))
    hidden = {rung.rung: rung.skipped for rung in rungs.rungs}
    assert hidden[START] == ()
    assert hidden["warm"] == ("copy", "collate", "augment", "decode")


def test_a_steady_state_has_no_rung_of_starts() -> None:
    """A steady rate contains no start."""
    seconds = {"synthetic": {0: 1.0}, "warm": {0: 4.0}}
    assert with_starts(seconds, {0: 0.0}) == with_starts(seconds, {}) == seconds


def test_nothing_measured() -> None:
    """There are no rungs without times, and an unknown input is ignored."""
    assert ladder({}).rungs == ladder({"lukewarm": {0: 1.0}, "warm": {}}).rungs == ()


def test_every_rung_has_words() -> None:
    """The texts are in the order of the ladder."""
    assert tuple(STAGES) == (*RUNGS[:2], START, *RUNGS[2:])
