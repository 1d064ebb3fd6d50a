"""What the ladder found of delays: on its rung, elsewhere, and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.selftest.cases import INPUTS, RUNGS, STAGES, Case, Delays, Stage
from iobench.selftest.recovered import Recovered, recovered

CODES: Mapping[Stage, str] = {stage: f"slow-{stage}" for stage in STAGES}
DELAYS = Delays(copy_s=0.04, augment_s=0.05, decode_s=0.064, fetch_s=0.125)
WITHOUT = {rung: 0.001 * place for place, rung in enumerate(INPUTS[1:])}


def rows(case: Case, findings: Sequence[str], **changed: float) -> dict[str, Recovered]:
    """By stage, of a ladder on which every delay is where it belongs, but for ``changed``."""
    parts = dict(WITHOUT)
    for stage in case.stages:
        parts[RUNGS[stage]] += case.delays[stage]
    for rung, more in changed.items():
        parts[rung] += more
    return {row.stage: row for row in recovered(case, parts, WITHOUT, findings, CODES)}


def alone(stage: Stage, *findings: str, **changed: float) -> Recovered:
    """The row of a stage that is slowed alone."""
    return rows(Case(DELAYS.only(stage)), findings or [CODES[stage]], **changed)[stage]


@pytest.mark.parametrize("stage", STAGES)
def test_a_delay_on_its_rung_is_found(stage: Stage) -> None:
    """Less what the rung costs without it."""
    row = alone(stage)
    assert row.rung == RUNGS[stage]
    assert row.recovered_s == pytest.approx(row.injected_s) == DELAYS[stage]
    assert row.ok


@given(st.sampled_from(STAGES), st.floats(-0.5, 0.5))
def test_a_tenth_of_the_delay_is_the_limit(stage: Stage, share: float) -> None:
    """On its own rung, longer or shorter."""
    row = alone(stage, **{RUNGS[stage]: share * DELAYS[stage]})
    assert row.error == pytest.approx(share, abs=1e-9)
    assert row.ok == (abs(row.error) <= 0.1)


@given(st.sampled_from(STAGES), st.sampled_from(INPUTS[1:]), st.floats(-0.5, 0.5))
def test_less_than_a_tenth_may_appear_elsewhere(stage: Stage, rung: str, share: float) -> None:
    """On any other rung, which is named."""
    if rung == RUNGS[stage]:
        return
    row = alone(stage, **{rung: share * DELAYS[stage]})
    assert row.stray == pytest.approx(share, abs=1e-9)
    assert row.ok == (abs(row.stray) <= 0.1)
    if abs(share) > 0.01:
        assert row.elsewhere[0] == rung


def test_a_delay_on_another_rung_is_not_found() -> None:
    """Decoding that shows as augmenting is wrong twice."""
    row = alone("decode", decode=-0.064, augment=0.064)
    assert row.error == pytest.approx(-1)
    assert row.elsewhere[0] == "augment"
    assert not row.ok


@pytest.mark.parametrize("findings", [(), ("input-high",), ("slow-copy", "slow-decode")])
def test_the_diagnosis_must_begin_with_it(findings: Sequence[str]) -> None:
    """Not to be named, or to be named second, is wrong."""
    case = Case(DELAYS.only("decode"))
    assert not rows(case, findings)["decode"].ok


def test_of_a_pair_both_are_named_and_the_larger_first() -> None:
    """Each on a row of its own; neither is held against the other."""
    case = Case(DELAYS.only("copy", "fetch"))
    both = rows(case, ["slow-fetch", "input-high", "slow-copy"])
    assert [row.ok for row in both.values()] == [True, True]
    assert {row.primary for row in both.values()} == {"slow-fetch"}
    wrong_order = rows(case, ["slow-copy", "slow-fetch"])
    assert [row.named for row in wrong_order.values()] == [False, False]
    one_unnamed = rows(case, ["slow-fetch"])
    assert {stage: row.named for stage, row in one_unnamed.items()} == {
        "copy": False,
        "fetch": True,
    }


def test_nothing_injected_has_no_row() -> None:
    """It is what the others are compared with."""
    assert rows(Case(Delays()), []) == {}


def test_a_row_as_json() -> None:
    """With its errors, and whether it was found."""
    told = alone("fetch", store=0.0125 / 2, warm=0.001).as_dict()
    assert told["error"] == pytest.approx(0.05)
    assert told["elsewhere"] == {"rung": "warm", "seconds": pytest.approx(0.001)}
    assert told["stray"] == pytest.approx(0.008)
    assert (told["case"], told["stage"], told["rung"]) == ("fetch", "fetch", "store")
    assert (told["named"], told["ok"]) == (True, True)
