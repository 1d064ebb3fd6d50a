"""Read the table of a listing: a CSV, TSV, Parquet or ``.lst`` file of paths and labels.

Text tables follow RFC 4180: a field in double quotes may contain delimiters, line ends and doubled
quotes. Paths are bytes and need not be UTF-8; class names must be UTF-8. A ``.lst`` file has a line
``index TAB label[ TAB label...] TAB path`` for each image (MXNet, ``tools/im2rec.py``). If this
program wrote it, names are escaped as in ``dataprep.name_encoding``; im2rec escapes nothing.
"""

from __future__ import annotations

import csv
import io
import os
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dataprep.errors import SourceError
from dataprep.name_encoding import CODEC, by_bytes, escape, unescape
from dataprep.output.samples_table import readable
from dataprep.sources.file_names import begins_as_image
from dataprep.sources.options import ListingOptions

PATH_COLUMNS = ("path", "filename", "file", "image")
LABEL_COLUMNS = ("label", "class", "synset")

_FORMAT_BY_EXTENSION = {
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "lst": "lst",
    "tab": "tsv",
    "pq": "parquet",
}
_DELIMITERS = {"csv": ",", "tsv": "\t", "lst": "\t"}
_MAX_SHOWN_CHARACTERS = 80
_MAX_COLUMNS_SHOWN = 20
_MAX_LABEL_SHOWN = 40
_MIN_LST_COLUMNS = 3

_is_whole_number = re.compile(r"[+-]?(?:0|[1-9][0-9]*)(?:\.0*)?").fullmatch
_is_quoted = re.compile(r'".*"', re.DOTALL).fullmatch
# A backslash that is not part of an escape shows that names are not escaped.
_has_unescaped_backslash = re.compile(rb"(?:^|[^\\])(?:\\\\)*\\(?!\\|x[0-9a-f]{2})").search


class Table(NamedTuple):
    """The content of a listing.

    Attributes:
        paths: the path of each image.
        labels: the labels of each image as texts; a missing label is an empty text.
        are_numbers: whether labels must be numbers. This is so if rows may have several labels, or
            if all labels are whole numbers. A number with leading zeros, such as 007, is a name.
    """

    paths: list[str]
    labels: list[list[str]]
    are_numbers: bool


def parse(data: bytes, name: str, options: ListingOptions) -> Table:
    """Read a listing.

    Args:
        data: the content of the file.
        name: the name of the file. Its extension decides the format if the setting is ``auto``.
        options: the settings.

    Raises:
        SourceError: the file is not a table of a known format, lacks a column, or has a row that is
            malformed or has no path.
    """
    file_format: str | None = options.format
    if options.format == "auto":
        file_format = _FORMAT_BY_EXTENSION.get(name.rpartition(".")[2].lower())
    if file_format is None:
        first_line = data[:_MAX_SHOWN_CHARACTERS].decode(*CODEC).lstrip().partition("\n")[0]
        raise SourceError(
            f"{name}: .csv, .tsv, .parquet or .lst is expected; if the file is one of "
            "these under another name, say which with --set listing.format=csv. Its first line is "
            f"{escape(first_line.strip())!r}: lines of a path and a label with a space between "
            "them are read with --set listing.format=csv --set listing.delimiter=' ' --set "
            "listing.header=false"
        )
    rows: Iterable[Sequence[Any]]
    if file_format == "parquet":
        rows = _parquet_rows(data, name, options)
    elif file_format == "lst":
        rows = _lst_rows(data, name, options)
    else:
        rows = _csv_rows(data, name, file_format, options)
    is_escaped = options.escaped
    if is_escaped is None:
        is_escaped = file_format == "lst" and _has_unescaped_backslash(data) is None
    paths, labels = [], []
    # Millions of rows have few different labels. Rows with equal labels share one list.
    shared_labels: dict[tuple[str, ...], list[str]] = {}
    for number, (path, *values) in enumerate(rows, 1):
        text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        if not text:
            raise SourceError(
                f"{name}: the path of sample {number} is empty or no text: name the column of "
                "paths with --set listing.path=NAME"
            )
        paths.append(unescape(text) if is_escaped else text)
        row_labels = [_as_text(value, name) for value in values]
        labels.append(shared_labels.setdefault(tuple(row_labels), row_labels))
    texts = {text for row_labels in shared_labels.values() for text in row_labels if text}
    if file_format in ("csv", "tsv"):
        _refuse_quoted(texts, name)
    may_have_several = file_format == "lst" or bool(options.labels)
    are_numbers = may_have_several or all(map(_is_whole_number, texts))
    return Table(paths, labels, are_numbers)


