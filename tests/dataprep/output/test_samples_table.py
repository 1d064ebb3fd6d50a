"""The table of samples is written, and read back."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataprep
from dataprep.errors import DatasetError
from dataprep.output import samples_table
from dataprep.output.manifest import FormatEntry, ShardEntry
from dataprep.output.receipt import Row
from dataprep.output.samples_table import (
    SampleTable,
    StoredTable,
    number_column,
    read_table,
    stored_table,
    text_column,
)
from dataprep.stores.memory import MemoryStore
from tests.strategies import placed, receipt_rows

MB = 1_000_000
FORMATS = ("recordio", "tfrecord")
KEY = "train.samples.parquet"


def filled(rows: list[Row]) -> SampleTable:
    """A table with one shard of these rows."""
    table = SampleTable(["tfrecord"])
    table.add(placed(rows, FORMATS), 0)
    return table


def entry(*sizes: int, name: str = "tfrecord") -> FormatEntry:
    """A format whose shards have these sizes."""
    shards = tuple(ShardEntry(f"{name}/{i}", size, 10, "aa") for i, size in enumerate(sizes))
    return FormatEntry(1, 10 * len(sizes), sum(sizes), shards)


def as_file(table: pa.Table, **options: Any) -> bytes:
    """The table as a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


WRITTEN = Row(
    number=0,
    source=r"c/a\x09.jpg",
    label=0,
    synset="c",
    status="written",
    action="reencoded",
    notes="recovered",
    source_width=500,
    source_height=375,
    source_bytes=9_000,
    source_sha256="ab",
    colorspace="YCbCr",
    exif_orientation=1,
    width=341,
    height=256,
    records={"tfrecord": (0, 8_000, 2**32 - 1), "recordio": (0, 7_990, 2)},
)
FAILED = Row(1, "c/b.jpg", 0, "c", "failed", "empty file", "corrupt", source_bytes=0)
OUTSIDE = Row(-1, "readme.txt", -1, "", "skipped", "not an image", source_bytes=12)


@given(rows=st.lists(receipt_rows(["tfrecord"]), max_size=30))
def test_every_sample_is_counted_once(rows: list[Row]) -> None:
    """Written, failed and skipped samples add up to the total.

    Retagged counts as passed through.
    """
    counts = filled(rows).counts
    assert counts.total == len(rows) == counts.written + counts.failed + counts.skipped
    actions = [row.action for row in rows]
    assert counts.reencoded == actions.count("reencoded")
    assert counts.passthrough == actions.count("passthrough") + actions.count("retagged")


def test_warnings_count_notes_failures_and_sizes() -> None:
    """Notes, kinds of failure and shards out of bounds are counted, without zeros."""
    rows = [
        Row(0, "a", 0, "c", "written", notes="recovered,icc_dropped"),
        Row(1, "b", 0, "c", "written", notes="recovered"),
        Row(2, "d", 0, "c", "failed", "broken", kind="corrupt"),
        Row(3, "e", 0, "c", "skipped", "no magic", kind="not_an_image"),
        Row(4, "f", 0, "c", "skipped", "hidden", kind="refused"),
    ]
    sizes = {"a": entry(MB - 1, MB, 128 * MB, 128 * MB + 1), "b": entry(0, 0, 0, 128 * MB + 2)}
    table = filled(rows)
    assert table.warnings(sizes) == {
        "failed_corrupt": 1,
        "icc_dropped": 1,
        "recovered": 2,
        "shards_out_of_bounds": 2,
    }
    assert table.failures == [("d", "broken")]
    assert table.skip_reasons == {"not an image": 1, "hidden": 1}
    assert filled([]).warnings({"a": entry(MB)}) == {}


@given(rows=st.lists(receipt_rows(["tfrecord"]), max_size=12), cut=st.integers(0, 12))
def test_rows_may_come_in_parts(rows: list[Row], cut: int) -> None:
    """Adding one shard at a time gives the table and counts of adding all at once."""
    parts = SampleTable(["tfrecord"])
    parts.add(placed(rows[:cut], FORMATS), 0)
    parts.add(placed(rows[cut:], FORMATS), 0)
    assert parts.table().equals(filled(rows).table())
    assert parts.counts == filled(rows).counts


