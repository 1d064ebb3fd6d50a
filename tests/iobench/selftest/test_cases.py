"""What is injected: each stage alone, and every pair."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from iobench.ladder import RUNGS as LADDER
from iobench.selftest.cases import INPUTS, RUNGS, STAGES, Case, Delays, Plan, cases

DELAYS = Delays(copy_s=1.0, augment_s=2.0, decode_s=3.0, fetch_s=4.0)
seconds = st.floats(0.001, 10)


def test_nothing_each_stage_and_every_pair() -> None:
    """Eleven cases, each with the delays of its own stages and no others."""
    found = list(cases(DELAYS))
    assert [case.name for case in found] == [
        "nothing",
        *STAGES,
        *("copy and augment", "copy and decode", "copy and fetch"),
        *("augment and decode", "augment and fetch", "decode and fetch"),
    ]
    for case in found:
        assert [case.delays[stage] for stage in STAGES] == [
            DELAYS[stage] if stage in case.stages else 0 for stage in STAGES
        ]


@given(st.builds(Delays, seconds, seconds, seconds, seconds))
def test_the_largest_of_a_case_is_one_of_its_own(delays: Delays) -> None:
    """And none of its stages has a longer delay."""
    for case in cases(delays):
        if case.largest is None:
            assert not case.stages
        else:
            assert case.largest in case.stages
            assert case.delays[case.largest] == max(case.delays[stage] for stage in case.stages)


def test_a_worker_is_longer_at_a_sample_by_all_but_the_copy() -> None:
    """The copy is the training process's."""
    assert DELAYS.prepare_s == 9.0
    assert Case(DELAYS.only("copy")).delays.prepare_s == 0


def test_longer_delays_are_all_longer() -> None:
    """Each by the same factor."""
    assert DELAYS.times(2) == Delays(copy_s=2.0, augment_s=4.0, decode_s=6.0, fetch_s=8.0)


def test_rungs_are_the_ladders() -> None:
    """Every stage has one that is climbed, in the ladder's order; the disk is left out."""
    assert [rung for rung in LADDER if rung in INPUTS] == list(INPUTS)
    assert set(LADDER) - set(INPUTS) == {"cold"}
    climbed = [RUNGS[stage] for stage in STAGES]
    assert climbed == [rung for rung in INPUTS if rung in climbed]


def test_no_two_delays_of_the_plan_are_alike() -> None:
    """Of every pair one is the larger by a fifth and more, so that it is known which is primary."""
    found = sorted(Plan().delays[stage] for stage in STAGES)
    assert all(longer >= 1.2 * shorter for shorter, longer in itertools.pairwise(found))


def test_images_are_enough_for_every_loop() -> None:
    """No loop reads an image twice."""
    plan = Plan()
    assert plan.batch_size * max(plan.steps, plan.prefetch_steps) <= plan.images
