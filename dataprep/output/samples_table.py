"""The table of samples, ``SPLIT.samples.parquet``: one row for each source sample.

``SampleTable`` builds the table shard by shard, and ``StoredTable`` reads it. Rows become Arrow
columns as they are added: a million samples then take some hundred megabytes, instead of gigabytes
of Python objects.
"""

from __future__ import annotations

import hashlib
import io
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dataprep.errors import DatasetError, ObjectNotFound
from dataprep.output import keys
from dataprep.output.manifest import (
    OUT_OF_BOUNDS,
    FormatEntry,
    Manifest,
    SampleCounts,
    out_of_bounds,
)
from dataprep.output.receipt import (
    COLUMN_TYPES,
    ByteInteger,
    Count,
    RecordLocation,
    Samples,
    SmallInteger,
)
from dataprep.stores import Store, location

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    "source",
    "label",
    "synset",
    "status",
    "reason",
    "action",
    "source_width",
    "source_height",
    "source_bytes",
    "source_sha256",
    "colorspace",
    "exif_orientation",
    "width",
    "height",
    "notes",
    "image_bytes",
)
# The types of the integer columns. All other columns are text.
_INTEGER_TYPES = {Count: np.int64, SmallInteger: np.int32, ByteInteger: np.int8}
# Columns that are written only if at least one sample has a value.
_OPTIONAL_COLUMNS = {"boxes": pa.int32(), "values": pa.list_(pa.float32())}
# In most columns, 0 means an unknown number. In these columns, -1 does: a file may have 0 bytes.
_UNKNOWN_VALUES = {"label": -1, "source_bytes": -1}

_CHUNK_ROWS = 2**20
_DAMAGED = "damaged, or another table of samples"