def test_agreement_is_of_rows_not_of_bytes() -> None:
    """A file of another writer with the same rows agrees, even without checksums."""
    table = filled([WRITTEN, FAILED])
    uncompressed = as_file(table.table(), compression="none")
    older = as_file(table.table().drop_columns(["tfrecord_crc32c"]))
    assert uncompressed != table.to_parquet()
    assert not table.differences(uncompressed)
    assert not table.differences(older)
    assert filled([WRITTEN, FAILED._replace(source="c/x.jpg")]).differences(older)
    others = [b"", filled([WRITTEN]).to_parquet(), table.to_parquet()[:-9]]
    assert all(table.differences(other) for other in [*others, as_file(pa.table({"x": [1]}))])


@pytest.mark.parametrize("field", [(1, 8_000, 7), (0, 8_001, 7), (0, 8_000, 8)])
def test_another_place_or_checksum_does_not_agree(field: tuple[int, int, int]) -> None:
    """The offset, length and CRC-32C of each record are compared."""
    table = filled([WRITTEN._replace(records={"tfrecord": (0, 8_000, 7)})])
    assert not table.differences(table.to_parquet())
    assert filled([WRITTEN._replace(records={"tfrecord": field})]).differences(table.to_parquet())


def table_of_three() -> Any:
    """The table of three samples, one of them written and one in no shard."""
    table = SampleTable(["recordio", "tfrecord"])
    table.add(placed([WRITTEN, FAILED], FORMATS), 7)
    table.add(placed([OUTSIDE], FORMATS), None)
    return pq.read_table(io.BytesIO(table.to_parquet()))


def test_the_content_of_the_table_of_samples() -> None:
    """Known values are in the table, including meaningful zeros. All others are null."""
    table = table_of_three()
    assert table.column_names == [
        *("source", "label", "synset", "status", "reason", "action", "source_width"),
        *("source_height", "source_bytes", "source_sha256", "colorspace", "exif_orientation"),
        *("width", "height", "notes", "shard"),
        *("recordio_offset", "recordio_length", "recordio_crc32c"),
        *("tfrecord_offset", "tfrecord_length", "tfrecord_crc32c"),
    ]
    written, failed, outside = table.to_pylist()
    fields_of_row = {name: getattr(WRITTEN, name) for name in written if hasattr(WRITTEN, name)}
    assert written == {
        **fields_of_row,
        "reason": None,
        "shard": 7,
        "recordio_offset": 0,
        "recordio_length": 7_990,
        "recordio_crc32c": 2,
        "tfrecord_offset": 0,
        "tfrecord_length": 8_000,
        "tfrecord_crc32c": 2**32 - 1,
    }
    assert written["label"] == 0
    assert {name: value for name, value in failed.items() if value is not None} == {
        "source": "c/b.jpg",
        "label": 0,
        "synset": "c",
        "status": "failed",
        "reason": "empty file",
        "source_bytes": 0,
        "shard": 7,
    }
    assert {name: value for name, value in outside.items() if value is not None} == {
        "source": "readme.txt",
        "status": "skipped",
        "reason": "not an image",
        "source_bytes": 12,
    }


def test_the_table_repeats_byte_for_byte() -> None:
    """The same receipts make the same bytes, and no samples make an empty table."""
    results = [filled([WRITTEN]).to_parquet() for _ in range(2)]
    assert results[0] == results[1]
    assert pq.read_table(io.BytesIO(filled([]).to_parquet())).num_rows == 0


def test_optional_columns_are_there_where_a_sample_has_a_value() -> None:
    """Sizes of images, boxes and several labels are columns only if a sample has them."""
    names = {"image_bytes", "boxes", "values"}
    assert not names & {*filled([WRITTEN, FAILED]).table().column_names}
    row = WRITTEN._replace(image_bytes=7_777, boxes=2, values=(0.0, 0.5))
    table = filled([row, FAILED]).table()
    assert table["image_bytes"].to_pylist() == [7_777, None]
    assert table["boxes"].to_pylist() == [2, None]
    assert table["values"].to_pylist() == [[0.0, 0.5], None]


def refusal(store: MemoryStore) -> str:
    """The error of everything that reads the table. All readers raise the same one."""
    reads: tuple[Callable[[dataprep.Dataset], object], ...] = (
        lambda dataset: dataset[0],
        lambda dataset: dataset.labels,
        lambda dataset: dataset.samples,
        lambda dataset: dataset.written,
        lambda dataset: dataset.place(3),
    )
    message = set()
    for read in reads:
        with pytest.raises(DatasetError) as caught:
            read(dataprep.open(store.uri))
        message.add(str(caught.value))
    (message_of_format,) = message
    return message_of_format


