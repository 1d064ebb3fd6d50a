"""Manifests, receipts and other JSON files with a schema number are stored and read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, DatasetError, SchemaTooNew
from dataprep.output.manifest import (
    FormatEntry,
    Manifest,
    SampleCounts,
    ShardEntry,
    TableEntry,
    format_entries,
    out_of_bounds,
    spread,
)
from dataprep.output.receipt import Count, Receipt, Row, StoredFile, StoredShard
from dataprep.schema import malformed_as, parse, require, typed
from tests.strategies import json_values, mutated, placed, receipt_rows, receipts

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
    assert Manifest.from_json(MANIFEST.to_json(), "m") == MANIFEST


def test_what_earlier_versions_did_not_write_may_be_missing() -> None:
    """A manifest may lack the table's checksum, and a receipt the size of images."""
    content = json.loads(MANIFEST.to_json())
    del content["table"]
    parsed = Manifest.from_json(json.dumps(content).encode(), "m")
    assert parsed == dataclasses.replace(MANIFEST, table=None)
    content = json.loads(RECEIPT.to_json())
    del content["samples"]["image_bytes"]
    assert Receipt.from_json(json.dumps(content).encode(), "x") == RECEIPT


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


@pytest.mark.parametrize("key", [key for key in json.loads(MANIFEST.to_json()) if key != "table"])
def test_every_key_is_needed(key: str) -> None:
    """A manifest that lacks a key is refused."""
    content = json.loads(MANIFEST.to_json())
    del content[key]
    with pytest.raises(DatasetError, match=key):
        Manifest.from_json(json.dumps(content).encode(), "m")


def test_spread_goes_by_the_larger_format() -> None:
    """The spread is the largest deviation from the mean, by each shard's larger format."""
    assert spread({"a": entry(90, 110, 100)}) == pytest.approx(0.1)
    mean_of_larger = (100 + 110 + 100) / 3
    two_formats = {"a": entry(90, 110, 100), "b": entry(100, 50, 50)}
    assert spread(two_formats) == pytest.approx((110 - mean_of_larger) / mean_of_larger)
    assert spread({"a": entry(5)}) == 0
    assert spread({"a": entry(0, 0)}) == 0
    assert spread({}) == 0


def receipt(shard: int) -> Receipt:
    """A receipt of one shard in two formats."""
    formats = {}
    for name in ("tfrecord", "recordio"):
        file = StoredFile(f"{name}/{shard}", 100 + shard, f"h{shard}")
        formats[name] = StoredShard(file, 2 + shard, ())
    return Receipt("f1", "train", shard, 2, formats, placed([], formats))


def test_entries_are_made_of_receipts() -> None:
    """The entry of a format adds up the receipts in shard order, with its label offset."""
    entries = format_entries([receipt(0), receipt(1)], {"tfrecord": 1, "recordio": 0})
    assert entries["tfrecord"] == FormatEntry(
        1,
        5,
        201,
        (ShardEntry("tfrecord/0", 100, 2, "h0"), ShardEntry("tfrecord/1", 101, 3, "h1")),
    )
    assert entries["recordio"].label_offset == 0


def test_shards_have_1_to_128_mb() -> None:
    """The bounds belong to the range, and the larger format decides."""
    sizes = (MB - 1, MB, 128 * MB, 128 * MB + 1)
    assert out_of_bounds({"a": entry(*sizes), "b": entry(MB, 0, 0, 0)}) == 1


PLACED = Row(0, "a.jpg", 1, "cats", "written", width=8, records={"tfrecord": (0, 90, 7)})
RECEIPT = Receipt(
    "f1",
    "train",
    0,
    3,
    {"tfrecord": StoredShard(StoredFile("tfrecord/x", 90, "aa", '"e"'), 1, ())},
    placed([PLACED, Row(1, r"b\x09.jpg", 0, "dogs", "failed", "broken", "corrupt")], ["tfrecord"]),
)


@given(receipt=receipts())
def test_receipts_come_back(receipt: Receipt) -> None:
    """A receipt is read back from JSON unchanged, and makes the same bytes again."""
    data = receipt.to_json()
    assert Receipt.from_json(data, "r") == receipt
    assert Receipt.from_json(data, "r").to_json() == data
    expected = [f for shard in receipt.formats.values() for f in (shard.file, *shard.indexes)]
    assert Receipt.from_json(data, "r").files == expected


@given(rows=st.lists(receipt_rows(["tfrecord", "recordio"]), max_size=5))
def test_rows_are_columns_and_back(rows: list[Row]) -> None:
    """A row is unchanged after it was part of columns, with positions in its formats."""
    assert placed(rows, ["tfrecord", "recordio"]).rows == rows


def test_rows_are_stored_as_columns() -> None:
    """The stored form has a column for each field, with null if there is no record."""
    content = json.loads(RECEIPT.to_json())
    assert content["schema"] == 1
    assert content["samples"]["source"] == ["a.jpg", r"b\x09.jpg"]
    assert content["samples"]["records"] == {"tfrecord": [[0, 90, 7], None]}
    assert content["samples"].keys() == set(Row._fields) - {"boxes", "values"}


