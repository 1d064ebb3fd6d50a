"""What a diagnosis knows of one loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.diagnosis.loop import Loop, loops
from iobench.diagnosis.rule import Share
from tests.iobench.diagnosis.made_loops import GPU, run, stalled


def climbed(rungs: dict[str, str | None], path: list[str], **rung: Any) -> Loop:
    """A loop with a ladder as the summary keeps it: rungs by name, each with the one above."""
    share = {"median": 0.2, "low": 0.1, "high": 0.3, "coverage": 0.97, "repeats": 6}
    stored = [
        {"rung": name, "above": above, "part": share, "tells": True, **rung}
        | {"share": {**share, **rung.get("share", {})} if above else None}
        for name, above in rungs.items()
    ]
    made = run(stalled(preparation=0.5))
    ladder = [{"group": "other", "rungs": []}, {"group": "g", "rungs": stored, "path": path}]
    (loop,) = loops(made, {**made.summary, "ladder": ladder})
    return loop


def test_rungs_are_those_on_the_way_to_the_farthest() -> None:
    """The store replaces the local read, which is then no part of the loop's time."""
    rungs = {"synthetic": None, "decode": "augment", "warm": "decode", "store": "decode"}
    loop = climbed(rungs, ["synthetic", "copy", "collate", "augment", "decode", "store"])
    assert set(loop.rungs) == {"decode", "store"}
    assert loop.rungs["store"] == Share(0.2, 0.1, 0.3, 6)


def test_a_rung_with_others_missing_above_it_is_not_one_part() -> None:
    """As in the form of three rungs: warm there is all of preparing, cold is what it is."""
    rungs = {"synthetic": None, "warm": "synthetic", "cold": "warm"}
    assert set(climbed(rungs, list(rungs)).rungs) == {"cold"}
    rungs = {"synthetic": None, "copy": "synthetic", "decode": "copy"}
    assert set(climbed(rungs, list(rungs)).rungs) == {"copy"}


@pytest.mark.parametrize(("tells", "repeats", "told"), [(False, 6, False), (False, 1, True)])
def test_what_cannot_be_told_is_measured_and_not_known(
    tells: bool, repeats: int, told: bool
) -> None:
    """A single repeat has no interval to hold against it, as everywhere in a smoke run."""
    share = {"repeats": repeats}
    loop = climbed({"copy": "synthetic"}, ["copy"], tells=tells, share=share)
    assert set(loop.rungs) == {"copy"}
    assert (loop.rungs["copy"] is not None) is told


@pytest.mark.parametrize(
    ("metrics", "params", "on_gpu"),
    [
        (GPU, {}, True),
        ({}, {}, False),
        ({"device": "2 × AMD EPYC, 1 thread"}, {}, False),
        (GPU, {"device": "cpu"}, False),
        ({**GPU, "emulated": True}, {}, False),
        ({"device": None}, {"device": "gpu"}, False),
    ],
)
def test_a_real_gpu_is_told_from_all_else(
    metrics: dict[str, Any], params: dict[str, Any], on_gpu: bool
) -> None:
    """By what was asked for, else by what computed."""
    made = run(stalled(params=params, **metrics))
    (loop,) = loops(made, made.summary)
    assert loop.on_gpu is on_gpu


def test_summaries_of_other_versions_have_less() -> None:
    """No loop, no ladder, no split: nothing is known, and nothing raises."""
    made = run(stalled(fetch=0.5))
    assert loops(made, {}) == []
    assert loops(made, {"training": [], "ladder": ["?", {"rungs": ["?"]}]}) == []
    (loop,) = loops(replace(made, trials=()), {"training": [{"group": "g"}]})
    assert (loop.stall, loop.preparation, loop.reading, loop.cores_needed) == (None,) * 4
    assert (loop.workers, loop.name, loop.rungs) == (0, "g", {})
