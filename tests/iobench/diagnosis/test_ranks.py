"""Ranks that do not wait alike."""

from __future__ import annotations

from typing import Any

from iobench.diagnosis.ranks import by_rank, findings
from iobench.result import Finding
from iobench.summary import summarise
from iobench.trial import Trial
from tests.iobench.summary.made import loop, loops, result

EVEN: dict[str, Any] = {
    "devices": 2,
    "device": "2 x NVIDIA H100",
    "ranks_agree": True,
    "rank_wait_s": [0.010, 0.012],
    "rank_step_s": [0.100, 0.100],
    "rank_uneven_share": 0.01,
}
ONE_SLOW = {**EVEN, "rank_wait_s": [0.010, 0.052], "rank_uneven_share": 0.24}
IN_TURN = {**EVEN, "rank_wait_s": [0.030, 0.031], "rank_uneven_share": 0.24}


def found(*trials: Trial) -> list[Finding]:
    """Those that are about ranks."""
    return [one for one in findings(list(trials)) if one.code.startswith(("uneven", "ranks"))]


def test_even_ranks_are_no_finding() -> None:
    """Nor is a loop on one device, of this version or an older one."""
    assert found(*loop("warm", [4.0], **EVEN), *loop("cold", [4.0])) == []


def test_a_rank_that_waits_more_is_named() -> None:
    """With what it costs, and where to look."""
    (finding,) = found(*loop("warm", [4.0], group="mine", **ONE_SLOW))
    assert (finding.code, finding.severity) == ("uneven-ranks", "warning")
    assert finding.evidence == (
        "mine, warm: 24% of the time ranks wait for one whose batch comes later than theirs; "
        "rank 1 waits 52 ms of a step of 100 ms, rank 0 10 ms"
    )
    assert finding.advice.startswith("look at what that rank has beyond the others")


def test_ranks_that_take_turns_want_more_batches_ahead() -> None:
    """Where the means are alike, no rank is to blame."""
    (finding,) = found(*loop("warm", [4.0], **IN_TURN))
    assert "it is another rank from step to step" in finding.advice


def test_repeats_are_one_finding() -> None:
    """By their medians: one bad repeat of three is none."""
    bad, good = loop("warm", [4.0] * 3, **ONE_SLOW), loop("warm", [4.0] * 3, **EVEN)
    assert found(bad[0], good[1], good[2]) == []
    (finding,) = found(bad[0], bad[1], good[2])
    assert "rank 1 waits 52 ms" in finding.evidence


def test_parameters_that_differ_are_a_problem() -> None:
    """Whatever the figures are."""
    fine = loop("warm", [4.0, 4.0], **EVEN)
    apart = loop("warm", [4.0], **{**EVEN, "ranks_agree": False})
    (finding,) = found(*apart, fine[1])
    assert (finding.code, finding.severity) == ("ranks-differ", "problem")
    assert "in 1 of 2 trials" in finding.evidence


def test_medians_by_rank() -> None:
    """Over the repeats that have the metric."""
    trials = [*loop("warm", [4.0], **EVEN), *loop("warm", [4.0], **ONE_SLOW), *loop("warm", [4.0])]
    assert by_rank(trials, "rank_wait_s") == [0.010, 0.032]
    assert by_rank(trials, "rank_compute_s") == []


def test_the_verdict_speaks_of_all_devices() -> None:
    """And the summary keeps how many."""
    made = summarise(result(loops([4.0], [4.0], [4.0], **EVEN)))
    assert "of what its 2 devices can consume" in made["verdict"]
    assert made["training"][0]["devices"] == 2
    assert summarise(result(loops([4.0], [4.0], [4.0])))["training"][0]["devices"] is None
