"""``SPLIT.samples.parquet``: one row a source sample, made a shard at a time, and read back.

Rows become Arrow columns as they come: a million samples take some hundred megabytes, not the
gigabytes that as many objects would.
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

from dataprep import keys
from dataprep.errors import DatasetError, ObjectNotFound
from dataprep.manifest import (
    KINDS,
    OUT_OF_BOUNDS,
    Byte,
    Count,
    FormatEntry,
    Manifest,
    SampleCounts,
    Samples,
    Small,
    out_of_bounds,
)
from dataprep.stores import Store, location

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    *("source", "label", "synset", "status", "reason", "action", "source_width", "source_height"),
    *("source_bytes", "source_sha256", "colorspace", "exif_orientation", "width", "height"),
    *("notes", "image_bytes"),
)
# The integers of the table; its other columns are text.
_INTEGERS = {Count: np.int64, Small: np.int32, Byte: np.int8}
# Only where some sample has them.
_OPTIONAL = {"boxes": pa.int32(), "values": pa.list_(pa.float32())}
# The value that stands for an unknown one, where 0 does not: a file may have no bytes.
_UNKNOWN = {"label": -1, "source_bytes": -1}

_ROWS_A_CHUNK = 2**20
_DAMAGED = "damaged, or another table of samples"


class SampleTable:
    """One row a source sample: those of the shards in plan order, then those in no shard.

    Unknown values are null: the size of a file that is not an image, the place of a sample that
    was not written, the shard and the label of a sample that was never planned into one. In a shard
    the label of a sample without a class is -1.

    Attributes:
        failures: name and reason of each sample that failed.
        written_labels: the labels of the samples that were written.
        skip_reasons: how many were skipped, by the listing's reason or the kind of their content.
    """

    def __init__(self, format_names: Sequence[str]) -> None:
        self._format_names = tuple(format_names)
        self._parts: list[pa.Table] = [self._part(Samples.of([]), None)]
        self._made: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self.failures: list[tuple[str, str]] = []
        self.written_labels: set[int] = set()
        self.skip_reasons: Counter[str] = Counter()

    def add(self, samples: Samples, shard: int | None) -> None:
        """Append the samples of one shard, or of none."""
        self._parts.append(self._part(samples, shard))
        columns = samples.columns
        self._made.update(columns["status"])
        self._made.update(columns["action"])
        for notes in filter(None, columns["notes"]):
            self._kinds.update(notes.split(","))
        names = ("source", "label", "status", "reason", "kind")
        rows = zip(*(columns[name] for name in names), strict=True)
        for source, label, status, reason, kind in rows:
            if status == "written":
                self.written_labels.add(label)
            elif status == "failed":
                self._kinds[f"failed_{kind}"] += 1
                self.failures.append((source, reason))
            elif status == "skipped":
                self.skip_reasons[reason if kind == "refused" else kind.replace("_", " ")] += 1

    @property
    def counts(self) -> SampleCounts:
        """Totals over all rows."""
        made = self._made
        return SampleCounts(
            total=made["written"] + made["failed"] + made["skipped"],
            written=made["written"],
            failed=made["failed"],
            skipped=made["skipped"],
            passthrough=made["passthrough"] + made["retagged"],
            reencoded=made["reencoded"],
        )

    def warnings(self, formats: Mapping[str, FormatEntry]) -> dict[str, int]:
        """How often each policy applied, and how many shards are out of bounds."""
        kinds = self._kinds + Counter({OUT_OF_BOUNDS: out_of_bounds(formats)})
        return {kind: kinds[kind] for kind in sorted(kinds)}

    def table(self) -> pa.Table:
        """All rows."""
        table = pa.concat_tables(self._parts).combine_chunks()
        empty = [n for n in ("image_bytes", *_OPTIONAL) if table[n].null_count == len(table)]
        return table.drop_columns(empty)

    def to_parquet(self) -> bytes:
        """As stored."""
        sink = io.BytesIO()
        pq.write_table(self.table(), sink, compression="zstd")
        return sink.getvalue()

    def differences(self, stored: bytes) -> list[int | None]:
        """The shards with other rows in ``stored``; None among them where more than rows differ.

        Outputs of earlier versions have no checksums, which are then not compared.
        """
        try:
            found = read_table(stored)
        except ValueError:
            return [None]
        wanted = self.table()
        checksums = [f"{name}_crc32c" for name in self._format_names]
        if {*checksums}.isdisjoint(found.column_names):
            wanted = wanted.drop_columns(checksums)
        if len(found) != len(wanted) or not found.schema.equals(wanted.schema):
            return [None]
        differing, start = [], 0
        for shard, rows in itertools.groupby(wanted["shard"].to_pylist()):
            count = len([*rows])
            if not found.slice(start, count).equals(wanted.slice(start, count)):
                differing.append(shard)
            start += count
        return differing

    def _part(self, samples: Samples, shard: int | None) -> pa.Table:
        count = len(samples)
        columns: dict[str, pa.Array] = {}
        for name in _COLUMNS:
            if KINDS[name] is str:
                columns[name] = texts(samples.columns[name], null_if_empty=True)
            else:
                array = np.array(samples.columns[name], _INTEGERS[KINDS[name]])
                is_known = array != _UNKNOWN.get(name, 0)
                if name == "label" and shard is not None:
                    is_known[:] = True
                columns[name] = numbers(array, is_known)
        of_shard = np.full(count, shard or 0, np.int32)
        columns["shard"] = numbers(of_shard, np.full(count, shard is not None))
        for name in self._format_names:
            placed = samples.records.get(name) or [None] * count
            written = np.array([place is not None for place in placed], np.bool_)
            places = np.array([place or (0, 0, 0) for place in placed], np.int64).reshape(-1, 3)
            for column, what in enumerate(("offset", "length", "crc32c")):
                columns[f"{name}_{what}"] = numbers(places[:, column], written)
        for name, kind in _OPTIONAL.items():
            known = samples.columns.get(name)
            columns[name] = pa.nulls(count, kind) if known is None else pa.array(known, kind)
        return pa.table(columns)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The bytes of a stored table of a split; columns are decoded when they are read."""

    store: Store
    split: str
    content: bytes

    @classmethod
    def fetch(cls, store: Store, split: str) -> StoredTable:
        """The table of a split. Raises ObjectNotFound."""
        return cls(store, split, store.get(keys.samples(split)))

    def schema(self) -> pa.Schema:
        """The names and types of all columns.

        Raises:
            DatasetError: it is damaged.
        """
        try:
            return pq.read_schema(readable(self.content))
        except (pa.ArrowException, OSError) as error:
            raise _unusable(self.store, self.split, _DAMAGED) from error

    def columns(self, names: Sequence[str] | None = None, *, written: bool = True) -> pa.Table:
        """These columns or all, of the samples that were written, or of every source sample.

        Raises:
            DatasetError: it is damaged, or lacks a column.
        """
        try:
            wanted = None if names is None else {"status", *names}
            table = read_table(self.content, wanted)
        except ValueError as error:
            raise _unusable(self.store, self.split, _DAMAGED) from error
        if written:
            table = table.filter(pc.equal(table["status"], "written"))
        return table if names is None else table.select(list(names))

    def frame(self, names: Sequence[str] | None = None, *, written: bool = False) -> pd.DataFrame:
        """``columns`` as a data frame, of every source sample unless only those ``written``."""
        frame: pd.DataFrame = self.columns(names, written=written).to_pandas(use_threads=False)
        return frame


