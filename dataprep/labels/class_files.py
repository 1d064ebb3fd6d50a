"""PURE. Read small files about classes, recognised by their content: tables, JSON, ``meta.mat``.

A table has one or two columns, separated by tabs, else by commas or semicolons, else, where every
line begins with a synset, by the first space. The first line is a header where both cells are in
``HEADS``, or where a single cell is in ``HEADS_OF_ONE``. Empty lines are ignored, and comments:
lines that are ``#`` or begin with ``#`` and a space.

JSON is a list of classes, ``{"old": "new"}``, torchvision's ``{"cat": 0}``, Hugging Face's
``{"0": "cat"}``, Keras' ``{"0": ["n01440764", "tench"]}``, or a ``labels.json``.

``meta.mat`` of ILSVRC2012's devkit is a MATLAB file with one array of structs, ``synsets``. The
1,000 classes are those without children; the others are above them in WordNet.

The classes of validation images, the ground truth, come in three forms:

- Line i of the devkit's ``ILSVRC2012_validation_ground_truth.txt`` is the ILSVRC2012_ID of
  ``ILSVRC2012_val_%08d.JPEG``. These IDs are not in alphabetical order: ``meta.mat`` maps them to
  synsets. Line i of ``synset_labels.txt`` is the synset of that image.
- Kaggle's ``LOC_val_solution.csv`` has a row an image; its second column begins with the synset.
- A table of names and classes, or lines ``path label`` with a space between them, as Caffe has.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from dataprep.counted import counted
from dataprep.errors import ConfigError
from dataprep.labels.space import LabelSpace, is_synset

META = "meta.mat"
GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_KAGGLE = ("ImageId", "PredictionString")
_DAMAGED = (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError)
_NUMBER = re.compile("[0-9]{1,9}")
_FIGURE = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_EXPECTED = (
    "expected a sample and its class in each line, as in 1.jpg,cat or 1.jpg 3 "
    "(labels.ground_truth). A table of another form is read with --kind listing, "
    "listing.delimiter, listing.path and listing.label"
)
HEADS_OF_ONE = frozenset({"class", "label", "synset", "wnid"})
HEADS = HEADS_OF_ONE | {
    *("name", "file", "filename", "path", "image", "sample", "id", "index", "idx"),
    *("category", "prediction", "text", "words", "description", "old", "new", "from", "to"),
}
"""Words of a header, in any case of letters."""


class Row(NamedTuple):
    """One row: its file and place in that, for errors, and one to three cells.

    Three cells are number, class and text. Whole numbers of JSON and ``meta.mat`` are ``int``.
    """

    place: str
    cells: tuple[str | int, ...]


def read_rows(data: bytes, name: str, *, spaced: bool = False) -> list[Row]:
    """Read a file; errors call it ``name``.

    With ``spaced`` the last space of a line may separate two columns.

    Raises:
        ConfigError: the file is not UTF-8, or a line or entry has another form.
    """
    if data.startswith(b"MATLAB"):
        return _rows_of_matlab(data, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not text in UTF-8: save it as UTF-8") from None
    is_json = text.lstrip().startswith(("{", "["))
    return _rows_of_json(text, name) if is_json else _rows_of_lines(text, name, spaced)


def unpacked(data: bytes, wanted: str, name: str) -> bytes:
    """Return a file as it is; of the devkit's tarball the member with the base name ``wanted``.

    Raises:
        ConfigError: the tarball is damaged, or lacks the member.
    """
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            for member in archive:
                if member.isfile() and PurePosixPath(member.name).name == wanted:
                    return archive.extractfile(member).read()  # type: ignore[union-attr]  # a file
    except _DAMAGED as error:
        raise ConfigError(f"{name} cannot be unpacked: {error}") from None
    raise ConfigError(f"{name} is not the devkit: it has no {wanted}")


def has_ids(rows: Sequence[Row]) -> bool:
    """Whether a ground truth consists of ILSVRC2012_IDs, which need ``meta.mat``."""
    return bool(rows) and all(len(row.cells) == 1 and _are_numbers(row.cells) for row in rows)


def ground_truth(rows: Sequence[Row], name: str, meta: Sequence[Row]) -> dict[str, str]:
    """Return the class of each sample, by its name in a table or by its name without extension.

    Args:
        rows: the content of the file.
        name: the name of the file in errors.
        meta: the content of ``meta.mat``, or nothing.

    Raises:
        ConfigError: a row gives no class; the error names it.
    """
    if rows and rows[0].cells == _KAGGLE:
        of_kaggle = []
        for place, (image, prediction) in rows[1:]:
            synset = str(prediction).partition(" ")[0]
            of_kaggle.append(Row(place, (image, _require_synset(synset, place))))
        return two_columns(of_kaggle)
    if not rows or len(rows[0].cells) > 1:
        for place, row_cells in rows:
            if len(row_cells) != 2 or row_cells[1] == "":
                raise ConfigError(f"{place}: {_shown(row_cells)}: {_EXPECTED}")
        if not rows:
            raise ConfigError(f"{name} is empty: {_EXPECTED}")
        found = two_columns(rows)
        if all(map(_FIGURE.fullmatch, found.values())):
            # 3.0 is 3, as in a column of floats.
            found = {key: re.sub(r"\.0*\Z", "", value) for key, value in found.items()}
        return found
    known = {str(cells[0]): str(cells[1]) for _, cells in meta}
    classes = {}
    for number, (place, cells) in enumerate(rows, start=1):
        image = f"ILSVRC2012_val_{number:08d}"
        if not place.endswith(f" {number}"):
            raise ConfigError(f"{name}, line {number} is empty, but gives the class of {image}")
        value = str(cells[0])
        classes[image] = _require_synset(known.get(value, value), place)
    return classes


def _require_synset(value: str, place: str) -> str:
    if not is_synset(value):
        raise ConfigError(
            f"{place}: {value[:40]!r} is neither a synset nor an ID in meta.mat: {_EXPECTED}"
        )
    return value


def _shown(cells: Iterable[str | int]) -> str:
    """The cells of a row, for errors."""
    return repr(", ".join(map(str, cells))[:60])


def two_columns(rows: Sequence[Row]) -> dict[str, str]:
    """Return the first column to the second; of three cells class to text.

    Raises:
        ConfigError: a row has one cell, or a key has two values.
    """
    values: dict[str, str] = {}
    for place, cells in rows:
        if len(cells) == 1:
            raise ConfigError(f"{place}: {cells[0]!r} has no second column")
        key, value = map(str, cells[-2:])
        if values.setdefault(key, value) != value:
            raise ConfigError(f"{place}: {key!r} is {value!r} here and {values[key]!r} before")
    return values


def class_order(rows: Sequence[Row], name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the classes in the order of their labels, and the texts of some of them.

    Numbers beside the classes are their labels; without numbers the place in the file is.

    Raises:
        ConfigError: there is no class, one is repeated, or labels are not 0 to K-1, each once.
    """
    if not rows:
        raise ConfigError(f"{name} names no class")
    _refuse_blanks(rows)
    names, *others = zip_longest(*(row.cells for row in rows))
    labels: Iterable[str | int] = range(len(rows))
    if len(others) == 1 and _are_numbers(others[0]):
        is_json = str not in map(type, others[0])  # the label is the value
        if _are_numbers(names) and names != others[0] and not is_json:
            raise ConfigError(
                f"{name}: both columns are numbers, and either could be the labels: write the "
                "classes alone, one a line, in the order of their labels"
            )
        labels = others.pop()
    elif others and _are_numbers(names):
        labels, names = names, others.pop(0)
    if None in names:
        raise ConfigError(f"{name}: some lines have a number and a class, others one of them")
    order = dict(zip(map(int, labels), map(str, names), strict=True))
    count = len(rows)
    if missing := sorted(set(range(count)) - order.keys()):
        raise ConfigError(
            f"{name}: the labels of {counted(count, 'class')} must be 0 to {count - 1}, each once, "
            f"but {missing[0]} is missing; without numbers the order of the file counts"
        )
    repeated, times = Counter(order.values()).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{name} names the class {repeated!r} more than once")
    texts = {}
    for group, text in zip(names, *others[-1:], strict=True) if others else ():
        if text:
            texts[str(group)] = str(text)
    return tuple(order[label] for label in range(count)), texts


