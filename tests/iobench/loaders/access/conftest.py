"""The same 120 samples on a disk and on S3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import dataprep
from dataprep.stores import StoreOptions, open_store
from iobench.clock import SystemClock
from iobench.results.trial import Context, Location
from iobench.servers.moto_server import MotoServer


@pytest.fixture(scope="module")
def locations(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, s3_server: MotoServer
) -> Iterator[dict[str, Location]]:
    """Yield the locations of shards in both formats and of files, each ``@disk`` and ``@s3``.

    The credentials of the S3 server are in the environment.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in MotoServer.ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.delenv("AWS_PROFILE", raising=False)
        output = tmp_path_factory.mktemp("access") / "out"
        bucket = f"access-{output.parent.name}"
        s3_server.create_bucket(bucket)
        config = {
            "source": str(tree),
            "output": str(output),
            "format": ("tfrecord", "recordio"),
            "image": {"mode": "exact", "size": 320, "upscale": True, "quality": 97},
            "shard_size": "1.2MB",
        }
        dataprep.shard(dataprep.ShardConfig.model_validate(config))
        options = StoreOptions(endpoint_url=s3_server.url)
        by_name: dict[str, Location] = {}
        for form, folder in (("shards", output), ("files", tree)):
            uri = f"s3://{bucket}/{form}"
            local, remote = open_store(folder), open_store(uri, options)
            for entry in local.list():
                remote.put(entry.key, local.get(entry.key))
            local_location = Location(str(folder), "shards" if form == "shards" else "files")
            by_name[f"{form}@disk"] = local_location
            by_name[f"{form}@s3"] = replace(local_location, uri=uri, store=options)
        yield by_name


@pytest.fixture
def context(locations: Mapping[str, Location], tmp_path: Path) -> Context:
    """Return the context of a trial on the real clock, with a scratch folder."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return Context(locations, SystemClock(), lambda done, unit: None, scratch)
