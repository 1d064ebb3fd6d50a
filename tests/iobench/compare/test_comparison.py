"""Two runs, figure by figure."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.compare.comparison import Comparison, Saved, compare
from iobench.compare.text import comparison_text
from iobench.errors import NotComparable
from iobench.trial import Trial
from tests.iobench.compare.saved_runs import (
    COLD,
    MACHINE,
    NOISY,
    STEADY,
    UNPROVED,
    WARM,
    params,
    repeats,
    saved,
    scaled,
    stopped,
)

NAMES = ("raw", "torch-map", "tf-data")
OTHER = {**MACHINE, "processors": 2}


def run(factor: float = 1.0, where: str = "base") -> Saved:
    """Three loaders with a first batch each; all figures times ``factor``."""
    trials: list[Trial] = []
    for number, name in enumerate(NAMES):
        rates = scaled(NOISY if number else STEADY, factor)
        for trial, rate in zip(repeats(rates, params(name)), rates, strict=True):
            trial.metrics["time_to_first_batch_s"] = rate / 500  # type: ignore[index]
            trials.append(trial)
    return saved(*trials, where=where)


def ratios(found: Comparison) -> list[float]:
    """Of every figure."""
    return [change.ratio.ratio for change in found.changes]


def test_a_run_against_itself_is_as_it_was() -> None:
    """Every ratio is 1 within its interval, and nothing has to be said."""
    found = compare(run(), run(), 0.05)
    assert len(found.changes) == 6
    assert ratios(found) == pytest.approx([1.0] * 6)
    assert all(change.ratio.low <= 1 <= change.ratio.high for change in found.changes)
    assert (found.exit_code, found.apart, found.environment, found.config) == (0, (), (), ())
    assert found.leaving == 0


@given(st.floats(0.2, 5))
def test_scaling_all_figures_moves_every_ratio_by_as_much(factor: float) -> None:
    """Rates and times alike; which is better is another matter."""
    found = compare(run(), run(factor), 0.05)
    assert ratios(found) == pytest.approx([factor] * 6)
    assert all(
        (change.worse > 0) == (change.figure.higher_is_better == (change.ratio.ratio < 1))
        for change in found.changes
        if abs(change.ratio.ratio - 1) > 1e-9
    )


@given(st.floats(0.2, 5))
def test_swapping_the_runs_turns_ratios_and_intervals_round(factor: float) -> None:
    """What was new is base."""
    found, turned = compare(run(), run(factor), 0.05), compare(run(factor), run(), 0.05)
    for one, other in zip(found.changes, turned.changes, strict=True):
        assert other.ratio.ratio == pytest.approx(1 / one.ratio.ratio)
        assert other.ratio.low == pytest.approx(1 / one.ratio.high)
        assert other.ratio.high == pytest.approx(1 / one.ratio.low)


def test_a_regression_is_exit_code_1_and_an_improvement_is_not() -> None:
    """A rate that halves beside a first batch that comes in half the time."""
    found = compare(run(), run(0.5), 0.05)
    assert found.exit_code == 1
    assert {change.figure.metric for change in found.of("regression")} == {"samples_per_s"}
    assert {change.figure.metric for change in found.of("improvement")} == {"time_to_first_batch_s"}
    rates = compare(saved(*repeats(STEADY)), saved(*repeats(scaled(STEADY, 2))), 0.05)
    assert (rates.exit_code, len(rates.of("improvement"))) == (0, 1)


def test_the_worst_regression_comes_first() -> None:
    """And the rest in the order of the base."""
    base = [*repeats(STEADY, params("a")), *repeats(STEADY, params("b"))]
    new = [*repeats(scaled(STEADY, 0.8), params("a")), *repeats(scaled(STEADY, 0.5), params("b"))]
    found = compare(saved(*base), saved(*new), 0.05)
    assert [each.point.params["loader"] for each in found.of("regression")] == ["b", "a"]
    assert [each.point.params["loader"] for each in found.changes] == ["a", "b"]


def test_what_chance_alone_would_leave_out_is_counted() -> None:
    """4.1 % of intervals at 6 against 6; figures without an interval have no part in it."""
    base = [*repeats(STEADY, params("a")), *repeats([1.0], params("b"))]
    found = compare(saved(*base), saved(*base), 0.05)
    assert len(found.intervals) == 1
    assert found.by_chance == pytest.approx(1 - 0.9588744588744589)


def test_unlike_machines_are_compared_only_when_asked() -> None:
    """The refusal says in what they differ, and how to go on."""
    base, new = saved(*repeats(STEADY)), saved(*repeats(STEADY), where="n", environment=OTHER)
    with pytest.raises(NotComparable, match=r"n is .* base \(processors: 16 -> 2\): --force"):
        compare(base, new, 0.05)
    found = compare(base, new, 0.05, force=True)
    assert [each.path for each in found.unlike] == ["processors"]


@pytest.mark.parametrize(
    ("base", "new", "hint"),
    [
        (repeats(STEADY), [], "no trial of new was done"),
        (stopped("failed", "x"), repeats(STEADY), "no trial of base was done"),
        (
            repeats(STEADY),
            repeats(STEADY, params(seconds=2.0)),
            r"their points differ \(loader seconds: 1.0 -> 2.0\)",
        ),
        (
            repeats(STEADY, params(cache="cold"), cold=COLD),
            repeats(STEADY, params(cache="cold"), cold=UNPROVED),
            "what the cache held differs",
        ),
        (repeats(STEADY), repeats(STEADY, {"x": 1}, kind="theirs"), "they measured other things"),
    ],
)
def test_nothing_in_common_is_refused_with_the_reason(
    base: list[Trial], new: list[Trial], hint: str
) -> None:
    """A comparison of nothing would be green."""
    with pytest.raises(NotComparable, match=hint):
        compare(saved(*base), saved(*new, where="new"), 0.05)


def test_a_figure_that_some_repeats_lack_is_told_and_not_compared() -> None:
    """Those that have it are the quicker ones, or the slower."""
    point = {"target": "t", "operation": "read", "pattern": "random", "block_bytes": 4096}
    point |= {"parallelism": 1, "cache": "warm"}
    whole = repeats(STEADY, point, kind="disk", metric="mb_per_s", cold=WARM, latency_s_p99=0.1)
    part = repeats(STEADY, point, kind="disk", metric="mb_per_s", cold=WARM)
    found = compare(saved(*whole), saved(*whole[:2], *part[2:]), 0.05)
    assert [change.figure.metric for change in found.changes] == ["mb_per_s"]
    (apart,) = found.apart
    assert apart.said == "latency, p99 above 0 in only 2 of 6 repeats in new: not compared"


@pytest.mark.parametrize("value", [0.0, -1.0, "fast", None, True, 1e300])
def test_a_value_that_is_no_size_has_no_ratio(value: object) -> None:
    """It is told, and divides nothing."""
    odd = [*repeats(STEADY[:5]), *repeats([value])]  # type: ignore[list-item]
    base = saved(*repeats(STEADY), *repeats(STEADY, params("raw")))
    found = compare(base, saved(*odd, *repeats(STEADY, params("raw"))), 0.05)
    assert [change.point.params["loader"] for change in found.changes] == ["raw"]
    assert found.apart[0].why == "figure"


def test_what_auto_came_to_be_is_told() -> None:
    """A loop that fell back to the processor is compared, and its device named."""
    on_gpu = repeats(STEADY, kind="train", device="NVIDIA H200", emulated=False)
    on_cpu = repeats(scaled(STEADY, 0.1), kind="train", device="AMD EPYC", emulated=False)
    found = compare(saved(*on_gpu), saved(*on_cpu), 0.05)
    assert found.exit_code == 1
    assert [(each.why, each.said) for each in found.apart] == [
        ("device", "device: NVIDIA H200 -> AMD EPYC")
    ]


def test_twice_the_memory_at_the_same_rate_is_a_regression() -> None:
    """And what only one of two runs tells is no figure, nor worth a word."""
    before, after = (
        saved(
            *(
                _with(trial, memory_bytes=each)
                for trial, each in zip(repeats(STEADY), used, strict=True)
            )
        )
        for used in (scaled(STEADY, 4e6), scaled(STEADY, 8e6))
    )
    found = compare(before, after, 0.05)
    assert [change.figure.metric for change in found.of("regression")] == ["memory_bytes"]
    assert found.exit_code == 1
    told_once = compare(saved(*repeats(STEADY)), after, 0.05)
    assert [change.figure.metric for change in told_once.changes] == ["samples_per_s"]
    assert told_once.apart == ()


def test_parts_explain_a_later_first_batch() -> None:
    """They have no verdict of their own."""
    before, after = (
        saved(
            *(
                _with(trial, time_to_first_batch_s=s, first_batch_fetch_s=s / 2)
                for trial, s in zip(repeats(STEADY), scaled(STEADY, factor), strict=True)
            )
        )
        for factor in (0.01, 0.02)
    )
    found = compare(before, after, 0.05)
    (worse,) = found.of("regression")
    assert worse.figure.metric == "time_to_first_batch_s"
    assert worse.judgement.why == "fetch 500 ms -> 1 s"
    assert "      of that fetch 500 ms -> 1 s" in comparison_text(found).splitlines()


def _with(trial: Trial, **metrics: float) -> Trial:
    return replace(trial, metrics={**trial.metrics, **metrics})