def test_all_rows_and_those_written(changeable: MemoryStore) -> None:
    """Columns have the written samples, and a frame has all samples by default."""
    table = stored_table(changeable, dataprep.open(changeable.uri).manifest)
    assert table.columns(["label", "shard"]).column_names == ["label", "shard"]
    assert {"source", "tfrecord_crc32c"} <= {*table.columns().column_names}
    assert list(table.frame(["source"]).columns) == ["source"]
    assert len(table.frame(written=True)) == len(table.frame()) == 120
    failed = StoredTable(changeable, "train", filled([WRITTEN, FAILED]).to_parquet())
    assert failed.columns(["source"])["source"].to_pylist() == [WRITTEN.source]
    assert list(failed.frame(["source"])["source"]) == [WRITTEN.source, FAILED.source]
    with pytest.raises(DatasetError, match=f"{changeable.uri}/{KEY}: damaged"):
        failed.columns(["nothing"])


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[:4],
        lambda data: data[:-1],
        lambda data: as_file(pq.read_table(io.BytesIO(data)).slice(0, 24)),
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    ],
    ids=["empty", "cut", "last byte", "rows", "bit"],
)
def test_another_table_is_refused(
    changeable: MemoryStore, change: Callable[[bytes], bytes]
) -> None:
    """A table that is not that of the manifest is named, and the remedy of the error works."""
    before = changeable.get(KEY)
    changeable.put(KEY, change(before))
    message = refusal(changeable)
    assert message.startswith(f"{changeable.uri}/{KEY}: damaged, or another table of samples: ")
    assert f"remove train.manifest.json and run dataprep finalize {changeable.uri}" in message
    changeable.delete("train.manifest.json")
    dataprep.finalize(changeable.uri, "train")
    assert changeable.get(KEY) == before
    assert dataprep.open(changeable.uri)[119].image
    changeable.delete(KEY)
    assert refusal(changeable).startswith(f"{changeable.uri}/{KEY}: missing: ")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((data, "damaged, or not Parquet") for data in (b"", b"PAR1", b"PAR1" * 30)),
        (as_file(pa.table({"x": [1]})), "nothing"),
    ],
)
def test_other_files_are_not_tables(data: bytes, message: str) -> None:
    """Every error of Arrow becomes a ValueError, which names a missing column."""
    with pytest.raises(ValueError, match=message):
        read_table(data, ["nothing"])


@given(values=st.lists(st.text(max_size=5)), rows=st.sampled_from([2, 2**20]))
def test_texts_are_those_that_arrow_makes(values: list[str], rows: int) -> None:
    """Strings of any script equal those of pa.array, with nulls for empty ones on request."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples_table, "_CHUNK_ROWS", rows)
        column, nulls = text_column(values), text_column(values, null_if_empty=True)
    column.validate(full=True)
    nulls.validate(full=True)
    assert column.to_pylist() == values
    assert nulls.to_pylist() == [value or None for value in values]
    assert column.type == nulls.type == pa.string()


@given(
    kind=st.sampled_from([np.int8, np.int32, np.int64, np.float32]),
    values=st.lists(st.tuples(st.integers(-100, 100), st.booleans())),
)
def test_numbers_are_those_that_arrow_makes(
    kind: type[np.generic], values: list[tuple[int, bool]]
) -> None:
    """Type, values and nulls equal those of pa.array, also for every second number."""
    array = np.array([value for value, _ in values], kind)
    valid = np.array([is_known for _, is_known in values], np.bool_)
    column = number_column(array, valid)
    column.validate(full=True)
    assert column.equals(pa.array(array, mask=~valid))
    assert number_column(array[::2]).equals(pa.array(array[::2].copy()))


def test_pandas_is_not_imported_to_write_a_table() -> None:
    """Importing pandas takes longer than all other work at the end of a job."""
    script = (
        "import sys; from dataprep.output.receipt import Row, Samples; "
        "from dataprep.output.samples_table import SampleTable; table = SampleTable(['tfrecord']); "
        "table.add(Samples.of([Row(0, 'a', 0, 'c', 'written')]), 0); table.to_parquet(); "
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
