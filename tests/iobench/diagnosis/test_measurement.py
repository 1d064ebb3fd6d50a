"""What a reader of the figures must know."""

from __future__ import annotations

from dataclasses import replace

from iobench.diagnosis.measurement import findings
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import COLD, UNPROVED, loop, loops, one, result


def codes(trials: list[Trial], repeats: int = 6) -> list[str]:
    """The findings of a run."""
    return [finding.code for finding in findings(result(trials, repeats=repeats))]


def test_nothing_to_say() -> None:
    """Six repeats, proved cold, larger than memory, on a real device."""
    assert codes(loops([4.0], [5.0], [6.0])) == []


def test_few_repeats() -> None:
    """Fewer than six are a look, not a figure."""
    assert codes([], repeats=5) == ["few-repeats"]
    assert codes([], repeats=6) == []


def test_not_shown_cold_gives_the_reason() -> None:
    """How many, and why the first."""
    trials = [*loop("cold", [8.0, 8.0], cold=UNPROVED), *loop("cold", [8.0], group="h")]
    (found,) = findings(result(trials, repeats=6))
    assert (found.code, found.severity) == ("not-shown-cold", "warning")
    assert "2 trials were to be cold" in found.evidence
    assert UNPROVED.why in found.evidence


def test_a_stores_cache_is_no_failure_to_be_cold() -> None:
    """Asked cold of an object store: unknown, and so labelled; not warm."""
    remote = Cold("cold", "server cache unknown", why="its cache cannot be seen")
    assert codes(loop("cold", [8.0], cold=remote)) == []


def test_what_was_not_all_warm_takes_the_split_from_a_loop_only() -> None:
    """A loader alone has no stall to split."""
    half = Cold("warm", "warm", 0.5, 0.4, False, "only 50 % of the pages were in memory before")
    (of_loop,) = findings(result(loop("warm", [8.0], cold=half), repeats=6))
    assert of_loop.code == "not-all-warm"
    assert of_loop.advice.endswith("the loop's stall is not split")
    loader = one("loader", {"loader": "raw", "data": "d"}, samples_per_s=1.0, cold=half)
    (of_loader,) = findings(result([loader], repeats=6))
    assert "split" not in of_loader.advice


def test_data_that_fit_in_memory() -> None:
    """Said once, with how many trials it is of."""
    trials = loop("cold", [8.0, 8.0], cold=replace(COLD, cache_resident=True))
    assert codes(trials) == ["cache-resident"]


def test_a_run_that_was_stopped_is_no_whole_one() -> None:
    """How much of it is there; older results do not tell how much was asked for."""
    trials = loops([4.0], group="b")
    whole = replace(result(trials, repeats=6), references={"planned": len(trials)})
    assert not list(findings(whole))
    (found,) = findings(replace(whole, references={"planned": 1200}))
    assert (found.code, found.severity) == ("unfinished", "warning")
    assert found.evidence == f"{len(trials)} of 1,200 trials were tried"
    assert not list(findings(replace(whole, references={"planned": "all"})))


def test_what_was_stopped_meanwhile_is_named() -> None:
    """How many trials, and which for longest; without a word of it there is no finding."""
    first, second = loops([4.0], stood_still_s=2.0), loops([4.0], group="b", stood_still_s=61.5)
    (found,) = findings(result([*first, *second, *loops([4.0], group="c")], repeats=6))
    assert (found.code, found.severity) == ("stood-still", "warning")
    assert found.evidence.startswith("2 trials stopped meanwhile, at most for 61.5 s: train/")
    assert "group=b" in found.evidence


def test_emulated_groups_are_named() -> None:
    """All of them, sorted."""
    trials = loops([4.0], group="b", emulated=True) + loops([4.0], group="a", emulated=True)
    (found,) = findings(result([*trials, *loops([4.0], group="c")], repeats=6))
    assert found.code == "emulated"
    assert "a, b:" in found.evidence


def test_what_failed_has_no_part() -> None:
    """Only trials that are done were measured."""
    assert codes(loop("cold", [None], cold=UNPROVED)) == []
