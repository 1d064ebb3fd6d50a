"""Which shards of a job count as stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dataprep import keys
from dataprep.job.jobfile import JobFile
from dataprep.job.resume import stored_shards
from dataprep.stores import ObjectInfo
from dataprep.stores.memory import MemoryStore


@pytest.fixture
def job(changeable: MemoryStore) -> JobFile:
    """The job that the copy was made by."""
    return JobFile.from_json(changeable.get(keys.job("train")), "train.job.json")


def test_all_of_a_finished_job(changeable: MemoryStore, job: JobFile) -> None:
    """Every shard is."""
    assert stored_shards(changeable, job) == list(range(job.shards))


@pytest.mark.parametrize("folder", ["tfrecord/", "index/recordio/", "receipts/"])
def test_a_listing_that_still_shows_what_is_gone(
    changeable: MemoryStore, job: JobFile, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is listed and not there is no stored shard."""
    listed = list(changeable.list())
    gone = min(info.key for info in listed if info.key.startswith(folder))
    changeable.delete(gone)

    def lagging(store: MemoryStore, prefix: str = "") -> Iterator[ObjectInfo]:
        return iter(listed)

    monkeypatch.setattr(MemoryStore, "list", lagging)
    assert stored_shards(changeable, job) == list(range(1, job.shards))


def test_a_listing_that_does_not_show_what_is_there(
    changeable: MemoryStore, job: JobFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made again, to the same bytes."""
    monkeypatch.setattr(MemoryStore, "list", lambda store, prefix="": iter(()))
    assert stored_shards(changeable, job) == []