def _refuse_blanks(rows: Sequence[Row]) -> None:
    """Refuse lines of a class and its label with a blank between them, as in ``cat 0``.

    They would be classes called "cat 0". Each line of such a file has another number, from 0 or 1,
    before or behind another class, so that names such as "Boeing 747" stay names.
    """
    lines = [str(row.cells[0]).split() for row in rows if len(row.cells) == 1]
    if len(lines) < max(len(rows), 2) or any(len(words) < 2 for words in lines):
        return
    for at in (0, -1):
        labels = [words[at] for words in lines]
        classes = {" ".join(words[1:] if at == 0 else words[:-1]) for words in lines}
        if not _are_numbers(labels) or len(classes) < len(rows):
            continue
        numbers = sorted(map(int, labels))
        if numbers == list(range(numbers[0], numbers[0] + len(rows))) and numbers[0] in (0, 1):
            place, cells = rows[0]
            raise ConfigError(f"{place}: {_shown(cells)} has a blank between class and label")


def _are_numbers(column: Iterable[str | int]) -> bool:
    return all(_NUMBER.fullmatch(str(cell)) for cell in column)


def _rows_of_matlab(data: bytes, name: str) -> list[Row]:
    """Return the ILSVRC2012_ID, synset and words of each class."""
    from scipy.io import loadmat  # takes a third of a second

    try:
        content = loadmat(io.BytesIO(data), variable_names=["synsets"], squeeze_me=True)
        rows = []
        for one in np.atleast_1d(content["synsets"]):
            if not one["num_children"]:
                cells = (int(one["ILSVRC2012_ID"]), str(one["WNID"]), str(one["words"]))
                rows.append(Row(name, cells))
    except Exception as error:  # noqa: BLE001  SciPy raises many kinds for damaged files
        raise ConfigError(f"{name} is not the devkit's meta.mat: {error}") from None
    return rows


