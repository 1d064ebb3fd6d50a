"""The figures of training loops: one loss, its parts, and rates by input."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.analysis.analyse import analyse, summarised
from iobench.analysis.loop_entries import ladder_entry
from iobench.analysis.loops import training_loops
from iobench.analysis.step_parts import step_parts
from iobench.trials.ladder import RUNGS
from tests.iobench.analysis.made import GPU, UNPROVED, analysed, loop, run, together


def test_the_loss_is_one_figure_everywhere() -> None:
    """The loss is 1 - au_ceiling, and the ladder's stall and the parts of a step add up to it."""
    loop_figures = analysed(loop("synthetic", 1000), loop("warm", 500), loop("cold", 250))
    assert loop_figures.loop is not None
    loss, share = loop_figures.loop.loss, loop_figures.loop.au_ceiling
    assert loss is not None
    assert share is not None
    assert loss.median == pytest.approx(0.75, abs=0.005)
    assert loss.median == pytest.approx(1 - share.median)
    assert loop_figures.summary["stall_fraction"] == loss.median
    (ladder,) = loop_figures.summary["ladder"]
    assert ladder["stall_share"]["median"] == pytest.approx(loss.median)
    parts = step_parts(loop_figures.loop)
    lost_share = sum(part.share for part in parts if part.name != "device")
    assert lost_share == pytest.approx(loss.median, abs=0.01)


@given(st.lists(st.floats(0.001, 1.0), min_size=2, max_size=7))
def test_no_part_of_a_step_exceeds_the_loss(seconds: list[float]) -> None:
    """This holds even if a rung took less time than the one above it."""
    rungs = ("synthetic", *RUNGS[1 : len(seconds) - 1], "cold")
    trials = []
    for rung, sample_s in zip(rungs, seconds, strict=True):
        trials += loop(rung, 1 / sample_s, repeats=1)
    (loop_figures,) = training_loops(trials)
    parts = step_parts(loop_figures)
    assert math.isclose(sum(part.share for part in parts), 1.0)
    loss = max(0.0, 1 - seconds[0] / seconds[-1])
    for part in parts:
        assert part.share >= 0
        if part.name != "device":
            assert part.share <= loss + 1e-9


def test_the_ladder_has_a_rung_for_the_starts_of_epochs() -> None:
    """The JSON object and the parts of a step have the rung, and the parts still add up."""
    metrics = {"epoch_start_share": 0.4}
    trials = together(loop("synthetic", 1000), loop("warm", 250, metrics=metrics))
    (loop_figures,) = training_loops(trials)
    entry = ladder_entry(loop_figures)
    assert entry["path"] == ["synthetic", "start", "warm"]
    rung = entry["rungs"][1]
    assert rung["words"] == "+ start of each epoch"
    assert (rung["input"], rung["above"]) == ("warm", "synthetic")
    assert rung["seconds_per_sample"]["median"] == pytest.approx(1e-3 + 0.4 * 4e-3, rel=0.01)
    assert "start" not in entry["not_measured"]
    parts = {part.name: part.share for part in step_parts(loop_figures)}
    assert list(parts) == ["device", "start", "prepare"]
    assert parts["start"] == pytest.approx(0.4, rel=0.02)
    assert sum(parts.values()) == pytest.approx(1.0)


def test_preparing_and_fetching_are_split_by_a_warm_loop() -> None:
    """They split the time of the farthest input, unless the warm loop was not quite warm."""
    (loop_figures,) = training_loops(
        [*loop("synthetic", 1000), *loop("warm", 500), *loop("cold", 250)]
    )
    assert loop_figures.preparation_stall is not None
    assert loop_figures.preparation_stall.median == pytest.approx(0.25, abs=0.01)
    assert loop_figures.fetch_stall is not None
    assert loop_figures.fetch_stall.median == pytest.approx(0.5, abs=0.01)
    doubtful = loop("warm", 500, cold=UNPROVED)
    (loop_figures,) = training_loops([*loop("synthetic", 1000), *doubtful, *loop("cold", 250)])
    assert loop_figures.preparation_stall is None


def test_the_verdict_is_of_the_first_loop_whose_device_was_measured() -> None:
    """The verdict names the loop if there are several."""
    loop_figures = analysed(
        loop("warm", 100, group="a"),
        loop("synthetic", 400, group="b"),
        loop("warm", 200, group="b"),
    )
    assert loop_figures.verdict.startswith(
        "The loop 'b' gets 50 % of what the emulated device can consume"
    )


def test_a_loop_without_its_devices_rate_says_so() -> None:
    """The verdict says that the rate is missing, and the finding has the share of waiting."""
    loop_figures = analysed(loop("warm", 100, metrics={"wait_share": 0.7, "cpu_busy_share": 0.9}))
    assert "its device's rate was not measured" in loop_figures.verdict
    assert loop_figures.findings[0].share == pytest.approx(0.7)


def test_rungs_that_were_not_measured_say_why() -> None:
    """A rung was not requested, has failed, or does not exist for the loader."""
    (entry,) = analyse(run([*loop("synthetic", 1000), *loop("warm", 500)])).summary["ladder"]
    assert entry["not_measured"]["decode"] == "not requested (training.inputs)"
    trials = [*loop("synthetic", 900, loader="tf-data"), *loop("warm", 500, loader="tf-data")]
    (entry,) = analyse(run(trials)).summary["ladder"]
    assert "has three rungs" in entry["not_measured"]["decode"]


def test_scaling_over_devices() -> None:
    """Efficiency is the rate of N devices over N times the rate of one."""
    trials = together(
        loop("synthetic", 1000, group="1", metrics=GPU),
        loop("synthetic", 3600, group="4", devices=4, metrics={**GPU, "devices": 4}),
    )
    one_device, four = analyse(run(trials)).summary["scaling"]
    assert one_device["efficiency"] is None
    assert (four["devices"], four["efficiency"]["median"]) == (4, pytest.approx(0.9))


def test_a_result_is_summarised_without_any_trial() -> None:
    """A run that was stopped at once has a summary."""
    empty = summarised(run())
    assert empty.summary["verdict"] == "Nothing could be measured."
    assert empty.findings == ()
