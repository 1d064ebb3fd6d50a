"""What a loop could take, what it got, where the rest went: from known times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.summary.training import training
from tests.iobench.summary.made import REMOTE, UNPROVED, loop, loops

times = st.floats(0.1, 100)
runs = st.lists(st.tuples(times, times, times), min_size=1, max_size=8)


def group(*trials: Any) -> dict[str, Any]:
    """The only group of these."""
    (found,) = training([trial for part in trials for trial in part])
    return found


def test_figures_from_known_times() -> None:
    """T1 = 4 s, T3 = 6 s, T2 = 10 s for 100 samples."""
    found = group(loops([4.0], [6.0], [10.0]))
    assert found["consumes"]["median"] == 25
    assert found["warm"]["median"] == pytest.approx(100 / 6)
    assert found["cold"]["median"] == found["achieved"]["median"] == 10
    assert found["au_ceiling"]["median"] == pytest.approx(0.4)
    assert found["preparation_stall"]["median"] == pytest.approx(0.2)
    assert found["fetch_stall"]["median"] == pytest.approx(0.4)
    assert found["stall_fraction"]["median"] == pytest.approx(0.6)
    assert found["au_mlperf"]["median"] == 0.5
    assert (found["input"], found["label"], found["cold_proved"]) == ("cold", "cold", True)


@given(times, times, times)
def test_stalls_add_up(t1: float, t3: float, t2: float) -> None:
    """Preparation and fetch are the whole stall, and what is left of 1 is the ceiling."""
    found = group(loops([t1], [t3], [t2]))
    stall = found["stall_fraction"]["median"]
    parts = found["preparation_stall"]["median"] + found["fetch_stall"]["median"]
    size = max(t1, t2, t3) / t2
    assert parts == pytest.approx(stall, abs=1e-9 * size)
    assert found["au_ceiling"]["median"] == pytest.approx(1 - stall, abs=1e-9 * size)


@given(runs)
def test_every_interval_holds_its_median(seconds: list[tuple[float, float, float]]) -> None:
    """Over repeats; one pair a repeat."""
    found = group(loops(*map(list, zip(*seconds, strict=True))))
    for name in ("au_ceiling", "stall_fraction", "preparation_stall", "fetch_stall"):
        estimate = found[name]
        assert estimate["repeats"] == len(seconds)
        assert estimate["low"] <= estimate["median"] <= estimate["high"]


def test_negative_stalls_are_shown() -> None:
    """A cold run that was faster than the warm one is not clipped, nor is one above G."""
    found = group(loops([5.0], [10.0], [8.0]))
    assert found["fetch_stall"]["median"] == pytest.approx(-0.25)
    faster = group(loops([5.0], [4.0], [4.0]))
    assert faster["au_ceiling"]["median"] == pytest.approx(1.25)
    assert faster["stall_fraction"]["median"] == pytest.approx(-0.25)


def test_ratios_are_taken_within_repeats() -> None:
    """A machine that halves its speed from repeat to repeat leaves the shares sharp."""
    slower = [2.0**n for n in range(6)]
    found = group(loops(slower, [1.5 * s for s in slower], [2 * s for s in slower]))
    for name, share in (
        ("au_ceiling", 0.5),
        ("preparation_stall", 0.25),
        ("fetch_stall", 0.25),
    ):
        estimate = found[name]
        for end in ("low", "median", "high"):
            assert estimate[end] == pytest.approx(share)
        assert estimate["coverage"] == 0.96875


def test_repeats_without_a_partner_have_no_ratio() -> None:
    """Only repeats that every side has are compared; rates are of all."""
    found = group(loops([4.0, 4.0, None], [None, 5.0, 5.0], [8.0, 8.0, 1.0]))
    assert found["au_ceiling"]["repeats"] == 2
    assert found["au_ceiling"]["median"] == pytest.approx(0.5)
    assert found["preparation_stall"]["repeats"] == 1
    assert found["fetch_stall"]["repeats"] == 2
    assert found["cold"]["repeats"] == 3


@pytest.mark.parametrize("rate", [0, 0.0, None])
def test_a_repeat_without_a_rate_has_no_partner(rate: float | None) -> None:
    """Nothing came, in a trial that ended well all the same."""
    trials = [*loops([1.0, 1.0], cold=[2.0]), *loop("cold", [4.0], samples_per_s=rate)]
    trials[-1] = replace(trials[-1], repeat=1)
    (group,) = training(trials)
    assert group["au_ceiling"]["median"] == pytest.approx(0.5)
    assert group["au_ceiling"]["repeats"] == 1


def test_no_pair_at_all_is_no_figure() -> None:
    """Repeats that never met say nothing."""
    found = group(loops([4.0, None], [None, None], [None, 8.0]))
    assert found["au_ceiling"] is None
    assert found["fetch_stall"] is None
    assert found["consumes"]["median"] == 25


def test_without_resident_data_there_is_no_ceiling() -> None:
    """What the device could take was not measured."""
    found = group(loops([], [6.0], [10.0]))
    assert found["au_ceiling"] is found["stall_fraction"] is found["preparation_stall"] is None
    assert found["consumes"] is None
    assert found["fetch_stall"]["median"] == pytest.approx(0.4)


def test_without_a_cold_run_the_warm_one_is_the_farthest() -> None:
    """The stall is not split: nothing says what reading costs."""
    found = group(loops([4.0], [5.0]))
    assert found["input"] == "warm"
    assert found["au_ceiling"]["median"] == pytest.approx(0.8)
    assert found["preparation_stall"] is found["fetch_stall"] is found["cold"] is None
    assert found["cold_proved"] is False


def test_the_store_is_farther_than_the_disk() -> None:
    """What the loop got is what it got from the store; its server's cache is unknown."""
    found = group(loops([4.0], [5.0], [8.0]), loop("store", [10.0]))
    assert found["input"] == "store"
    assert found["achieved"]["median"] == found["store"]["median"] == 10
    assert found["fetch_stall"]["median"] == pytest.approx(0.5)
    assert (found["label"], found["cold_proved"]) == (REMOTE.label, False)


def test_synthetic_alone_achieves_nothing() -> None:
    """It is what the device consumes, not what the loop gets."""
    found = group(loops([4.0]))
    assert found["consumes"]["median"] == 25
    assert found["achieved"] is found["au_mlperf"] is found["input"] is None


def test_cold_is_what_every_repeat_was() -> None:
    """One that could not be shown cold labels all of them warm."""
    found = group(loops([4.0, 4.0], [5.0, 5.0]), loop("cold", [8.0], cold=UNPROVED)[:1])
    assert (found["label"], found["cold_proved"]) == ("warm", False)


def test_groups_keep_their_order_and_their_trials() -> None:
    """A group that failed altogether is not there."""
    found = training(
        [
            *loops([4.0], [5.0], group="b"),
            *loops([1.0], [1.0], group="a"),
            *loops([None], [None], group="c"),
        ]
    )
    assert [entry["group"] for entry in found] == ["b", "a"]
    assert [entry["consumes"]["median"] for entry in found] == [25, 100]


def test_a_group_says_what_it_ran_on() -> None:
    """Model, device, precision, loader, data; from a real input where there is one."""
    found = group(loops([4.0], [5.0], device="H200", precision="bfloat16", emulated=True))
    assert found["data"] == "shards@disk"
    assert (found["device"], found["precision"], found["emulated"]) == ("H200", "bfloat16", True)
    assert (found["model"], found["loader"], found["workers"]) == ("lenet", "raw", 2)
