"""A location on the session's S3 server, and a function that runs one trial there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dataprep.stores import StoreOptions
from iobench.clock import SystemClock
from iobench.probes.object_store.probe import run
from iobench.results.trial import Context, Location, Outcome, TrialSpec
from iobench.servers.fault_proxy import FaultProxy
from iobench.servers.moto_server import MotoServer

SMALL = {
    "store": "s3",
    "client": "boto3",
    "operation": "get",
    "object_bytes": 5_000,
    "connections": 2,
    "seconds": 600.0,
    "max_requests": 6,
    "pool_bytes": 20_000,
}
RunTrial = Callable[..., Outcome]


@pytest.fixture
def proxy(s3_server: MotoServer) -> Iterator[FaultProxy]:
    """Yield a proxy without rules, in front of the S3 server."""
    with FaultProxy(s3_server.url) as running:
        yield running


@pytest.fixture
def location(bucket: str, proxy: FaultProxy) -> Location:
    """Return a prefix of a new bucket behind the proxy; requests are tried once."""
    options = StoreOptions(endpoint_url=proxy.url, max_attempts=1)
    return Location(f"s3://{bucket}/a/prefix", "empty", options)


@pytest.fixture
def trial(location: Location) -> RunTrial:
    """Return a function that runs a trial at ``location``, by default with six requests."""

    def run_trial(at: Location = location, **params: object) -> Outcome:
        context = Context({"store/s3": at}, SystemClock(), lambda done, unit: None)
        return run(TrialSpec("object", {**SMALL, **params}), context)

    return run_trial
