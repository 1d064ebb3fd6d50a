"""Tests of dataprep.sample_table."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from dataprep.manifest import FormatEntry, ShardEntry
from dataprep.receipt import Row, Samples
from dataprep.sample_table import SampleTable
from tests.strategies import receipt_rows

MB = 1_000_000
FORMATS = ("recordio", "tfrecord")


def filled(rows: list[Row]) -> SampleTable:
    """A table with one shard of these rows."""
    table = SampleTable(["tfrecord"])
    table.add(Samples.of(rows, FORMATS), 0)
    return table


def entry(*sizes: int, name: str = "tfrecord") -> FormatEntry:
    """A format whose shards have these sizes."""
    shards = tuple(ShardEntry(f"{name}/{i}", size, 10, "aa") for i, size in enumerate(sizes))
    return FormatEntry(1, 10 * len(sizes), sum(sizes), shards)


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
    records={"tfrecord": (0, 8_000, 1), "recordio": (0, 7_990, 2)},
)
FAILED = Row(1, "c/b.jpg", 0, "c", "failed", "empty file", "corrupt", source_bytes=0)
OUTSIDE = Row(-1, "readme.txt", -1, "", "skipped", "not an image", source_bytes=12)


@given(rows=st.lists(receipt_rows(["tfrecord"]), max_size=30))
def test_every_sample_is_counted_once(rows: list[Row]) -> None:
    """Written, failed and skipped add up to the total; retagged counts as passed through."""
    counts = filled(rows).counts
    assert counts.total == len(rows) == counts.written + counts.failed + counts.skipped
    actions = [row.action for row in rows]
    assert counts.reencoded == actions.count("reencoded")
    assert counts.passthrough == actions.count("passthrough") + actions.count("retagged")


def test_warnings_count_notes_failures_and_sizes() -> None:
    """Notes, kinds of failure and shards out of bounds are counted; zeros are left out."""
    rows = [
        Row(0, "a", 0, "c", "written", notes="recovered,icc_dropped"),
        Row(1, "b", 0, "c", "written", notes="recovered"),
        Row(2, "d", 0, "c", "failed", kind="corrupt"),
        Row(3, "e", 0, "c", "skipped", kind="not_an_image"),
    ]
    sizes = {"a": entry(MB - 1, MB, 128 * MB, 128 * MB + 1), "b": entry(0, 0, 0, 128 * MB + 2)}
    assert filled(rows).warnings(sizes) == {
        "failed_corrupt": 1,
        "icc_dropped": 1,
        "recovered": 2,
        "shards_out_of_bounds": 2,
    }
    assert filled([]).warnings({"a": entry(MB)}) == {}


@given(rows=st.lists(receipt_rows(["tfrecord"]), max_size=12), cut=st.integers(0, 12))
def test_rows_may_come_in_parts(rows: list[Row], cut: int) -> None:
    """Adding a shard at a time gives the table and the counts of all at once."""
    parts = SampleTable(["tfrecord"])
    parts.add(Samples.of(rows[:cut], FORMATS), 0)
    parts.add(Samples.of(rows[cut:], FORMATS), 0)
    assert parts.table().equals(filled(rows).table())
    assert parts.counts == filled(rows).counts
    assert parts.failures == [(row.source, row.reason) for row in rows if row.status == "failed"]


def test_agreement_is_of_rows_not_of_bytes() -> None:
    """A file that another writer made of the same rows agrees; other rows or no table do not."""
    table = filled([WRITTEN, FAILED])
    elsewhere = io.BytesIO()
    pq.write_table(table.table(), elsewhere, compression="none")
    assert elsewhere.getvalue() != table.to_parquet()
    assert table.agrees_with(elsewhere.getvalue())
    assert not table.agrees_with(filled([WRITTEN]).to_parquet())
    assert not table.agrees_with(b"")
    assert not table.agrees_with(table.to_parquet()[:-9])
    renamed = io.BytesIO()
    pq.write_table(pa.table({"x": [1]}), renamed)
    assert not table.agrees_with(renamed.getvalue())


def stored() -> Any:
    """The table of three samples, of which one is written and one in no shard."""
    table = SampleTable(["recordio", "tfrecord"])
    table.add(Samples.of([WRITTEN, FAILED], FORMATS), 7)
    table.add(Samples.of([OUTSIDE], FORMATS), None)
    return pq.read_table(io.BytesIO(table.to_parquet()))


def test_the_columns_of_the_table_of_samples() -> None:
    """The columns are those documented, and notes, with a pair for each format."""
    assert stored().column_names == [
        *("source", "label", "synset", "status", "reason", "action", "source_width"),
        *("source_height", "source_bytes", "source_sha256", "colorspace", "exif_orientation"),
        *("width", "height", "notes", "shard"),
        *("recordio_offset", "recordio_length", "tfrecord_offset", "tfrecord_length"),
    ]


def test_the_rows_of_the_table_of_samples() -> None:
    """What is known stands there, zeros included where they mean something; the rest is null."""
    written, failed, outside = stored().to_pylist()
    assert written == {
        **{name: getattr(WRITTEN, name) for name in written if hasattr(WRITTEN, name)},
        "reason": None,
        "shard": 7,
        "recordio_offset": 0,
        "recordio_length": 7_990,
        "tfrecord_offset": 0,
        "tfrecord_length": 8_000,
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
    made = [filled([WRITTEN]).to_parquet() for _ in range(2)]
    assert made[0] == made[1]
    assert pq.read_table(io.BytesIO(filled([]).to_parquet())).num_rows == 0


def test_the_size_of_images_stands_where_it_is_known() -> None:
    """Outputs of before have no such column, and still agree with their receipts."""
    assert "image_bytes" not in filled([WRITTEN, FAILED]).table().column_names
    known = filled([WRITTEN._replace(image_bytes=7_777), FAILED]).table()
    assert known["image_bytes"].to_pylist() == [7_777, None]
