"""PURE. Classes and names of samples that come out of records of anybody's making."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dataprep.labels import Label, LabelSpace
from dataprep.names import to_bytes
from dataprep.sources.listed import are_contiguous


@dataclass(frozen=True, slots=True)
class Scanned:
    """One record of a shard, or damage in it.

    ``number`` counts the records of the shard from 0, ``offset`` is where it begins, ``bytes``
    how many its image has, ``boxes`` how many bounding boxes. With a ``problem`` nothing else is
    known.
    """

    shard: str
    number: int
    offset: int
    bytes: int = 0
    labels: tuple[float, ...] = ()
    synset: str = ""
    text: str = ""
    filename: str = ""
    problem: str = ""
    boxes: int = 0


@dataclass
class Classes:
    """The class of each record, in their order; ``problems`` say why one has none."""

    names: list[str]
    space: LabelSpace | None
    values: NDArray[np.float32] | None
    problems: dict[int, str]
    notes: list[str] = field(default_factory=list)


def classes_of(
    records: Sequence[Scanned],
    label_offset: int | None,
    counts_from_background: bool,
    given: LabelSpace | None,
) -> Classes:
    """Classes by the records' synsets, or else texts, or else numbers.

    Args:
        records: all of them.
        label_offset: what was added to the 0-based label; None to tell by the numbers.
        counts_from_background: whether 0 is customarily no class in records of this layout.
        given: names of the classes by number, which then count for more than the records'.
    """
    problems = {row: record.problem for row, record in enumerate(records) if record.problem}
    numbers = [_class_number(row, record, problems) for row, record in enumerate(records)]
    notes: list[str] = []
    offset = label_offset
    if offset is None:
        offset = _offset(numbers, problems, counts_from_background, notes)
    numbers = [None if number is None else number - offset for number in numbers]
    sound = [row for row in range(len(records)) if row not in problems]
    labelled = bool(sound) and all(numbers[row] is not None for row in sound)
    names = None if given else _own_names(records, numbers, sound, labelled)
    space: LabelSpace | None
    if names is None:
        names, space = _by_number(numbers, problems, given, notes)
    else:
        space = _named_space(records, names, numbers, sound, labelled, notes)
    values = _values(records, offset, problems)
    names = ["" if row in problems else name for row, name in enumerate(names)]
    return Classes(names, space, values, problems, notes)


def sample_names(records: Sequence[Scanned], classes: Sequence[str]) -> list[str]:
    """``CLASS/FILE`` where every record tells a file name and these differ, else ``SHARD/NUMBER``.

    A file name that has folders is the name by itself. Damaged records are ``SHARD/NUMBER``.
    """
    numbered = [f"{record.shard}/{record.number:08d}" for record in records]
    sound = [row for row, record in enumerate(records) if not record.problem]
    if not all(records[row].filename for row in sound):
        return numbered
    names = list(numbered)
    for row in sound:
        filename, group = records[row].filename, classes[row]
        names[row] = filename if "/" in filename or not group else f"{group}/{filename}"
    return names if len(set(names)) == len(names) else numbered


def _class_number(row: int, record: Scanned, problems: dict[int, str]) -> int | None:
    if row in problems or not record.labels:
        return None
    first = record.labels[0]
    if math.isfinite(first) and first == int(first):
        return int(first)
    problems[row] = f"label {first:g} is no whole number"
    return None


def _offset(
    numbers: Sequence[int | None],
    problems: dict[int, str],
    counts_from_background: bool,
    notes: list[str],
) -> int:
    known = [n for row, n in enumerate(numbers) if n is not None and row not in problems]
    if not counts_from_background or not known or min(known) < 1:
        return 0
    notes.append(
        f"labels in the records are {min(known)} to {max(known)}: 0 is taken for the background, "
        "so that 1 is the first class; records.label_offset=0 says otherwise"
    )
    return 1


def _own_names(
    records: Sequence[Scanned],
    numbers: Sequence[int | None],
    sound: Sequence[int],
    labelled: bool,
) -> list[str] | None:
    """Names that all records tell: synsets, or texts of which each has one number or all none."""
    if all(records[row].synset for row in sound):
        return [record.synset for record in records]
    if not all(records[row].text for row in sound):
        return None
    pairs = {(numbers[row], records[row].text) for row in sound}
    unlabelled = all(number is None for number, _ in pairs)
    if unlabelled or (labelled and _one_to_one(pairs)):
        return [record.text for record in records]
    return None


def _one_to_one(pairs: set[tuple[int | None, str]]) -> bool:
    return len({n for n, _ in pairs}) == len(pairs) == len({name for _, name in pairs})


def _named_space(
    records: Sequence[Scanned],
    names: Sequence[str],
    numbers: Sequence[int | None],
    sound: Sequence[int],
    labelled: bool,
    notes: list[str],
) -> LabelSpace:
    texts: dict[str, str] = {}
    for row in sound:
        texts.setdefault(names[row], records[row].text)
    pairs = {(numbers[row], names[row]) for row in sound}
    if labelled and _one_to_one(pairs):
        ordered = [name for _, name in sorted(pairs, key=lambda pair: pair[0] or 0)]
        if not are_contiguous(str(number) for number, _ in pairs):
            notes.append(_renumbered(sorted(number or 0 for number, _ in pairs)))
    else:
        ordered = sorted(texts, key=to_bytes)
        if labelled:
            notes.append(
                "numbers and names of classes do not fit each other in the records: the names "
                "count, in their order"
            )
    return LabelSpace(tuple(Label(i, name, texts[name]) for i, name in enumerate(ordered)))


def _by_number(
    numbers: Sequence[int | None],
    problems: dict[int, str],
    given: LabelSpace | None,
    notes: list[str],
) -> tuple[list[str], LabelSpace | None]:
    for row, number in enumerate(numbers):
        if row not in problems:
            if number is None:
                problems[row] = "no label"
            elif number < 0:
                problems[row] = f"label {number} is no class: classes count from 0"
            elif given and number >= len(given.labels):
                problems[row] = f"label {number} has no name in class_names"
    if given:
        names = [
            "" if row in problems or number is None else given.labels[number].synset
            for row, number in enumerate(numbers)
        ]
        return names, given
    used = {str(number) for row, number in enumerate(numbers) if row not in problems}
    if used and not are_contiguous(used):
        notes.append(_renumbered(sorted(map(int, used))))
    return [str(number) for number in numbers], LabelSpace.numbered(used) if used else None


def _renumbered(numbers: Sequence[int]) -> str:
    return (
        f"the classes {numbers[0]} to {numbers[-1]} of the records are not 0 to "
        f"{len(numbers) - 1} without a gap: unless this output numbers them already they become "
        "that, in their order, as labels.json tells; records.class_names keeps numbers as they are"
    )


def _values(
    records: Sequence[Scanned], offset: int, problems: dict[int, str]
) -> NDArray[np.float32] | None:
    """All labels where records have several, the class first and counted from 0."""
    widths = Counter(
        len(record.labels)
        for row, record in enumerate(records)
        if row not in problems and record.labels
    )
    if not widths or max(widths) < 2:
        return None
    width = widths.most_common(1)[0][0]
    values = np.zeros((len(records), width), dtype=np.float32)
    for row, record in enumerate(records):
        if row in problems:
            continue
        if len(record.labels) != width:
            problems[row] = f"{len(record.labels)} labels, where most records have {width}"
            continue
        values[row] = record.labels
        values[row, 0] -= offset
    return values if width > 1 else None


def as_name(data: bytes) -> str:
    """Bytes of a record as a name; what is not UTF-8 is kept."""
    return os.fsdecode(data)
