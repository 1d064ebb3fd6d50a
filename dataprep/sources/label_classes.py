"""PURE. Find the class of each row from its label, which is a number, a name or both.

Listings, Parquet files, WebDataset tars and shards of records have labels. Here, a *row* is the
index of an entry in the columns of a source. If the label of a row is not a valid class, the row is
added to ``problems`` with the reason, and its class is empty.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import SourceError
from dataprep.labels import Label, LabelSpace
from dataprep.name_encoding import by_bytes
from dataprep.sources.protocol import Listing, Located, Problem, Problems

LabelType = TypeVar("LabelType")

MAX_CLASS_CHARACTERS = 1000
"""The maximum length of a class name.

A name can be a number. Python refuses to parse numbers of more than 4,300 digits.
"""

NO_LABEL = "no label"
"""The reason why a row without a label is not a sample."""

_MIN_HEADER_VALUES = 2  # the width of the header, and the width of a box
_MIN_BOX_VALUES = 5  # a class and four sides


class Classes(NamedTuple):
    """The classes of the rows of a source.

    Attributes:
        names: the class of each row; empty if it has none.
        space: the classes in the order of their labels; None to sort them by name.
        notes: messages for the user.
    """

    names: Sequence[str]
    space: LabelSpace | None = None
    notes: tuple[str, ...] = ()


@dataclass
class LabelledEntries(Generic[LabelType]):
    """The entries of a source with their labels, as columns in the source's own order.

    Attributes:
        names: the name of each entry.
        sizes: the size of each entry in bytes.
        containers: the container of each entry; empty for an entry that is itself a file.
        offsets: the first byte, or the row, of each entry within its container.
        labels: the label of each entry, as the source has it.
        problems: why entries are not samples, by their row.
    """

    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    containers: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    labels: list[LabelType] = field(default_factory=list)
    problems: Problems = field(default_factory=dict)

    def add(self, entry: Located, label: LabelType, problem: Problem | None) -> None:
        """Append an entry.

        Args:
            entry: the entry.
            label: its label.
            problem: why the entry is not a sample; None if no problem is known yet.
        """
        if problem is not None:
            self.problems[len(self.names)] = problem
        self.names.append(entry.name)
        self.sizes.append(entry.bytes)
        self.containers.append(entry.container)
        self.offsets.append(entry.offset)
        self.labels.append(label)

    def reasons(self) -> dict[int, str]:
        """Return the reason why each entry with a problem is not a sample, by its row."""
        return {row: problem.reason for row, problem in self.problems.items()}

    def fail(self, reasons: Mapping[int, str]) -> None:
        """Mark entries as failed, unless they have a problem already."""
        for row, reason in reasons.items():
            self.problems.setdefault(row, Problem("failed", reason))

    def listing(self, classes: Classes, **attributes: Any) -> Listing:
        """Return the listing of the entries, sorted by name.

        Args:
            classes: the classes of the entries.
            **attributes: further attributes of the listing. The notes of ``classes`` are not added
                to its notes.
        """
        return Listing.sorted(
            self.names,
            self.sizes,
            classes.names,
            self.problems,
            containers=self.containers,
            offsets=self.offsets,
            label_space=classes.space,
            **attributes,
        )


def refuse_detection(labels_by_row: Sequence[Sequence[float]], title: str) -> None:
    """Refuse labels in im2rec's format for object detection.

    Each row has a header of A values, which begins with A itself and with the width B of a box. The
    boxes follow. Each has B values: a class, four sides, and optional further values. If such rows
    were read as labels, the first value, A, would be the class of every image.

    Args:
        labels_by_row: all labels of each row; empty for a row without labels.
        title: the file, as the error calls it.

    Raises:
        SourceError: every row with labels has this format. In addition, either there are several
            rows with the same A and B, or there are boxes, all of which are valid.
    """
    labelled = [[float(value) for value in labels] for labels in labels_by_row if labels]
    if not labelled or not all(_has_header(labels) for labels in labelled):
        return
    # If all rows end after the header, there are no boxes that could be valid.
    have_boxes = any(len(labels) >= labels[0] + labels[1] for labels in labelled)
    are_boxes_valid = have_boxes and all(_has_valid_boxes(labels) for labels in labelled)
    widths = {(labels[0], labels[1]) for labels in labelled}
    have_same_widths = len(labelled) > 1 and len(widths) == 1
    if not have_same_widths and not are_boxes_valid:
        return
    header, box = labelled[0][:2]
    raise SourceError(
        f"{title} is im2rec's list for detection, not for classes: rows have a header of "
        f"{header:g} values, then boxes of {box:g} values each. Give a list of index, class and "
        "path, or a CSV file of paths and classes; boxes are read from another file (--boxes)"
    )


def _has_header(labels: Sequence[float]) -> bool:
    """Whether labels begin with a header that has the two widths, and whole boxes follow."""
    if len(labels) < _MIN_HEADER_VALUES:
        return False
    if not (labels[0].is_integer() and labels[1].is_integer()):
        return False
    header, box = int(labels[0]), int(labels[1])
    if header < _MIN_HEADER_VALUES or box < _MIN_BOX_VALUES or len(labels) < header:
        return False
    return (len(labels) - header) % box == 0


def _has_valid_boxes(labels: Sequence[float]) -> bool:
    """Whether all boxes of a row with a header have a class, and sides in the right order."""
    header, box = int(labels[0]), int(labels[1])
    for start in range(header, len(labels), box):
        class_number, left, top, right, bottom = labels[start : start + _MIN_BOX_VALUES]
        if not (class_number.is_integer() and left <= right and top <= bottom):
            return False
    return True


def class_numbers(
    labels_by_row: Sequence[Sequence[float]], problems: dict[int, str]
) -> tuple[dict[int, int], NDArray[np.float32] | None]:
    """Return the first label of each row as its class number, and all labels.

    A row with labels is added to ``problems`` if its first label is not a whole number, if a label
    is NaN, or if most rows have another number of labels.

    Args:
        labels_by_row: all labels of each row; empty for a row without labels.
        problems: why rows are not samples, by their row. Rows are added to it.

    Returns:
        The class number of each valid row. If rows have several labels, also all labels
        (rows x labels), which are 0 in rows that are not valid; else None.
    """
    row_counts = Counter(len(labels) for labels in labels_by_row if labels)
    width = max(row_counts, key=row_counts.__getitem__, default=0)
    numbers: dict[int, int] = {}
    values = np.zeros((len(labels_by_row), width), dtype=np.float32)
    for row, labels in enumerate(labels_by_row):
        if row in problems or not labels:
            continue
        if len(labels) != width:
            problems[row] = f"{len(labels)} labels, where most have {width}"
        elif any(math.isnan(label) for label in labels):
            problems[row] = NO_LABEL
        elif not float(labels[0]).is_integer():
            problems[row] = f"label {labels[0]:g} is no whole number"
        else:
            numbers[row] = int(labels[0])
            values[row] = labels
    return numbers, values if width > 1 else None


def classes_from_names(
    labels: Sequence[str], label_space: LabelSpace | None, problems: dict[int, str], title: str
) -> Classes:
    """Use labels as the names of classes.

    Args:
        labels: the label of each row; empty if it has none.
        label_space: all classes, if a file names them.
        problems: why rows are not samples, by their row. Every row without a label gets the reason
            ``NO_LABEL``, also if it has another reason already.
        title: the source, as the error calls it.

    Raises:
        SourceError: a class is not in the label space.
    """
    for row, label in enumerate(labels):
        if not label:
            problems[row] = NO_LABEL
    if label_space:
        used = {*labels} - {""}
        unnamed = by_bytes(used - label_space.index.keys())
        if unnamed:
            raise SourceError(
                f"{title} has {len(unnamed)} classes that class_names does not name, such as "
                f"{unnamed[0]!r}"
            )
    return Classes(labels, label_space)


def classes_from_numbers(
    numbers: Mapping[int, int],
    count: int,
    label_space: LabelSpace | None,
    problems: dict[int, str],
    section: str,
    *,
    keep_numbers: bool = False,
    names_from: str = "class_names",
) -> Classes:
    """Use labels as the numbers of classes, which count from 0.

    Rows without a valid number are added to ``problems``. If all numbers are -1, no row has a
    class, and no row is added.

    Labels are equal to the numbers if there is a ``label_space``, or with ``keep_numbers``.
    Otherwise the classes are numbered from 0 in the order of their numbers, with a note if this
    changes the numbers.

    Args:
        numbers: the number of each row that has one.
        count: the number of rows.
        label_space: the names of the classes by number, if a file or schema has them.
        problems: why rows are not samples, by their row.
        section: the section of the config with the key ``class_names``, for the note and the error.
        keep_numbers: whether labels must be equal to the numbers. This is needed if rows have
            several labels, the first of which is the number.
        names_from: the origin of the names, for the reasons.

    Raises:
        SourceError: with ``keep_numbers`` and without ``label_space``, a number is too high.
    """
    if numbers and {*numbers.values()} == {-1}:
        return Classes([""] * count)  # Records of samples without a class have the label -1.
    if label_space:
        names = {label.index: label.synset for label in label_space.labels}
    else:
        names = {number: str(number) for number in numbers.values()}
    classes = [""] * count
    for row in range(count):
        if row in problems:
            continue
        number = numbers.get(row)
        if number is None:
            problems[row] = NO_LABEL
        elif number < 0:
            problems[row] = f"label {number} is no class: classes count from 0"
        elif number not in names:
            problems[row] = f"label {number} has no name in {names_from}"
        else:
            classes[row] = names[number]
    used = {*classes} - {""}
    if label_space or not used:
        return Classes(classes, label_space)
    if keep_numbers:
        return Classes(classes, _labels_equal_to_numbers(used, section))
    return Classes(
        classes, LabelSpace.sorted_by_number(used), _note_of_gaps({*map(int, used)}, section)
    )


def classes_with_own_numbers(
    numbers: Mapping[int, int],
    count: int,
    label_space: LabelSpace | None,
    problems: dict[int, str],
    section: str,
    names_from: str = "class_names",
) -> Classes:
    """Do as ``classes_from_numbers``, with labels equal to the numbers if possible.

    If a number is too high for a label, the classes are numbered from 0 in the order of their
    numbers.
    """
    classes = classes_from_numbers(
        numbers, count, label_space, problems, section, names_from=names_from
    )
    used = {*classes.names} - {""}
    if label_space or not used:
        return classes
    try:
        return Classes(classes.names, LabelSpace.with_numbers_as_labels(used))
    except ValueError:
        return classes


def _labels_equal_to_numbers(names: Collection[str], section: str) -> LabelSpace:
    """Return the label space in which labels are equal to the class numbers.

    Args:
        names: the numbers of the classes, as texts.
        section: the section of the config with the key ``class_names``, for the error.

    Raises:
        SourceError: a number is too high for a label.
    """
    try:
        return LabelSpace.with_numbers_as_labels(names)
    except ValueError as error:
        raise SourceError(
            f"the first of several labels of a sample is its class, but {error}, and another label "
            f"would overwrite it: give the names of all classes with {section}.class_names, or one "
            "label per sample"
        ) from None


def classes_of_records(
    synsets: Sequence[str],
    texts: Sequence[str],
    numbers: Mapping[int, int],
    problems: dict[int, str],
    *,
    keep_numbers: bool = False,
) -> Classes:
    """Find the classes of records, which may have a synset, a text, a number, or several of these.

    If all records have a synset, the synsets are the classes. Otherwise the texts are the classes
    if all records have one, and if there are no numbers, or each text has one number and each
    number has one text. Otherwise the numbers are the classes.

    Synsets and texts are in the order of their numbers if all records have a number, and if each
    name has one number and each number has one name. Otherwise they are sorted by name.

    Args:
        synsets: the synset of each record; empty if it has none.
        texts: the text of each record; empty if it has none.
        numbers: the class number of each record that has one.
        problems: why records are not samples, by their row. If the numbers are the classes, records
            without a valid number are added.
        keep_numbers: as for ``classes_from_numbers``, if the numbers are the classes.

    Raises:
        SourceError: as ``classes_from_numbers``.
    """
    rows = [row for row in range(len(synsets)) if row not in problems]
    have_synsets = all(synsets[row] for row in rows)
    names = synsets if have_synsets else texts
    numbers_and_names = {(numbers.get(row, 0), names[row]) for row in rows}
    class_names = by_bytes({name for _, name in numbers_and_names})
    distinct_numbers = {number for number, _ in numbers_and_names}
    # Each name has one number, and each number has one name.
    is_one_to_one = len(distinct_numbers) == len(numbers_and_names) == len(class_names)
    do_numbers_order_names = is_one_to_one and len(numbers) == len(rows)
    are_names_usable = have_synsets or do_numbers_order_names or not numbers
    if not all(class_names) or not are_names_usable:
        return classes_from_numbers(
            numbers, len(synsets), None, problems, "records", keep_numbers=keep_numbers
        )
    notes: tuple[str, ...] = ()
    if do_numbers_order_names:
        class_names = [name for _, name in sorted(numbers_and_names)]
        notes = _note_of_gaps({*numbers.values()}, "records")
    text_by_name: dict[str, str] = {}
    for row in rows:
        text_by_name.setdefault(names[row], texts[row])
    labels = [Label(index, name, text_by_name[name]) for index, name in enumerate(class_names)]
    return Classes(names, LabelSpace(tuple(labels)), notes)


def _note_of_gaps(numbers: Collection[int], section: str) -> tuple[str, ...]:
    """One note if K class numbers are not 0 to K-1, because labels then differ from them."""
    ordered = sorted(numbers)
    if ordered == list(range(len(ordered))):
        return ()
    return (
        f"the labels {ordered[0]} to {ordered[-1]} are not 0 to {len(ordered) - 1} without a gap. "
        "Unless the output already has a labels.json with these classes, they are renumbered from "
        f"0 in their order, as labels.json then shows. Use {section}.class_names to keep the "
        "numbers",
    )
