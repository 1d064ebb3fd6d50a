"""Tests of dataprep.labelling.apply."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataprep.labelling.apply import with_ground_truth, with_map
from dataprep.labels import Label, LabelSpace
from dataprep.sources import Listing, Problem

LISTING = Listing(
    names=["a/1.jpg", "a/2.jpg", "b/3.jpg", "b/notes.txt"],
    sizes=np.ones(4, np.int64),
    classes=["a", "a", "b", ""],
    problems={3: Problem("skipped", "clutter")},
)

NUMBERS = [str(number) for number in range(12)]


def listing_of(classes: list[str], space: LabelSpace | None = None) -> Listing:
    """One sample a class."""
    names = [f"{row:02}.jpg" for row in range(len(classes))]
    return Listing(names, np.ones(len(names), np.int64), classes, label_space=space)


def order_of(listing: Listing) -> list[str] | None:
    """The classes in the order of their labels; None where their names decide."""
    return list(listing.label_space.index) if listing.label_space else None


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


def test_ground_truth_of_numbers_is_numbered_by_them() -> None:
    """Class 10 comes after 9; names are left to themselves, whatever the source numbered."""
    flat = listing_of([""] * 12)
    truth = {f"{row:02}": name for row, name in enumerate(NUMBERS)}
    assert order_of(with_ground_truth(flat, truth, "truth")[0]) == NUMBERS
    named = listing_of(["b", "a"], LabelSpace.in_order("ba"))
    assert with_ground_truth(named, {"00": "x", "01": "1"}, "truth")[0].label_space is None


@given(order=st.permutations(NUMBERS) | st.permutations(["ant", "bee", "cat"]))
def test_a_map_of_strangers_changes_nothing(order: list[str]) -> None:
    """However a source numbers its classes, those that no map names keep their labels."""
    space = LabelSpace.in_order(order)
    assert with_map(listing_of(order, space), {"77": "78"}).label_space == space
    assert with_map(listing_of(order), {"77": "78"}).label_space is None


def test_numbers_stay_numbers_through_a_map() -> None:
    """Merged and swapped numbers are in their order, not in that of texts."""
    source = listing_of(NUMBERS, LabelSpace.numbered(NUMBERS))
    without_3 = [name for name in NUMBERS if name != "3"]
    assert order_of(with_map(source, {"3": "4"})) == without_3
    assert order_of(with_map(source, {"3": ""})) == without_3
    assert order_of(with_map(source, {"0": "5", "5": "0"})) == NUMBERS


def test_a_renamed_class_keeps_its_place() -> None:
    """In the order of the source, where the first of those merged stands, with its text."""
    space = LabelSpace(
        (Label(0, "zebra", "Equus"), Label(1, "ant", "Formica"), Label(2, "bee", ""))
    )
    found = with_map(listing_of(["ant", "bee", "zebra"], space), {"bee": "zebra", "ant": "wasp"})
    assert found.label_space is not None
    assert found.label_space.labels == (Label(0, "zebra", "Equus"), Label(1, "wasp", "wasp"))
    source = listing_of(NUMBERS, LabelSpace.numbered(NUMBERS))
    assert order_of(with_map(source, {"10": "cat"})) == [*NUMBERS[:10], "cat", "11"]


def test_folders_become_numbers_through_a_map() -> None:
    """Names that a map turns into numbers are numbered by them; folders' own stay texts."""
    source = listing_of([f"c{name}" for name in NUMBERS])
    assert order_of(with_map(source, {f"c{name}": name for name in NUMBERS})) == NUMBERS
    assert order_of(with_map(listing_of(NUMBERS), {"3": "4"})) is None
