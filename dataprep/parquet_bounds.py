"""PURE. What a Parquet table grows to, asked before it is read.

Equal values take no room: a megabyte of file can stand for terabytes, of rows or of paths.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

LONGEST_BYTES = 4096
"""Of a path, as Linux has it (PATH_MAX); keys on S3 have 1,024. A class name is no longer."""

_ROWS_A_BYTE, _ALWAYS_ROWS = 16, 2**17
_ROW_BYTES = 64
_AT_LEAST = 2**32
_TIMES = 100


def require_rows(source: pa.BufferReader | str, size_bytes: int) -> None:
    """That the bytes of a file can hold its rows: names of samples, or times, take more than a bit.

    Raises:
        ArrowInvalid: it does not.
    """
    metadata = pq.read_metadata(source)
    groups = range(metadata.num_row_groups)
    rows = max(metadata.num_rows, sum(metadata.row_group(group).num_rows for group in groups))
    if rows > _ALWAYS_ROWS + _ROWS_A_BYTE * size_bytes:
        raise pa.ArrowInvalid(f"it tells of {rows:,} rows in {size_bytes:,} bytes")


def require_texts(source: pa.BufferReader, size_bytes: int, texts: Iterable[str]) -> None:
    """That the columns ``texts`` of a Parquet file can be read: paths and labels of a length that
    there can be, which do not grow beyond memory.

    Raises:
        ArrowInvalid: they cannot.
        ArrowException, OSError: a column is damaged.
    """
    names = [*texts]
    most = _AT_LEAST + _TIMES * size_bytes
    file = pq.ParquetFile(source, read_dictionary=names)
    size = file.metadata.num_rows * _ROW_BYTES
    for name in names:  # several columns may have it
        kinds = [field.type for field in file.schema_arrow if field.name == name]
        widths = [kind.byte_width for kind in kinds if pa.types.is_fixed_size_binary(kind)]
        if max(widths, default=0) > LONGEST_BYTES:
            raise _too_long(name, max(widths))
        size += sum(widths) * file.metadata.num_rows
        if size > most:
            break
        read = file.read(columns=[name])
        for part in itertools.chain.from_iterable(column.chunks for column in read.columns):
            if isinstance(part, pa.DictionaryArray):  # each value once, however often it is named
                lengths = pc.binary_length(part.dictionary.cast(pa.large_binary()))
                if (longest := pc.max(lengths).as_py() or 0) > LONGEST_BYTES:
                    raise _too_long(name, longest)
                size += pc.sum(pc.take(lengths, part.indices)).as_py() or 0
    if size > most:
        raise pa.ArrowInvalid(
            f"{size_bytes:,} bytes stand for more than {most:,} of paths and labels"
        )


def _too_long(name: str, length: int) -> pa.ArrowInvalid:
    return pa.ArrowInvalid(
        f"a value of column {name!r} has {length:,} bytes, where {LONGEST_BYTES:,} are the most"
    )