def test_a_newer_receipt_is_refused() -> None:
    """A newer schema is refused by name, with any other content."""
    with pytest.raises(SchemaTooNew, match=r"receipts/x: schema 2; .* up to 1: upgrade"):
        Receipt.from_json(b'{"schema": 2}', "receipts/x")


@given(
    data=st.binary()
    | json_values.map(json.dumps).map(str.encode)
    | mutated(st.just(RECEIPT.to_json()))
    | st.integers(0, len(RECEIPT.to_json()) - 2).map(lambda size: RECEIPT.to_json()[:size])
)
def test_other_content_is_no_receipt(data: bytes) -> None:
    """Arbitrary bytes, JSON and damaged receipts read or raise a CorruptRecord, nothing else."""
    try:
        Receipt.from_json(data, "receipts/x")
    except SchemaTooNew:
        return
    except CorruptRecord as error:
        message = str(error)
    else:
        return
    assert message.startswith("receipts/x: not a receipt: ")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("width", -2),
        ("width", 2**31),
        ("exif_orientation", 128),
        ("source_bytes", "9"),
        ("label", 1.5),
        ("source", None),
    ],
)
def test_a_value_that_no_sample_has_is_refused(column: str, value: object) -> None:
    """A receipt with a number out of range or a value of another type is refused."""
    content = json.loads(RECEIPT.to_json())
    content["samples"][column][1] = value
    with pytest.raises(CorruptRecord, match=rf"not a receipt: .*{column}"):
        Receipt.from_json(json.dumps(content).encode(), "r")


def test_columns_of_other_lengths_are_refused() -> None:
    """A receipt whose columns differ in length is refused, including the records' column."""
    content = json.loads(RECEIPT.to_json())
    for column in (content["samples"]["source"], content["samples"]["records"]["tfrecord"]):
        last_value = column.pop()
        with pytest.raises(CorruptRecord, match="not a receipt"):
            Receipt.from_json(json.dumps(content).encode(), "r")
        column.append(last_value)
    assert Receipt.from_json(json.dumps(content).encode(), "r") == RECEIPT


@dataclass(frozen=True, slots=True)
class Inner:
    """A part of a file."""

    size: Count
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    """A file."""

    name: str
    parts: tuple[Inner, ...]
    points: tuple[tuple[int, int], ...]
    by_name: Mapping[str, Inner]
    config: Mapping[str, Any]
    share: float = 0.5


SOUND = Outer("a", (Inner(1), Inner(2, "e")), ((1, 2),), {"x": Inner(3)}, {"k": [None, 1.5]})


def sound_content() -> dict[str, Any]:
    """The content of a valid file."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(SOUND)))
    return content


def test_known_schemas_are_read() -> None:
    """Every schema up to the newest known one is read."""
    assert parse(b'{"schema": 1, "a": 2}', "file", 3) == {"schema": 1, "a": 2}
    assert parse(b'{"schema": 3}', "file", 3) == {"schema": 3}


def test_newer_schemas_are_refused_by_name() -> None:
    """The error has the file, both schema numbers and a remedy, and a class of its own."""
    with (
        pytest.raises(SchemaTooNew, match=r"file: schema 4; .* up to 3: upgrade"),
        malformed_as(DatasetError, "other"),
    ):
        parse(b'{"schema": 4}', "file", 3)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b"null", b'{"schema": "x"}', b'{"schema": 0}', b"\xff"]
)
def test_anything_else_is_one_error(data: bytes) -> None:
    """Every fault of a file is one error with the file's name."""
    with (
        pytest.raises(DatasetError, match="file: no good"),
        malformed_as(DatasetError, "file: no good"),
    ):
        parse(data, "file", 3)


def test_typed_content_comes_back() -> None:
    """Lists become tuples, and JSON objects become their dataclasses."""
    assert typed(Outer, sound_content()) == SOUND


def test_unknown_keys_are_ignored() -> None:
    """A later version can add keys, and keys with a default may be missing."""
    content = sound_content()
    content["novelty"] = content["parts"][0]["novelty"] = 1
    del content["share"], content["parts"][0]["etag"]
    assert typed(Outer, content) == SOUND


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["name"], 1),
        (["name"], None),
        (["parts"], {}),
        (["parts", 1, "size"], "2"),
        (["parts", 1, "size"], True),
        (["parts", 1, "size"], 2.5),
        (["parts", 1, "size"], -1),
        (["parts", 1, "size"], 2**63),
        (["parts", 1, "etag"], 7),
        (["points", 0], [1]),
        (["by_name", "x"], []),
        (["share"], "a half"),
    ],
)
def test_another_type_is_refused_with_its_key(path: list[Any], value: object) -> None:
    """A value of a wrong type is an error that names its key."""
    content: Any = sound_content()
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(ValueError, match=r"\.".join(map(str, path))):
        typed(Outer, content)


def test_a_missing_key_is_named() -> None:
    """The error has all keys that lead to the missing one."""
    content = sound_content()
    del content["by_name"]["x"]["size"]
    with pytest.raises(ValueError, match=r"'by_name\.x\.size': Field required"):
        typed(Outer, content)


def test_require() -> None:
    """A false condition raises the problem."""
    require(True, "never")
    with pytest.raises(ValueError, match="it is so"):
        require(False, "it is so")
