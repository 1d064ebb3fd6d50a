"""Single trials at a real S3 server, and their failures."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from dataprep.errors import ConfigError, PermissionRefused
from dataprep.stores import open_store
from iobench.errors import TrialFailed, Unavailable
from iobench.results.trial import Location, Outcome
from iobench.servers.fault_proxy import FaultProxy, Match, Rule, Status, Truncate
from tests.iobench.probes.object_store.kinds import COPY_CLIENTS, REQUEST_CLIENTS

pytestmark = pytest.mark.slow

RunTrial = Callable[..., Outcome]
READ = r"/a/prefix/read/"
PARTS = {"object_bytes": 6_000_000, "part_bytes": 5 * 2**20}
METRICS = {
    *("mb_per_s", "requests_per_s", "bytes", "seconds", "requests"),
    *("errors", "retries", "refused", "cpu_cores", "cpu_s_per_gb", "notes"),
}


def stored_keys(location: Location) -> list[str]:
    """List the keys below the location."""
    return sorted(info.key for info in open_store(location.uri, location.store).list())


@pytest.mark.parametrize("client", REQUEST_CLIENTS)
@pytest.mark.parametrize("operation", ["get", "range_get", "put", "multipart"])
def test_every_operation_has_figures(
    trial: RunTrial, location: Location, client: str, operation: str
) -> None:
    """Six requests move six times the bytes; written objects are deleted."""
    params = PARTS if operation == "multipart" else {"object_bytes": 5_000}
    outcome = trial(client=client, operation=operation, **params)
    metrics = outcome.metrics
    assert metrics.keys() >= METRICS
    assert (metrics["requests"], metrics["errors"]) == (6, {})
    assert metrics["bytes"] == 6 * int(params["object_bytes"])
    assert metrics["seconds"] > 0
    assert metrics["mb_per_s"] == pytest.approx(metrics["bytes"] / metrics["seconds"] / 1e6)
    json.dumps(metrics, allow_nan=False)
    is_read = operation.endswith("get")
    assert is_read or stored_keys(location) == ["warm-up"]
    assert (outcome.cold is not None and outcome.cold.label == "server cache unknown") == is_read


@pytest.mark.parametrize("client", COPY_CLIENTS)
def test_programs_copy_all_objects(trial: RunTrial, client: str) -> None:
    """Four objects are copied twice, which is more than six requests."""
    try:
        outcome = trial(client=client)
    except Unavailable as error:
        pytest.skip(str(error))
    metrics = outcome.metrics
    assert metrics.keys() >= METRICS
    assert (metrics["requests"], metrics["bytes"], metrics["retries"]) == (8, 8 * 5_000, None)
    assert metrics["cpu_s_per_gb"] > 0
    assert outcome.cold is not None
    assert outcome.cold.label == "server cache unknown"


@pytest.mark.parametrize("operation", ["range_get", "put", "multipart"])
def test_programs_do_nothing_else(
    trial: RunTrial, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """Ranges and writes are unavailable, and the message says what is supported."""
    monkeypatch.setattr("iobench.probes.object_store.copy_clients.find_program", lambda name: name)
    with pytest.raises(Unavailable, match="s5cmd copies whole objects: it supports get only"):
        trial(client="s5cmd", operation=operation)


def test_streams_read_different_objects_and_find_them_again(
    trial: RunTrial, proxy: FaultProxy
) -> None:
    """Four objects fill the pool, are read in turn, and are put once for two trials."""
    metrics = trial(max_requests=20).metrics
    assert 0 < metrics["first_byte_s_p50"] <= metrics["total_s_p50"]
    assert 0 <= metrics["body_s_p50"] <= metrics["total_s_p50"]
    first = [r for r in proxy.requests if READ in r.path]
    assert len({r.path for r in first if r.method == "GET"}) == 4
    proxy.clear()
    trial(connections=3)
    assert not [r for r in proxy.requests if r.method == "PUT" and READ in r.path]


@pytest.mark.parametrize("client", REQUEST_CLIENTS)
def test_failed_requests_are_counted_and_bring_no_bytes(
    trial: RunTrial, proxy: FaultProxy, client: str
) -> None:
    """One of six requests is refused and one breaks off, so four count."""
    refused = Rule(Match("GET", READ + ".*", times=1), Status(503, "SlowDown"))
    cut = Rule(Match("GET", READ + ".*", skip=3, times=1), Truncate(100))
    proxy.replace_rules([refused, cut])
    metrics = trial(client=client, connections=1).metrics
    # awscrt reports a truncated body as a failed connection, since it reads whole bodies.
    broken = "connection" if client == "awscrt" else "truncated"
    assert metrics["errors"] == {"503": 1, broken: 1}
    assert (metrics["requests"], metrics["bytes"], metrics["retries"]) == (4, 20_000, 0)


@pytest.mark.parametrize("client", REQUEST_CLIENTS)
def test_retries_are_counted(
    trial: RunTrial, location: Location, proxy: FaultProxy, client: str
) -> None:
    """A 503 followed by success is a retry; retries before the timed part do not count."""
    options = location.store.model_copy(update={"max_attempts": 3})
    refusal = Status(503, "SlowDown")
    rules = [Rule(Match("GET", pattern, times=1), refusal) for pattern in (READ, "/warm-up")]
    proxy.replace_rules(rules)
    three_attempts = Location(location.uri, "empty", options)
    metrics = trial(three_attempts, client=client, connections=1).metrics
    assert (metrics["errors"], metrics["retries"], metrics["requests"]) == ({}, 1, 6)
    assert metrics["refused"] == 1
    assert [r.status for r in proxy.requests if "/warm-up" in r.path][2:] == [503, 206]


@pytest.mark.parametrize("client", REQUEST_CLIENTS)
def test_a_trial_without_permission_fails(trial: RunTrial, proxy: FaultProxy, client: str) -> None:
    """If objects cannot be read, the message says what to check."""
    proxy.replace_rules([Rule(Match("GET", READ), Status(403, "AccessDenied", "Access Denied"))])
    with pytest.raises(TrialFailed, match=r"permission refused .*AccessDenied.*bucket's policy"):
        trial(client=client)


def test_a_bucket_without_permission_fails(trial: RunTrial, proxy: FaultProxy) -> None:
    """A bucket that cannot be listed fails the trial; it is not a missing target."""
    proxy.replace_rules([Rule(Match(), Status(403, "AccessDenied", "Access Denied"))])
    with pytest.raises(PermissionRefused, match="check the credentials and the bucket's policy"):
        trial()


def test_a_store_that_never_answers_well_fails(trial: RunTrial, proxy: FaultProxy) -> None:
    """The message has the status and the store's message."""
    proxy.replace_rules([Rule(Match("GET", READ), Status(500, "InternalError", "We are sorry."))])
    with pytest.raises(TrialFailed, match="every request failed, 6 of 6 with 500 InternalError"):
        trial()


