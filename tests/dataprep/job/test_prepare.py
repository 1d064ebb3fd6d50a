"""What is done before the first shard, under the leases of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

import dataprep
from dataprep.errors import LeaseLost
from dataprep.sample import draw_tree
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from dataprep.stores.s3_leases import ObjectLease
from iobench.s3_server import MotoServer

_REMOVED = 2


def test_who_has_lost_the_lease_removes_nothing_more(
    tmp_path: Path, s3_server: MotoServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An --overwrite that stood still while it removed: another run writes there by now."""
    source = draw_tree(tmp_path / "photos", images=8, classes=2, seed=1).root
    options = StoreOptions(endpoint_url=s3_server.url)
    config = dataprep.ShardConfig.model_validate(
        {
            "source": str(source),
            "output": f"s3://{bucket}/out",
            "store": options,
            "dask": {"processes": False},
        }
    )
    dataprep.shard(config)
    store = S3Store(f"s3://{bucket}/out", options)
    before = {info.key for info in store.list()}
    removed: list[str] = []
    delete = S3Store.delete

    def counted(self: S3Store, key: str) -> None:
        if len(removed) == _REMOVED:
            monkeypatch.setattr(ObjectLease, "lost", lambda _: "another run has taken it over")
        delete(self, key)
        removed.append(key)

    monkeypatch.setattr(S3Store, "delete", counted)
    with pytest.raises(LeaseLost, match="another run has taken it over"):
        dataprep.shard(config, overwrite=True)
    left = {info.key for info in store.list() if not info.key.startswith("leases/")}
    assert before - left == set(removed)
    assert len(removed) == _REMOVED
