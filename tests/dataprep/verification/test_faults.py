"""What verification says is wrong, and what mends it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import dataprep
from dataprep.verification import Depth, Fault
from tests.commandline import comparable, objects
from tests.dataprep.verification.conftest import RECEIPT, Output, job

pytestmark = pytest.mark.slow

SHARD, INDEX = "tfrecord/train-00001-of-00003", "index/recordio/train-00000-of-00003.idx"
TABLE, MANIFEST = "train.samples.parquet", "train.manifest.json"


def flip(data: bytearray) -> None:
    """Turn a bit in the middle."""
    data[len(data) // 2] ^= 1


def cut(data: bytearray) -> None:
    """Leave half."""
    del data[len(data) // 2 :]


@pytest.mark.parametrize("damage", [flip, cut, bytearray.clear], ids=["flip", "cut", "empty"])
@pytest.mark.parametrize(
    "key",
    [SHARD, INDEX, RECEIPT.format(2), TABLE, MANIFEST, "labels.json", "train.plan.parquet"],
)
@pytest.mark.parametrize("depth", ["quick", "full"])
def test_what_is_said_mends_it(
    tree: Path,
    clean: Mapping[str, bytes],
    output: Output,
    key: str,
    damage: Callable[[bytearray], None],
    depth: Depth,
) -> None:
    """Who does what verify says, has the very output again."""
    output.change(key, damage)
    found = output.verify(depth)
    if depth == "quick" and damage is flip and found.ok:
        return
    assert found.mending in str(found)
    assert found.mending.endswith("run the same dataprep shard again: it makes anew what lacks")
    for fault in found.faults:
        assert fault.remedy is not None
        if fault.remedy:
            assert fault.remedy in found.mending
            output.store.delete(fault.remedy)
    dataprep.shard(job(tree, output.store))
    assert output.verify().ok
    assert comparable(objects(output.store)) == comparable(clean)


def test_many_are_counted(output: Output) -> None:
    """Of many objects to delete the first are named."""
    strays = [f"tfrecord/train-0000{i}-of-00009" for i in range(8)]
    for key in strays:
        output.store.put(key, b"stray")
    mending = output.verify("quick").mending
    assert mending.startswith(f"delete {', '.join(strays[:5])} and 3 more, then run the same")


def test_a_place_in_words() -> None:
    """Record and offset are told where they are known."""
    assert str(Fault("a", "b")) == "a: b"
    assert str(Fault("a", "b", 3, 70)) == "a, record 3, byte offset 70: b"
    assert str(Fault.of(ValueError("a: b"), "a")) == "a: b"