def _rows_of_json(text: str, name: str) -> list[Row]:
    try:
        content = json.loads(text)
        if isinstance(content, dict) and {"schema", "classes"} <= content.keys():
            labels = LabelSpace.from_json(text.encode()).labels
            return [Row(name, (one.index, one.synset, one.text)) for one in labels]
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not JSON of classes: {error}") from None
    entries = content.items() if isinstance(content, dict) else zip(content)
    rows = []
    for number, (*keys, value) in enumerate(entries, start=1):
        place = f"{name}, entry {number}"
        cells = (*keys, *value) if isinstance(value, list) else (*keys, value)
        is_numbered = len(cells) == 3 and _are_numbers(cells[:1])
        if not ({*map(type, cells)} <= {str, int} and (is_numbered or len(cells) in (1, 2))):
            raise ConfigError(f"{place}: {json.dumps(cells)[:60]} is no class and its text")
        rows.append(Row(place, cells))
    return rows


def _rows_of_lines(text: str, name: str, spaced: bool) -> list[Row]:
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not f"{line.rstrip()} ".startswith("# "):
            lines.append((f"{name}, line {number}", line))
    if all(is_synset(line.partition(" ")[0]) for _, line in lines):
        # Texts hold commas, as in "n01440764 tench, Tinca tinca".
        lines = [(place, line.replace(" ", "\t", 1)) for place, line in lines]
    delimiter = _delimiter([line for _, line in lines], spaced)
    rows: list[Row] = []
    for place, line in lines:
        try:
            found = _split(line, delimiter)
        except csv.Error as error:
            raise ConfigError(f"{place}: {error}: {_shown([line])}") from None
        cells = tuple(cell.strip() for cell in found)
        while len(cells) > 2 and not cells[-1]:
            cells = cells[:-1]
        if len(cells) > 2:
            of_samples = (
                ": remove the others, or read the table with --kind listing, where listing.format "
                "is csv or tsv, listing.path and listing.label are columns by name or number, "
                "listing.header is false if there is none, and listing.root is the folder of the "
                "images"
            )
            raise ConfigError(
                f"{place} has {len(cells)} columns, expected two: {_shown(cells)}"
                + (of_samples if spaced else "")
            )
        if not cells[0]:
            raise ConfigError(f"{place}: the first column is empty: {_shown(cells)}")
        rows.append(Row(place, cells))
    if not rows:
        return rows
    heads = HEADS_OF_ONE if len(rows[0].cells) == 1 else HEADS
    is_header = heads.issuperset(str(cell).lower() for cell in rows[0].cells)
    return rows[1:] if is_header else rows


def _delimiter(lines: Sequence[str], spaced: bool) -> str:
    """What separates the columns of these lines: a tab, a comma, a semicolon or a space."""
    if any("\t" in line for line in lines):
        return "\t"
    if all("," in line for line in lines):
        return ","
    if all(";" in line for line in lines):
        return ";"
    if spaced and all(" " in line.strip() for line in lines):
        return " "
    return ","


def _split(line: str, delimiter: str) -> list[str]:
    """The cells of a line. Raises csv.Error."""
    if delimiter == "\t":
        return line.split("\t")
    if delimiter != " ":
        return next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True))
    path, label = line.rsplit(maxsplit=1)
    *_, last = path.split()
    # A path may have spaces, but numbers before the last one are further labels.
    return line.split() if path != last and _FIGURE.fullmatch(last) else [path, label]