class SampleTable:
    """Builds a table of samples: first the samples of each shard, then samples without a shard.

    The rows are in the order of the plan. Unknown values are null. Examples are the dimensions of a
    file that is not an image, the location of a sample that was not written, and the shard and the
    label of a sample that is in no shard. The label of a sample in a shard is -1 if the sample has
    no class.

    Args:
        format_names: the formats of the job.

    Attributes:
        failures: the name and the reason of each sample that failed.
        written_labels: the labels of the samples that were written.
        skip_reasons: the number of skipped samples by reason. The reason of an entry without a
            shard is that of the listing. For other samples, it is the kind of the error that the
            conversion gave, such as ``too small``.
    """

    def __init__(self, format_names: Sequence[str]) -> None:
        self.failures: list[tuple[str, str]] = []
        self.written_labels: set[int] = set()
        self.skip_reasons: Counter[str] = Counter()
        self._format_names = tuple(format_names)
        self._tables: list[pa.Table] = [self._to_arrow(Samples.of([]), None)]
        self._statuses: Counter[str] = Counter()
        self._actions: Counter[str] = Counter()
        self._quirks: Counter[str] = Counter()

    def add(self, samples: Samples, shard: int | None) -> None:
        """Append samples.

        Args:
            samples: the samples of a shard, or entries that are in no shard.
            shard: the number of the shard; None for entries that are in no shard.
        """
        self._tables.append(self._to_arrow(samples, shard))
        columns = samples.columns
        self._statuses.update(columns["status"])
        self._actions.update(columns["action"])
        for notes in columns["notes"]:
            if notes:
                self._quirks.update(notes.split(","))
        names = ("source", "label", "status", "reason", "kind")
        rows = zip(*(columns[name] for name in names), strict=True)
        for source, label, status, reason, kind in rows:
            if status == "written":
                self.written_labels.add(label)
            elif status == "failed":
                self._quirks[f"failed_{kind}"] += 1
                self.failures.append((source, reason))
            elif status == "skipped":
                skip_reason = reason if kind == "refused" else kind.replace("_", " ")
                self.skip_reasons[skip_reason] += 1

    @property
    def counts(self) -> SampleCounts:
        """The number of rows by status, and of images by what was done to them."""
        statuses, actions = self._statuses, self._actions
        return SampleCounts(
            total=statuses["written"] + statuses["failed"] + statuses["skipped"],
            written=statuses["written"],
            failed=statuses["failed"],
            skipped=statuses["skipped"],
            passthrough=actions["passthrough"] + actions["retagged"],
            reencoded=actions["reencoded"],
        )

    def warnings(self, formats: Mapping[str, FormatEntry]) -> dict[str, int]:
        """Return the manifest's ``warnings``.

        They count the samples with each quirk, and the shards that are too small or too large.

        Args:
            formats: all shards of the split.
        """
        counts = self._quirks + Counter({OUT_OF_BOUNDS: out_of_bounds(formats)})
        return {quirk: counts[quirk] for quirk in sorted(counts)}

    def table(self) -> pa.Table:
        """Return all rows as an Arrow table, without optional columns that have no values."""
        table = pa.concat_tables(self._tables).combine_chunks()
        empty_columns = [
            name
            for name in ("image_bytes", *_OPTIONAL_COLUMNS)
            if table[name].null_count == len(table)
        ]
        return table.drop_columns(empty_columns)

    def to_parquet(self) -> bytes:
        """Return the table as a Parquet file, ``SPLIT.samples.parquet``."""
        sink = io.BytesIO()
        pq.write_table(self.table(), sink, compression="zstd")
        return sink.getvalue()

    def differences(self, content: bytes) -> list[int | None]:
        """Compare this table with the content of a stored file.

        Checksums are not compared with outputs of earlier versions, which have none.

        Returns:
            The numbers of the shards whose rows differ. The list contains None if the samples
            without a shard differ. It contains only None if the file cannot be read, or if the
            tables differ in columns or in the number of rows.
        """
        try:
            stored_rows = read_table(content)
        except ValueError:
            return [None]
        expected = self.table()
        checksum_columns = [f"{name}_crc32c" for name in self._format_names]
        if set(checksum_columns).isdisjoint(stored_rows.column_names):
            expected = expected.drop_columns(checksum_columns)
        if len(stored_rows) != len(expected) or not stored_rows.schema.equals(expected.schema):
            return [None]
        differing = []
        start = 0
        for shard, shard_rows in itertools.groupby(expected["shard"].to_pylist()):
            count = len(list(shard_rows))
            if not stored_rows.slice(start, count).equals(expected.slice(start, count)):
                differing.append(shard)
            start += count
        return differing

    def _to_arrow(self, samples: Samples, shard: int | None) -> pa.Table:
        """The rows of a shard, or of no shard, as an Arrow table with all columns."""
        count = len(samples)
        columns: dict[str, pa.Array] = {}
        for name in _COLUMNS:
            values = samples.columns[name]
            if COLUMN_TYPES[name] is str:
                columns[name] = text_column(values, null_if_empty=True)
            else:
                array = np.array(values, _INTEGER_TYPES[COLUMN_TYPES[name]])
                is_known = array != _UNKNOWN_VALUES.get(name, 0)
                if name == "label" and shard is not None:
                    is_known[:] = True  # -1 is then the label of a sample without a class
                columns[name] = number_column(array, is_known)
        shards = np.full(count, shard or 0, np.int32)
        columns["shard"] = number_column(shards, np.full(count, shard is not None))
        for name in self._format_names:
            columns |= _location_columns(name, samples.records.get(name) or [None] * count)
        for name, arrow_type in _OPTIONAL_COLUMNS.items():
            if name in samples.columns:
                columns[name] = pa.array(samples.columns[name], arrow_type)
            else:
                columns[name] = pa.nulls(count, arrow_type)
        return pa.table(columns)


