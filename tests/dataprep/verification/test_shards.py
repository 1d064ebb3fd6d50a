"""Of a shard and its receipt, the one that is wrong is named."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dataprep.verification import Depth
from tests.dataprep.verification.conftest import RECEIPT, Output

SHARD = "tfrecord/train-00001-of-00003"
INDEX = "index/recordio/train-00001-of-00003.lst"


def file(content: Any) -> Any:
    """What a receipt says of its shard in the first format."""
    return content["formats"]["tfrecord"]["file"]


def index(content: Any) -> Any:
    """What it says of an index."""
    return content["formats"]["recordio"]["indexes"][1]


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "no manifest"])
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda c: c["samples"]["records"]["tfrecord"][3].__setitem__(2, 7), "not agree with tf"),
        (lambda c: c["samples"]["records"]["tfrecord"][3].__setitem__(0, 7), "not agree with tf"),
        (lambda c: c["samples"]["records"]["tfrecord"][3].__setitem__(1, 7), "not agree with tf"),
        (lambda c: c["samples"]["label"].__setitem__(3, 9), "has label 9, the plan says"),
        (lambda c: c["samples"]["status"].__setitem__(3, "x"), "with their place"),
        (lambda c: file(c).update(sha256="0" * 64), f"its SHA-256 of {SHARD} is not"),
        (lambda c: file(c).update(key=SHARD + "x"), f"other objects than its shard's: {SHARD}x"),
        (lambda c: index(c).update(sha256="0" * 64), f"what it says of {INDEX} is not true"),
        (lambda c: index(c).update(bytes=7), f"what it says of {INDEX} is not true"),
    ],
    ids=["crc", "offset", "length", "label", "status", "sha256", "key", "index", "index size"],
)
def test_a_damaged_receipt(
    output: Output, edit: Callable[[Any], object], said: str, finished: bool
) -> None:
    """A receipt that is not true of an intact shard is named, and no other object."""
    output.change_json(RECEIPT.format(1), edit)
    if not finished:
        output.store.delete("train.manifest.json")
    faults = [fault for fault in output.faults() if fault.key != "train.manifest.json"]
    assert {fault.key for fault in faults} == {RECEIPT.format(1)}
    assert any(said in fault.what for fault in faults)


@pytest.mark.parametrize("depth", ["quick", "full"])
def test_a_size_that_is_not_true(output: Output, depth: Depth) -> None:
    """Where the manifest has the size that the shard has, the receipt is wrong."""
    output.change_json(RECEIPT.format(1), lambda c: file(c).update(bytes=7))
    faults = output.faults(depth)
    assert {fault.key for fault in faults} == {RECEIPT.format(1)}
    assert "says that tfrecord/train-00001-of-00003 has 7 bytes" in faults[0].what


@pytest.mark.parametrize("kind", [RECEIPT.format(2), SHARD, INDEX, "train.samples.parquet"])
def test_one_bit(output: Output, kind: str) -> None:
    """Wherever a bit is turned, that object is named, and no other."""
    chance = random.Random(kind)
    data = output.store.get(kind)
    for _ in range(12):
        damaged = bytearray(data)
        damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        output.store.put(kind, damaged)
        assert {fault.key for fault in output.faults()} == {kind}
