"""PURE. Annotations as a table: one row an image that has one.

Columns: ``key`` (binary: the annotation's path without extension), ``width`` and ``height``
(int32, as ``Annotated`` has them), ``xmin``, ``ymin``, ``xmax``, ``ymax`` (lists of float32),
``name`` (list of strings: the class of each box, empty where none is given), and ``problem``
(why it could not be read, else null).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dataprep.boxes.columns import UNREADABLE
from dataprep.boxes.voc import parse_voc
from dataprep.names import to_bytes

SIDES = ("xmin", "ymin", "xmax", "ymax")
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        *((side, pa.list_(pa.float32())) for side in SIDES),
        ("name", pa.list_(pa.string())),
        ("problem", pa.string()),
    ]
)


def of_xml(files: Sequence[tuple[str, bytes]]) -> pa.Table:
    """The annotations of XML files, given by name and content.

    One that cannot be read has no boxes and says why.
    """
    rows = [_of_one(name, data) for name, data in files]
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _of_one(name: str, data: bytes) -> tuple[object, ...]:
    key = to_bytes(without_extension(name))
    try:
        drawn = parse_voc(data)
    except ValueError as error:
        return (key, UNREADABLE, UNREADABLE, [], [], [], [], [], str(error))
    sides = [list(column) for column in zip(*drawn.sides, strict=True)] or [[], [], [], []]
    return (key, drawn.width, drawn.height, *sides, list(drawn.names), None)


def without_extension(path: str) -> str:
    """``n01/x.1.JPEG`` as ``n01/x.1``; a name that only begins with a dot keeps it."""
    folder, slash, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return f"{folder}{slash}{stem}" if dot and stem else path
