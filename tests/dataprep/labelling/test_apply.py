"""Tests of dataprep.labelling.apply."""

from __future__ import annotations

import numpy as np

from dataprep.labelling.apply import with_ground_truth, with_map
from dataprep.sources import Listing, Problem

LISTING = Listing(
    names=["a/1.jpg", "a/2.jpg", "b/3.jpg", "b/notes.txt"],
    sizes=np.ones(4, np.int64),
    classes=["a", "a", "b", ""],
    problems={3: Problem("skipped", "clutter")},
)


def test_ground_truth_wins_over_folders() -> None:
    """Samples get the class of the file, by any of their names; disagreements are counted."""
    found, differ = with_ground_truth(LISTING, {"a/1.jpg": "x", "2.jpg": "a", "3": "y"}, "truth")
    assert found.classes == ["x", "a", "y", ""]
    assert found.problems == LISTING.problems
    assert differ == 2


def test_a_sample_that_the_ground_truth_lacks_fails() -> None:
    """It fails with the file's name, and others go on."""
    found, _ = with_ground_truth(LISTING, {"1": "x", "2": "x"}, "truth")
    assert found.classes == ["x", "x", "", ""]
    assert found.problems[2] == Problem("failed", "truth has no class for it")


def test_a_map_merges_and_leaves_out() -> None:
    """Classes are renamed; one that becomes empty is skipped, one that is not named stays."""
    assert with_map(LISTING, {"a": "b"}).classes == ["b", "b", "b", ""]
    found = with_map(LISTING, {"a": ""})
    assert found.classes == ["", "", "b", ""]
    assert [found.problems[row].status for row in (0, 1, 3)] == ["skipped"] * 3
    assert LISTING.classes == ["a", "a", "b", ""]