def _location_columns(
    format_name: str, locations: Sequence[RecordLocation | None]
) -> dict[str, pa.Array]:
    """The columns with offset, length and checksum of each record of a format."""
    is_written = np.array([location is not None for location in locations], np.bool_)
    values = np.array([location or (0, 0, 0) for location in locations], np.int64).reshape(-1, 3)
    columns = {}
    for column, name in enumerate(("offset", "length", "crc32c")):
        columns[f"{format_name}_{name}"] = number_column(values[:, column], is_written)
    return columns


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The stored table of samples of a split. A column is decoded when it is read.

    Attributes:
        store: the store that contains the split.
        split: the name of the split.
        content: the bytes of the Parquet file.
    """

    store: Store
    split: str
    content: bytes

    @classmethod
    def fetch(cls, store: Store, split: str) -> StoredTable:
        """Read the table of a split, without checking it.

        Raises:
            ObjectNotFound: the table is missing.
        """
        return cls(store, split, store.get(keys.samples(split)))

    def schema(self) -> pa.Schema:
        """Return the names and types of all columns.

        Raises:
            DatasetError: the table is damaged.
        """
        try:
            return pq.read_schema(readable(self.content))
        except (pa.ArrowException, OSError) as error:
            raise _unusable(self.store, self.split, _DAMAGED) from error

    def columns(self, names: Sequence[str] | None = None, *, written: bool = True) -> pa.Table:
        """Return columns as an Arrow table.

        Args:
            names: the names of the columns; None for all columns.
            written: whether to return only the samples that were written, instead of all rows.

        Raises:
            DatasetError: the table is damaged, or does not have one of the columns.
        """
        try:
            table = read_table(self.content, None if names is None else {"status", *names})
        except ValueError as error:
            raise _unusable(self.store, self.split, _DAMAGED) from error
        if written:
            table = table.filter(pc.equal(table["status"], "written"))
        return table if names is None else table.select(list(names))

    def frame(self, names: Sequence[str] | None = None, *, written: bool = False) -> pd.DataFrame:
        """Return columns as a data frame, by default of all rows.

        Arguments and errors are those of ``columns``.
        """
        frame: pd.DataFrame = self.columns(names, written=written).to_pandas(use_threads=False)
        return frame


def stored_table(store: Store, manifest: Manifest) -> StoredTable:
    """Return the table of samples of a complete split, after checking it against the manifest.

    Raises:
        DatasetError: the table is missing, damaged, or not the table of this manifest.
    """
    try:
        table = StoredTable.fetch(store, manifest.split)
    except ObjectNotFound:
        raise _unusable(store, manifest.split, "missing") from None
    entry = manifest.table  # None in manifests of earlier versions
    if entry is not None and hashlib.sha256(table.content).hexdigest() != entry.sha256:
        raise _unusable(store, manifest.split, _DAMAGED)
    return table


def _unusable(store: Store, split: str, problem: str) -> DatasetError:
    """The error for a table of samples that is missing or damaged."""
    return DatasetError(
        f"{location(store, keys.samples(split))}: {problem}: remove {keys.manifest(split)} and run "
        f"dataprep finalize {store.uri}, which writes both again"
    )


def read_table(content: bytes, names: Collection[str] | None = None) -> pa.Table:
    """Read a Parquet file in memory.

    Args:
        content: the bytes of the file.
        names: the columns to read; None for all columns.

    Raises:
        ValueError: the file is damaged, is not Parquet, or does not have one of the columns.
    """
    try:
        file = pq.ParquetFile(readable(content))
        if names is None:
            return file.read(use_threads=False)
        return file.read(list(names), use_threads=False).select(list(names))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"damaged, or not Parquet: {error}") from None


def readable(data: bytes) -> pa.BufferReader:
    """Copy ``data`` into a file in memory that Arrow can read.

    The copy belongs to Arrow. Arrow's threads may release their input after a call has returned.
    Releasing a Python object would need the interpreter, and would abort a process that is about to
    exit (https://github.com/apache/arrow/issues/33975, 34314).
    """
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)


# The following functions do not use ``pa.array`` and ``to_numpy``, because ``pa.array`` and
# ``to_numpy`` import pandas. The import takes a quarter of a second, also in commands that do not
# need pandas.


def number_column(values: NDArray[np.generic], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return numbers of shape (rows,) as an Arrow array. A contiguous array is not copied.

    Args:
        values: the numbers.
        valid: which of them are valid; the others become null. None if all are valid.
    """
    arrow_type = pa.from_numpy_dtype(values.dtype)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(arrow_type, len(values), [_validity_bitmap(valid), data])


def to_numpy_array(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers without nulls as an array of shape (rows,)."""
    return np.from_dlpack(column.combine_chunks())


def text_column(values: Sequence[str], *, null_if_empty: bool = False) -> pa.ChunkedArray:
    """Return strings as a chunked Arrow array.

    Args:
        values: the strings.
        null_if_empty: whether empty strings become null.
    """
    chunks = []
    for start in range(0, len(values), _CHUNK_ROWS):  # an Arrow array has at most 2 GiB
        encoded = [value.encode() for value in values[start : start + _CHUNK_ROWS]]
        lengths = np.fromiter(map(len, encoded), np.int32, len(encoded))
        offsets = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
        valid = lengths > 0 if null_if_empty else None
        buffers = [_validity_bitmap(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
        chunks.append(pa.Array.from_buffers(pa.string(), len(encoded), buffers))
    return pa.chunked_array(chunks, pa.string())


def _validity_bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Arrow's bitmap of the values that are not null; None if all are valid."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
