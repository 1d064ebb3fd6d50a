"""Which shards of a job count as stored, and which receipts complete it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from dataprep import keys
from dataprep.errors import JobError
from dataprep.job.finish import read_back
from dataprep.job.jobfile import JobFile
from dataprep.job.resume import stored_shards
from dataprep.manifest import Receipt
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


def test_a_receipt_of_another_job_is_refused(changeable: MemoryStore) -> None:
    """A split is not completed from a receipt with another fingerprint."""
    job = JobFile.from_json(changeable.get(keys.job("train")), "train.job.json")
    key = keys.receipt("train", 0, job.shards)
    receipt = Receipt.from_json(changeable.get(key), key)
    other = dataclasses.replace(receipt, fingerprint="0" * 64)
    changeable.put(key, other.to_json())
    with pytest.raises(JobError, match="belongs to another job"):
        read_back(changeable, job, range(job.shards), None)
