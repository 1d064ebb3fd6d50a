r"""PURE. MXNet's ``.lst``: ``index TAB label[ TAB label…] TAB path``, a line an image.

Source: MXNet, ``tools/im2rec.py``. Labels are numbers, the path comes last. Names that hold
tabs, newlines or bytes that are not UTF-8 are escaped as ``dataprep.names`` has it; im2rec
itself knows no escaping, so that a backslash of its files is only a backslash.
"""

from __future__ import annotations

import math
import os
import re
from codecs import BOM_UTF8

from dataprep.errors import SourceError
from dataprep.names import unescape
from dataprep.sources.listed import Listed, listed_values

_PLAIN_BACKSLASH = re.compile(rb"(?:^|[^\\])(?:\\\\)*\\(?!\\|x[0-9a-f]{2})")


def parse_lst(data: bytes, name: str, escaped: bool | None = None) -> Listed:
    """The rows of a ``.lst`` file, named ``name`` in errors; empty lines are passed over.

    With ``escaped`` None, names are unescaped if every backslash of the file is part of an
    escape, as it is in files of this program.

    Raises:
        SourceError: a line is none of a ``.lst``; its number, from 1, is told.
    """
    if escaped is None:
        escaped = _PLAIN_BACKSLASH.search(data) is None
    paths: list[str] = []
    rows: list[list[float]] = []
    for number, line in enumerate(data.removeprefix(BOM_UTF8).split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if not line.strip():
            continue
        columns = line.split(b"\t")
        where = f"{name}, line {number}"
        if len(columns) < 3:
            raise SourceError(
                f"{where}: {len(columns)} columns; a .lst has index, label and path, with tabs "
                "between them (im2rec.py --list writes one)"
            )
        if not columns[-1]:
            raise SourceError(f"{where}: no path after the last tab")
        _as_number(columns[0], where, "index")
        path = os.fsdecode(columns[-1])
        paths.append(unescape(path) if escaped else path)
        rows.append([_as_number(column, where, "label") for column in columns[1:-1]])
    return listed_values(paths, rows)


def _as_number(text: bytes, where: str, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # Python reads "1_000" as a number; nobody else does.
    if math.isnan(number) or b"_" in text:
        shown = text[:40].decode("utf-8", "backslashreplace")
        raise SourceError(f"{where}: {what} {shown!r} is no number") from None
    return number
