"""PURE. Small files about classes, by their content: two columns, or JSON.

JSON is read in three shapes: ``{"old": "new"}``, ``{"0": ["n01440764", "tench"]}`` as Keras
has it, and ``["first", "second"]``.

The first line of a table is its header where both cells are in ``HEADS``, or where there is one
column and its cell is in ``HEADS_OF_ONE``. A line that is ``#`` or begins with ``#`` and a space
is a comment.
"""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from dataprep.errors import ConfigError
from dataprep.labels import is_synset

HEADS_OF_ONE = frozenset({"class", "label", "synset", "wnid"})
HEADS = HEADS_OF_ONE | {
    *("name", "file", "filename", "path", "image", "sample", "id", "index", "idx"),
    *("category", "prediction", "text", "words", "description", "old", "new", "from", "to"),
}
"""In any case of letters."""


class Pair(NamedTuple):
    """A row: its place in the file, the first column, and the second, if it has one."""

    place: str
    key: str
    value: str | None


def text_of(data: bytes, name: str) -> str:
    """A file as text.

    Raises:
        ConfigError: it is not UTF-8.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigError(f"{name} is in UTF-16: save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not text in UTF-8 (byte {error.start:,})") from None


def pairs(data: bytes, name: str) -> list[Pair]:
    """The rows of a table of one or two columns, or of a JSON file; a header is left out.

    Columns are separated by a tab, else by a comma, else, where every line begins with a
    synset, by a space.

    Raises:
        ConfigError: with the line.
    """
    text = text_of(data, name)
    content = json_of(text, name)
    return _of_lines(text, name) if content is None else list(_of_json(content, name))


def json_of(text: str, name: str) -> dict[str, Any] | list[Any] | None:
    """The JSON object or list that a file holds; None where it begins as neither.

    Raises:
        ConfigError: it is not whole.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        content: dict[str, Any] | list[Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not JSON: {error}") from None
    return content


def once(found: Sequence[Pair], name: str) -> dict[str, str]:
    """First column to second.

    Raises:
        ConfigError: a key stands there twice with different values, or alone.
    """
    values: dict[str, str] = {}
    for place, key, value in found:
        if value is None:
            raise ConfigError(f"{name}, {place}: {key!r} stands alone, where two columns are read")
        if values.setdefault(key, value) != value:
            raise ConfigError(
                f"{name}, {place}: {key!r} is {value!r} here and {values[key]!r} before"
            )
    return values


def _of_json(content: dict[str, Any] | list[Any], name: str) -> Iterator[Pair]:
    if isinstance(content, list):
        for number, one in enumerate(content):
            yield Pair(f"entry {number}", _string(one, name), None)
        return
    entries = list(content.items())
    if entries and all(isinstance(value, list) for _, value in entries):
        for key, value in sorted(entries, key=lambda entry: _number(entry[0], name)):
            if not 1 <= len(value) <= 2:
                raise ConfigError(f"{name}, {key!r}: expected a class and its text")
            first, *second = (_string(one, name) for one in value)
            yield Pair(f"key {key!r}", first, second[0] if second else None)
        return
    for key, value in entries:
        yield Pair(f"key {key!r}", key, _string(value, name))


def _string(value: Any, name: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ConfigError(f"{name}: expected a name, not {json.dumps(value)[:60]}")
    return str(value)


def _number(key: str, name: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", key):
        raise ConfigError(f"{name}: {key!r} is not the number of a class")
    return int(key)


def _of_lines(text: str, name: str) -> list[Pair]:
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and line.rstrip() != "#" and not line.startswith("# ")
    ]
    split = _splitter([line for _, line in lines])
    found = []
    for number, line in lines:
        where = f"{name}, line {number}"
        cells = [cell.strip() for cell in split(line, where)]
        if len(cells) > 2:
            raise ConfigError(
                f"{where}: {len(cells)} columns, expected two: take the others out, or read the "
                "table by --kind listing, with listing.path and listing.label"
            )
        if not cells[0]:
            raise ConfigError(f"{where}: the first column is empty")
        found.append(Pair(f"line {number}", cells[0], cells[1] if len(cells) > 1 else None))
    return found[1:] if found and _is_header(found[0]) else found


def _is_header(row: Pair) -> bool:
    if row.value is None:
        return row.key.lower() in HEADS_OF_ONE
    return row.key.lower() in HEADS and row.value.lower() in HEADS


def csv_cells(line: str, where: str) -> list[str]:
    """The cells of a line with commas, by RFC 4180; raises ConfigError with ``where``."""
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise ConfigError(f"{where}: {error}") from None


def _splitter(lines: Sequence[str]) -> Callable[[str, str], list[str]]:
    if any("\t" in line for line in lines):
        return lambda line, _: line.split("\t")
    # Words hold commas, as in "tench, Tinca tinca": a synset and a space come first.
    if lines and all(is_synset(line.split(" ", 1)[0]) for line in lines):
        return lambda line, _: line.split(" ", 1)
    return csv_cells
