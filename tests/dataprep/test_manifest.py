"""Tests of dataprep.manifest."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.manifest import (
    FormatEntry,
    Manifest,
    SampleCounts,
    ShardEntry,
    count,
    format_entries,
    in_bounds,
    samples_parquet,
    spread,
    warnings,
)
from dataprep.receipt import Receipt, Row, StoredFile, StoredShard
from tests.strategies import json_values, mutated, receipt_rows

MB = 1_000_000


def entry(*sizes: int, name: str = "tfrecord") -> FormatEntry:
    """A format whose shards have these sizes."""
    shards = tuple(ShardEntry(f"{name}/{i}", size, 10, "aa") for i, size in enumerate(sizes))
    return FormatEntry(1, 10 * len(sizes), sum(sizes), shards)


MANIFEST = Manifest(
    split="train",
    created="2026-01-01T00:00:00+00:00",
    fingerprint="f1",
    config={"image": {"mode": "short", "size": 256}},
    run={"workers": 2},
    versions={"pillow": "12"},
    formats={"tfrecord": entry(MB, 2 * MB)},
    samples=SampleCounts(20, 18, 1, 1, 8, 10),
    warnings={"recovered": 2},
)


def test_the_manifest_is_as_documented() -> None:
    """The stored manifest has the documented keys in their order."""
    content = json.loads(MANIFEST.to_json())
    assert list(content) == [
        *("schema", "split", "created", "fingerprint", "config", "run", "versions", "formats"),
        *("samples", "warnings"),
    ]
    assert content["schema"] == 1
    assert content["formats"]["tfrecord"].keys() == {"label_offset", "records", "bytes", "shards"}
    assert content["formats"]["tfrecord"]["shards"][1] == {
        "key": "tfrecord/1",
        "bytes": 2 * MB,
        "records": 10,
        "sha256": "aa",
    }
    assert list(content["samples"]) == [
        *("total", "written", "failed", "skipped", "passthrough", "reencoded")
    ]


def test_manifests_come_back() -> None:
    """A manifest comes back from JSON as it was."""
    assert Manifest.from_json(MANIFEST.to_json(), "m") == MANIFEST


def test_a_newer_manifest_is_refused() -> None:
    """A newer schema is refused, although its keys are unknown."""
    newer = {**json.loads(MANIFEST.to_json()), "schema": 2, "novelty": 1}
    with pytest.raises(SchemaTooNew, match=r"m: schema 2; this version reads up to 1: upgrade"):
        Manifest.from_json(json.dumps(newer).encode(), "m")


@given(
    data=st.binary()
    | json_values.map(json.dumps).map(str.encode)
    | mutated(st.just(MANIFEST.to_json()))
)
def test_other_content_is_no_manifest(data: bytes) -> None:
    """Arbitrary bytes, JSON and damaged manifests read or raise a DatasetError, nothing else."""
    try:
        Manifest.from_json(data, "train.manifest.json")
    except DatasetError as error:
        message = str(error)
    else:
        return
    assert message.startswith("train.manifest.json: ")


@pytest.mark.parametrize("key", [*json.loads(MANIFEST.to_json())])
def test_every_key_is_needed(key: str) -> None:
    """A manifest that lacks a key is none."""
    content = json.loads(MANIFEST.to_json())
    del content[key]
    with pytest.raises(DatasetError, match=key):
        Manifest.from_json(json.dumps(content).encode(), "m")


@given(rows=st.lists(receipt_rows(["tfrecord"]), max_size=30))
def test_every_sample_is_counted_once(rows: list[Row]) -> None:
    """Written, failed and skipped add up to the total; retagged counts as passed through."""
    counts = count(rows)
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
    assert warnings(rows, sizes) == {
        "failed_corrupt": 1,
        "icc_dropped": 1,
        "recovered": 2,
        "shards_out_of_bounds": 2,
    }
    assert warnings([], {"a": entry(MB)}) == {}
    assert [in_bounds(size) for size in (MB - 1, MB, 128 * MB, 128 * MB + 1)] == [
        *(False, True, True, False)
    ]


def test_spread_goes_by_the_larger_format() -> None:
    """The spread is the largest deviation from the mean, each shard by its larger format."""
    assert spread({"a": entry(90, 110, 100)}) == pytest.approx(0.1)
    assert spread({"a": entry(90, 110, 100), "b": entry(100, 50, 50)}) == pytest.approx(
        (110 - 310 / 3) / (310 / 3)
    )
    assert spread({"a": entry(5)}) == 0
    assert spread({"a": entry(0, 0)}) == 0
    assert spread({}) == 0


def receipt(shard: int, rows: list[Row]) -> Receipt:
    """A receipt of one shard in two formats."""
    formats = {
        name: StoredShard(StoredFile(f"{name}/{shard}", 100 + shard, f"h{shard}"), 2 + shard, ())
        for name in ("tfrecord", "recordio")
    }
    return Receipt("f1", "train", shard, 2, formats, rows)


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


def test_entries_are_made_of_receipts() -> None:
    """A format's entry adds up the receipts, in shard order, with its label offset."""
    entries = format_entries([receipt(0, []), receipt(1, [])], {"tfrecord": 1, "recordio": 0})
    assert entries["tfrecord"] == FormatEntry(
        1,
        5,
        201,
        (ShardEntry("tfrecord/0", 100, 2, "h0"), ShardEntry("tfrecord/1", 101, 3, "h1")),
    )
    assert entries["recordio"].label_offset == 0


def table() -> Any:
    """The table of three samples, of which one is written and one in no shard."""
    data = samples_parquet([receipt(7, [WRITTEN, FAILED])], [OUTSIDE], ["recordio", "tfrecord"])
    return pq.read_table(io.BytesIO(data))


def test_the_columns_of_the_table_of_samples() -> None:
    """The columns are those documented, and notes, with a pair for each format."""
    assert table().column_names == [
        *("source", "label", "synset", "status", "reason", "action", "source_width"),
        *("source_height", "source_bytes", "source_sha256", "colorspace", "exif_orientation"),
        *("width", "height", "notes", "shard"),
        *("recordio_offset", "recordio_length", "tfrecord_offset", "tfrecord_length"),
    ]


def test_the_rows_of_the_table_of_samples() -> None:
    """What is known stands there, zeros included where they mean something; the rest is null."""
    written, failed, outside = table().to_pylist()
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
    made = [samples_parquet([receipt(0, [WRITTEN])], [], ["tfrecord"]) for _ in range(2)]
    assert made[0] == made[1]
    assert pq.read_table(io.BytesIO(samples_parquet([], [], ["tfrecord"]))).num_rows == 0