def as_numbers(labels: Sequence[Sequence[str]], name: str) -> list[list[float]]:
    """Return labels as numbers; a missing label is NaN.

    Raises:
        SourceError: a label is not a number.
    """
    try:
        return [[float(text or "nan") for text in row] for row in labels]
    except ValueError as error:
        raise SourceError(
            f"{name}: {error}, but all labels must be numbers in a .lst and in listing.labels; "
            "name a single column of class names with listing.label"
        ) from None


def _refuse_quoted(texts: set[str], name: str) -> None:
    """Raise SourceError if a label is in quotes, which the parser has not removed."""
    quoted = by_bytes(filter(_is_quoted, texts))
    if quoted:
        raise SourceError(
            f"{name}: the label {escape(quoted[0])} contains its quotes, because a blank separates "
            "the quote from the delimiter: remove the blanks beside the delimiters"
        )


def _text_file(data: bytes, name: str) -> io.TextIOWrapper:
    """The content of a text file. Raises SourceError if it is in UTF-16."""
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise SourceError(f"{name} is in UTF-16: save it as UTF-8")
    return io.TextIOWrapper(io.BytesIO(data.removeprefix(BOM_UTF8)), *CODEC, newline="")


def _lst_rows(data: bytes, name: str, options: ListingOptions) -> Iterator[Sequence[str]]:
    """Yield the path and the labels of each row of a ``.lst`` file.

    Raises:
        SourceError: the file is in UTF-16, or a row is malformed or has too few columns.
    """
    file = _text_file(data, name)
    delimiter = options.delimiter or _DELIMITERS["lst"]
    reader = csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)
    try:
        for number, row in enumerate(filter(None, reader), 1):
            if len(row) < _MIN_LST_COLUMNS:
                raise SourceError(
                    f"{name}, row {number}: {len(row)} columns; a .lst has index, label and path, "
                    f"with tabs between them (im2rec.py --list writes one): {_shortened(row)}"
                )
            _, *labels, path = row
            yield [path, *labels]
    except csv.Error as error:
        raise SourceError(f"{name}, line {reader.line_num}: {error}") from None


def _csv_rows(
    data: bytes, name: str, file_format: str, options: ListingOptions
) -> Iterator[Sequence[str]]:
    """Yield the path and the labels of each row of a CSV or TSV file.

    Raises:
        SourceError: the file is malformed, is empty, or lacks a column.
    """
    file = _text_file(data, name)
    delimiter = options.delimiter or _usual_delimiter(data, file_format)
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    column_count, positions = 0, [0]
    try:
        for number, cells in enumerate(filter(None, reader), 1):
            if number == 1:
                # Keep two columns: a first row with a path and no label ends with a delimiter, too.
                first_row = _without_empty_end(cells, 2)
                column_count = len(first_row)
                column_names = [cell.strip() for cell in first_row]
                positions = _positions(column_names, name, options)
                if options.header:
                    continue
            row = _without_empty_end(cells, column_count)
            if len(row) != column_count:
                raise SourceError(
                    f"{name}, row {number}: {len(row)} columns, the first row has {column_count}; "
                    "a path with a delimiter or a line end in it must be in double quotes "
                    f"(listing.delimiter is {delimiter!r}): {_shortened(row)}"
                )
            yield [row[position] for position in positions]
    except csv.Error as error:
        raise SourceError(f"{name}, line {reader.line_num}: {error}") from None
    if not column_count:
        raise SourceError(f"{name} is empty: it needs a column of paths and one of labels")


def _usual_delimiter(data: bytes, file_format: str) -> str:
    """The default delimiter: a comma or a tab.

    It is a semicolon for a CSV file if the first line has a semicolon and no comma.
    """
    first_line = data.partition(b"\n")[0]
    if file_format == "csv" and b";" in first_line and b"," not in first_line:
        return ";"
    return _DELIMITERS[file_format]


def _without_empty_end(row: list[str], min_columns: int) -> list[str]:
    """A row without the empty cells at its end that exceed ``min_columns``.

    They come from delimiters at the end of the line.
    """
    while len(row) > min_columns and not row[-1].strip():
        row = row[:-1]
    return row


