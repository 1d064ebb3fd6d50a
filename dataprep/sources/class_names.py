"""Classes that are numbers, and files that name them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataprep.errors import DatasetError, ObjectNotFound, SourceError, SourceNotFound
from dataprep.labels import Label, LabelSpace, is_synset
from dataprep.sources.files import split_uri
from dataprep.stores import StoreOptions, open_store


class Classes(NamedTuple):
    """The class of each row, empty where it has none; the numbering; notes for the user."""

    names: Sequence[str]
    space: LabelSpace | None = None
    notes: tuple[str, ...] = ()


def read_class_names(uri: str, options: StoreOptions | None = None) -> LabelSpace:
    """The classes that a file names: line i (from 0) the class i, or a ``labels.json``.

    A line is the name; where it begins with a WordNet id, the rest of it is the text.

    Raises:
        SourceNotFound: there is no such file.
        SourceError: it names a class twice, or nothing.
    """
    folder, key = split_uri(uri)
    try:
        data = open_store(folder, options).get(key)
        if key.endswith(".json"):
            return LabelSpace.from_json(data)
        lines = [line.strip() for line in data.decode("utf-8-sig").rstrip().splitlines()]
    except ObjectNotFound:
        raise SourceNotFound(f"no file {uri!r} of class names (class_names)") from None
    except DatasetError as error:
        raise SourceError(f"{uri}: {error}") from None
    except UnicodeDecodeError:
        raise SourceError(f"{uri} is not UTF-8: save it as that") from None
    labels: dict[str, Label] = {}
    for number, line in enumerate(lines):
        synset, _, text = line.partition(" ")
        if not is_synset(synset):
            synset, text = line, line
        if not synset or synset in labels:
            problem = f"is that of line {labels[synset].index + 1} again" if synset else "is empty"
            raise SourceError(f"{uri}, line {number + 1}: the class {synset!r} {problem}")
        labels[synset] = Label(number, synset, text.strip())
    if not labels:
        raise SourceError(f"{uri} names no class: write one a line")
    return LabelSpace(tuple(labels.values()))


def first_labels(
    rows: Sequence[Sequence[float]], problems: dict[int, str]
) -> tuple[list[int | None], NDArray[np.float32] | None]:
    """The class number of each row, and all labels where rows have several.

    The class is the first label, None where a row has no label. A label that is no whole number,
    and a row of another number of labels than most, join ``problems``.
    """
    widths = Counter(len(labels) for labels in rows if labels)
    width = widths.most_common(1)[0][0] if widths else 0
    numbers: list[int | None] = [None] * len(rows)
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


def by_number(
    numbers: Sequence[int | None], given: LabelSpace | None, problems: dict[int, str], section: str
) -> Classes:
    """Classes that are numbers from 0. Rows without such a number join ``problems``.

    Args:
        numbers: of each row.
        given: names of the classes by number, which keeps each number its own label.
        problems: row to the reason why it has no class.
        section: the part of the config that has ``class_names``, for the note.
    """
    for row, number in enumerate(numbers):
        if row in problems:
            continue
        if number is None:
            problems[row] = "no label"
        elif number < 0:
            problems[row] = f"label {number} is no class: classes count from 0"
        elif given and number >= len(given.labels):
            problems[row] = f"label {number} has no name in class_names"
    known = {number for row, number in enumerate(numbers) if row not in problems}
    names = {number: str(number) for number in known}
    if given:
        names = {number: given.labels[number or 0].synset for number in known}
    classes = ["" if row in problems else names[number] for row, number in enumerate(numbers)]
    if given or not known:
        return Classes(classes, given)
    return Classes(classes, LabelSpace.numbered(names.values()), gaps(known, section))


def gaps(numbers: Collection[int | None], section: str) -> tuple[str, ...]:
    """A note if class numbers are not 0 to K-1, so that labels differ from them."""
    found = sorted(number for number in numbers if number is not None)
    if found == list(range(len(found))):
        return ()
    return (
        f"the labels {found[0]} to {found[-1]} are not 0 to {len(found) - 1} without a gap: "
        "unless this output numbers them already they become that, in their order, as labels.json "
        f"shows; {section}.class_names keeps numbers as they are",
    )
