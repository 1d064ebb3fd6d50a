"""PURE. What a Parquet table grows to, asked before it is read.

A value that repeats is stored once: a megabyte of file can stand for terabytes of paths.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataprep.arrow_bytes import readable

LONGEST_BYTES = 4096
"""Of a path, as Linux has it (PATH_MAX); keys on S3 have 1,024. A class name is no longer."""

_ROW_BYTES = 64
_AT_LEAST = 2**32
_TIMES = 100


def growth_problem(data: bytes, texts: Iterable[str]) -> str:
    """Why the columns ``texts`` of the Parquet file ``data`` are not to be read, or nothing.

    Raises:
        pa.ArrowException: a column is damaged.
        OSError: likewise.
    """
    names = [*texts]
    most = _AT_LEAST + _TIMES * len(data)
    file = pq.ParquetFile(readable(data), read_dictionary=names)
    size = file.metadata.num_rows * _ROW_BYTES
    for name in names:  # several columns may have it
        kinds = [field.type for field in file.schema_arrow if field.name == name]
        widths = [kind.byte_width for kind in kinds if pa.types.is_fixed_size_binary(kind)]
        if max(widths, default=0) > LONGEST_BYTES:
            return _too_long(name, max(widths))
        size += sum(widths) * file.metadata.num_rows
        if size > most:
            break
        read = file.read(columns=[name])
        for part in itertools.chain.from_iterable(column.chunks for column in read.columns):
            if isinstance(part, pa.DictionaryArray):  # each value once, however often it is named
                lengths = pc.binary_length(part.dictionary.cast(pa.large_binary()))
                if (longest := pc.max(lengths).as_py() or 0) > LONGEST_BYTES:
                    return _too_long(name, longest)
                size += pc.sum(pc.take(lengths, part.indices)).as_py() or 0
    if size > most:
        return f"{len(data):,} bytes stand for more than {most:,} of paths and labels"
    return ""


def _too_long(name: str, length: int) -> str:
    return f"a value of column {name!r} has {length:,} bytes, where {LONGEST_BYTES:,} are the most"
