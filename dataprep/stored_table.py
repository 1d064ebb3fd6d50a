"""``SPLIT.samples.parquet`` as it is stored, held against the manifest that stands beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataprep import keys
from dataprep.arrow_bytes import parquet, readable, require_enough
from dataprep.counted import counted
from dataprep.errors import DatasetError, ObjectNotFound
from dataprep.manifest import Manifest
from dataprep.sample_table import SampleTable
from dataprep.stores import Store
from dataprep.stores.protocol import location


@dataclass(frozen=True, slots=True)
class StoredTable:
    """The table's bytes; columns are unpacked when they are asked for."""

    name: str
    remedy: str
    content: bytes

    @classmethod
    def fetch(cls, store: Store, split: str) -> StoredTable:
        """That of a split. Raises ObjectNotFound."""
        key = keys.samples(split)
        return cls(location(store, key), _remedy(store, split), store.get(key))

    @property
    def names(self) -> set[str]:
        """Of its columns.

        Raises:
            DatasetError: it is no table.
        """
        with self._readable():
            return set(pq.read_schema(readable(self.content)).names)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """These columns of the samples that were written, which have a value in each.

        Raises:
            DatasetError: it is damaged, no table, or lacks a column or a value.
        """
        with self._readable():
            table = pq.read_table(parquet(self.content), columns=["status", *names])
            written = table.filter(pc.equal(table["status"], "written")).select(list(names))
            if any(column.null_count for column in written.columns):
                raise ValueError("a sample that was written lacks a value")
            return written

    def frame(self, names: Sequence[str] | None = None, *, written: bool = False) -> pd.DataFrame:
        """One row a source sample, or a written one: these columns, or all.

        Raises:
            DatasetError: it is damaged, no table, or has not these columns.
        """
        with self._readable():
            columns = None if names is None else list(names)
            table = pq.read_table(parquet(self.content), columns=columns)
            if written:
                table = table.filter(pc.equal(table["status"], "written"))
            frame: pd.DataFrame = table.to_pandas(use_threads=False)
            return frame

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            require_enough(error)
            raise DatasetError(
                f"{self.name}: damaged, or not a table of samples: {self.remedy}"
            ) from error


def stored_table(store: Store, manifest: Manifest) -> StoredTable:
    """The table of a complete split, whose rows are those that the manifest counts.

    Raises:
        DatasetError: it is missing, no table, or that of another split or job.
    """
    split = manifest.split
    try:
        table = StoredTable.fetch(store, split)
    except ObjectNotFound:
        raise DatasetError(
            f"{location(store, keys.samples(split))} is missing: {_remedy(store, split)}"
        ) from None
    why = _disagreement(table, manifest)
    if why:
        raise DatasetError(
            f"{table.name} does not belong to {keys.manifest(split)}: {why}: {table.remedy}"
        )
    return table


def _remedy(store: Store, split: str) -> str:
    manifest = keys.manifest(split)
    return f"remove {manifest} and run dataprep finalize {store.uri}, which writes both again"


def _disagreement(table: StoredTable, manifest: Manifest) -> str:
    """What tells it from the table that the manifest was written with, if anything."""
    missing = set(SampleTable(list(manifest.formats)).table().column_names) - table.names
    if missing:
        return f"it has no column {min(missing)!r}"
    wanted = SampleTable(list(manifest.formats)).table().schema
    for field in pq.read_schema(readable(table.content)):
        if field.name in wanted.names and field.type != wanted.field(field.name).type:
            return f"its column {field.name!r} holds {field.type}"
    lengths = [f"{name}_length" for name in manifest.formats]
    offsets = [f"{name}_offset" for name in manifest.formats]
    written = table.columns(["shard", "label", *lengths, *offsets])
    for name in ("shard", "label", *lengths, *offsets):
        if len(written) and pc.min(written[name]).as_py() < 0:
            return f"its column {name!r} has a number below 0"
    if len(written) != manifest.samples.written:
        return f"it has {counted(len(written), 'sample')}, not {manifest.samples.written:,}"
    sums = [(name, how) for name in lengths for how in ("count", "sum")]
    rows = {row["shard"]: row for row in written.group_by("shard").aggregate(sums).to_pylist()}
    for name, entry in manifest.formats.items():
        for number, shard in enumerate(entry.shards):
            row = rows.get(number, {})
            found = row.get(f"{name}_length_count", 0), row.get(f"{name}_length_sum") or 0
            if found != (shard.records, shard.bytes):
                return (
                    f"{shard.key} has {counted(shard.records, 'record')} of {shard.bytes:,} bytes, "
                    f"and in the table {found[0]:,} of {found[1]:,}"
                )
    return ""