def test_a_store_that_refuses_from_the_beginning_fails(trial: RunTrial, proxy: FaultProxy) -> None:
    """The trial fails before it writes, and the message says what to do."""
    proxy.replace_rules([Rule(Match(), Status(503, "SlowDown", "Please reduce your rate."))])
    with pytest.raises(TrialFailed, match=r"503.*: the store refuses requests for now: try again"):
        trial()
    assert {request.method for request in proxy.requests} == {"HEAD"}


@pytest.mark.parametrize("client", ["boto3", "obstore"])
def test_requests_that_are_sent_again_are_said_while_they_are(
    trial: RunTrial,
    location: Location,
    proxy: FaultProxy,
    client: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The last line of a killed trial becomes its reason, so it reports the retries."""
    refuse = Rule(Match("GET", READ, times=4), Status(503, "SlowDown"))
    proxy.replace_rules([refuse])
    patient = replace(location, store=location.store.model_copy(update={"max_attempts": 8}))
    assert trial(patient, client=client).metrics["retries"] >= 4
    last = capfd.readouterr().err.strip().splitlines()[-1]
    assert re.fullmatch(r"\d requests sent again: the store refuses .*", last)


def test_objects_that_cannot_be_deleted_are_noted(trial: RunTrial, proxy: FaultProxy) -> None:
    """A bucket that refuses to delete still has figures."""
    proxy.replace_rules([Rule(Match("DELETE"), Status(403, "AccessDenied", "Locked"))])
    metrics = trial(operation="put").metrics
    assert metrics["requests"] == 6
    assert "could not be deleted" in metrics["notes"][0]


def test_missing_clients_and_labels_are_skipped(
    trial: RunTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missing clients and unknown labels are unavailable; unknown clients are an error."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unavailable, match=r"pip install 'dataprep-iobench\[bench\]'"):
        trial(client="obstore")
    with pytest.raises(Unavailable, match="no object store is called 'elsewhere'"):
        trial(store="elsewhere")
    with pytest.raises(ConfigError, match=r"no object-store client 'curl': use one of .*boto3"):
        trial(client="curl")
