"""What both runs have, and that nothing is dropped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iobench.compare.points import match
from iobench.trial import Trial
from tests.iobench.compare.saved_runs import COLD, UNPROVED, params, repeats, stopped


def test_repeats_of_a_point_are_pooled() -> None:
    """Whatever their order, and however many each run has."""
    others = repeats([7.0], params("raw"))
    base = [*repeats([1.0, 2.0, 3.0]), *others]
    pairs, apart = match(base, [*others, *repeats([4.0, 5.0])])
    assert apart == []
    assert [(len(pair.base), len(pair.new)) for pair in pairs] == [(3, 2), (1, 1)]
    assert pairs[0].point.params == params()


def test_what_only_one_run_has_is_listed() -> None:
    """With where, and with how many repeats."""
    pairs, apart = match(repeats([1.0, 2.0]), repeats([1.0], params("raw")))
    assert pairs == []
    assert [(each.why, each.said) for each in apart] == [
        ("missing", "only in base (2 repeats)"),
        ("missing", "only in new (1 repeat)"),
    ]


def test_failed_and_skipped_trials_are_told_with_their_reason() -> None:
    """Of a point that the other run measured it is the reason that it is not compared."""
    base = [*repeats([1.0] * 6), *stopped("skipped", "no mxnet", loader="mxnet-record")]
    new = [*repeats([1.0] * 4), *stopped("failed", "it\nbroke", count=2)]
    pairs, apart = match(base, new)
    assert [(len(pair.base), len(pair.new)) for pair in pairs] == [(6, 4)]
    assert [(each.why, each.said) for each in apart] == [
        ("stopped", r"2 of 6 repeats failed in new: it\x0abroke"),
        ("stopped", "6 of 6 repeats skipped in base: no mxnet"),
    ]


def test_cold_is_never_held_against_warm() -> None:
    """Not compared, and told with both."""
    point = params(cache="cold")
    base, new = repeats([1.0] * 3, point, cold=COLD), repeats([1.0] * 2, point, cold=UNPROVED)
    pairs, (apart,) = match(base, new)
    assert pairs == []
    assert apart.why == "coldness"
    assert apart.said == "3 cold (proved) in base, 2 not proved cold in new"


def test_repeats_that_were_cold_are_compared_with_those_that_were() -> None:
    """One that was not is told, and takes nothing from the others."""
    point = params(cache="cold")
    base = [*repeats([1.0] * 5, point, cold=COLD), *repeats([9.0], point, cold=UNPROVED)]
    pairs, (apart,) = match(base, repeats([1.0] * 6, point, cold=COLD))
    assert [(len(pair.base), len(pair.new), pair.point.cache) for pair in pairs] == [
        (5, 6, "cold (proved)")
    ]
    assert pairs[0].point.title == (
        "loader torch-map shards@disk cold workers=2 batch=64 [cold (proved)]"
    )
    assert apart.said == "1 not proved cold in base"


trials = st.lists(
    st.builds(
        lambda loader, cold, status: (
            repeats([1.0], params(loader), cold=cold)
            if status == "done"
            else stopped(status, "why", 1, loader=loader)
        )[0],
        st.sampled_from("abc"),
        st.sampled_from([COLD, UNPROVED, None]),
        st.sampled_from(["done", "failed", "skipped"]),
    ),
    max_size=12,
)


@given(trials, trials)
def test_every_trial_is_in_a_pair_or_told(base: list[Trial], new: list[Trial]) -> None:
    """Nothing is dropped in silence."""
    pairs, apart = match(base, new)
    told = {each.name for each in apart}
    for side, given_trials in (("base", base), ("new", new)):
        paired = [id(trial) for pair in pairs for trial in getattr(pair, side)]
        assert len(paired) == len(set(paired))
        for trial in given_trials:
            name = f"loader {trial.params['loader']} "
            assert id(trial) in paired or any(each.startswith(name) for each in told)


@given(trials)
def test_a_run_with_itself_is_whole(given_trials: list[Trial]) -> None:
    """All that was done is paired with itself."""
    pairs, apart = match(given_trials, given_trials)
    assert all(pair.base == pair.new for pair in pairs)
    assert {each.why for each in apart} <= {"stopped"}
    done = [trial for trial in given_trials if trial.status == "done"]
    assert sum(len(pair.base) for pair in pairs) == len(done)
