"""The stored table of samples, held against its manifest."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataprep
from dataprep.dataset import open_split
from dataprep.errors import DatasetError
from dataprep.stored_table import stored_table
from dataprep.stores.memory import MemoryStore

KEY = "train.samples.parquet"


def stored(table: pa.Table) -> bytes:
    """As a file."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def with_value(table: pa.Table, name: str, row: int, value: int | None) -> pa.Table:
    """The table with one value changed."""
    values = table[name].to_pylist()
    values[row] = value
    column = pa.array(values, table.schema.field(name).type)
    return table.set_column(table.column_names.index(name), name, column)


def change_table(store: MemoryStore, change: Callable[[pa.Table], pa.Table]) -> None:
    """Store another table in place of the one there is."""
    store.put(KEY, stored(change(pq.read_table(io.BytesIO(store.get(KEY))))))


def refusal(store: MemoryStore) -> str:
    """What reading anything that the table tells is answered with, one answer for all of it."""
    reads: tuple[Callable[[dataprep.Dataset], object], ...] = (
        lambda dataset: dataset[0],
        lambda dataset: dataset.labels,
        lambda dataset: dataset.samples,
        lambda dataset: dataset.written,
        lambda dataset: dataset.place(3),
    )
    said = set()
    for read in reads:
        with pytest.raises(DatasetError) as caught:
            read(dataprep.open(store.uri))
        said.add(str(caught.value))
    (one,) = said
    return one


def test_all_rows_and_those_written(changeable: MemoryStore) -> None:
    """Columns are of what was written; a frame is of everything unless told."""
    manifest, _ = open_split(changeable, "train")
    table = stored_table(changeable, manifest)
    assert table.columns(["label", "shard"]).column_names == ["label", "shard"]
    assert list(table.frame(["source"]).columns) == ["source"]
    assert len(table.frame(written=True)) == len(table.frame()) == 120


@pytest.mark.parametrize("kept", [0, 4, 300, -1])
def test_cut_short(changeable: MemoryStore, kept: int) -> None:
    """A table that was cut is an error that names it, its output, and what writes it again."""
    changeable.put(KEY, changeable.get(KEY)[:kept])
    said = refusal(changeable)
    assert said.startswith(f"{changeable.uri}/{KEY}: damaged, or not a table of samples: ")
    assert f"remove train.manifest.json and run dataprep finalize {changeable.uri}" in said


def test_missing(changeable: MemoryStore) -> None:
    """So is one that is gone."""
    changeable.delete(KEY)
    assert refusal(changeable).startswith(f"{changeable.uri}/{KEY} is missing: ")


def test_the_remedy_works(changeable: MemoryStore) -> None:
    """What the message says to do brings the same table back."""
    table = changeable.get(KEY)
    changeable.put(KEY, b"")
    changeable.delete("train.manifest.json")
    dataprep.finalize(changeable.uri, "train")
    assert changeable.get(KEY) == table
    assert dataprep.open(changeable.uri)[119].image


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda table: table.slice(0, 24), "it has 24 samples, not 120"),
        (lambda table: table.drop_columns(["notes"]), "it has no column 'notes'"),
        (
            lambda table: with_value(table, "tfrecord_length", -1, 1),
            "and in the table",
        ),
        (
            lambda table: with_value(table, "shard", 0, 1),
            "tfrecord/train-00000-of-",
        ),
    ],
    ids=["rows", "columns", "lengths", "shards"],
)
def test_another_table(
    changeable: MemoryStore, change: Callable[[pa.Table], pa.Table], why: str
) -> None:
    """A table whose rows are not those that the manifest counts is refused, with the difference."""
    change_table(changeable, change)
    said = refusal(changeable)
    assert f"{KEY} does not belong to train.manifest.json: " in said
    assert why in said


def test_a_number_is_missing(changeable: MemoryStore) -> None:
    """A place or label that lacks is never made a number."""
    change_table(
        changeable,
        lambda table: with_value(table, "label", 7, None),
    )
    with pytest.raises(DatasetError, match="damaged, or not a table"):
        dataprep.open(changeable.uri).labels  # noqa: B018
