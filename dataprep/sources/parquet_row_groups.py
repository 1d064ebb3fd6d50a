"""Read the values of one column in a row group of a Parquet file, in order and a few at a time.

The values of one column in one row group are a column chunk. A chunk has no index of its values.
Therefore a value can be read only after all values before it, and a run of samples of one row group
is read at once, from the beginning of the chunk to the last sample of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataprep.errors import DataprepError, SourceChanged, UnreadableImage
from dataprep.sources.stored_file import StoredFile, StoredFileReader
from dataprep.stores.local import LocalStore

MAX_CHUNK_BYTES_AT_ONCE = 256_000_000
"""The maximum size of a column chunk that is read by one request.

Larger chunks are streamed, to limit the memory of a worker.
"""

NO_BYTES = "no bytes in the table: its value is null, as for an image that has only a path"

_BATCH_ROWS = 16  # the number of images that are decoded into memory at a time
_LOCAL_BUFFER_BYTES = 2**20
_REMOTE_BUFFER_BYTES = 2**23
_MAX_FOOTERS = 64
_container_pattern = re.compile(r"(?s:(.*))!rows@(\d+)\+\d+")


def container_of(file: StoredFile, group: int) -> str:
    """Return the name of the container of a row group.

    The name consists of the key of the file, the number of the group and the size of the file. With
    the size, a job is not resumed with a file of another size.
    """
    return f"{file.key}!rows@{group}+{file.size}"


def file_and_group(container: str) -> tuple[str, int]:
    """Return the key of the file and the number of the row group in the name of a container.

    Raises:
        SourceChanged: the container is not a row group.
    """
    match = _container_pattern.fullmatch(container)
    if match is None:
        raise SourceChanged(f"{container!r} was removed since it was listed: it is no row group")
    return match[1], int(match[2])


def footer(file: StoredFile) -> pq.FileMetaData:
    """Return the metadata of a file. They are cached in memory if the version of the file is known.

    Raises:
        ValueError, OSError, pyarrow.ArrowException: the file is not Parquet, or is damaged.
        SourceChanged, StoreError: as ``StoredFile.read``.
    """
    if file.version:
        return _cached_footer(file)
    return pq.read_metadata(ParquetReader(file))


@lru_cache(maxsize=_MAX_FOOTERS)
def _cached_footer(file: StoredFile) -> pq.FileMetaData:
    return pq.read_metadata(ParquetReader(file))


class ParquetReader(StoredFileReader):
    """A file object for pyarrow. One range of the file may already be in memory."""

    def __init__(self, file: StoredFile, start: int = 0, content: bytes = b"") -> None:
        """Open a file.

        Args:
            file: the file.
            start: the first byte of the range that is in memory.
            content: that range; empty if nothing is in memory.
        """
        super().__init__(file, file.size)
        self._start, self._content = start, content

    def read(self, size: int = -1) -> bytes:
        """Return ``size`` bytes; for -1, all bytes up to the end of the file.

        Raises:
            SourceChanged: the file is shorter than when it was listed.
        """
        length = max(self._size - self._position, 0)
        if size >= 0:
            length = min(size, length)
        offset = self._position - self._start
        if offset >= 0 and offset + length <= len(self._content):
            self._position += length
            return self._content[offset : offset + length]
        data = self._read_up_to(length)
        if len(data) < length:
            raise SourceChanged(
                f"{self._file.uri} is shorter than when it was listed: restore it, or start again "
                "with --overwrite"
            )
        return data


class ColumnChunk:
    """One column of one row group: a range of bytes in a Parquet file.

    Attributes:
        rows: the number of rows in the row group.
        chunk_bytes: the size of the column chunk in the file.
        value_bytes: the size of the column chunk without compression.
        all_null: whether no row has a value, according to the metadata.
    """

    def __init__(self, file: StoredFile, group: int, column: str) -> None:
        """Find the range in the metadata of a file.

        Args:
            file: the Parquet file.
            group: the number of the row group.
            column: the path of the column in the schema.
        """
        self._file, self._group, self._column = file, group, column
        self._metadata = footer(file)
        group_metadata = self._metadata.row_group(group)
        chunks = [group_metadata.column(number) for number in range(group_metadata.num_columns)]
        chunk = next(chunk for chunk in chunks if chunk.path_in_schema == column)
        self._start: int = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset:
            self._start = min(self._start, chunk.dictionary_page_offset)
        self.rows: int = group_metadata.num_rows
        self.chunk_bytes: int = chunk.total_compressed_size
        self.value_bytes: int = chunk.total_uncompressed_size
        statistics = chunk.statistics if chunk.is_stats_set else None
        self.all_null = bool(
            statistics is not None
            and statistics.has_null_count
            and statistics.null_count == self.rows > 0
        )

    def is_read_at_once(self, rows: Sequence[int]) -> bool:
        """Whether to fetch the whole chunk by one request, to read these rows from a remote store.

        One request is faster than streaming if the last row is in the second half of the chunk.

        Args:
            rows: ascending numbers of rows, from 0 within the group.
        """
        return self.chunk_bytes <= MAX_CHUNK_BYTES_AT_ONCE and 2 * rows[-1] + 2 > self.rows

    def fetch(self) -> bytes:
        """Fetch the chunk by one request."""
        return self._file.read(self._start, self.chunk_bytes)

    def values(self, rows: Sequence[int], chunk: bytes = b"") -> Iterator[bytes | UnreadableImage]:
        """Yield the values of some rows, with few values in memory at a time.

        Rows are read in batches from the first row of the group. Therefore the effect of damage
        does not depend on the requested rows: rows before the damaged batch can be read, and all
        other rows cannot.

        Args:
            rows: ascending numbers of rows, from 0 within the group.
            chunk: the bytes of the chunk; empty to stream them.

        Raises:
            SourceChanged, StoreError: as ``StoredFile.read``.
        """
        batches = self._batches(chunk, with_buffer=not chunk)
        batch: pa.Array = pa.array([], pa.binary())
        first_row = 0
        for row in rows:
            while batch is not None and row >= first_row + len(batch):
                first_row += len(batch)
                batch = _next_or_none(batches)
            if batch is None:
                yield UnreadableImage(
                    f"damaged: row {row} of row group {self._group} of {self._file.key} cannot be "
                    "read"
                )
                continue
            value = batch[row - first_row].as_py()
            if value is None:
                yield UnreadableImage(NO_BYTES)
            else:
                yield value

    def _batches(self, chunk: bytes, *, with_buffer: bool) -> Iterator[pa.Array]:
        """Yield the values of the column, ``_BATCH_ROWS`` at a time.

        Args:
            chunk: the bytes of the chunk; empty to stream them.
            with_buffer: whether to read ahead from the store.
        """
        is_local = isinstance(self._file.store, LocalStore)
        buffer_bytes = _LOCAL_BUFFER_BYTES if is_local else _REMOTE_BUFFER_BYTES
        parquet_file = open_file(
            self._file,
            ParquetReader(self._file, self._start, chunk),
            buffer_size=buffer_bytes if with_buffer else 0,
        )
        batches = parquet_file.iter_batches(
            _BATCH_ROWS, [self._group], columns=[self._column], use_threads=False
        )
        for batch in batches:
            yield column_in(batch, self._column)


def open_file(file: StoredFile, content: ParquetReader, **options: Any) -> pq.ParquetFile:
    """Open a Parquet file with the metadata of ``footer``.

    Args:
        file: the file.
        content: the same file as a file object.
        **options: further arguments of ``pyarrow.parquet.ParquetFile``.
    """
    return pq.ParquetFile(content, metadata=footer(file), pre_buffer=False, **options)


def column_in(table: pa.Table | pa.RecordBatch, name: str) -> pa.Array | pa.ChunkedArray:
    """Return the values of the column ``name``, without the structs and dictionaries around them.

    ``table`` has only this column, or the outermost struct that contains it.
    """
    column = table.column(0)
    path_in_struct = name.removeprefix(table.schema.names[0]).strip(".")
    if path_in_struct:
        for field in path_in_struct.split("."):
            column = pc.struct_field(column, field)
    if isinstance(column, pa.DictionaryArray):
        return column.dictionary_decode()
    return column


def _next_or_none(batches: Iterator[pa.Array]) -> pa.Array | None:
    """The next batch; None after the last batch, and if the data are damaged."""
    try:
        return next(batches, None)
    except DataprepError:
        raise
    except (pa.ArrowException, OSError, ValueError):
        return None
