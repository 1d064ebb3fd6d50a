"""PURE. Classes given to the entries of a listing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from dataprep.labelling.ground_truth import stem
from dataprep.sources import Listing, Problem

IN_NO_CLASS = "its class is mapped to nothing"


def with_ground_truth(listing: Listing, truth: Mapping[str, str], name: str) -> tuple[Listing, int]:
    """The listing with the classes of ``truth``, and how many disagree with their folders.

    A sample is looked for by its whole name, its base name, and that without extension. One
    that is not found fails.
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
    return replace(listing, classes=classes, problems=problems), differ


def with_map(listing: Listing, mapped: Mapping[str, str]) -> Listing:
    """The listing with classes renamed; samples whose new class is empty are skipped."""
    classes, problems = list(listing.classes), dict(listing.problems)
    for row, group in enumerate(classes):
        if row in problems or group not in mapped:
            continue
        classes[row] = mapped[group]
        if not classes[row]:
            problems[row] = Problem("skipped", IN_NO_CLASS)
    return replace(listing, classes=classes, problems=problems)


def _found(truth: Mapping[str, str], name: str) -> str | None:
    for key in (name, PurePosixPath(name).name, stem(name)):
        if key in truth:
            return truth[key]
    return None