def stored_table(store: Store, manifest: Manifest) -> StoredTable:
    """The table of a complete split, if it is the one that the manifest was written with.

    Raises:
        DatasetError: it is missing, damaged, or another one.
    """
    try:
        table = StoredTable.fetch(store, manifest.split)
    except ObjectNotFound:
        raise _unusable(store, manifest.split, "missing") from None
    entry = manifest.table  # manifests of earlier versions have none
    if entry is not None and hashlib.sha256(table.content).hexdigest() != entry.sha256:
        raise _unusable(store, manifest.split, _DAMAGED)
    return table


def _unusable(store: Store, split: str, why: str) -> DatasetError:
    return DatasetError(
        f"{location(store, keys.samples(split))}: {why}: remove {keys.manifest(split)} and run "
        f"dataprep finalize {store.uri}, which writes both again"
    )


def read_table(data: bytes, names: Collection[str] | None = None) -> pa.Table:
    """A Parquet file in memory: these columns, or all.

    Raises:
        ValueError: it is damaged, not Parquet, or lacks a column.
    """
    try:
        file = pq.ParquetFile(readable(data))
        table = file.read(None if names is None else list(names), use_threads=False)
        return table if names is None else table.select(list(names))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(f"damaged, or not Parquet: {error}") from None


def readable(data: bytes) -> pa.BufferReader:
    """A copy of ``data`` as a file for Arrow.

    Arrow's threads may release their input after the call has returned. A Python object would
    need the interpreter for that, and one that is about to exit is aborted
    (https://github.com/apache/arrow/issues/33975, 34314).
    """
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)


# ``pa.array`` and ``to_numpy`` import pandas, a quarter of a second in commands that need no pandas
# otherwise.


def numbers(values: NDArray[np.generic], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """``values`` without a copy, of shape (rows,); null where ``valid`` is false."""
    kind = pa.from_numpy_dtype(values.dtype)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [_bits(valid), data])


def in_numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    """Numbers, none of them null, of shape (rows,)."""
    return np.from_dlpack(column.combine_chunks())


def texts(values: Sequence[str], *, null_if_empty: bool = False) -> pa.ChunkedArray:
    """Strings; with ``null_if_empty`` a null stands for each empty one."""
    chunks = []
    for start in range(0, len(values), _ROWS_A_CHUNK):  # an array has at most 2 GiB
        encoded = [value.encode() for value in values[start : start + _ROWS_A_CHUNK]]
        lengths = np.fromiter(map(len, encoded), np.int32, len(encoded))
        offsets = np.concatenate([[0], lengths.cumsum()]).astype(np.int32)
        valid = lengths > 0 if null_if_empty else None
        buffers = [_bits(valid), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded))]
        chunks.append(pa.Array.from_buffers(pa.string(), len(encoded), buffers))
    return pa.chunked_array(chunks, pa.string())


def _bits(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Arrow's bitmap of values that are not null; none where all are."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))
