"""Tests of dataprep.manifest."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import DatasetError, SchemaTooNew
from dataprep.manifest import (
    FormatEntry,
    Manifest,
    SampleCounts,
    ShardEntry,
    TableEntry,
    format_entries,
    in_bounds,
    out_of_bounds,
    spread,
)
from dataprep.receipt import Receipt, Row, Samples, StoredFile, StoredShard
from tests.strategies import json_values, mutated

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
    table=TableEntry(5_000, "bb"),
)


def test_the_manifest_is_as_documented() -> None:
    """The stored manifest has the documented keys in their order."""
    content = json.loads(MANIFEST.to_json())
    assert list(content) == [
        *("schema", "split", "created", "fingerprint", "config", "run", "versions", "formats"),
        *("samples", "warnings", "table"),
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


def test_manifests_of_before_do_not_know_their_table() -> None:
    """A manifest without the table's checksum is read as well."""
    content = json.loads(MANIFEST.to_json())
    del content["table"]
    found = Manifest.from_json(json.dumps(content).encode(), "m")
    assert found == dataclasses.replace(MANIFEST, table=None)


@pytest.mark.parametrize("key", [key for key in json.loads(MANIFEST.to_json()) if key != "table"])
def test_every_key_is_needed(key: str) -> None:
    """A manifest that lacks a key is none."""
    content = json.loads(MANIFEST.to_json())
    del content[key]
    with pytest.raises(DatasetError, match=key):
        Manifest.from_json(json.dumps(content).encode(), "m")


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
    return Receipt("f1", "train", shard, 2, formats, Samples.of(rows, formats))


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


def test_shards_have_1_to_128_mb() -> None:
    """The bounds belong to the range; the larger format decides."""
    sizes = (MB - 1, MB, 128 * MB, 128 * MB + 1)
    assert [in_bounds(size) for size in sizes] == [False, True, True, False]
    assert out_of_bounds({"a": entry(*sizes), "b": entry(MB, 0, 0, 0)}) == 1
