"""Receipts that belong to another job."""

from __future__ import annotations

import dataclasses

import pytest

from dataprep import keys
from dataprep.errors import JobError
from dataprep.job.finish import read_back
from dataprep.job.jobfile import JobFile
from dataprep.manifest import Receipt
from dataprep.stores.memory import MemoryStore


def test_a_receipt_of_another_job_is_refused(changeable: MemoryStore) -> None:
    """A split is not completed from a receipt with another fingerprint."""
    job = JobFile.from_json(changeable.get(keys.job("train")), "train.job.json")
    key = keys.receipt("train", 0, job.shards)
    receipt = Receipt.from_json(changeable.get(key), key)
    other = dataclasses.replace(receipt, fingerprint="0" * 64)
    changeable.put(key, other.to_json())
    with pytest.raises(JobError, match="belongs to another job"):
        read_back(changeable, job, range(job.shards), None)
