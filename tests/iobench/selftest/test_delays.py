"""The injected delays, the expected results, and their text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench import selftest
from iobench.loaders.protocol import ReadPattern
from iobench.selftest import Check, Injected, NotRun
from iobench.selftest.delays import (
    CODES,
    INPUTS,
    RUNGS,
    Delays,
    Plan,
    Prefetched,
    Recovered,
    Stage,
    cases,
    compare_delays,
    expected_step,
    name_of,
)
from iobench.trials.ladder import RUNGS as LADDER
from iobench.trials.samples_in_flight import sample_flow

DELAYS: Delays = {"copy": 0.04, "augment": 0.05, "decode": 0.064, "fetch": 0.125}
WITHOUT = {rung: 0.001 * location for location, rung in enumerate(INPUTS[1:])}
# The device takes 20 ms for a batch of two, and there is no other work.
IDEAL = dict.fromkeys(INPUTS, 0.010)
STAGES = tuple(RUNGS)
seconds = st.floats(0.001, 1)
delays_of_any_length = st.fixed_dictionaries(dict.fromkeys(STAGES, seconds))


def rows(case: Delays, findings: Sequence[str], **changed: float) -> dict[Stage, Recovered]:
    """Return rows by stage: each delay is on its rung, and ``changed`` adds seconds to rungs."""
    parts = dict(WITHOUT)
    for stage, delay_s in case.items():
        parts[RUNGS[stage]] += delay_s
    for rung, more in changed.items():
        parts[rung] += more
    return {row.stage: row for row in compare_delays(case, parts, WITHOUT, findings)}


def alone(stage: Stage, **changed: float) -> Recovered:
    """Return the row of a stage that alone is slowed and is named."""
    return rows({stage: DELAYS[stage]}, [CODES[stage]], **changed)[stage]


class TestCases:
    def test_nothing_each_stage_and_every_pair(self) -> None:
        """There are eleven cases, each with the delays of its own stages."""
        all_cases = cases(DELAYS)
        assert [name_of(case) for case in all_cases] == [
            *("nothing", "copy", "augment", "decode", "fetch"),
            *("copy and augment", "copy and decode", "copy and fetch"),
            *("augment and decode", "augment and fetch", "decode and fetch"),
        ]
        assert all(DELAYS.items() >= case.items() for case in all_cases)

    def test_rungs_are_the_ladders(self) -> None:
        """All rungs except ``cold`` are measured, and every stage has a rung."""
        assert [rung for rung in LADDER if rung in INPUTS] == list(INPUTS)
        assert set(LADDER) - set(INPUTS) == {"cold"}
        assert set(RUNGS.values()) <= set(INPUTS)

    def test_the_plan(self) -> None:
        """Delays differ by at least a fifth; no loop needs several epochs with their starts."""
        plan = Plan()
        ordered = sorted(plan.delays.values())
        assert all(longer >= 1.2 * shorter for shorter, longer in itertools.pairwise(ordered))
        batch_by_batch = ReadPattern(streams=plan.workers)
        flow = sample_flow(
            batch_by_batch, batch_size=plan.batch_size, workers=plan.workers, prefetch=2
        )
        assert flow.min_epoch_samples <= plan.images


class TestRecovered:
    @pytest.mark.parametrize("stage", STAGES)
    def test_a_delay_on_its_rung(self, stage: Stage) -> None:
        """A delay is the time of its rung minus the time without the delay."""
        row = alone(stage)
        assert (row.rung, row.ok) == (RUNGS[stage], True)
        assert row.recovered_s == pytest.approx(row.injected_s) == DELAYS[stage]

    @given(st.sampled_from(STAGES), st.sampled_from(INPUTS[1:]), st.floats(-0.5, 0.5))
    def test_a_tenth_is_the_limit(self, stage: Stage, rung: str, share: float) -> None:
        """The limit holds for the error on its own rung and for changes of other rungs."""
        row = alone(stage, **{rung: share * DELAYS[stage]})
        error = row.error if rung == row.rung else row.stray
        assert error == pytest.approx(share, abs=1e-9)
        assert row.ok == (abs(error) <= 0.1)
        if rung != row.rung and abs(share) > 0.01:
            assert row.elsewhere.rung == rung

    @pytest.mark.parametrize("findings", [(), ("input-high",), ("slow-copy", "slow-decode")])
    def test_the_diagnosis_must_begin_with_it(self, findings: Sequence[str]) -> None:
        """The finding must be present and primary."""
        assert not rows({"decode": 0.064}, findings)["decode"].ok

    @pytest.mark.parametrize(
        ("findings", "named"),
        [
            (["slow-store", "input-high", "slow-copy"], [True, True]),
            (["slow-copy", "slow-store"], [False, False]),
            (["slow-store"], [False, True]),
        ],
    )
    def test_both_delays_of_a_pair_are_named(
        self, findings: Sequence[str], named: list[bool]
    ) -> None:
        """Each stage has a row, and the larger delay must be the primary finding."""
        both = rows({"copy": 0.04, "fetch": 0.125}, findings)
        assert [row.ok for row in both.values()] == named
        assert {row.primary for row in both.values()} == {"slow-store"}


class TestExpected:
    @given(delays_of_any_length, st.integers(1, 8), st.integers(1, 8))
    def test_the_slowest_side_is_a_step(self, case: Delays, batch: int, workers: int) -> None:
        """Workers share the preparation; the training process copies and computes alone."""
        plan = Plan(batch_size=batch, workers=workers)
        slowest, found_s = expected_step(plan, case, 0.020, IDEAL)
        prepared_s = case["fetch"] + case["decode"] + case["augment"]
        sides = {
            "workers": batch * prepared_s / workers,
            "copy and device": batch * case["copy"] + 0.020,
        }
        assert found_s == pytest.approx(max(sides.values()))
        assert sides[slowest] == pytest.approx(found_s)

    def test_real_work_is_part_of_either_side(self) -> None:
        """Real work of reading counts for the workers, of copying for the training process."""
        without = {**IDEAL, "copy": 0.011, "store": 0.014}
        for stage, side, step_s in (
            ("fetch", "workers", 0.053),
            ("copy", "copy and device", 0.122),
        ):
            slowest, found_s = expected_step(Plan(batch_size=2), {stage: 0.050}, 0.020, without)  # type: ignore[dict-item]
            assert slowest == side
            assert found_s == pytest.approx(step_s)


GOOD, BAD = Check("good", 1.0, 1.0, 0.1, "s"), Check("bad", 1.0, 2.0, 0.1, "s")
FETCH = rows({"decode": 0.064, "fetch": 0.125}, ["slow-store", "slow-decode"])["fetch"]
STEP = Prefetched("device", 2, "copy and device", 0.1, 0.1023, 0.023, True)
FOUND = Injected({"synthetic": 0.01, "copy": 0.0101}, [FETCH], [STEP], 0.5)


def lines_of(delays: Injected) -> list[str]:
    """Return the lines of the text."""
    return "\n".join(selftest.text(delays)).split("\n")


def cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in line.split("|")[1:-1]]


class TestOutput:
    @pytest.mark.parametrize("as_json", [True, False])
    @pytest.mark.parametrize(
        ("check", "delays", "ok"),
        [
            (GOOD, FOUND, True),
            (BAD, FOUND, False),
            (GOOD, replace(FOUND, ladder=[replace(FETCH, ok=False)]), False),
            (GOOD, replace(FOUND, prefetch=[replace(STEP, ok=False)]), False),
            (GOOD, Injected(not_run=[NotRun("delays", "no PyTorch")]), True),
        ],
    )
    def test_one_wrong_figure_is_enough(
        self,
        monkeypatch: pytest.MonkeyPatch,
        check: Check,
        delays: Injected,
        ok: bool,
        as_json: bool,
    ) -> None:
        """One wrong figure makes the result wrong; measurements that were not run do not."""
        monkeypatch.setattr(selftest, "checks", lambda: iter([check]))
        monkeypatch.setattr(selftest, "injected", lambda note, plan, clock: delays)
        assert selftest.run(2, as_json=as_json, say=lambda line: None, note=pytest.fail) is ok

    def test_tables(self) -> None:
        """Each table is aligned and has a heading."""
        lines = lines_of(FOUND)
        assert lines[1] == "delays without prefetch, and the rungs on which the ladder finds them:"
        assert cells(lines[5]) == [
            *("fetch (and decode)", "store", "125.0", "125.00", "+0.0 %"),
            *("copy +0.0 %", "slow-store, primary", "yes"),
        ]
        assert len({len(line) for line in lines[3:6]}) == 1
        assert lines[7] == "without any delay, ms per sample: synthetic 10.00, copy 10.10"
        assert lines[9].startswith("delays with prefetch, 2 workers: ")
        step = ["device", "copy and device", "100.0", "102.3", "+2.3 %", "yes"]
        assert cells(lines[13]) == step

    def test_an_unnamed_delay_shows_the_findings(self) -> None:
        """The line shows the findings instead."""
        for findings, named in (
            (["input-high", "slow-copy"], "input-high, slow-copy"),
            ([], "not"),
        ):
            row = replace(FETCH, named=False, ok=False, findings=findings)
            line = lines_of(Injected(ladder=[row]))[5]
            assert f"not named: {named}" in line
            assert "WRONG" in line

    @pytest.mark.parametrize(
        ("ok", "share", "hinted"), [(True, 0.9, False), (False, 0.1, False), (False, 0.5, True)]
    )
    def test_a_busy_machine_may_be_why(self, ok: bool, share: float, hinted: bool) -> None:
        """There is a hint only if a figure is wrong and other programs were busy."""
        delays = replace(FOUND, prefetch=[replace(STEP, ok=ok)], others_busy_share=share)
        percent = round(share * 100)
        lines = lines_of(delays)
        assert f"other programs took {percent} % of the processors meanwhile" in lines
        assert any("more --rounds" in line for line in lines) is hinted

    def test_json_rows(self) -> None:
        """Rows have the names that docs/selftest.md lists."""
        row = asdict(FOUND)["ladder"][0]
        assert row == {
            "case": "decode and fetch",
            "stage": "fetch",
            "rung": "store",
            "injected_s": 0.125,
            "recovered_s": pytest.approx(0.125),
            "error": pytest.approx(0),
            "stray": pytest.approx(0),
            "named": True,
            "ok": True,
            "elsewhere": {"rung": "copy", "seconds": 0.0},
            "findings": ["slow-store", "slow-decode"],
            "code": "slow-store",
            "primary": "slow-store",
        }
