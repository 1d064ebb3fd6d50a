"""The classes of rows that have numbers, names or both, and files that name classes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import (
    ConfigError,
    DatasetError,
    ObjectNotFound,
    SourceError,
    SourceNotFound,
)
from dataprep.labels import Label, LabelSpace
from dataprep.labels.class_files import class_list, numbered_classes
from dataprep.names import by_bytes
from dataprep.sources.files import split_uri
from dataprep.stores import StoreOptions, open_store

_HEADER_VALUES, _BOX_VALUES = 2, 5  # the least that im2rec's lists for detection have


class Classes(NamedTuple):
    """The class of each row, empty where it has none; the numbering; notes for the user."""

    names: Sequence[str]
    space: LabelSpace | None = None
    notes: tuple[str, ...] = ()


def read_class_names(uri: str, options: StoreOptions | None = None) -> LabelSpace:
    """Read a file that names classes in the order of their numbers, or a ``labels.json``.

    ``dataprep.labels.class_files.class_list`` describes its form.

    Raises:
        SourceNotFound: there is no such file.
        SourceError: the file cannot be read, or has a class twice.
    """
    folder, key = split_uri(uri)
    try:
        data = open_store(folder, options).get(key)
    except ObjectNotFound:
        raise SourceNotFound(f"no file {uri!r} of class names (class_names)") from None
    try:
        return class_list(data, uri)
    except (ConfigError, DatasetError) as error:
        raise SourceError(str(error)) from None


def named_classes(names: Sequence[str], title: str, noun: str) -> LabelSpace:
    """The label space of classes whose names are in the order of their numbers.

    ``numbered_classes`` describes the parameters.

    Raises:
        SourceError: a name is empty, or appears twice.
    """
    try:
        return numbered_classes(names, title, noun)
    except ConfigError as error:
        raise SourceError(str(error)) from None


def refuse_detection(rows: Sequence[Sequence[float]], title: str) -> None:
    """Refuse labels that are those of im2rec for detection: header widths, then boxes.

    Each row has the width A of its header, the width B of a box, more values of the header up to
    A, then boxes of B values: a class and four sides. Taken for classes, the first value, A, would
    be the class of every image.

    Args:
        rows: all labels of each row; empty where a row has none.
        title: the file, for the error.

    Raises:
        SourceError: every row is of this form, and all have the same widths or sound boxes.
    """
    labelled = [[float(value) for value in row] for row in rows if row]
    if not labelled or not all(map(_has_header, labelled)):
        return
    with_boxes = [row for row in labelled if len(row) >= row[0] + row[1]]
    have_same_widths = len(labelled) > 1 and len({(row[0], row[1]) for row in labelled}) == 1
    if not have_same_widths and not (with_boxes and all(map(_has_sound_boxes, labelled))):
        return
    header, box, *_ = labelled[0]
    raise SourceError(
        f"{title} is im2rec's list for detection, not for classes: rows have a header of "
        f"{header:g} values, then boxes of {box:g} values each. Give a list of index, class and "
        "path, or a CSV file of paths and classes; boxes are read from another file (--boxes)"
    )


def _has_header(row: Sequence[float]) -> bool:
    """Whether labels begin with two widths, that of a header and of a box, and have that length."""
    if len(row) < _HEADER_VALUES or not (row[0].is_integer() and row[1].is_integer()):
        return False
    header, box = int(row[0]), int(row[1])
    if header < _HEADER_VALUES or box < _BOX_VALUES or len(row) < header:
        return False
    return (len(row) - header) % box == 0


def _has_sound_boxes(row: Sequence[float]) -> bool:
    """Whether all boxes of a row with a header have a class and sides in their order."""
    header, box = int(row[0]), int(row[1])
    for start in range(header, len(row), box):
        group, left, top, right, bottom = row[start : start + _BOX_VALUES]
        if not (group.is_integer() and left <= right and top <= bottom):
            return False
    return True


def first_labels(
    rows: Sequence[Sequence[float]], problems: dict[int, str]
) -> tuple[dict[int, int], NDArray[np.float32] | None]:
    """The class number of each row that has labels, and all labels where rows have several.

    The class is the first label. A label that is no whole number, and a row of another number of
    labels than most, join ``problems``.
    """
    widths = Counter(len(labels) for labels in rows if labels)
    width = max(widths, key=widths.__getitem__, default=0)
    numbers: dict[int, int] = {}
    values = np.zeros((len(rows), width), dtype=np.float32)
    for row, labels in enumerate(rows):
        if row in problems or not labels:
            continue
        if len(labels) != width:
            problems[row] = f"{len(labels)} labels, where most have {width}"
        elif any(map(math.isnan, labels)):
            problems[row] = "no label"
        elif not float(labels[0]).is_integer():
            problems[row] = f"label {labels[0]:g} is no whole number"
        else:
            numbers[row] = int(labels[0])
            values[row] = labels
    return numbers, values if width > 1 else None


def by_name(
    texts: Sequence[str], given: LabelSpace | None, problems: dict[int, str], title: str
) -> Classes:
    """Classes that are names; a row without one joins ``problems``.

    ``given`` are all classes, if a file names them; ``title`` is the source in its error.

    Raises:
        SourceError: a class is not among those that are given.
    """
    used = {*texts} - {""}
    problems.update((row, "no label") for row, text in enumerate(texts) if not text)
    if given:
        strangers = by_bytes(used - given.index.keys())
        if strangers:
            raise SourceError(
                f"{title} has {len(strangers)} classes that class_names does not name, such as "
                f"{strangers[0]!r}"
            )
        return Classes(texts, given)
    return Classes(texts, None)


def by_number(
    numbers: Mapping[int, int],
    count: int,
    given: LabelSpace | None,
    problems: dict[int, str],
    section: str,
    *,
    keep: bool = False,
    names_from: str = "class_names",
) -> Classes:
    """Classes that are numbers from 0. Rows without such a number join ``problems``.

    Where every row has -1 none has a class.

    Args:
        numbers: of each row that has one.
        count: of rows.
        given: names of the classes by number, which keeps each number its own label.
        problems: row to the reason why it has no class.
        section: the part of the config that has ``class_names``, for the note.
        keep: each number is its own label, since rows have several labels, of which it is the
            first.
        names_from: what gives the names, for the reasons.

    Raises:
        SourceError: with ``keep`` a number is too high for that.
    """
    if numbers and {*numbers.values()} == {-1}:
        return Classes([""] * count)  # as samples without a class are written
    names = {number: str(number) for number in numbers.values()}
    if given:
        names = {label.index: label.synset for label in given.labels}
    classes = [""] * count
    for row in range(count):
        if row in problems:
            continue
        number = numbers.get(row)
        if number is None:
            problems[row] = "no label"
        elif number < 0:
            problems[row] = f"label {number} is no class: classes count from 0"
        elif number not in names:
            problems[row] = f"label {number} has no name in {names_from}"
        else:
            classes[row] = names[number]
    used = {*classes} - {""}
    if given or not used:
        return Classes(classes, given)
    if keep:
        return Classes(classes, _own_numbers(used, section))
    return Classes(classes, LabelSpace.numbered(used), _gaps({*map(int, used)}, section))


def by_own_number(
    numbers: Mapping[int, int],
    count: int,
    given: LabelSpace | None,
    problems: dict[int, str],
    section: str,
    names_from: str = "class_names",
) -> Classes:
    """As ``by_number``, with each number as its own label unless it is too high for that."""
    classes = by_number(numbers, count, given, problems, section, names_from=names_from)
    used = {*classes.names} - {""}
    if given or not used:
        return classes
    try:
        return Classes(classes.names, LabelSpace.as_numbered(used))
    except ValueError:
        return classes


def _own_numbers(names: Collection[str], section: str) -> LabelSpace:
    """Each number as its own label. Raises SourceError."""
    try:
        return LabelSpace.as_numbered(names)
    except ValueError as error:
        raise SourceError(
            f"the first of several labels of a sample is its class, but {error}, and another label "
            f"would overwrite it: give the names of all classes with {section}.class_names, or one "
            "label a sample"
        ) from None


def by_name_or_number(
    synsets: Sequence[str],
    texts: Sequence[str],
    numbers: Mapping[int, int],
    problems: dict[int, str],
    *,
    keep: bool = False,
) -> Classes:
    """Classes of records: synsets that all have, or texts that fit the numbers, or numbers.

    Without any numbers all texts do. ``keep`` is that of ``by_number``.
    """
    sound = [row for row in range(len(synsets)) if row not in problems]
    names = synsets if all(synsets[row] for row in sound) else texts
    pairs = {(numbers.get(row, 0), names[row]) for row in sound}
    ordered = by_bytes({name for _, name in pairs})
    different = {number for number, _ in pairs}
    fit = len(numbers) == len(sound) and len(different) == len(pairs) == len(ordered)
    if not all(ordered) or not (names is synsets or fit or not numbers):
        return by_number(numbers, len(synsets), None, problems, "records", keep=keep)
    notes: tuple[str, ...] = ()
    if fit:
        ordered = [name for _, name in sorted(pairs)]
        notes = _gaps({*numbers.values()}, "records")
    text_of = {names[row]: texts[row] for row in reversed(sound)}
    labels = [Label(number, name, text_of[name]) for number, name in enumerate(ordered)]
    return Classes(names, LabelSpace(tuple(labels)), notes)


def _gaps(numbers: Collection[int], section: str) -> tuple[str, ...]:
    """A note if class numbers are not 0 to K-1, so that labels differ from them."""
    found = sorted(numbers)
    if found == list(range(len(found))):
        return ()
    return (
        f"the labels {found[0]} to {found[-1]} are not 0 to {len(found) - 1} without a gap: "
        "unless this output numbers them already they become that, in their order, as labels.json "
        f"shows; {section}.class_names keeps numbers as they are",
    )
