"""PURE. Read files about classes: tables, JSON, and ``meta.mat``.

``read_rows`` decides from the content of a file how the file is read.

A table has one or two columns. They are separated by tabs; in a table without tabs, by commas or
semicolons. If the first word of every line is a synset, the first space separates the columns.
Empty lines and comments are ignored. A comment is a line that is ``#`` or begins with ``# ``. The
first remaining line is a header if both of its cells are in ``HEADERS``, or if its only cell is in
``SINGLE_HEADERS``.

JSON can be a list of classes, a list of pairs ``["cat", 0]``, a mapping of old to new names
``{"old": "new"}``, torchvision's ``{"cat": 0}``, Hugging Face's ``{"0": "cat"}``, Keras'
``{"0": ["n01440764", "tench"]}``, or a ``labels.json``.

``meta.mat`` in the devkit of ILSVRC2012 is a MATLAB file with one array of structs, ``synsets``.
The synsets without children are the 1,000 classes. The other synsets are above them in WordNet.

A ground truth has the class of each sample. It is a table or JSON in one of four forms:

- ``ILSVRC2012_validation_ground_truth.txt`` of the devkit has one number in each line. Line i,
  from 1, is the ILSVRC2012_ID of the class of ``ILSVRC2012_val_%08d.JPEG``, with i in the name.
  ``meta.mat`` maps these IDs to synsets. The order of the IDs is not the order of the synsets.
- ``synset_labels.txt`` has the synset of the same image in line i.
- Kaggle's ``LOC_val_solution.csv`` has a row for each image. Its second column begins with the
  synset.
- A table has the name and the class of a sample in each row. A space may separate the columns, as
  in Caffe's lines ``path label``.

A file of the ``class_names`` options of a source is simpler: line i, from 0, is the name of class
i. ``read_class_list`` reads it.
"""

from __future__ import annotations

import csv
import io
import json
import posixpath
import re
import tarfile
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from dataprep.errors import ConfigError, DatasetError
from dataprep.labels.space import Label, LabelSpace, is_synset
from dataprep.labels.tar_files import files_in_tar
from dataprep.message_text import counted
from dataprep.name_encoding import is_encodable

# The names of files in the devkit of ILSVRC2012.
META = "meta.mat"
GROUND_TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_KAGGLE_HEADER = ("ImageId", "PredictionString")

_WHOLE_NUMBER = re.compile("[0-9]{1,9}")
"""A number that can be a label or an ID. More than nine digits are the name of a class."""

# A label, which may be written as a float.
_DECIMAL_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")
_TRUTH_FORM = (
    "expected a sample and its class in each line, as in 1.jpg,cat or 1.jpg 3 "
    "(labels.ground_truth). A table of another form is read with --kind listing, "
    "listing.delimiter, listing.path and listing.label"
)
SINGLE_HEADERS = frozenset({"class", "label", "synset", "wnid"})
"""The words that are the header of a table with one column, in upper or lower case.

Other words of ``HEADERS``, such as ``image``, could be the first class of the table.
"""

HEADERS = SINGLE_HEADERS | {
    "name",
    "file",
    "filename",
    "path",
    "image",
    "sample",
    "id",
    "index",
    "idx",
    "category",
    "prediction",
    "text",
    "words",
    "description",
    "old",
    "new",
    "from",
    "to",
}
"""The words in the header of a table with two columns, in upper or lower case."""


class Row(NamedTuple):
    """A line of a table, an entry of JSON, or a class in ``meta.mat``.

    Attributes:
        location: the file, and the line or entry if it is known, for errors.
        cells: one to three cells. Three cells are the number, the class and the text. Whole numbers
            in JSON and ``meta.mat`` are ``int``; all cells of a table are ``str``.
    """

    location: str
    cells: tuple[str | int, ...]


