"""The probes do the same work as fio and s5cmd. ``make bench`` compares their speed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dataprep.stores import StoreOptions
from iobench.clock import SystemClock
from iobench.errors import Unavailable
from iobench.machine import processes
from iobench.machine.coldness import IN_MEMORY
from iobench.machine.mounts import file_system
from iobench.probes import disk
from iobench.probes.object_store import probe as objects
from iobench.results.trial import Context, Location, Outcome, TrialSpec
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.moto_server import MotoServer
from tests.programs import find_program

FILE_BYTES = 2**23


def on_disk(folder: Path, **settings: Any) -> Outcome:
    """Run a disk trial that ends with its file, and not with its time."""
    params = {
        "target": "here",
        "file_bytes": FILE_BYTES,
        "seconds": 600.0,
        "parallelism": 2,
        **settings,
    }
    context = Context(
        {"disk/here": Location(os.fspath(folder), "empty")}, SystemClock(), lambda done, unit: None
    )
    return disk.run(TrialSpec("disk", params), context)


@pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("block_bytes", [2**17, 2**20])
@pytest.mark.parametrize("pattern", ["sequential", "random"])
@pytest.mark.parametrize(
    ("operation", "cache"), [("read", "direct"), ("read", "cold"), ("write", "direct")]
)
def test_fio_moves_the_same_blocks(
    tmp_path: Path, operation: str, cache: str, pattern: str, block_bytes: int
) -> None:
    """fio and the probe do as many operations of one size, either both from storage or neither."""
    if file_system(tmp_path) in IN_MEMORY:
        pytest.skip("the temporary folder is in memory")
    reported = {
        "operation": operation,
        "cache": cache,
        "pattern": pattern,
        "block_bytes": block_bytes,
    }
    try:
        own, peer = on_disk(tmp_path, **reported), on_disk(tmp_path, **reported, engine="fio")
    except Unavailable as error:
        pytest.skip(str(error))
    for key, value in (("bytes", FILE_BYTES), ("operations", FILE_BYTES // block_bytes)):
        assert (own.metrics[key], peer.metrics[key]) == (value, value)
    assert (own.cold and own.cold.label) == (peer.cold and peer.cold.label)


def test_s5cmd_reads_the_same_objects(bucket: str, s3_server: MotoServer) -> None:
    """s5cmd and the probe read as many bytes of as many objects, through the same proxy."""
    if processes.find_program("s5cmd") is None:
        pytest.skip("s5cmd is not installed")
    with FaultProxy(s3_server.url) as proxy:
        location = Location(f"s3://{bucket}/a", "empty", StoreOptions(endpoint_url=proxy.url))
        read = {}
        for client in ("boto3", "s5cmd"):
            params = {
                "store": "s3",
                "client": client,
                "operation": "get",
                "object_bytes": 100_000,
                "connections": 1,
                "seconds": 600.0,
                "max_requests": 8,
                "pool_bytes": 800_000,
            }
            context = Context({"store/s3": location}, SystemClock(), lambda done, unit: None)
            proxy.clear()
            outcome = objects.run(TrialSpec("object", params), context)
            got = [r for r in proxy.requests if r.method == "GET" and "/read/100000/" in r.path]
            read[client] = sorted((r.path.partition("?")[0], r.response_bytes) for r in got)
            assert (outcome.metrics["requests"], outcome.metrics["bytes"]) == (8, 800_000)
        assert read["boto3"] == read["s5cmd"]
        assert len(read["boto3"]) == 8
