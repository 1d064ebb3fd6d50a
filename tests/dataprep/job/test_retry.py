"""What of a split is to be tried again, by its receipts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dataprep
from dataprep import keys
from dataprep.job.retry import retries
from dataprep.job.stored import stored_job, stored_plan
from dataprep.stores import open_store


@pytest.mark.parametrize(
    ("kind", "crashed"), [("corrupt", False), ("crashed", True), ("hung", True)]
)
def test_samples_that_crashed(images: Path, tmp_path: Path, kind: str, crashed: bool) -> None:
    """They are told from others that failed: they would end the program that tries them again."""
    output = tmp_path / "out"
    config = dataprep.ShardConfig.model_validate(
        {"source": str(images), "output": str(output), "image": {"size": 48}}
    )
    dataprep.shard(config)
    store = open_store(output)
    job = stored_job(store, "train")
    assert job is not None
    plan = stored_plan(store, "train", job)
    assert not retries(store, job, plan, failed=True).crashed
    key = keys.receipt("train", 0, job.shards)
    receipt = json.loads(store.get(key))
    receipt["samples"]["status"][3] = "failed"
    receipt["samples"]["kind"][3] = kind
    store.put(key, json.dumps(receipt).encode())
    found = retries(store, job, plan, failed=True)
    assert found.crashed is crashed
    assert found.names == {plan.names[3]}
    assert found.shards == (0,)
    assert not retries(store, job, plan, failed=False).crashed
