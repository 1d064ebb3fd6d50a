"""PURE. Tables of images: CSV, TSV and Parquet, through Arrow.

Text tables follow RFC 4180: a field in double quotes may hold delimiters, line ends and doubled
quotes. Paths are bytes and need not be UTF-8; class names must be.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dataprep.errors import SourceError
from dataprep.names import unescape
from dataprep.samples import readable
from dataprep.sources.listed import Listed, listed, listed_values
from dataprep.sources.options import Column, ListingOptions

PATH_COLUMNS = ("path", "filename", "file", "image")
LABEL_COLUMNS = ("label", "class", "synset")
_BLOCK_BYTES = 64 * 2**20
_TEXTS = {
    *("string", "large_string", "string_view", "null"),
    *("binary", "large_binary", "binary_view", "fixed_size_binary"),
}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def parse_text_table(data: bytes, name: str, options: ListingOptions, delimiter: str) -> Listed:
    """The rows of a CSV or TSV file, named ``name`` in errors.

    Raises:
        SourceError: it is no such table, or lacks a column; a faulty row's number is told.
    """
    if data.startswith(_UTF16):
        raise SourceError(f"{name} is in UTF-16: save it as UTF-8")
    try:
        return _text_table(data, name, options, delimiter)
    except SourceError as error:
        if not (remedy := _other_delimiter(data, delimiter)):
            raise
        raise SourceError(f"{error}; or its columns are separated otherwise: {remedy}") from None


def _other_delimiter(data: bytes, delimiter: str) -> str:
    """The option for a table whose first line has another delimiter, and none of the usual."""
    line = data.lstrip().partition(b"\n")[0]
    if delimiter.encode() in line:
        return ""
    if b"\t" in line:
        return "--set listing.format=tsv"
    found = next((other for other in ";|," if other.encode() in line), "")
    return f"--set 'listing.delimiter=\"{found}\"'" if found else ""


def _text_table(data: bytes, name: str, options: ListingOptions, delimiter: str) -> Listed:
    parsing = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = _first_row(data, name, parsing, options.header)
    wanted = _wanted(names, name, options, options.header)
    columns = [str(position) for position in range(len(names))]
    types = {columns[position]: pa.binary() for position in wanted}
    try:
        table = pyarrow.csv.read_csv(
            readable(data),
            pyarrow.csv.ReadOptions(
                use_threads=False,  # with threads Arrow does not know the number of a faulty row
                column_names=columns,
                skip_rows_after_names=int(options.header),
                block_size=_block_bytes(data),
            ),
            parsing,
            pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(types)),
        )
    except pa.ArrowInvalid as error:
        raise _refused(name, error) from None
    return _rows([table[columns[position]] for position in wanted], name, options)


def parse_parquet(data: bytes, name: str, options: ListingOptions) -> Listed:
    """The rows of a Parquet file, named ``name`` in errors.

    Raises:
        SourceError: it is no Parquet, or lacks a column; a faulty row's number is told.
    """
    try:
        file = pq.ParquetFile(readable(data))
        names = [str(column) for column in file.schema_arrow.names]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _no_parquet(name, error) from None
    path, *labels = _wanted(names, name, options, True)
    _require_paths(file.schema_arrow.field(path), name)
    for position in labels:
        _require_label(file.schema_arrow.field(position), name)
    try:
        table = file.read(columns=[names[position] for position in dict.fromkeys((path, *labels))])
    except (pa.ArrowException, OSError) as error:
        raise _no_parquet(name, error) from None
    columns = [_column(table, names, position) for position in (path, *labels)]
    try:
        return _rows(columns, name, options)
    except UnicodeDecodeError as error:
        raise _no_parquet(name, error) from None


def _no_parquet(name: str, error: Exception) -> SourceError:
    return SourceError(f"{name} cannot be read as Parquet: {error}")


def _column(table: pa.Table, names: Sequence[str], position: int) -> pa.ChunkedArray:
    """The column that stands at a position in the file, of which the table has some only."""
    name = names[position]
    earlier = names[:position].count(name)  # Arrow reads all columns of one name
    return table.column(table.schema.get_all_field_indices(name)[earlier])


def _kind(field: pa.Field) -> pa.DataType:
    """What a column holds; of a dictionary, its values."""
    return field.type.value_type if pa.types.is_dictionary(field.type) else field.type


def _require_paths(field: pa.Field, name: str) -> None:
    kind = str(_kind(field)).partition("[")[0]  # a size in brackets
    if kind not in _TEXTS:
        advice = (
            "images inside Parquet are not read: write them to files and list those"
            if pa.types.is_struct(field.type)
            else "name the column of paths with --set listing.path=NAME"
        )
        raise SourceError(f"{name}: column {field.name!r} holds {field.type}, no paths: {advice}")


def _require_label(field: pa.Field, name: str) -> None:
    if pa.types.is_nested(_kind(field)):
        raise SourceError(
            f"{name}: column {field.name!r} holds {field.type}: a label is a text or a number; "
            "name its column with --set listing.label=NAME, or several with listing.labels"
        )


def _first_row(
    data: bytes, name: str, parsing: pyarrow.csv.ParseOptions, header: bool
) -> list[str]:
    """The names of the columns, or a name for each where there is no header."""
    if not data.strip():
        raise SourceError(f"{name} is empty: it needs a column of paths and one of labels")
    reading = pyarrow.csv.ReadOptions(
        use_threads=False, autogenerate_column_names=not header, block_size=_block_bytes(data)
    )
    convert = pyarrow.csv.ConvertOptions(check_utf8=False)
    try:
        with pyarrow.csv.open_csv(readable(data), reading, parsing, convert) as reader:
            return [str(column).strip() for column in reader.schema.names]
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise _refused(name, error) from None


def _block_bytes(data: bytes) -> int:
    """What Arrow parses at a time: a row has to fit."""
    return max(1, min(len(data), _BLOCK_BYTES))


def _wanted(names: Sequence[str], name: str, options: ListingOptions, named: bool) -> list[int]:
    """Positions of the column of paths and of those of labels."""
    path = options.path
    if path is None:
        path = _first_of(PATH_COLUMNS, names) if named else 0
    labels = options.labels or (options.label,)
    if labels == (None,):
        labels = (_first_of(LABEL_COLUMNS, names) if named else 1,)
    key = "listing.labels" if options.labels else "listing.label"
    return [
        _position(path, names, name, "listing.path"),
        *(_position(label, names, name, key) for label in labels),
    ]


def _first_of(known: Sequence[str], names: Sequence[str]) -> str:
    lower = {column.lower(): column for column in reversed(names)}
    return next((lower[column] for column in known if column in lower), known[0])


def _position(column: Column | None, names: Sequence[str], name: str, key: str) -> int:
    shown = ", ".join(repr(each) for each in names[:20])
    if isinstance(column, int):
        if column < len(names):
            return column
        raise SourceError(f"{name} has no column {column}: it has {len(names)}, counted from 0")
    if names.count(str(column)) > 1:
        raise SourceError(f"{name} has several columns {column!r}: count them from 0 for {key}")
    if column not in names:
        raise SourceError(
            f"{name} has no column {column!r}: it has {shown}; name the right one with "
            f"--set {key}=NAME, or set listing.header=false where the first line is no header"
        )
    return names.index(column)


def _rows(columns: Sequence[pa.ChunkedArray], name: str, options: ListingOptions) -> Listed:
    paths = []
    for row, value in enumerate(columns[0].to_pylist()):
        text = value if isinstance(value, str) else os.fsdecode(value or b"")
        if not text:
            raise SourceError(f"{name}: the path of sample {row + 1} is empty")
        paths.append(unescape(text) if options.escaped else text)
    if not options.labels:
        return listed(paths, [_text(value, name) for value in columns[1].to_pylist()])
    numbers = [_numbers(column, name) for column in columns[1:]]
    return listed_values(paths, list(zip(*numbers, strict=True)))


def _text(value: Any, name: str) -> str:
    """A label as text: 3.0 of a column of floats is 3, and what is missing there is NaN."""
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise SourceError(
                f"{name}: label {value[:40]!r} is not UTF-8: save the listing as UTF-8"
            ) from None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(int(value)) if isinstance(value, bool) else str(value)


def _numbers(column: pa.ChunkedArray, name: str) -> list[float]:
    """A column as numbers; NaN where one is missing."""
    numbers = []
    for row, value in enumerate(column.to_pylist()):
        try:
            numbers.append(math.nan if value is None or value == b"" else float(value))
        except (TypeError, ValueError):
            shown = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
            raise SourceError(
                f"{name}: {shown!r}, a label of sample {row + 1}, is no number, which "
                "listing.labels asks for; one column of names is listing.label"
            ) from None
    return numbers


def _refused(name: str, error: Exception) -> SourceError:
    problem = str(error).removeprefix("CSV parse error: ").splitlines()[0][:200]
    return SourceError(
        f"{name}: {problem} (rows count from 1, with the header; a path that holds the "
        "delimiter or a line end stands in double quotes)"
    )
