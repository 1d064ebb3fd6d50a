"""The whole ladder under every case, on a clock that moves only where something sleeps.

Loaders, codecs, the store behind its proxy, the loop, summary and diagnosis are the real ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iobench.clock import VirtualClock
from iobench.errors import Unavailable
from iobench.selftest import whole
from iobench.selftest.bench import Bench, bench
from iobench.selftest.cases import INPUTS, RUNGS, STAGES, Case, Delays, Plan, cases
from iobench.selftest.whole import injected

pytestmark = pytest.mark.slow

PLAN = Plan(rounds=2, between=10, images=40, prefetch_steps=16)
TINY = replace(PLAN, batch_size=1, images=10)
delays = st.floats(0, 5)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Data and store, for all tests here."""
    pytest.importorskip("torch")
    with bench(TINY, VirtualClock(), tmp_path_factory.mktemp("bench")) as found:
        yield found


def climbed(made: Bench, case: Case) -> dict[str, float]:
    """Seconds a sample of every rung."""
    trials = {rung: made.run(case, rung, 0) for rung in INPUTS}
    return {rung: 1 / trial.metrics["samples_per_s"] for rung, trial in trials.items()}


def test_every_delay_is_found_and_named() -> None:
    """Exactly, on its own rung and on no other; and prefetch hides all but the slowest stage."""
    pytest.importorskip("torch")
    notes: list[str] = []
    found = injected(notes.append, plan=PLAN, clock=VirtualClock())
    assert found.not_run == ()
    assert len(found.ladder) == 4 + 2 * 6
    for row in found.ladder:
        assert row.recovered_s == pytest.approx(row.injected_s, rel=1e-6)
        assert row.stray == pytest.approx(0, abs=1e-6)
        assert row.named, (row.case, row.findings)
    assert [row.case for row in found.prefetch] == ["device", *STAGES, "copy and decode"]
    for loop in found.prefetch:
        assert loop.found_s == pytest.approx(loop.expected_s, rel=1e-6)
    assert {loop.slowest for loop in found.prefetch} == {"workers", "copy and device"}
    assert found.ok
    assert len(notes) == 1 + PLAN.rounds * (len(list(cases(PLAN.delays))) + len(found.prefetch))


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.builds(Delays, delays, delays, delays, delays))
def test_parts_of_the_ladder_are_the_delays(made: Bench, given_delays: Delays) -> None:
    """Whatever they are, all four at once: a rung is the one above it, and its own delay."""
    found = climbed(made, Case(given_delays))
    above_s = TINY.device_s / TINY.batch_size
    assert found["synthetic"] == pytest.approx(above_s)
    by_rung = {RUNGS[stage]: given_delays[stage] for stage in STAGES}
    for rung in INPUTS:
        above_s += by_rung.get(rung, 0.0)
        assert found[rung] == pytest.approx(above_s, rel=1e-6)


def test_a_bench_leaves_the_environment_as_it_was(tmp_path: Path) -> None:
    """Credentials for its store are nobody else's."""
    pytest.importorskip("torch")
    before = dict(os.environ)
    with bench(TINY, VirtualClock(), tmp_path) as found:
        assert os.environ["AWS_ACCESS_KEY_ID"] == "testing"
        found.run(Case(Delays()), "copy", 0)
    assert dict(os.environ) == before


def test_a_delay_that_nobody_injected_is_not_found(
    made: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that does not wait after all: the test can fail."""
    monkeypatch.setattr("iobench.selftest.bench._rules", lambda delays, batch_size: [])
    found = climbed(made, Case(PLAN.delays.only("fetch")))
    assert found["store"] == pytest.approx(found["warm"])


class Uneven(VirtualClock):
    """Sleeps twice as long as asked, now and then: bursts of a busy machine."""

    def __init__(self) -> None:
        super().__init__()
        self._sleeps = 0

    def sleep(self, seconds: float) -> None:
        self._sleeps += 1
        super().sleep(seconds * 2 if self._sleeps % 97 == 0 else seconds)


@pytest.mark.parametrize("more", [0, 2])
def test_rounds_that_differ_are_followed_by_more(
    made: Bench, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """As many as the plan allows, of those cases and of none; a steady case has no more."""
    case = Case(PLAN.delays.only("copy"))
    monkeypatch.setattr(whole, "cases", lambda delays: [Case(Delays()), case])
    plan = replace(TINY, rounds=2, more_rounds=more)
    steady = whole._climbed(replace(made, plan=plan, clock=VirtualClock()), lambda note: None)
    assert {name: len(trials) for name, trials in steady.items()} == {
        "nothing": 2 * len(INPUTS),
        "copy": 2 * len(INPUTS),
    }
    uneven = whole._climbed(replace(made, plan=plan, clock=Uneven()), lambda note: None)
    assert len(uneven["copy"]) == len(uneven["nothing"]) == (2 + more) * len(INPUTS)
    repeats = [trial.repeat for trial in uneven["copy"]]
    assert repeats == [number for number in range(2 + more) for _ in INPUTS]


def test_without_torch_the_delays_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and nothing is found wrong."""

    def missing(name: str) -> None:
        raise Unavailable(f"{name} is not installed: pip install 'dataprep-iobench[torch]'")

    monkeypatch.setattr(whole, "need_framework", missing)
    found = injected(lambda note: None, clock=VirtualClock())
    assert found.ok
    assert found.as_dict() == {
        "rungs_s": {},
        "ladder": [],
        "prefetch": [],
        "others_busy_share": None,
        "not_run": [
            {
                "name": "delays",
                "why": "torch is not installed: pip install 'dataprep-iobench[torch]'",
            }
        ],
    }
