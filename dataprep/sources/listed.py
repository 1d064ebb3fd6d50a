"""PURE. What a listing says: paths and labels, before anything is looked for."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.0*)?")


@dataclass(frozen=True)
class Listed:
    """Rows in the order of the listing.

    Attributes:
        paths: as written, undone of any escaping.
        classes: a name for each row; empty where there is none.
        numbered: whether the names are whole numbers.
        values: float32 labels of shape (rows, k) where a row has several, else None.
        problems: row to the reason why its label is none.
    """

    paths: Sequence[str]
    classes: Sequence[str]
    numbered: bool
    values: NDArray[np.float32] | None = None
    problems: dict[int, str] = field(default_factory=dict)


def listed(paths: Sequence[str], labels: Sequence[str]) -> Listed:
    """Rows with one label each, which is a class name, or a number where all of them are."""
    known = {label: label.strip() for label in dict.fromkeys(labels)}
    labels = [known[label] for label in labels]  # one text for each class, however many rows
    problems = {row: "no label" for row, label in enumerate(labels) if not label}
    numbered = len(problems) < len(labels) and all(
        _WHOLE.fullmatch(label) for label in set(labels) if label
    )
    if not numbered:
        return Listed(paths, labels, False, None, problems)
    names = {label: _number(label) for label in set(labels) if label}
    return Listed(*_checked(paths, [names.get(label) for label in labels], problems))


def listed_values(paths: Sequence[str], rows: Sequence[Sequence[float]]) -> Listed:
    """Rows with one or several numbers each, of which the first is the class; NaN is none."""
    width = len(rows[0]) if rows else 1
    problems = {
        row: f"{len(values)} labels, where the first row has {width}"
        for row, values in enumerate(rows)
        if len(values) != width
    }
    classes: list[int | None] = []
    for row, values in enumerate(rows):
        if any(map(math.isnan, values)):
            problems.setdefault(row, "no label")
        first = values[0]
        whole = math.isfinite(first) and first == int(first)
        classes.append(int(first) if whole else None)
        if not whole:
            problems.setdefault(row, f"label {first:g} is no whole number")
    columns = np.zeros((len(rows), width), dtype=np.float32)
    if width > 1:
        for row, values in enumerate(rows):
            if len(values) == width:
                columns[row] = values
    paths, names, numbered, _, problems = _checked(paths, classes, problems)
    return Listed(paths, names, numbered, columns if width > 1 else None, problems)


def no_number(labels: Collection[str]) -> str | None:
    """A label that makes names of the others, which are whole numbers, if there is one."""
    odd = [label for label in labels if not _WHOLE.fullmatch(label)]
    return min(odd) if 0 < len(odd) < len(labels) else None


def are_contiguous(names: Iterable[str]) -> bool:
    """Whether numbers are 0 to K-1, so that each is its own label."""
    numbers = {int(name) for name in names}
    return not numbers or (min(numbers) == 0 and max(numbers) == len(numbers) - 1)


def _number(label: str) -> int:
    return int(label.partition(".")[0])


def _checked(
    paths: Sequence[str], numbers: Sequence[int | None], problems: dict[int, str]
) -> tuple[Sequence[str], list[str], bool, None, dict[int, str]]:
    for row, number in enumerate(numbers):
        if number is not None and number < 0:
            problems.setdefault(row, f"label {number} is no class: classes count from 0")
    names = ["" if row in problems else str(number) for row, number in enumerate(numbers)]
    return paths, names, True, None, problems
