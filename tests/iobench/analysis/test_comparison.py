"""Two saved runs: did the change help, and by as much as was predicted?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.analysis.comparison import Comparison, Saved, compare, judge
from iobench.errors import NotComparable
from iobench.result import Result
from iobench.stats import ratio_apart
from iobench.trial import Trial
from tests.iobench.analysis.made import GPU, loader, loop, run
from tests.iobench.analysis.test_recommend import FAR_STORE, ONE_WORKER


def compared(base: Result, new: Result, **how: Any) -> Comparison:
    """Them, by names."""
    return compare(Saved("base", base), Saved("new", new), 0.05, **how)


def refused(base: Result, new: Result) -> str:
    """Why they are not compared; with --force they are."""
    with pytest.raises(NotComparable) as error:
        compared(base, new)
    compared(base, new, force=True)
    return str(error.value)


def followed(rate: float, **params: Any) -> Result:
    """The run of one worker again, with what was recommended."""
    return run(loop("synthetic", 2000, **params), loop("warm", rate, **params))


def test_a_recommendation_that_was_followed() -> None:
    """What changed is listed, and the predicted gain stands beside the one that was found."""
    found = compared(run(ONE_WORKER), followed(1390, workers=2))
    (one,) = found.loops
    assert one.changed == ("workers: 1 -> 2",)
    assert one.applied == ("Use 2 loader workers instead of 1",)
    assert one.predicted is not None
    assert one.found is not None
    assert one.predicted.median == pytest.approx(1.6, rel=0.02)
    assert one.found.ratio.ratio == pytest.approx(1390 / 880, rel=0.01)
    assert found.sentence.startswith("The loop 'g' is faster: 1.58 times its rate")
    assert found.exit_code == 0


def test_a_change_that_was_not_recommended_has_no_prediction() -> None:
    """Prefetch was not measured in the base."""
    (one,) = compared(run(ONE_WORKER), followed(900, prefetch=4)).loops
    assert one.changed == ("prefetch: 2 -> 4",)
    assert one.predicted is None


def test_loops_are_paired_by_group_whatever_else_differs() -> None:
    """Another loader, and data on a local disk instead of a store: the farthest inputs."""
    staged = run(loop("synthetic", 2000, loader="torch-map"), loop("warm", 860, loader="torch-map"))
    (one,) = compared(run(FAR_STORE), staged).loops
    assert "input: store -> warm" in one.changed
    assert one.found is not None
    assert one.found.ratio.ratio > 50
    other_name = followed(1390, workers=2, group="other")
    assert compared(run(ONE_WORKER), other_name).loops[0].found is not None


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"model": "resnet18"}, "model resnet50 -> resnet18"),
        ({"image_size": 160}, "image_size 224 -> 160"),
        ({"batch_size": 256}, "batch_size 64 -> 256"),
    ],
)
def test_other_work_is_refused(params: dict[str, Any], said: str) -> None:
    """The difference is named."""
    assert said in refused(run(ONE_WORKER), followed(1390, **params))


def test_other_images_are_refused() -> None:
    """Of another source, or drawn otherwise; shards of the same source are what is compared."""
    new = followed(1390)
    elsewhere = replace(new, config={**new.config, "data": {"source": "/other"}})
    assert "data.source: /photos -> /other" in refused(run(ONE_WORKER), elsewhere)
    drawn = [run(ONE_WORKER, data={"source": None, "images": n}) for n in (100, 200)]
    assert "data.images: 100 -> 200" in refused(*drawn)
    sharded = replace(new, config={**new.config, "data": {"shards": "/made"}})
    assert compared(run(ONE_WORKER), sharded).changes


def test_unlike_machines_are_refused() -> None:
    """Their ratios are of the machines first."""
    assert "processors" in refused(run(ONE_WORKER), run(ONE_WORKER, processors=64))


def test_nothing_in_common_is_refused() -> None:
    """Also with force."""
    with pytest.raises(NotComparable, match="no figure in common"):
        compared(run(loader(100, 1)), run(loader(100, 1, batch_size=9)), force=True)


def test_a_regression_is_exit_code_1() -> None:
    """Of any figure; an improvement elsewhere does not make up for it."""
    base = run(loader(100, 1), loader(200, 2))
    found = compared(base, run(loader(80, 1), loader(300, 2)))
    assert found.exit_code == 1
    assert [len(found.of(verdict)) for verdict in ("regression", "improvement")] == [1, 1]
    assert found.of("regression")[0].worse > 0


def test_a_lower_figure_may_be_the_better_one() -> None:
    """Memory and the time to the first batch."""

    def with_first_batch(seconds: float) -> list[Trial]:
        trials = loader(100, 1)
        return [
            replace(
                t, metrics={**t.metrics, "time_to_first_batch_s": seconds * (1 + t.repeat / 1e3)}
            )
            for t in trials
        ]

    found = compared(run(with_first_batch(1.0)), run(with_first_batch(3.0)))
    (change,) = found.of("regression")
    assert change.figure.name == "time to first batch"


def test_points_of_one_run_alone_are_listed() -> None:
    """So are trials that did not end well."""
    base = run(loader(100, 1), loader(200, 2))
    failed = [replace(t, status="failed", reason="it fell over") for t in loader(200, 2)]
    found = compared(base, run(loader(100, 1), failed, loader(50, 4)))
    assert any(said.startswith("only in base: loader") for said in found.alone)
    assert any(said.startswith("only in new: loader") for said in found.alone)
    assert "failed or skipped in new: it fell over" in found.alone


def test_cold_is_not_compared_with_warm() -> None:
    """What the cache was shown to hold belongs to the point."""
    base, new = loader(100, 1, cache="cold"), loader(300, 1, cache="cold")
    doubted = [replace(t, cold=replace(t.cold, label="warm")) for t in new if t.cold]
    with pytest.raises(NotComparable):
        compared(run(base), run(doubted))


def test_the_device_is_named() -> None:
    """Both, where they differ."""
    (one,) = compared(run(ONE_WORKER), followed(900, metrics=GPU)).loops
    assert one.device == "emulated device -> NVIDIA H100"


@given(
    base=st.lists(st.floats(90, 110), min_size=4, max_size=8),
    factor=st.floats(0.2, 5.0),
    higher=st.booleans(),
)
def test_a_verdict_follows_the_direction(base: list[float], factor: float, higher: bool) -> None:
    """What is better one way is worse the other way."""
    new = [value * factor for value in base]
    ratio = ratio_apart(base, new)
    verdict, _, _ = judge(ratio, base, new, 0.05, higher=higher)
    turned, _, _ = judge(ratio, base, new, 0.05, higher=not higher)
    opposite = {"regression": "improvement", "improvement": "regression"}
    assert turned == opposite.get(verdict, verdict)
    if factor > 2:
        assert verdict == ("improvement" if higher else "regression")


def test_too_few_repeats_ask_for_more() -> None:
    """Two against two cannot cover 95 %."""
    verdict, why, more = judge(ratio_apart([1, 2], [1, 2]), [1, 2], [1, 2], 0.05, higher=True)
    assert verdict == "underpowered"
    assert "2 against 2 repeats" in why
    assert more is not None
    assert more.repeats >= 2
