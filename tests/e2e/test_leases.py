"""Two runs of one output: parts together, anything else one after the other."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dataprep.stores import StoreOptions, open_store
from iobench.s3_server import MotoServer
from tests.commandline import (
    IN_ONE_PROCESS,
    JOB,
    Running,
    comparable,
    dataprep,
    objects,
    wait_until,
)

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


@pytest.fixture(params=["gated", "gateds3"])
def output(
    request: pytest.FixtureRequest, tmp_path: Path, bucket: str, s3_server: MotoServer
) -> str:
    """Behind a gate, here and on S3."""
    return f"gated://{tmp_path}/out" if request.param == "gated" else f"gateds3://{bucket}/out"


def given(tree: Path, output: str, s3_server: MotoServer) -> list[str]:
    """The job's arguments."""
    endpoint = ["--endpoint-url", s3_server.url] if "s3://" in output else []
    return ["--source", str(tree), *JOB, *IN_ONE_PROCESS, "--output", output, *endpoint]


def made(output: str, s3_server: MotoServer) -> dict[str, object]:
    """What can be compared with an output elsewhere: receipts hold the store's own words."""
    options = StoreOptions(endpoint_url=s3_server.url if "s3://" in output else None)
    found = comparable(objects(open_store(plain(output), options)))
    assert not [key for key in found if "lease" in key]
    return shards_of(found)


def shards_of(found: Mapping[str, object]) -> dict[str, object]:
    """Shards, indexes, labels, manifests."""
    return {key: data for key, data in found.items() if not key.startswith("receipts/")}


def plain(output: str) -> str:
    """The same place without the gate."""
    return output.removeprefix("gated://").replace("gateds3://", "s3://")


def test_nobody_else_writes_while_a_job_runs(
    tree: Path,
    output: str,
    s3_server: MotoServer,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """Refused in a line, with nothing changed; the first ends as if alone."""
    job = given(tree, output, s3_server)
    with Running("shard", *job, env=gate.waits_at("receipts/", 1)) as running:
        wait_until(lambda: gate.reached, "the first receipt")
        for second in ((), ("--overwrite",), ("--part", "0/2")):
            refused = dataprep("shard", *given(tree, plain(output), s3_server), *second)
            assert refused.code == 2
            (line,) = refused.complaints
            assert "another run is making split 'train'" in line
        gate.open()
        assert running.finish().code == 0
    assert made(output, s3_server) == shards_of(reference)


def test_parts_run_together_and_a_dead_one_keeps_nothing(
    tree: Path,
    output: str,
    s3_server: MotoServer,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """A part beside one that waits; the same part again only once that is gone."""
    job = given(tree, output, s3_server)
    free = given(tree, plain(output), s3_server)
    with Running("shard", *job, "--part", "0/2", env=gate.waits_at("receipts/", 1)) as running:
        wait_until(lambda: gate.reached, "the first receipt")
        assert dataprep("shard", *free, "--part", "1/2").code == 0
        for others in (("--part", "0/2"), ("--part", "1/3"), ()):
            refused = dataprep("shard", *free, *others)
            assert refused.code == 2
            assert "another run is making part 0/2 of split 'train'" in refused.err
        running.send(signal.SIGKILL)
    assert dataprep("shard", *free).code == 0
    assert made(output, s3_server) == shards_of(reference)
