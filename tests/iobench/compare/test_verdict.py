"""What an interval says, and what too few repeats cannot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.compare.verdict import Judgement, judge, more_words
from iobench.two_samples import MOST_REPEATS, More, ratio_apart
from tests.iobench.compare.saved_runs import NOISY, STEADY, scaled

samples = st.lists(st.floats(1, 1e3), min_size=1, max_size=8)


def judged(
    base: list[float], new: list[float], threshold: float = 0.05, *, higher: bool = True
) -> Judgement:
    """Of two runs' repeats."""
    ratio = ratio_apart(base, new)
    return judge(ratio, base, new, threshold=threshold, higher_is_better=higher)


@pytest.mark.parametrize(
    ("factor", "higher", "verdict"),
    [
        (0.9, True, "regression"),
        (1.1, True, "improvement"),
        (0.9, False, "improvement"),
        (1.1, False, "regression"),
        (1.0, True, "no evidence"),
        (0.97, True, "no evidence"),
        (1.03, False, "no evidence"),
    ],
)
def test_steady_runs_are_told_apart(factor: float, higher: bool, verdict: str) -> None:
    """Rates fall and times rise when something got worse; smaller changes are none that matters."""
    base = list(STEADY)
    found = judged(base, scaled(base, factor), higher=higher)
    assert found.verdict == verdict
    assert found.more is None


def test_a_small_change_that_is_sure_says_so() -> None:
    """It is not the same as no change."""
    base = list(STEADY)
    assert "a change" in judged(base, scaled(base, 0.97)).why
    assert judged(base, base).why == "within the threshold"


def test_a_smaller_threshold_finds_a_smaller_change() -> None:
    """Where the repeats can tell it."""
    base = list(STEADY)
    assert judged(base, scaled(base, 0.97), 0.02).verdict == "regression"


def test_noisy_runs_ask_for_more_repeats() -> None:
    """Their interval holds both no change and one of 5 %."""
    base = list(NOISY)
    found = judged(base, scaled(base, 0.98))
    assert found.verdict == "underpowered"
    assert found.more is not None
    assert found.more.repeats > 10
    assert found.words == f"underpowered, {found.more.repeats} more repeats"


@pytest.mark.parametrize(("repeats", "more"), [(1, 3), (2, 2), (3, 1)])
def test_too_few_repeats_are_no_evidence_of_anything(repeats: int, more: int) -> None:
    """However much seems to have changed; with as many as are asked for it is told."""
    base = list(STEADY[:repeats])
    found = judged(base, scaled(base, 0.5))
    assert found.verdict == "underpowered"
    assert found.more == More(more, at_least=repeats == 1)
    assert found.why.startswith(f"{repeats} against {repeats} repeats cover ")
    enough = list(STEADY[: repeats + more])
    assert judged(enough, scaled(enough, 0.5)).verdict == "regression"


def test_one_repeat_each_cannot_say_how_many_more() -> None:
    """At least those that an interval takes."""
    assert judged([100.0], [101.0]).words == "underpowered, at least 3 more repeats"


@given(samples, samples, st.floats(0.005, 0.5), st.booleans())
def test_an_underpowered_figure_and_no_other_asks_for_more(
    base: list[float], new: list[float], threshold: float, higher: bool
) -> None:
    """Never fewer than one, never more than a config takes."""
    found = judged(base, new, threshold, higher=higher)
    assert (found.more is not None) == (found.verdict == "underpowered")
    if found.more:
        assert 1 <= found.more.repeats <= MOST_REPEATS


@given(samples, samples, st.floats(0.005, 0.5), st.booleans())
def test_a_verdict_has_its_interval_behind_it(
    base: list[float], new: list[float], threshold: float, higher: bool
) -> None:
    """A change leaves 1 out at 95 % and passes the threshold; worse is what the figure says."""
    found, ratio = judged(base, new, threshold, higher=higher), ratio_apart(base, new)
    if found.verdict in ("regression", "improvement"):
        assert ratio.told
        assert ratio.leaves_1_out
        assert abs(ratio.ratio - 1) >= threshold
        assert (found.verdict == "improvement") == ((ratio.ratio > 1) == higher)
    turned = judged(base, new, threshold, higher=not higher).verdict
    opposite = {"regression": "improvement", "improvement": "regression"}
    assert turned == opposite.get(found.verdict, found.verdict)


@given(samples, st.floats(0.005, 0.5), st.booleans())
def test_a_run_against_itself_never_changed(
    base: list[float], threshold: float, higher: bool
) -> None:
    """No evidence, or not enough repeats."""
    found = judged(base, base, threshold, higher=higher)
    assert found.verdict in ("no evidence", "underpowered")


def test_more_repeats_in_words() -> None:
    """One is no plural."""
    assert more_words(None) == ""
    assert more_words(More(1)) == "1 more repeat"
    assert more_words(More(1000, at_least=True)) == "at least 1,000 more repeats"