def read_rows(data: bytes, name: str, *, spaced: bool = False) -> list[Row]:
    """Read a table, JSON, or ``meta.mat``. The header of a table is left out, except Kaggle's.

    Args:
        data: the content of the file.
        name: the name of the file in errors.
        spaced: whether the last space of a line may separate two columns, as in the ground truth of
            Caffe. It does so only if no other delimiter fits.

    Raises:
        ConfigError: a table or JSON is not UTF-8, JSON or ``meta.mat`` is damaged, or a line or an
            entry does not have the expected form.
    """
    if data.startswith(b"MATLAB"):
        return _rows_of_matlab(data, name)
    text = _text_of(data, name)
    if text.lstrip().startswith(("{", "[")):
        return _rows_of_json(text, name)
    return _rows_of_lines(text, name, spaced)


def _text_of(data: bytes, name: str) -> str:
    """The text of a file, without a byte order mark. Raises ConfigError if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not text in UTF-8: save it as UTF-8") from None


def read_class_list(data: bytes, name: str) -> LabelSpace:
    """Read a file that names classes in the order of their numbers, or a ``labels.json``.

    Line i, from 0, is the name of class i. If the first word of a line is a WordNet ID, the ID is
    the name of the class and the rest of the line is its text.

    Args:
        data: the content of the file.
        name: the name of the file, also for errors. If it ends with ``.json``, the file is read as
            a ``labels.json``.

    Raises:
        ConfigError: the file is not UTF-8, has a class twice, or has an empty line before its end.
        DatasetError: the name ends with ``.json``, but the file is not a ``labels.json`` that this
            version can read.
    """
    if name.endswith(".json"):
        return LabelSpace.from_json(data, name)
    lines = [line.strip() for line in _text_of(data, name).rstrip().splitlines()]
    return classes_in_order(lines, name, "line")


def classes_in_order(names: Sequence[str], title: str, noun: str) -> LabelSpace:
    """Number classes in the given order, from 0.

    If the first word of a name is a WordNet ID, the ID is the name of the class and the rest is its
    text. Otherwise, the text of a class is its name.

    Args:
        names: the name of each class, or its WordNet ID and text.
        title: the file or column with the names, for errors.
        noun: the unit that has one name, such as ``line``. Errors give its number, from 1.

    Raises:
        ConfigError: a name is empty, is not valid Unicode, or appears twice.
    """
    label_by_class: dict[str, Label] = {}
    for index, name in enumerate(names):
        class_name, _, text = name.partition(" ")
        if not is_synset(class_name):
            class_name = text = name
        if not is_encodable(name):
            raise ConfigError(f"{title}, {noun} {index + 1}: {name!r} is not valid Unicode")
        if not class_name or class_name in label_by_class:
            raise ConfigError(
                f"{title}, {noun} {index + 1}: the class {class_name!r} is empty or repeats an "
                f"earlier {noun}"
            )
        label_by_class[class_name] = Label(index, class_name, text.strip())
    return LabelSpace(tuple(label_by_class.values()))


def unpack_devkit(data: bytes, member_name: str, name: str) -> bytes:
    """Return the content of a file, or of one member if the file is the devkit's tarball.

    Args:
        data: the content of the file. A file that is compressed with gzip is read as a tarball.
        member_name: the base name of the member; empty if the devkit has no such member, so that
            every tarball is refused.
        name: the name of the file in errors.

    Raises:
        ConfigError: the tarball is damaged, or lacks the member.
    """
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        for _, content in files_in_tar(data, lambda path: posixpath.basename(path) == member_name):
            return content
    except tarfile.TarError as error:
        raise ConfigError(f"{name} cannot be unpacked: {error}") from None
    raise ConfigError(f"{name} is not the devkit: it has no {member_name}")


def has_ilsvrc_ids(rows: Sequence[Row]) -> bool:
    """Whether each row of a ground truth is one whole number, which is an ILSVRC2012_ID.

    The result is False if there are no rows.
    """
    if not rows:
        return False
    ids = [_without_empty_end(row.cells) for row in rows]
    return all(len(cells) == 1 and _are_numbers(cells) for cells in ids)


def ground_truth(rows: Sequence[Row], name: str, meta: Sequence[Row]) -> dict[str, str]:
    """Return the class of each sample in a ground truth. The first row shows its form.

    Args:
        rows: the rows of the ground truth.
        name: the name of its file in errors.
        meta: the rows of ``meta.mat``; may be empty if the ground truth has no ILSVRC2012_IDs.

    Returns:
        The class of each sample, by the name of the sample. Names are as in the table. For the
        devkit, they are the names of the images without extension.

    Raises:
        ConfigError: there are no rows, a row does not have the expected form, a sample has two
            classes, or a class of the devkit or of Kaggle's file is not a synset.
    """
    if not rows:
        raise ConfigError(f"{name} is empty: {_TRUTH_FORM}")
    if rows[0].cells == _KAGGLE_HEADER:
        return _kaggle_truth(rows[1:])
    if len(_without_empty_end(rows[0].cells)) > 1:
        return _table_truth(rows)
    return _devkit_truth(rows, name, meta)


def _kaggle_truth(rows: Sequence[Row]) -> dict[str, str]:
    """The class of each sample in ``LOC_val_solution.csv``, without its header."""
    synset_rows = []
    for location, cells in rows:
        if len(cells) != 2:
            raise ConfigError(f"{location}: {_excerpt(cells)}: {_TRUTH_FORM}")
        image, prediction = cells
        synset = str(prediction).partition(" ")[0]
        synset_rows.append(Row(location, (image, _require_synset(synset, location))))
    return column_mapping(synset_rows)


def _table_truth(rows: Sequence[Row]) -> dict[str, str]:
    """The class of each sample in a table of names and classes."""
    for location, cells in rows:
        if len(cells) != 2 or cells[1] == "":
            raise ConfigError(f"{location}: {_excerpt(cells)}: {_TRUTH_FORM}")
    class_by_sample = column_mapping(rows)
    if all(_DECIMAL_NUMBER.fullmatch(label) for label in class_by_sample.values()):
        # Tables that were written from a column of floats have 3.0 for the label 3.
        return {sample: re.sub(r"\.0*\Z", "", label) for sample, label in class_by_sample.items()}
    return class_by_sample


def _devkit_truth(rows: Sequence[Row], name: str, meta: Sequence[Row]) -> dict[str, str]:
    """The class of each validation image, from rows with one ID or synset in order of the images.

    Args:
        rows: the rows of the ground truth. Row i, from 1, belongs to image i.
        name: the name of its file in errors.
        meta: the rows of ``meta.mat``; may be empty if all rows are synsets.

    Raises:
        ConfigError: a line is empty, a comment or a header, so that later rows would get the wrong
            image; or a row has several columns, or is neither a synset nor an ID in ``meta.mat``.
    """
    synset_by_id = {str(cells[0]): str(cells[1]) for _, cells in meta}
    class_by_image = {}
    for number, (location, cells) in enumerate(rows, start=1):
        image = f"ILSVRC2012_val_{number:08d}"
        # A location ends with the number of the line. Empty lines, comments and a header are not
        # rows. After one of them, the number of a row differs from the number of its line.
        if not location.endswith(f" {number}"):
            kinds = "empty, a comment or a header" if number == 1 else "empty or a comment"
            raise ConfigError(
                f"{name}, line {number} is {kinds}, but gives the class of {image}: write one "
                "class in each line, in the order of the images"
            )
        if len(_without_empty_end(cells)) > 1:
            raise ConfigError(
                f"{location} has {len(cells)} columns, expected one as in the lines before: "
                f"{_excerpt(cells)}"
            )
        value = str(cells[0])
        class_by_image[image] = _require_synset(synset_by_id.get(value, value), location)
    return class_by_image


def _without_empty_end(cells: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The cells without empty cells at the end, which spreadsheets write. The first cell stays."""
    while len(cells) > 1 and cells[-1] == "":
        cells = cells[:-1]
    return cells


