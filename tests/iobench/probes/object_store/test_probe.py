"""One trial against a real S3 endpoint, and what may go wrong with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from dataprep.errors import ConfigError, PermissionRefused
from dataprep.stores import open_store
from iobench.errors import TrialFailed, Unavailable
from iobench.faults import FaultProxy, Match, Rule, Status, Truncate
from iobench.probes.object_store.clients import CLIENTS
from iobench.probes.object_store.pool import PREFIX
from iobench.trial import Outcome, Place

RunTrial = Callable[..., Outcome]
READ = r"/iobench-probe/read/"
PARTS = {"object_bytes": 6_000_000, "part_bytes": 5 * 2**20}
METRICS = {
    *("mb_per_s", "requests_per_s", "bytes", "seconds", "requests"),
    *("errors", "retries", "cpu_cores", "notes"),
}


def stored(place: Place) -> list[str]:
    """Keys below the place."""
    return sorted(info.key for info in open_store(place.uri, place.store).list())


@pytest.mark.parametrize("client", CLIENTS.names())
@pytest.mark.parametrize("operation", ["get", "range_get", "put", "multipart"])
def test_every_operation_has_figures(trial: RunTrial, client: str, operation: str) -> None:
    """Six requests move six times the bytes, whichever client sends them."""
    params = PARTS if operation == "multipart" else {"object_bytes": 5_000}
    outcome = trial(client=client, operation=operation, **params)
    found = outcome.metrics
    assert found.keys() >= METRICS
    assert (found["requests"], found["errors"]) == (6, {})
    assert found["bytes"] == 6 * int(params["object_bytes"])
    assert found["seconds"] > 0
    assert found["mb_per_s"] == pytest.approx(found["bytes"] / found["seconds"] / 1e6)
    json.dumps(found, allow_nan=False)
    is_read = operation.endswith("get")
    assert (outcome.cold is not None and outcome.cold.label == "server cache unknown") == is_read


def test_reads_have_first_byte_and_body_apart(trial: RunTrial) -> None:
    """From twenty requests on both have a median, which lie within the total's."""
    found = trial(max_requests=20).metrics
    assert 0 < found["first_byte_s_p50"] <= found["total_s_p50"]
    assert 0 <= found["body_s_p50"] <= found["total_s_p50"]


def test_streams_read_different_objects_and_find_them_again(
    trial: RunTrial, proxy: FaultProxy
) -> None:
    """Four objects fill the pool, are read in turn, and are put once for two trials."""
    trial()
    first = [r for r in proxy.requests if READ in r.path]
    assert len({r.path for r in first if r.method == "GET"}) == 4
    proxy.clear()
    trial(connections=3)
    assert not [r for r in proxy.requests if r.method == "PUT"]


@pytest.mark.parametrize("operation", ["put", "multipart"])
def test_what_was_written_is_deleted(trial: RunTrial, place: Place, operation: str) -> None:
    """A trial that writes leaves the byte that connections are opened with, and no more."""
    trial(operation=operation, **PARTS)
    assert stored(place) == [PREFIX + "warm-up"]


@pytest.mark.parametrize("client", CLIENTS.names())
def test_failed_requests_are_counted_and_bring_no_bytes(
    trial: RunTrial, proxy: FaultProxy, client: str
) -> None:
    """One 503 and one broken body of six: four requests count."""
    get = Match("GET", READ + ".*", times=1)
    proxy.replace_rules(
        [
            Rule(get, Status(503, "SlowDown")),
            Rule(Match("GET", READ + ".*", skip=3, times=1), Truncate(100)),
        ]
    )
    found = trial(client=client, connections=1).metrics
    assert found["errors"] == {"503": 1, "truncated": 1}
    assert (found["requests"], found["bytes"], found["retries"]) == (4, 20_000, 0)


@pytest.mark.parametrize("client", CLIENTS.names())
def test_retries_are_counted(trial: RunTrial, place: Place, proxy: FaultProxy, client: str) -> None:
    """A 503 that passes is a retry and no error; those before the timed part do not count."""
    thrice = place.store.model_copy(update={"max_attempts": 3})
    proxy.replace_rules(
        [
            Rule(Match("GET", READ, times=1), Status(503, "SlowDown")),
            Rule(Match("GET", "/warm-up", times=1), Status(503, "SlowDown")),
        ]
    )
    found = trial(Place(place.uri, "empty", thrice), client=client, connections=1).metrics
    assert (found["errors"], found["retries"], found["requests"]) == ({}, 1, 6)
    assert [r.status for r in proxy.requests if "/warm-up" in r.path][2:] == [503, 206]


@pytest.mark.parametrize("client", CLIENTS.names())
def test_a_trial_without_permission_fails(trial: RunTrial, proxy: FaultProxy, client: str) -> None:
    """A bucket whose objects may not be read is a failure that says what to check."""
    proxy.replace_rules([Rule(Match("GET", READ), Status(403, "AccessDenied", "Access Denied"))])
    with pytest.raises(TrialFailed, match=r"permission refused .*AccessDenied.*bucket's policy"):
        trial(client=client)


def test_a_bucket_without_permission_fails(trial: RunTrial, proxy: FaultProxy) -> None:
    """A bucket that may not be looked into is a failure, not a target that is missing."""
    proxy.replace_rules([Rule(Match(), Status(403, "AccessDenied", "Access Denied"))])
    with pytest.raises(PermissionRefused, match="check the credentials and the bucket's policy"):
        trial()


def test_a_store_that_never_answers_well_fails(trial: RunTrial, proxy: FaultProxy) -> None:
    """The reason has the status and what the store said."""
    proxy.replace_rules([Rule(Match("GET", READ), Status(500, "InternalError", "We are sorry."))])
    with pytest.raises(TrialFailed, match="every request failed, 6 of 6 with 500 InternalError"):
        trial()


def test_what_cannot_be_deleted_is_noted(trial: RunTrial, proxy: FaultProxy) -> None:
    """A bucket that keeps everything still has figures."""
    proxy.replace_rules([Rule(Match("DELETE"), Status(403, "AccessDenied", "Locked"))])
    found = trial(operation="put").metrics
    assert found["requests"] == 6
    assert "could not be deleted" in found["notes"][0]


def test_a_client_that_is_not_installed_is_skipped(
    trial: RunTrial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason names the extra."""
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unavailable, match=r"pip install 'dataprep-iobench\[bench\]'"):
        trial(client="obstore")


def test_an_unknown_client_is_refused(trial: RunTrial) -> None:
    """The reason lists those that are known."""
    with pytest.raises(ConfigError, match=r"no object-store client 'curl': use one of .*boto3"):
        trial(client="curl")


def test_a_store_without_a_place_is_skipped(trial: RunTrial) -> None:
    """A label that no target has is not there."""
    with pytest.raises(Unavailable, match="no object store is called 'elsewhere'"):
        trial(store="elsewhere")
