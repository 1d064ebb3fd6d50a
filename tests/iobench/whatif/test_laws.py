"""Rates by workers: known laws are found again."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iobench.whatif.laws import WorkerLaw, fit_law, left_out

WORKERS = (1, 2, 4, 8, 16)
rates = st.floats(1, 1e5)


@given(rates, st.floats(0.01, 0.3), st.floats(0.0005, 0.02))
def test_gunthers_law_is_found_again(one: float, contention: float, coherency: float) -> None:
    """Its three parameters, from five points without noise."""
    law = WorkerLaw("usl", one, contention=contention, coherency=coherency)
    found = fit_law({w: law.rate(w) for w in WORKERS}, None)
    assert found.form == "usl"
    assert found.one == pytest.approx(one, rel=1e-4)
    assert found.contention == pytest.approx(contention, rel=1e-2, abs=1e-6)
    assert found.coherency == pytest.approx(coherency, rel=1e-2, abs=1e-6)


@given(rates, st.floats(1.2, 12))
def test_a_cap_is_found_again(one: float, times: float) -> None:
    """What rises and then stands still, the cap between two of the points."""
    law = WorkerLaw("capped", one, cap=one * times)
    points = {w: law.rate(w) for w in (1, 2, 3, 4, 8, 16)}
    # A cap that one point alone has reached is one that its absence would hide.
    assume(sum(rate == law.cap for rate in points.values()) > 1)
    assume(sum(rate < one * times for rate in points.values()) > 1)
    found = fit_law(points, None)
    assert found.form == "capped"
    assert [found.rate(w) for w in points] == pytest.approx(list(points.values()))


@given(rates)
def test_the_simplest_law_that_says_it_is_taken(one: float) -> None:
    """Points on a line through the origin are a case of all four."""
    assert fit_law({w: one * w for w in WORKERS}, None).form == "proportional"


@given(rates, st.floats(-0.01, 0.01), st.floats(-0.01, 0.01))
def test_more_workers_than_processors_are_told_from_those_that_have_one(
    one: float, off: float, more: float
) -> None:
    """Of 1, 2 and 4 workers on two processors the last is foreseen by the others, noise and all."""
    points = {1: one, 2: 2 * one * (1 + off), 4: 2 * one * (1 + more)}
    law = fit_law(points, 2)
    assert law.error is not None
    assert law.error < 0.03
    assert max(abs(r / points[w] - 1) for w, r in left_out(law, points).items()) < 0.03


def test_workers_that_wait_for_no_processor_are_not_held_to_their_number() -> None:
    """Delays on a machine of two processors: the rate goes on with the workers."""
    assert fit_law({w: 100.0 * w for w in WORKERS}, 2).form == "proportional"


@pytest.mark.parametrize("points", [{1: 100.0}, {2: 200.0}, {1: 100.0, 2: 200.0}])
def test_of_fewer_than_three_points_more_workers_bring_as_much_each(
    points: dict[int, float],
) -> None:
    """Up to the processors that there are, and no further."""
    law = fit_law(points, 4)
    assert [law.rate(w) for w in (1, 2, 4, 8)] == pytest.approx([100, 200, 400, 400])
    assert law.error is None


def test_two_points_with_more_workers_than_processors_keep_both() -> None:
    """What was seen is not cut off."""
    assert fit_law({1: 100.0, 8: 800.0}, 2).rate(8) == pytest.approx(800)


def test_the_error_is_that_at_points_which_were_left_out() -> None:
    """Proportional but for one point: each fit without another one is off there."""
    points = {1: 100.0, 2: 200.0, 4: 400.0, 8: 900.0}
    law = fit_law(points, None)
    without = left_out(law, points)
    errors = [abs(without[w] / rate - 1) for w, rate in points.items()]
    assert law.error == pytest.approx(max(errors))
    assert max(errors) > 0.02


@given(st.dictionaries(st.integers(1, 64), rates, min_size=1, max_size=7), st.integers(1, 128))
def test_no_rate_is_below_nothing(points: dict[int, float], workers: int) -> None:
    """Whatever was measured: a law gives positive rates, and keeps its cap."""
    law = fit_law(points, 8)
    assert law.rate(workers) > 0
    assert law.cap is None or law.rate(workers) <= law.cap


@pytest.mark.parametrize("points", [{}, {0: 1.0}, {1: 0.0}])
def test_points_that_are_none_are_refused(points: dict[int, float]) -> None:
    """No points, no worker, no rate."""
    with pytest.raises(ValueError, match="positive rates"):
        fit_law(points, None)


def test_without_workers_there_is_no_law() -> None:
    """Decoding in the training process is another thing."""
    with pytest.raises(ValueError, match="one worker or more"):
        WorkerLaw("proportional", 1.0).rate(0)
