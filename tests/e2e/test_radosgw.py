"""Whole jobs on the stricter of the two S3 servers."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dataprep.stores import StoreOptions
from dataprep.stores.s3 import S3Store
from tests.commandline import IN_ONE_PROCESS, JOB, Running, comparable, dataprep, objects
from tests.servers.radosgw import RadosGateway

if TYPE_CHECKING:
    from tests.e2e.conftest import Gate

pytestmark = pytest.mark.slow


def job(tree: Path, output: str, server: RadosGateway, *more: str) -> list[str]:
    """The command."""
    place = ["--source", str(tree), "--output", output, "--endpoint-url", server.url]
    return ["shard", *place, *JOB, "--workers", "1", *more]


def made(output: str, server: RadosGateway) -> dict[str, object]:
    """All but the receipts, which hold the store's own words."""
    found = comparable(objects(S3Store(output, StoreOptions(endpoint_url=server.url))))
    assert not [key for key in found if "lease" in key]
    return without_receipts(found)


def without_receipts(found: Mapping[str, object]) -> dict[str, object]:
    """Shards, indexes, labels, tables, manifests."""
    return {key: data for key, data in found.items() if not key.startswith("receipts/")}


def test_killed_and_resumed_and_verified(
    tree: Path,
    radosgw: RadosGateway,
    radosgw_bucket: str,
    gate: Gate,
    reference: Mapping[str, object],
) -> None:
    """The bytes of a run that was never killed, in a folder; every one of them is verified."""
    output = f"s3://{radosgw_bucket}/out"
    env = gate.kills_at("receipts/", 4)
    gated = output.replace("s3://", "gateds3://")
    killed = dataprep(*job(tree, gated, radosgw, *IN_ONE_PROCESS), env=env)
    assert killed.code == -signal.SIGKILL
    done = dataprep(*job(tree, output, radosgw, "--resume"))
    assert done.code == 0, done.err
    verified = dataprep("verify", output, "--deep", "--endpoint-url", radosgw.url)
    assert verified.code == 0, verified.out + verified.err
    assert made(output, radosgw) == without_receipts(reference)


def test_two_parts_at_once(
    tree: Path, radosgw: RadosGateway, radosgw_bucket: str, reference: Mapping[str, object]
) -> None:
    """Each under its own lease; what they make together is one run's."""
    output = f"s3://{radosgw_bucket}/parts"
    with ExitStack() as stack:
        running = [
            stack.enter_context(Running(*job(tree, output, radosgw, "--part", f"{i}/2")))
            for i in range(2)
        ]
        finished = [one.finish() for one in running]
    assert [one.code for one in finished] == [0, 0], [one.err for one in finished]
    done = dataprep("finalize", output, "--endpoint-url", radosgw.url)
    assert done.code == 0, done.err
    assert made(output, radosgw) == without_receipts(reference)