def _require_synset(value: str, location: str) -> str:
    """Return ``value`` if it is a synset. Raises ConfigError if it is not."""
    if not is_synset(value):
        raise ConfigError(
            f"{location}: {value[:40]!r} is neither a synset nor an ID in meta.mat: {_TRUTH_FORM}"
        )
    return value


def _excerpt(cells: Iterable[str | int]) -> str:
    """The first 60 characters of a row, for errors."""
    return repr(", ".join(map(str, cells))[:60])


def column_mapping(rows: Sequence[Row]) -> dict[str, str]:
    """Return a mapping from the first column to the second column.

    A row with a number, a class and a text maps the class to the text. Numbers become texts.

    Raises:
        ConfigError: a row has only one cell, or a key has two different values.
    """
    values: dict[str, str] = {}
    for location, cells in rows:
        if len(cells) == 1:
            raise ConfigError(f"{location}: {cells[0]!r} has no second column")
        key, value = str(cells[-2]), str(cells[-1])
        first_value = values.setdefault(key, value)
        if first_value != value:
            raise ConfigError(f"{location}: {key!r} is {value!r} here and {first_value!r} before")
    return values


def class_order(rows: Sequence[Row], name: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the classes of a file in the order of their labels, and the texts of some classes.

    If the file has numbers beside the classes, these numbers are the labels. Otherwise, the order
    of the rows determines the labels.

    Args:
        rows: the rows of the file. A row is a class; a class and its label; a label and its class;
            a class and its text; or a label, a class and its text.
        name: the name of the file in errors.

    Returns:
        The classes, and the texts by the names of their classes.

    Raises:
        ConfigError: there is no class, a class is repeated, the labels of K classes are not 0 to
            K-1, only some rows have both a label and a class, it is unclear which column has the
            labels, or a blank separates class and label.
    """
    if not rows:
        raise ConfigError(f"{name} names no class")
    _refuse_blanks(rows)
    _refuse_partial_labels(rows, name)
    # Each column has a cell for each row; missing cells are None.
    first_column, *other_columns = zip_longest(*[row.cells for row in rows])
    names = first_column
    labels: Iterable[str | int] = range(len(rows))
    if len(other_columns) == 1 and _are_numbers(other_columns[0]):
        # The columns are class and label. JSON such as {"10": 0} is clear, although both are
        # numbers: the key is a text and the value is an int, so the value is the label.
        are_json_numbers = not any(isinstance(cell, str) for cell in other_columns[0])
        if _are_numbers(names) and names != other_columns[0] and not are_json_numbers:
            raise ConfigError(
                f"{name}: both columns are numbers, and either could be the labels: write the "
                "classes alone, one per line, in the order of their labels"
            )
        labels = other_columns.pop()
    elif other_columns and _are_numbers(first_column):
        # The columns are label and class, and perhaps a text.
        labels = first_column
        names = other_columns.pop(0)
    if None in names:
        raise _partial_labels_error(rows, name)
    class_by_label = {int(label): str(name) for label, name in zip(labels, names, strict=True)}
    count = len(rows)
    missing = sorted(set(range(count)) - class_by_label.keys())
    if missing:
        raise ConfigError(
            f"{name}: the labels of {counted(count, 'class')} must be 0 to {count - 1}, each once, "
            f"but {missing[0]} is missing; without numbers, the order of the file counts"
        )
    most_frequent, times = Counter(class_by_label.values()).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{name} names the class {most_frequent!r} more than once")
    order = tuple(class_by_label[label] for label in range(count))
    texts = _texts(names, other_columns[-1]) if other_columns else {}
    return order, texts


def _refuse_partial_labels(rows: Sequence[Row], name: str) -> None:
    """Refuse rows of which only some have both a label and a class, as in ``cat,1`` and ``dog``.

    Without this check, the labels would be read as the texts or as the names of classes.

    Raises:
        ConfigError: the rows are refused.
    """
    # Only a row with three cells, as in ``labels.json``, can have an empty class.
    pairs = [row.cells[:2] for row in rows if row.cells[1:] not in ((), ("",))]
    have_numbers = any(_are_numbers(column) for column in zip(*pairs, strict=True))
    # Rows with three cells begin with a label.
    have_labels_first = any(len(row.cells) > 2 for row in rows)
    if (have_numbers and len(pairs) < len(rows)) or (
        have_labels_first and not _are_numbers(row.cells[0] for row in rows)
    ):
        raise _partial_labels_error(rows, name)


def _partial_labels_error(rows: Sequence[Row], name: str) -> ConfigError:
    """The error for rows of which only some have both a label and a class."""
    # Only the location of a line of a table has the word "line".
    is_table = rows[0].location.removeprefix(name).startswith(", line ")
    unit, units = ("line", "lines") if is_table else ("entry", "entries")
    return ConfigError(
        f"{name}: some {units} have a number and a class, others one of them: write both in every "
        f"{unit}, or only the classes in the order of their labels; if the second column is a "
        "text, give each class a text"
    )


def _texts(names: Sequence[object], texts: Sequence[object]) -> dict[str, str]:
    """The texts of classes, by the names of the classes. Missing and empty texts are left out."""
    pairs = zip(names, texts, strict=True)
    return {str(name): str(text) for name, text in pairs if text}


def _refuse_blanks(rows: Sequence[Row]) -> None:
    """Refuse rows in which a blank separates class and label, as in ``cat 0`` or ``0 cat``.

    Without this check, there would be classes with the name "cat 0". Names such as "Boeing 747" are
    allowed. Therefore rows are refused only if all of these conditions hold:

    - There are at least two rows, and each row has a single cell.
    - The first words of all cells are numbers that count from 0 or 1 without gaps, in any order; or
      the last words are.
    - Without these numbers, the cells differ from each other.

    Raises:
        ConfigError: the rows are refused.
    """
    cells_in_words = [str(row.cells[0]).split() for row in rows if len(row.cells) == 1]
    if len(cells_in_words) < max(len(rows), 2) or any(len(words) < 2 for words in cells_in_words):
        return
    labels_first = [(words[0], words[1:]) for words in cells_in_words]
    labels_last = [(words[-1], words[:-1]) for words in cells_in_words]
    for pairs in (labels_first, labels_last):
        labels = [label for label, _ in pairs]
        classes = {" ".join(class_words) for _, class_words in pairs}
        if not _are_numbers(labels) or len(classes) < len(rows):
            continue
        numbers = sorted(int(label) for label in labels)
        first = numbers[0]
        if first in (0, 1) and numbers == list(range(first, first + len(rows))):
            location, cells = rows[0]
            raise ConfigError(f"{location}: {_excerpt(cells)} has a blank between class and label")


def _are_numbers(column: Iterable[str | int]) -> bool:
    """Whether all cells are whole numbers of at most nine digits."""
    return all(_WHOLE_NUMBER.fullmatch(str(cell)) for cell in column)


def _rows_of_matlab(data: bytes, name: str) -> list[Row]:
    """The ILSVRC2012_ID, the synset and the text of each class in ``meta.mat``.

    Raises:
        ConfigError: the file is damaged, or lacks these fields.
    """
    from scipy.io import loadmat  # imported here, because the import takes a third of a second

    try:
        content = loadmat(io.BytesIO(data), variable_names=["synsets"], squeeze_me=True)
        rows = []
        # ``squeeze_me`` turns an array of one struct into a scalar; ``atleast_1d`` undoes this.
        for struct in np.atleast_1d(content["synsets"]):
            if not struct["num_children"]:
                cells = (int(struct["ILSVRC2012_ID"]), str(struct["WNID"]), str(struct["words"]))
                rows.append(Row(name, cells))
    except Exception as error:  # noqa: BLE001  SciPy raises errors of many types for damaged files
        raise ConfigError(f"{name} is not the devkit's meta.mat: {error}") from None
    return rows


def _rows_of_json(text: str, name: str) -> list[Row]:
    """The rows of a list, of an object, or of a ``labels.json``.

    Raises:
        ConfigError: the text is not JSON, or an entry has another form than these three: a class
            alone; a pair; three values, which are a number, a class and a text.
    """
    try:
        content = json.loads(text)
        if isinstance(content, dict) and {"schema", "classes"} <= content.keys():
            labels = LabelSpace.from_json(text.encode(), name).labels
            return [Row(name, (label.index, label.synset, label.text)) for label in labels]
    except DatasetError as error:  # its message has the name of the file
        raise ConfigError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is not JSON of classes: {error}") from None
    entries: list[list[Any]] = []
    if isinstance(content, dict):
        for key, value in content.items():
            entries.append([key, *value] if isinstance(value, list) else [key, value])
    else:
        entries = [value if isinstance(value, list) else [value] for value in content]
    rows = []
    for number, cells in enumerate(entries, start=1):
        location = f"{name}, entry {number}"
        if not all(is_encodable(str(cell)) for cell in cells):
            raise ConfigError(f"{location}: {json.dumps(cells)[:60]} is not valid Unicode")
        # The types are compared, because ``isinstance`` accepts true and false as int.
        has_valid_types = all(type(cell) in (str, int) for cell in cells)
        has_valid_length = len(cells) in (1, 2) or (len(cells) == 3 and _are_numbers(cells[:1]))
        if not (has_valid_types and has_valid_length):
            raise ConfigError(f"{location}: {json.dumps(cells)[:60]} is not a class and its text")
        rows.append(Row(location, tuple(cells)))
    return rows


def _rows_of_lines(text: str, name: str, spaced: bool) -> list[Row]:
    """The rows of a table. A header is left out, except Kaggle's.

    Args:
        text: the content of the file.
        name: the name of the file in errors.
        spaced: whether the last space of a line may separate two columns. If it may, the file is a
            ground truth, and errors explain how tables with more columns are read.

    Raises:
        ConfigError: a line has more than two columns, an empty first column, or wrong quotes.
    """
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        is_comment = line.startswith("# ") or line.rstrip() == "#"
        if line.strip() and not is_comment:
            lines.append((f"{name}, line {number}", line))
    if all(is_synset(line.partition(" ")[0]) for _, line in lines):
        # Use a tab, because texts contain commas, as in "n01440764 tench, Tinca tinca".
        lines = [(location, line.replace(" ", "\t", 1)) for location, line in lines]
    delimiter = _delimiter([line for _, line in lines], spaced)
    rows: list[Row] = []
    for location, line in lines:
        try:
            cells = [cell.strip() for cell in _split(line, delimiter)]
        except csv.Error as error:
            raise ConfigError(f"{location}: {error}: {_excerpt([line])}") from None
        # Spreadsheets write delimiters for empty columns.
        while len(cells) > 2 and not cells[-1]:
            cells.pop()
        if len(cells) > 2:
            advice = (
                ": remove the others, or read the table with --kind listing, where listing.format "
                "is csv or tsv, listing.path and listing.label are columns by name or number, "
                "listing.header is false if there is none, and listing.root is the folder of the "
                "images"
            )
            raise ConfigError(
                f"{location} has {len(cells)} columns, expected two: {_excerpt(cells)}"
                + (advice if spaced else "")
            )
        if not cells[0]:
            raise ConfigError(f"{location}: the first column is empty: {_excerpt(cells)}")
        rows.append(Row(location, tuple(cells)))
    if not rows:
        return rows
    headers = SINGLE_HEADERS if len(rows[0].cells) == 1 else HEADERS
    is_header = all(str(cell).lower() in headers for cell in rows[0].cells)
    return rows[1:] if is_header else rows


def _delimiter(lines: Sequence[str], spaced: bool) -> str:
    """The delimiter of the columns: a tab, a comma, a semicolon or a space.

    A tab in any line decides. The other delimiters must be in every line. If none is, the delimiter
    is a comma, so that a line with a comma has two columns and a line without one has one column.

    Args:
        lines: the lines of the table.
        spaced: whether a space may be the delimiter.
    """
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
    """The cells of a line. Raises csv.Error if quotes in the line are wrong."""
    if delimiter == "\t":
        return line.split("\t")
    if delimiter != " ":
        return next(csv.reader([line], delimiter=delimiter, strict=True, skipinitialspace=True))
    path, label = line.rsplit(maxsplit=1)
    last_word = path.split()[-1]
    # A path may contain spaces. But if its last word is a number, the line has several labels. Then
    # all words are returned, so that the caller refuses the line.
    if path != last_word and _DECIMAL_NUMBER.fullmatch(last_word):
        return line.split()
    return [path, label]
