"""The ladder of a loop, from known times."""

from __future__ import annotations

from typing import Any

import pytest

from iobench.ladder import RUNGS
from iobench.summary import summarise
from iobench.summary.ladder import NOT_ASKED, ladders, largest
from iobench.trial import Trial
from tests.iobench.summary.made import UNPROVED, loop, result

SECONDS = dict(zip(RUNGS, (1.0, 1.5, 2.5, 3.0, 7.0, 7.5, 10.0, 12.0), strict=True))


def climbed(*rungs: str, repeats: int = 6, **options: Any) -> list[Trial]:
    """Loops over 100 samples that take ``SECONDS``, their loader one of torch's."""
    made = [trial for rung in rungs for trial in loop(rung, [SECONDS[rung]] * repeats, **options)]
    return [
        Trial(
            *(trial.id, trial.kind, {**trial.params, "loader": "torch-map"}, trial.repeat),
            *(trial.status, trial.metrics, trial.cold, trial.reason),
        )
        for trial in made
    ]


def entry(trials: list[Trial]) -> dict[str, Any]:
    """The only one of these."""
    (found,) = ladders(trials)
    return found


def test_an_entry() -> None:
    """Rungs in order, seconds a sample, what is missing, and how cold."""
    found = entry(climbed("cold", "decode", "synthetic", "augment"))
    assert [rung["rung"] for rung in found["rungs"]] == ["synthetic", "augment", "decode", "cold"]
    decode = found["rungs"][2]
    assert decode["part"]["median"] == pytest.approx(0.04)
    assert decode["seconds_per_sample"]["median"] == pytest.approx(0.07)
    assert decode["samples_per_s"]["median"] == pytest.approx(100 / 7)
    assert decode["share"]["median"] == pytest.approx(0.4)
    assert (decode["above"], decode["tells"], decode["label"]) == ("augment", True, "")
    words = [rung["words"] for rung in found["rungs"]]
    assert words == [
        *("device-resident", "+ copy, collate, augment", "+ decode", "+ read, cold"),
    ]
    assert found["rungs"][1]["within"] == ["copy", "collate"]
    assert found["rungs"][3]["label"] == "cold"
    assert found["path"] == ["synthetic", "augment", "decode", "cold"]
    assert found["farthest"] == "cold"
    assert found["stall"]["median"] == pytest.approx(0.09)
    assert found["stall_share"]["median"] == pytest.approx(0.9)
    missing = ("copy", "collate", "warm", "store")
    assert found["not_measured"] == dict.fromkeys(missing, NOT_ASKED)


def test_other_loaders_have_three_rungs() -> None:
    """And say so; what failed says why."""
    trials = [*loop("synthetic", [1.0, 1.0]), *loop("warm", [None, None])]
    found = entry(trials)
    assert [rung["rung"] for rung in found["rungs"]] == ["synthetic"]
    assert found["not_measured"]["decode"] == "three rungs are what there is of loader raw"
    assert found["not_measured"]["warm"] == "failed: it fell over"
    assert found["not_measured"]["cold"] == NOT_ASKED
    assert found["stall"] is None


def test_a_loop_that_measured_nothing_has_none() -> None:
    """It is a matter of the table of trials."""
    assert ladders(loop("synthetic", [None])) == []


def test_a_rung_that_was_not_proved_cold_is_labelled_so() -> None:
    """Of one repeat, for all."""
    trials = [*climbed("synthetic"), *climbed("cold", repeats=1, cold=UNPROVED)]
    assert entry(trials)["rungs"][-1]["label"] == "warm"


def test_the_copy_says_whether_it_is_one() -> None:
    """Pinned or not; on a processor nothing is copied."""

    def words(device: str, *, pinned: bool) -> str:
        (trial,) = climbed("copy", repeats=1, device=device)
        told = Trial(
            *(trial.id, "train", {**trial.params, "pin_memory": pinned}, 0, "done", trial.metrics)
        )
        said: str = entry([told])["rungs"][0]["words"]
        return said

    assert words("NVIDIA H200", pinned=True) == "+ copy to the device (pinned)"
    assert words("NVIDIA H200", pinned=False) == "+ copy to the device (not pinned)"
    assert words("AMD EPYC, 1 thread", pinned=False) == "+ batch in host memory (CPU: no copy)"


def test_the_largest_rung_is_in_the_verdict() -> None:
    """Where the ladder has more than three, and can tell it."""
    trials = climbed("synthetic", "copy", "collate", "augment", "decode", "warm", "cold")
    summary = summarise(result(trials))
    assert summary["verdict"] == (
        "The training loop gets 10 % of what this device can consume; decoding costs 40 % of the "
        "time."
    )
    rung = largest(summary["ladder"][0])
    assert rung is not None
    assert rung["rung"] == "decode"


def test_three_rungs_leave_the_verdict_to_stalls() -> None:
    """As it was before there were more, and where one repeat tells nothing."""
    assert largest(entry(climbed("synthetic", "warm", "cold"))) is None
    once = climbed("synthetic", "decode", "warm", "cold", repeats=1)
    assert largest(entry(once)) is None
    said = summarise(result(once))["verdict"]
    assert "decoding costs" not in said


def test_a_rung_with_others_in_it_is_not_blamed_by_its_name() -> None:
    """What decoding and all before it cost together says nothing of decoding."""
    trials = climbed("synthetic", "decode", "warm", "cold")
    assert largest(entry(trials)) is None
    assert entry(trials)["rungs"][1]["words"] == "+ copy, collate, augment, decode"
    three = entry(climbed("synthetic", "warm"))
    assert three["rungs"][1]["words"] == "+ all preparing, read, page cache warm"


def test_what_lies_beside_the_way_is_not_blamed() -> None:
    """With the store at the end the local read is no part of the loop."""
    found = entry(climbed(*RUNGS))
    rung = largest(found)
    assert rung is not None
    assert rung["rung"] == "store"
    assert found["path"][-2:] == ["decode", "store"]
    said = summarise(result(climbed(*RUNGS)))["verdict"]
    assert said.endswith("; waiting for the object store costs 42 % of the time.")