def _shortened(row: Sequence[str]) -> str:
    """The beginning of a row, for errors."""
    text = escape(", ".join(row))
    if len(text) > _MAX_SHOWN_CHARACTERS:
        text = f"{text[:_MAX_SHOWN_CHARACTERS]}..."
    return repr(text)


def _parquet_rows(data: bytes, name: str, options: ListingOptions) -> Sequence[Sequence[Any]]:
    """The path and the labels of each row of a Parquet file.

    Raises:
        SourceError: the file is damaged, lacks a column, or has images instead of paths.
    """
    try:
        file = pq.ParquetFile(readable(data))
        schema = file.schema_arrow
        columns = [schema.names[position] for position in _positions(schema.names, name, options)]
        path_column = columns[0]
        if pa.types.is_struct(schema.field(path_column).type):
            raise SourceError(_has_images(name, path_column))
        table = file.read(columns=columns)
        first_path = table[path_column][0].as_py() if len(table) else ""
        if isinstance(first_path, bytes) and begins_as_image(first_path):
            raise SourceError(_has_images(name, path_column))
        values = [table.column(column).to_pylist() for column in columns]
        return [*zip(*values, strict=True)]
    except SourceError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        raise SourceError(f"{name} cannot be read as Parquet: {error}") from None


def _has_images(name: str, column: str) -> str:
    """The error message for a table whose column of paths has images."""
    return (
        f"{name}: column {column!r} has images, not paths: read it with --kind parquet; if "
        "another column has the paths, name it with --set listing.path=NAME"
    )


def _positions(column_names: Sequence[str], name: str, options: ListingOptions) -> list[int]:
    """The positions of the column of paths and of the columns of labels.

    Args:
        column_names: the cells of the first row, or the columns of a Parquet file.
        name: the name of the file, for errors.
        options: the settings.

    Raises:
        SourceError: a column does not exist.
    """
    label_columns: Sequence[str | int | None] = options.labels or (options.label,)
    if options.header and len(column_names) == 1 and label_columns == (None,):
        label_columns = ()  # The table has only paths: the images have no classes.
    path = _position(options.path, PATH_COLUMNS, 0, column_names, name, options)
    labels = [
        _position(column, LABEL_COLUMNS, 1, column_names, name, options) for column in label_columns
    ]
    return [path, *labels]


def _position(
    column: str | int | None,
    usual_names: Sequence[str],
    usual_position: int,
    column_names: Sequence[str],
    name: str,
    options: ListingOptions,
) -> int:
    """The position of one column.

    Args:
        column: the name or position of the column in the settings; None for the usual column.
        usual_names: the usual names of the column, in lower case. They are used with a header.
        usual_position: the usual position of the column, from 0. It is used without a header.
        column_names, name, options: as for ``_positions``.

    Raises:
        SourceError: there is no such column.
    """
    if column is None and options.header:
        column = usual_names[0]  # for the error, if the header has no usual name
        lower_names = [column_name.lower() for column_name in column_names]
        for usual_name in usual_names:
            if usual_name in lower_names:
                column = lower_names.index(usual_name)
                break
    if column is None:
        column = usual_position
    if column in column_names:
        column = column_names.index(str(column))
    if not isinstance(column, int) or column >= len(column_names):
        columns = ", ".join(map(repr, column_names[:_MAX_COLUMNS_SHOWN]))
        raise SourceError(
            f"{name} has no column {column!r}: it has {columns}; name the right one with --set "
            "listing.path=NAME or listing.label=NAME, the separator with listing.delimiter, or "
            "set listing.header=false if the first line is no header"
        )
    return column


def _as_text(value: Any, name: str) -> str:
    """A label as text; empty if it is missing. The number 3.0 becomes ``3``.

    Raises:
        SourceError: the text is not UTF-8.
    """
    is_nan = value != value  # NaN differs from itself
    if value is None or is_nan:
        return ""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    text = os.fsdecode(value) if isinstance(value, bytes) else str(value)
    if text.encode(errors="ignore").decode() != text:
        raise SourceError(
            f"{name}: label {text[:_MAX_LABEL_SHOWN]!r} is not UTF-8: save the listing as UTF-8"
        )
    return text.strip()
