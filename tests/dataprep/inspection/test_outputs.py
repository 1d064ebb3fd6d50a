"""The splits of an output."""

from __future__ import annotations

import pytest

from dataprep.errors import DatasetError, ManifestMissing
from dataprep.inspection.outputs import Unfinished, summaries
from dataprep.inspection.summary import SplitSummary
from dataprep.stores.memory import MemoryStore
from tests.dataprep.inspection.held import Counting


def test_all(memory: MemoryStore) -> None:
    """Every split is told, from its manifest and its table of samples and nothing else."""
    store = Counting(memory.uri)
    found = summaries(store)
    assert [one.split for one in found] == ["train", "validation"]
    assert sorted(store.whole) == [
        "train.manifest.json",
        "train.samples.parquet",
        "validation.manifest.json",
        "validation.samples.parquet",
    ]
    assert store.ranges == []


def test_one(memory: MemoryStore) -> None:
    """One that is asked for is told alone."""
    (found,) = summaries(memory, "validation")
    assert found.split == "validation"
    with pytest.raises(ManifestMissing, match=r"'test'.*it has 'train' and 'validation'"):
        summaries(memory, "test")


def test_one_is_not_finished(memory: MemoryStore) -> None:
    """One without a manifest is told with what there is of it, beside those that are complete."""
    memory.delete("train.manifest.json")
    memory.delete(next(memory.list("receipts/train-")).key)
    train, validation = summaries(memory)
    assert isinstance(train, Unfinished)
    assert "1 of 2 shards are finished; run the same dataprep shard again" in train.why
    assert train.as_dict()["complete"] is False
    assert isinstance(validation, SplitSummary)


@pytest.mark.parametrize("content", [None, b"", b"PAR1"])
def test_no_table(memory: MemoryStore, content: bytes | None) -> None:
    """A table of samples that is missing or none is an error with its name."""
    memory.delete("train.samples.parquet")
    if content is not None:
        memory.put("train.samples.parquet", content)
    with pytest.raises(DatasetError, match=r"train\.samples\.parquet"):
        summaries(memory)


def test_the_table_of_another_split(memory: MemoryStore) -> None:
    """Figures of one split are never told under the name of another."""
    memory.put("train.samples.parquet", memory.get("validation.samples.parquet"))
    with pytest.raises(DatasetError, match=r"does not belong to train\.manifest\.json"):
        summaries(memory, "train")
