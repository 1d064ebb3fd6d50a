"""On a failing store a job completes correctly, or it stops with one line and can be resumed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import dataprep
from dataprep.drawn import draw_tree
from dataprep.errors import StoreError
from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from iobench.servers.fault_proxy import (
    Delay,
    Fault,
    FaultProxy,
    FlipByte,
    Match,
    Reset,
    Rule,
    SetHeader,
    Shorten,
    Stall,
    Status,
    Truncate,
)
from iobench.servers.moto_server import MotoServer
from tests.commandline import comparable, objects

pytestmark = [pytest.mark.s3, pytest.mark.slow]

KINDS: dict[str, tuple[Fault, str]] = {
    "500": (Status(500, "InternalError", "We encountered an internal error."), ""),
    "503": (Status(503, "SlowDown", "Please reduce your request rate."), ""),
    "denied": (Status(403, "AccessDenied", "Access Denied"), ""),
    "expired token": (Status(400, "ExpiredToken", "The provided token has expired."), ""),
    "reset": (Reset(), ""),
    "answer lost": (Reset("response"), ""),
    "slow": (Delay(0.05, "response"), ""),
    "no first byte": (Delay(600.0, "response"), "GET"),
    "stalled download": (Stall(600.0, 20), "GET"),
    "truncated download": (Truncate(50), "GET"),
    "short upload": (Shorten(50), "PUT"),
    "flipped byte downwards": (FlipByte(40), "GET"),
    "flipped byte upwards": (FlipByte(40, "upload"), "PUT"),
    "wrong ETag": (SetHeader("ETag", f'"{"0" * 32}"'), ""),
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few images. Read only."""
    return draw_tree(tmp_path_factory.mktemp("few") / "photos", images=12, classes=2, seed=3).root


def config(photos: Path, output: str, url: str) -> dataprep.ShardConfig:
    """The config of a job of one shard, with few retries."""
    values: dict[str, Any] = {
        "source": str(photos),
        "output": output,
        "format": ["tfrecord", "recordio"],
        "store": StoreOptions(endpoint_url=url, max_attempts=2, read_timeout_s=1),
        "dask": {"workers": 1, "processes": False, "retries": 1},
    }
    return dataprep.ShardConfig.model_validate(values)


def comparable_output(output: str, server: MotoServer) -> Mapping[str, object]:
    """All stored objects except locks."""
    content_by_key = objects(S3Store(output, StoreOptions(endpoint_url=server.url)))
    return comparable(
        {k: data for k, data in content_by_key.items() if not k.startswith("leases/")}
    )


@pytest.mark.parametrize("every", [7, 1], ids=["each 7th", "always"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault(kind: str, every: int, photos: Path, s3_server: MotoServer, bucket: str) -> None:
    """After a fault of the store, the same command completes the output with the same bytes.

    Each seventh request fails, or all requests fail after the job has begun. No object that was not
    stored correctly counts as complete.
    """
    fault, method = KINDS[kind]
    reference, output = f"s3://{bucket}/reference", f"s3://{bucket}/out"
    dataprep.shard(config(photos, reference, s3_server.url))
    match = Match(method or None, r"/out/(?!leases)", skip=3, every=every)
    with FaultProxy(s3_server.url, [Rule(match, fault)]) as proxy:
        with suppress(StoreError):
            dataprep.shard(config(photos, output, proxy.url))
        proxy.replace_rules([])
        dataprep.shard(config(photos, output, proxy.url))
    assert comparable_output(output, s3_server) == comparable_output(reference, s3_server)


@pytest.mark.smoke
def test_a_whole_job_on_a_store_that_stumbles(
    tree: Path, s3_server: MotoServer, bucket: str
) -> None:
    """If each ninth request fails once, the output is complete and verifies."""
    output = f"s3://{bucket}/out"
    rules = [Rule(Match(every=9), Status(503, "SlowDown", "Please reduce your rate."))]
    with FaultProxy(s3_server.url, rules) as proxy:
        options = StoreOptions(endpoint_url=proxy.url)
        values = {"source": str(tree), "output": output, "store": options}
        dataprep.shard(dataprep.ShardConfig.model_validate(values))
    (report,) = dataprep.verify(output, options=StoreOptions(endpoint_url=s3_server.url))
    assert not report.faults
