"""The comparison of two saved runs: whether a change helped, and by as much as was predicted."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.analysis.comparison import Comparison, LabelledRun, compare, with_verdict
from iobench.analysis.regressions import Figure, FigureValues, Judgement, judge
from iobench.errors import NotComparable
from iobench.results.result import HostFacts, Result
from iobench.results.statistics import unpaired_ratio
from iobench.results.trial import Trial
from tests.iobench.analysis.made import GPU, WARM, done, loader, loop, run
from tests.iobench.analysis.test_recommend import FAR_STORE, ONE_WORKER


def compared(base: Result, new: Result, **how: Any) -> Comparison:
    """Compare two runs that are labelled ``base`` and ``new``, with a threshold of 5 %."""
    return compare(LabelledRun("base", base), LabelledRun("new", new), 0.05, **how)


def refused(base: Result, new: Result) -> str:
    """Return why two runs are not compared, and check that ``--force`` compares them."""
    with pytest.raises(NotComparable) as error:
        compared(base, new)
    compared(base, new, force=True)
    return str(error.value)


def followed(rate: float, **params: Any) -> Result:
    """Return a run after a recommendation for ``ONE_WORKER`` was followed, with this rate."""
    return run(loop("synthetic", 2000, **params), loop("warm", rate, **params))


def test_a_recommendation_that_was_followed() -> None:
    """The comparison lists the change, with its predicted gain beside the measured one."""
    comparison = compared(run(ONE_WORKER), followed(1390, workers=2))
    (loop,) = comparison.loops
    assert loop.changed == ("workers: 1 -> 2",)
    assert loop.applied == ("Use 2 loader workers instead of 1",)
    assert loop.predicted is not None
    assert loop.rate_change is not None
    assert loop.predicted.median == pytest.approx(1.6, rel=0.02)
    assert loop.rate_change.ratio.ratio == pytest.approx(1390 / 880, rel=0.01)
    assert comparison.sentence.startswith("The loop 'g' is faster: 1.58 times the base rate")
    assert comparison.exit_code == 0


def test_a_change_that_was_not_recommended_has_no_prediction() -> None:
    """The base run recommends no other prefetch, since it did not measure one."""
    (loop,) = compared(run(ONE_WORKER), followed(900, prefetch=4)).loops
    assert loop.changed == ("prefetch: 2 -> 4",)
    assert loop.predicted is None


def test_the_number_of_hosts_is_a_difference() -> None:
    """Runs on one and on two hosts differ, since one host has more of a store to itself."""
    several_hosts = replace(run(ONE_WORKER), hosts=(HostFacts(0), HostFacts(1)))
    differences = compared(run(ONE_WORKER), several_hosts).config
    assert [str(difference) for difference in differences] == ["hosts: none -> 2"]


def test_loops_are_paired_by_group_whatever_else_differs() -> None:
    """Loops are compared on their farthest inputs, also if loader, storage or group differ."""
    staged = run(loop("synthetic", 2000, loader="torch-map"), loop("warm", 860, loader="torch-map"))
    (one_loop,) = compared(run(FAR_STORE), staged).loops
    assert "input: store -> warm" in one_loop.changed
    assert one_loop.rate_change is not None
    assert one_loop.rate_change.ratio.ratio > 50
    other_name = followed(1390, workers=2, group="other")
    assert compared(run(ONE_WORKER), other_name).loops[0].rate_change is not None


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"model": "resnet18"}, "model resnet50 -> resnet18"),
        ({"image_size": 160}, "image_size 224 -> 160"),
        ({"batch_size": 256}, "batch_size 64 -> 256"),
    ],
)
def test_other_work_is_refused(params: dict[str, Any], message: str) -> None:
    """Loops that do other work are refused, and the message names the difference."""
    assert message in refused(run(ONE_WORKER), followed(1390, **params))


def test_other_images_are_refused() -> None:
    """Runs over other images are refused; other shards of the same source are compared."""
    new = followed(1390)
    elsewhere = replace(new, config={**new.config, "data": {"source": "/other"}})
    assert "data.source: /photos -> /other" in refused(run(ONE_WORKER), elsewhere)
    drawn = [run(ONE_WORKER, data={"source": None, "images": n}) for n in (100, 200)]
    assert "data.images: 100 -> 200" in refused(*drawn)
    sharded = replace(new, config={**new.config, "data": {"shards": "/made"}})
    assert compared(run(ONE_WORKER), sharded).changes


def test_unlike_machines_are_refused() -> None:
    """Runs on unlike machines are refused, since the machines would decide the ratios."""
    assert "processors" in refused(run(ONE_WORKER), run(ONE_WORKER, processors=64))


def test_nothing_in_common_is_refused() -> None:
    """Two runs without a common trial are refused, also with force."""
    with pytest.raises(NotComparable, match="no figure in common"):
        compared(run(loader(100, 1)), run(loader(100, 1, batch_size=9)), force=True)


def test_a_regression_is_exit_code_1() -> None:
    """Any figure that decides sets it; an improvement elsewhere does not make up for it."""
    base = run(loader(100, 1), loader(200, 2))
    comparison = compared(base, run(loader(80, 1), loader(300, 2)))
    assert comparison.exit_code == 1
    (worse,) = with_verdict(comparison.deciding, "regression")
    (better,) = with_verdict(comparison.deciding, "improvement")
    assert worse.log_worse > 0 > better.log_worse


def with_metrics(trials: Sequence[Trial], **metrics: float | None) -> list[Trial]:
    """Return the trials with other metrics, whose repeats differ by 0.1 %; None removes one."""
    changed = []
    for trial in trials:
        merged = {**trial.metrics, **metrics}
        kept = {key: value for key, value in merged.items() if value is not None}
        for key in metrics.keys() & kept.keys():
            kept[key] *= 1 + trial.repeat / 1e3
        changed.append(replace(trial, metrics=kept))
    return changed


def test_a_lower_figure_may_be_the_better_one() -> None:
    """A longer time to the first batch is worse; beside a rate it does not decide."""
    before = with_metrics(loader(100, 1), time_to_first_batch_s=1.0)
    after = with_metrics(loader(100, 1), time_to_first_batch_s=3.0)
    comparison = compared(run(before), run(after))
    (change,) = with_verdict(comparison.listed, "regression")
    assert change.figure.name == "time to first batch"
    assert comparison.exit_code == 0


def test_the_rate_of_the_loop_decides() -> None:
    """Loaders, probes and other inputs are listed: their regressions leave the exit code at 0."""

    def measured(loop_rate: float, other_rate: float) -> Result:
        return run(
            loop("warm", other_rate),
            loop("cold", loop_rate),
            loader(other_rate, 1),
            done("disk", {"target": "t"}, WARM, mb_per_s=other_rate),
        )

    comparison = compared(measured(100, 100), measured(100, 50))
    assert [change.name for change in comparison.deciding] == ["g, cold"]
    assert len(with_verdict(comparison.listed, "regression")) == 3
    assert comparison.exit_code == 0
    assert compared(measured(100, 100), measured(50, 100)).exit_code == 1


def test_without_a_loop_in_both_runs_loaders_and_probes_decide() -> None:
    """The rate of each decides; a loop that only one run has does not."""

    def measured(loader_rate: float, disk_rate: float) -> list[Trial]:
        disk = done("disk", {"target": "t"}, WARM, mb_per_s=disk_rate)
        return [*loader(loader_rate, 1), *disk]

    base = run(measured(100, 100), loop("warm", 100))
    assert compared(base, run(measured(100, 100))).exit_code == 0
    for rates in ((50, 100), (100, 50)):
        comparison = compared(base, run(measured(*rates)))
        assert len(comparison.deciding) == 2
        assert comparison.exit_code == 1


def test_the_time_to_the_first_batch_decides_where_no_run_has_a_rate() -> None:
    """A run has no rate if its data fit into what a loader reads ahead."""
    without_rate = with_metrics(loader(100, 1), samples_per_s=None)
    before = with_metrics(without_rate, time_to_first_batch_s=1.0)
    after = with_metrics(without_rate, time_to_first_batch_s=3.0)
    comparison = compared(run(before), run(after))
    assert [change.figure.name for change in comparison.deciding] == ["time to first batch"]
    assert comparison.exit_code == 1


def test_the_start_of_later_epochs_is_compared_and_decides_nothing() -> None:
    """Loops and loaders have this figure; a shorter time is better."""
    later: dict[str, Any] = {"time_to_first_batch_s": 2.0, "epoch_start_s": 0.4}
    sooner = {**later, "epoch_start_s": 0.1}
    base = run(
        loop("warm", 500, metrics=later),
        done("loader", {"loader": "a", "data": "b@disk"}, WARM, samples_per_s=900.0, **later),
    )
    new = run(
        loop("warm", 500, metrics=sooner),
        done("loader", {"loader": "a", "data": "b@disk"}, WARM, samples_per_s=900.0, **sooner),
    )
    comparison = compared(base, new, force=True)
    starts = [change for change in comparison.listed if change.figure.metric == "epoch_start_s"]
    assert [change.kind for change in starts] == ["train", "loader"]
    assert {change.verdict for change in starts} == {"improvement"}


def test_loaders_do_not_answer_for_a_loop_without_a_rate() -> None:
    """The loop is in both runs, but one knows only a range: refused; by force loaders decide."""
    base = run(loop("warm", 100), loader(100, 1))
    new = run(with_metrics(loop("warm", 100), samples_per_s=None), loader(100, 1))
    assert "g, warm: samples/s is missing in repeats of new" in refused(base, new)
    comparison = compared(base, new, force=True)
    assert [change.kind for change in comparison.deciding] == ["loader"]
    assert "g, warm: samples/s is missing in repeats of new" in comparison.unpaired


def points(sort: str, count: int, repeats: int = 6) -> list[list[Trial]]:
    """Return repeats of ``count`` points: training loops, loaders, or one loop with loaders."""
    loaders = [loader(100, workers, repeats=repeats) for workers in range(1, count + 1)]
    loops = [loop("warm", 100, group=f"g{number}", repeats=repeats) for number in range(count)]
    if sort == "loop and loaders":
        return [*loops[:1], *loaders[1:]]
    return loops if sort == "loops" else loaders


def scattered(result: Result, source: random.Random) -> Result:
    """Return the same run with newly drawn rates, whose coefficient of variation is 5 %."""
    trials = []
    for trial in result.trials:
        rate = 100 * math.exp(source.gauss(0, 0.05))
        trials.append(replace(trial, metrics={**trial.metrics, "samples_per_s": rate}))
    return replace(result, trials=trials)


def share_of_alarms(sort: str, count: int, comparisons: int) -> float:
    """Return the share of comparisons of a program with itself that end with exit code 1."""
    source = random.Random(20270301)
    planned = run(*points(sort, count))
    alarms = 0
    for _ in range(comparisons):
        comparison = compared(scattered(planned, source), scattered(planned, source))
        assert len(comparison.changes) == count
        alarms += comparison.exit_code
    return alarms / comparisons


SORTS = ("loaders", "loops", "loop and loaders")


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("count", "comparisons"), [(1, 400), (5, 150), (20, 60)])
def test_a_program_compared_with_itself_is_seldom_a_regression(
    sort: str, count: int, comparisons: int
) -> None:
    """At most 5 % of the comparisons end with exit code 1 for any number of figures."""
    assert share_of_alarms(sort, count, comparisons) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize(("count", "comparisons"), [(1, 2000), (5, 1000), (20, 500)])
def test_many_programs_compared_with_themselves_are_seldom_a_regression(
    sort: str, count: int, comparisons: int
) -> None:
    """The bound of 5 % holds over so many comparisons that an excess of a third would show."""
    assert share_of_alarms(sort, count, comparisons) <= 0.05


@pytest.mark.parametrize("sort", ["loaders", "loops"])
def test_a_slower_one_of_twenty_is_noticed(sort: str) -> None:
    """A rate lower by a third is a regression in nearly all comparisons in spite of 5 % noise."""
    source = random.Random(20270301)
    planned = run(*points(sort, 20))
    noticed = 0
    for _ in range(30):
        new = scattered(planned, source)
        slower = []
        for trial in new.trials[:6]:
            rate = trial.metrics["samples_per_s"] / 1.5
            slower.append(replace(trial, metrics={"samples_per_s": rate}))
        new = replace(new, trials=[*slower, *new.trials[6:]])
        noticed += compared(scattered(planned, source), new).exit_code
    assert noticed >= 29


@pytest.mark.parametrize(
    ("count", "repeats", "more"), [(23, 6, 0), (24, 6, 1), (24, 7, 0), (1, 3, 1), (1, 4, 0)]
)
def test_too_many_figures_for_the_repeats_are_underpowered(
    count: int, repeats: int, more: int
) -> None:
    """Six repeats against six can show a change among at most 23 figures.

    Their smallest p-value is 2/924, which the correction multiplies by the number of figures.
    """
    base, new = points("loaders", count, repeats), points("loaders", count, repeats)
    new[0] = loader(50, 1, repeats=repeats)
    comparison = compared(run(*base), run(*new))
    assert comparison.more_repeats == more
    assert comparison.exit_code == (0 if more else 1)
    underpowered = with_verdict(comparison.deciding, "underpowered")
    assert len(underpowered) == (count if more else 0)
    assert ("underpowered: with" in comparison.sentence) == bool(more)
    if more:
        assert f"run at least {more} more repeat." in comparison.sentence
        halved = next(change for change in underpowered if change.log_worse > 0.5)
        assert halved.verdict_words == f"underpowered, {more} more repeat"


def former(result: Result) -> Result:
    """Return the result as an earlier version would have measured it."""
    return replace(result, rates="")


@pytest.mark.parametrize(
    "trials",
    [loop("warm", 100), loader(100, 1), done("watch", {"loader": "l"}, None, samples_per_s=100.0)],
    ids=["loop", "loader", "watch"],
)
def test_rates_of_the_former_rule_are_not_compared_with_new_ones(trials: list[Trial]) -> None:
    """The message names the run to measure again; a forced comparison has a note."""
    measured = run(trials)
    for base, new, older in (
        (former(measured), measured, "base"),
        (measured, former(measured), "new"),
    ):
        assert f"measure {older} again with this version" in refused(base, new)
        assert f"The rates of {older} were" in compared(base, new, force=True).rule_note
    for result in (measured, former(measured)):
        assert not compared(result, result).rule_note


def test_probes_of_both_rules_are_compared() -> None:
    """Probes have no rule of rates, and loaders that only one run has do not matter."""
    disk = done("disk", {"target": "t"}, WARM, mb_per_s=100.0)
    comparison = compared(former(run(disk, loader(100, 1))), run(disk))
    assert [change.kind for change in comparison.changes] == ["disk"]
    assert not comparison.rule_note


def test_points_of_one_run_alone_are_listed() -> None:
    """Points of one run alone are listed, and so are trials that failed or were skipped."""
    base = run(loader(100, 1), loader(200, 2))
    failed = [replace(t, status="failed", reason="it fell over") for t in loader(200, 2)]
    comparison = compared(base, run(loader(100, 1), failed, loader(50, 4)))
    assert any(line.startswith("only in base: loader") for line in comparison.unpaired)
    assert any(line.startswith("only in new: loader") for line in comparison.unpaired)
    assert "failed or skipped in new: it fell over" in comparison.unpaired


def test_cold_is_not_compared_with_warm() -> None:
    """Points are not paired if the page cache was shown to hold other data."""
    base, new = loader(100, 1, cache="cold"), loader(300, 1, cache="cold")
    doubts = [replace(t, cold=replace(t.cold, label="warm")) for t in new if t.cold]
    with pytest.raises(NotComparable):
        compared(run(base), run(doubts))


def test_the_device_is_named() -> None:
    """A comparison names both devices if they differ."""
    (loop,) = compared(run(ONE_WORKER), followed(900, metrics=GPU)).loops
    assert loop.device == "emulated device -> NVIDIA H100"


def judged(base: Sequence[float], new: Sequence[float], *, higher: bool) -> Judgement:
    """Return the judgement of a figure that does not decide, with a threshold of 5 %."""
    figure = Figure("samples_per_s", "samples/s", higher_is_better=higher)
    values = FigureValues("loader", "a loader", figure, base, new, is_main=True)
    return judge(values, unpaired_ratio(base, new), 0.05)


@given(
    base=st.lists(st.floats(90, 110), min_size=4, max_size=8),
    factor=st.floats(0.2, 5.0),
    higher=st.booleans(),
)
def test_a_verdict_follows_the_direction(base: list[float], factor: float, higher: bool) -> None:
    """A change for the better is one for the worse if lower figures are better."""
    new = [value * factor for value in base]
    verdict = judged(base, new, higher=higher).verdict
    turned = judged(base, new, higher=not higher).verdict
    opposite = {"regression": "improvement", "improvement": "regression"}
    assert turned == opposite.get(verdict, verdict)
    if factor > 2:
        assert verdict == ("improvement" if higher else "regression")


def test_too_few_repeats_ask_for_more() -> None:
    """Two repeats against two cannot cover 95 %, so the judgement asks for more."""
    judgement = judged([1, 2], [1, 2], higher=True)
    assert judgement.verdict == "underpowered"
    assert "2 against 2 repeats" in judgement.why
    assert judgement.more is not None
    assert judgement.more.repeats >= 2
