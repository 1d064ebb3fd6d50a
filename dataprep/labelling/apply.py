"""PURE. Classes given to the entries of a listing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from dataprep.labelling.ground_truth import stem
from dataprep.labels import LabelSpace, are_whole
from dataprep.sources import Listing, Problem

IN_NO_CLASS = "its class is mapped to nothing"


def with_ground_truth(listing: Listing, truth: Mapping[str, str], name: str) -> tuple[Listing, int]:
    """The listing with the classes of ``truth``, and how many disagree with their folders.

    A sample is looked for by its whole name, its base name, and that without extension. One
    that is not found fails. Classes that are whole numbers are numbered by these.
    """
    classes, problems, differ = list(listing.classes), dict(listing.problems), 0
    for row, entry in enumerate(listing.names):
        if row in problems:
            continue
        found = _found(truth, entry)
        if found is None:
            problems[row] = Problem("failed", f"{name} has no class for it")
            classes[row] = ""
            continue
        differ += bool(classes[row]) and classes[row] != found
        classes[row] = found
    found_classes = _used(classes, problems)
    space = LabelSpace.numbered(found_classes) if are_whole(found_classes) else None
    return replace(listing, classes=classes, problems=problems, label_space=space), differ


def with_map(listing: Listing, mapped: Mapping[str, str]) -> Listing:
    """The listing with classes renamed; samples whose new class is empty are skipped.

    Where the source numbers its classes they stay in its order, a merged one in the place of
    the first; whole numbers go by themselves.
    """
    classes, problems = list(listing.classes), dict(listing.problems)
    for row, group in enumerate(classes):
        if row in problems or group not in mapped:
            continue
        classes[row] = mapped[group]
        if not classes[row]:
            problems[row] = Problem("skipped", IN_NO_CLASS)
    before, after = _used(listing.classes, listing.problems), _used(classes, problems)
    space = _renumbered(listing.label_space, mapped, before, after)
    return replace(listing, classes=classes, problems=problems, label_space=space)


def _used(classes: Sequence[str], problems: Mapping[int, Problem]) -> set[str]:
    return {group for row, group in enumerate(classes) if group and row not in problems}


def _renumbered(
    own: LabelSpace | None, mapped: Mapping[str, str], before: set[str], after: set[str]
) -> LabelSpace | None:
    """How classes are numbered once they are renamed; None where their names decide."""
    if own is None:
        # Folders whose names are numbers are sorted as texts, with a map as without one.
        return LabelSpace.numbered(after) if are_whole(after) and not are_whole(before) else None
    old = list(own.index)
    names = list(dict.fromkeys(filter(None, (mapped.get(name, name) for name in old))))
    by_number = not are_whole(old) or old == sorted(old, key=int)
    in_order = LabelSpace.numbered if by_number and are_whole(names) else LabelSpace.in_order
    return in_order(names).with_texts(own.texts)


def _found(truth: Mapping[str, str], name: str) -> str | None:
    for key in (name, PurePosixPath(name).name, stem(name)):
        if key in truth:
            return truth[key]
    return None
