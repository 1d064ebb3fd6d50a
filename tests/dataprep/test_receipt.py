"""Tests of dataprep.receipt."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import CorruptRecord, SchemaTooNew
from dataprep.receipt import Receipt, Row, Samples, StoredFile, StoredShard, stored_files
from tests.strategies import json_values, mutated, receipts

PLACED = Row(0, "a.jpg", 1, "cats", "written", width=8, records={"tfrecord": (0, 90, 7)})
RECEIPT = Receipt(
    "f1",
    "train",
    0,
    3,
    {"tfrecord": StoredShard(StoredFile("tfrecord/x", 90, "aa", '"e"'), 1, ())},
    Samples.of(
        [PLACED, Row(1, r"b\x09.jpg", 0, "dogs", "failed", "broken", "corrupt")], ["tfrecord"]
    ),
)


@given(receipt=receipts())
def test_receipts_come_back(receipt: Receipt) -> None:
    """A receipt comes back from JSON as it was, and makes the same bytes again."""
    data = receipt.to_json()
    assert Receipt.from_json(data, "r") == receipt
    assert Receipt.from_json(data, "r").to_json() == data


def test_rows_are_stored_as_columns() -> None:
    """The stored form holds a column for each field, and null where there is no record."""
    content = json.loads(RECEIPT.to_json())
    assert content["schema"] == 1
    assert content["samples"]["source"] == ["a.jpg", r"b\x09.jpg"]
    assert content["samples"]["records"] == {"tfrecord": [[0, 90, 7], None]}
    assert content["samples"].keys() == set(Row._fields) - {"boxes", "values"}


def test_a_newer_receipt_is_refused() -> None:
    """A newer schema is refused by name, whatever else it holds."""
    with pytest.raises(SchemaTooNew, match=r"receipts/x: schema 2; .* up to 1: upgrade"):
        Receipt.from_json(b'{"schema": 2}', "receipts/x")


@given(
    data=st.binary()
    | json_values.map(json.dumps).map(str.encode)
    | mutated(st.just(RECEIPT.to_json()))
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


def test_columns_of_other_lengths_are_refused() -> None:
    """A receipt whose columns differ in length is none, the records' column included."""
    content = json.loads(RECEIPT.to_json())
    for column in (content["samples"]["source"], content["samples"]["records"]["tfrecord"]):
        kept = column.pop()
        with pytest.raises(CorruptRecord, match="not a receipt"):
            Receipt.from_json(json.dumps(content).encode(), "r")
        column.append(kept)
    assert Receipt.from_json(json.dumps(content).encode(), "r") == RECEIPT


def test_receipts_of_before_do_not_know_how_large_images_are() -> None:
    """A receipt without that column reads as if it were zero everywhere."""
    row = Row(0, "a", 0, "c", "written", image_bytes=7)
    receipt = Receipt("f", "train", 0, 1, {}, Samples.of([row]))
    content = json.loads(receipt.to_json())
    assert content["samples"].pop("image_bytes") == [7]
    (found,) = Receipt.from_json(json.dumps(content).encode(), "x").rows
    assert found.image_bytes == 0


@given(receipt=receipts())
def test_the_files_of_a_receipt_without_its_samples(receipt: Receipt) -> None:
    """What a receipt says of its objects, the shards first and their indexes behind each."""
    expected = [f for shard in receipt.formats.values() for f in (shard.file, *shard.indexes)]
    assert stored_files(receipt.to_json(), "r") == tuple(expected)


@given(length=st.integers(min_value=0, max_value=len(RECEIPT.to_json()) - 2))
def test_a_receipt_that_is_cut_short_has_no_files(length: int) -> None:
    """However much of it is left, it is no receipt."""
    with pytest.raises(CorruptRecord, match=r"^r: not a receipt"):
        stored_files(RECEIPT.to_json()[:length], "r")
