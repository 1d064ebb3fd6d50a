"""Repeats of one point, brought together."""

from __future__ import annotations

import random

import pytest

from iobench.summary.points import by_point, cold_label, figure, in_pairs
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import COLD, WARM, loops, one


def test_repeats_of_a_point_are_one_entry() -> None:
    """However they are interleaved, in the order of the first of each."""
    trials = [one("loader", {"n": n}, repeat=r, samples_per_s=n) for r in range(3) for n in (2, 1)]
    found = by_point(trials, "loader")
    assert [params for params, _ in found] == [{"n": 2}, {"n": 1}]
    assert [[trial.repeat for trial in members] for _, members in found] == [[0, 1, 2]] * 2
    random.Random(1).shuffle(trials)
    shuffled = {params["n"]: len(members) for params, members in by_point(trials, "loader")}
    assert shuffled == {1: 3, 2: 3}


def test_only_what_is_done_counts() -> None:
    """Failed and skipped trials and those of other kinds have no figure."""
    trials = [*loops([4.0, None]), one("loader", {"n": 1})]
    ((_, members),) = by_point(trials, "train")
    assert len(members) == 1
    assert by_point(trials, "disk") == []


def test_the_order_of_keys_does_not_part_them() -> None:
    """Params are equal as mappings, also once they were saved and read."""
    trials = [one("loader", {"a": 1, "b": [2]}), one("loader", {"b": [2], "a": 1}, repeat=1)]
    assert len(by_point(trials, "loader")) == 1


def test_a_figure_leaves_out_repeats_without_it() -> None:
    """A quantile that only some repeats had enough samples for is over those."""
    trials = [one("disk", {}, p99=1.0), one("disk", {}), one("disk", {}, p99=None)]
    assert figure(trials, "p99") == {
        "median": 1.0,
        "low": 1.0,
        "high": 1.0,
        "coverage": 0.0,
        "repeats": 1,
    }
    assert figure(trials, "p50") is None
    assert figure([one("disk", {}, errors=0)], "errors") is not None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([COLD, COLD], "cold"),
        ([COLD, WARM], "warm"),
        ([COLD, None], "cold"),
        ([None], ""),
        ([], ""),
        ([Cold("direct", "direct")], "direct"),
    ],
)
def test_a_label_is_what_all_repeats_are(labels: list[Cold | None], expected: str) -> None:
    """Cold only if each was proved so."""
    trials = [Trial("i", "disk", {}, n, "done", {}, cold) for n, cold in enumerate(labels)]
    assert cold_label(trials) == expected


def test_pairs_are_of_one_round() -> None:
    """Repeats that only one has, or in which one has no such figure, are no pair."""
    first = [one("loader", {"n": 1}, repeat=r, x=10.0 + r) for r in (0, 1, 2)]
    second = [one("loader", {"n": 2}, repeat=r, x=20.0 + r) for r in (3, 2)]
    second.append(one("loader", {"n": 2}, repeat=0))
    assert in_pairs(first, second, "x") == [(12.0, 22.0)]
