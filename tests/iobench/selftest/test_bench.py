"""Injected delays are found, on a virtual clock that only sleeping advances.

Loaders, codecs, the store behind its proxy, the loop, summary and diagnosis are the real ones.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from iobench import selftest
from iobench.cli.main import app
from iobench.clock import VirtualClock
from iobench.errors import Unavailable
from iobench.results.trial import Trial
from iobench.selftest.delay_bench import DelayBench, bench, injected, measure_ladders
from iobench.selftest.delays import INPUTS, RUNGS, Delays, Plan, cases
from iobench.selftest.known_rates import NotRun

pytestmark = pytest.mark.slow

TINY = Plan(
    delays={"copy": 0.001, "augment": 0.002, "decode": 0.003, "fetch": 0.004},
    batch_size=1,
    device_s=0.001,
    slow_device_s=0.002,
    rounds=2,
    more_rounds=1,
    workers=1,
    images=50,
)


@pytest.fixture(scope="module")
def delay_bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DelayBench]:
    """Yield data and a store for all tests of this module."""
    pytest.importorskip("torch")
    with bench(TINY, VirtualClock(), tmp_path_factory.mktemp("bench")) as delay_bench:
        yield delay_bench


def per_sample(delay_bench: DelayBench, case: Delays) -> dict[str, float]:
    """Return the seconds per sample of every rung."""
    trials = {rung: delay_bench.run(case, rung, 0) for rung in INPUTS}
    return {rung: 1 / trial.metrics["samples_per_s"] for rung, trial in trials.items()}


def test_every_delay_is_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delay is on its own rung only; prefetch hides all but the slowest stage.

    Processes share no such clock: the mock loader takes the place of those with workers.
    """
    pytest.importorskip("torch")
    run = DelayBench.run

    def mocked(
        delay_bench: DelayBench, case: Delays, source: str, repeat: int, **changed: Any
    ) -> Trial:
        if changed:
            changed |= {"loader": "mock", "item_s": sum(case.values()) - case.get("copy", 0.0)}
        return run(delay_bench, case, source, repeat, **changed)

    monkeypatch.setattr(DelayBench, "run", mocked)
    result = injected(lambda note: None, Plan(rounds=2), VirtualClock())
    assert result.ok
    assert len(result.ladder) == 4 + 2 * 6
    for row in result.ladder:
        assert (row.error, row.stray) == pytest.approx((0, 0), abs=1e-6)
    names = ["device", *RUNGS, "copy and decode"]
    assert [row.case for row in result.prefetch] == names
    assert [row.error for row in result.prefetch] == pytest.approx([0] * len(names), abs=1e-6)
    assert {row.slowest for row in result.prefetch} == {"workers", "copy and device"}


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(case=st.fixed_dictionaries(dict.fromkeys(RUNGS, st.floats(0, 5))))
def test_parts_of_the_ladder_are_the_delays(delay_bench: DelayBench, case: Delays) -> None:
    """A rung takes as long as the one above it plus its own delay."""
    sample_s = per_sample(delay_bench, case)
    above_s = TINY.device_s / TINY.batch_size
    by_rung = {RUNGS[stage]: seconds for stage, seconds in case.items()}
    for rung in INPUTS:
        above_s += by_rung.get(rung, 0.0)
        assert sample_s[rung] == pytest.approx(above_s, rel=1e-6)


def test_a_delay_that_is_not_injected_is_not_found(
    delay_bench: DelayBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store does not wait, no delay is measured."""
    monkeypatch.setattr(delay_bench.proxy, "sleep", lambda seconds: None)
    sample_s = per_sample(delay_bench, {"fetch": 0.150})
    assert sample_s["store"] == pytest.approx(sample_s["warm"])


def test_the_environment_stays_as_it_was(tmp_path: Path) -> None:
    """Credentials for the store are set only while it runs."""
    pytest.importorskip("torch")
    before = dict(os.environ)
    with bench(TINY, VirtualClock(), tmp_path) as delay_bench:
        assert os.environ["AWS_ACCESS_KEY_ID"] == "testing"
        delay_bench.run({}, "copy", 0)
    assert dict(os.environ) == before


class Slowing(VirtualClock):
    """A clock whose sleeps get longer, as on a machine that gets busier."""

    sleeps = 0

    def sleep(self, seconds: float) -> None:
        self.sleeps += 1
        super().sleep(seconds * (1 + self.sleeps / 10))


@pytest.mark.parametrize(("clock", "rounds"), [(VirtualClock(), 2), (Slowing(), 4)])
def test_rounds_that_differ_are_followed_by_more(
    delay_bench: DelayBench, clock: VirtualClock, rounds: int
) -> None:
    """Cases whose rounds differ get as many more rounds as the plan allows."""
    plan = replace(TINY, delays={"copy": 0.050}, more_rounds=2)
    results = measure_ladders(replace(delay_bench, plan=plan, clock=clock), lambda note: None)
    repeats = [trial.repeat for trial in results["copy"].trials]
    assert repeats == [number for number in range(rounds) for _ in INPUTS]


def test_without_torch_the_delays_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result says that the delays were not run, and is no failure."""

    def missing(name: str) -> None:
        raise Unavailable(f"{name} is not installed")

    monkeypatch.setattr("iobench.selftest.delay_bench.need_framework", missing)
    result = injected(pytest.fail, TINY, VirtualClock())
    assert result.ok
    assert result == selftest.Injected(not_run=[NotRun("delays", "torch is not installed")])


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and verdicts are JSON, and the exit code says whether all are right.

    The clock is real. Delays of a few milliseconds are lost in what a busy machine adds: which
    rows are right is left open.
    """
    pytest.importorskip("torch")
    monkeypatch.setattr(selftest, "Plan", lambda rounds: replace(TINY, rounds=rounds))
    monkeypatch.setattr(selftest, "checks", lambda: selftest.known_rates.checks(VirtualClock(), 7))
    few = [cases(TINY.delays)[location] for location in (0, 1, -1)]
    monkeypatch.setattr("iobench.selftest.delay_bench.cases", lambda delays: few)
    done = CliRunner().invoke(app, ["selftest", "--json", "--rounds", "2"])
    assert isinstance(done.exception, SystemExit | None), done.exception
    content = json.loads(done.stdout)
    parts = ["checks", "rungs_s", "ladder", "prefetch", "others_busy_share", "not_run", "ok"]
    assert list(content) == parts
    assert 0 <= content["others_busy_share"] <= 1
    rows = [*content["checks"], *content["ladder"], *content["prefetch"]]
    assert done.exit_code == int(not content["ok"])
    assert content["ok"] == all(row["ok"] for row in rows)
    assert list(content["rungs_s"]) == list(INPUTS)
    assert content["not_run"] == []
    assert [(row["case"], row["stage"]) for row in content["ladder"]] == [
        ("copy", "copy"),
        ("decode and fetch", "decode"),
        ("decode and fetch", "fetch"),
    ]
    assert [row["case"] for row in content["prefetch"]] == ["device", "copy"]
    assert "round 2: decode and fetch slowed" in done.stderr


def test_an_interrupted_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 130."""

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(selftest, "checks", stopped)
    done = CliRunner().invoke(app, ["selftest"])
    assert (done.exit_code, done.stderr) == (130, "iobench: interrupted\n")
