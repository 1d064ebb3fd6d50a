"""Connecting to a store and cleaning it, with the errors of both."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dataprep.errors import StoreError
from dataprep.stores import StoreOptions, open_store
from dataprep.stores.s3_bucket import S3Bucket
from iobench.errors import Unavailable
from iobench.probes.object_store.objects import clean, is_overload, location_of_run, open_reachable
from iobench.results.trial import Location, Outcome
from iobench.servers.fault_proxy import FaultProxy, Match, Rule, Status

pytestmark = pytest.mark.slow


def without_credentials(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Hide all AWS credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))


def test_no_credentials_are_said_to_be_missing(
    location: Location, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message says how to set credentials."""
    without_credentials(monkeypatch, tmp_path)
    with pytest.raises(Unavailable, match="no AWS credentials: set AWS_PROFILE"):
        open_reachable(location)
    options = location.store.model_copy(update={"profile": "nobody"})
    with pytest.raises(Unavailable, match="nobody"):
        open_reachable(Location(location.uri, "empty", options))


def test_a_missing_bucket_is_not_there(location: Location) -> None:
    """The message names the bucket and what to do."""
    missing = Location("s3://no-such-bucket-here/x", "empty", location.store)
    with pytest.raises(Unavailable, match="s3://no-such-bucket-here: no such bucket: create it"):
        open_reachable(missing)


def test_an_endpoint_that_does_not_answer_is_not_there(bucket: str) -> None:
    """The message names the endpoint and what to check."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{connection.getsockname()[1]}"
        with pytest.raises(Unavailable, match=f"no answer from {url}: check") as caught:
            open_reachable(Location(f"s3://{bucket}", "empty", StoreOptions(endpoint_url=url)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "passes"),
    [
        ("s3://b: 503: Service Unavailable", True),
        ("s3://b/k: SlowDown: Please reduce your request rate.", True),
        ("500", True),
        ("s3://b/5030: AccessDenied", False),
        ("s3://b/k: not found", False),
    ],
)
def test_overload_is_recognised(reason: str, passes: bool) -> None:
    """A status or code means overload, a number in a name does not."""
    assert is_overload(reason) == passes


def test_only_what_a_run_wrote_is_removed(
    trial: Callable[..., Outcome], location: Location
) -> None:
    """Objects of another run, and those beside the probes' prefix, stay."""
    store = open_store(location.uri, location.store)
    store.put("mine", b"data")
    trial(location_of_run(location, "run-1"))
    trial(location_of_run(location, "run-10"))
    theirs = {info.key for info in store.list("iobench-probe/run-10/")}
    assert len(theirs) == 5
    # Four objects are read, and one serves to open connections.
    assert clean(location, "run-1") == 5
    assert {info.key for info in store.list()} == {"mine", *theirs}
    assert clean(location, "run-1") == 0


def test_a_run_without_a_name_removes_nothing(location: Location) -> None:
    """A run without a name is refused, since its prefix would be that of all runs."""
    with pytest.raises(ValueError, match="a run without a name"):
        clean(location, "")


def test_uploads_of_killed_trials_are_aborted(location: Location) -> None:
    """Unfinished uploads of this run's probes are aborted; those of another run go on."""
    bucket = S3Bucket(location.uri, location.store)
    theirs = ["iobench-probe/run-10/multipart/0", "mine"]
    with closing(bucket.connect(attempts=2)) as client:
        for key in ("iobench-probe/run-1/multipart/0", *theirs):
            client.create_multipart_upload(Bucket=bucket.name, Key=bucket.prefix + key)
        clean(location, "run-1")
        left = client.list_multipart_uploads(Bucket=bucket.name)["Uploads"]
    assert sorted(upload["Key"] for upload in left) == [bucket.prefix + key for key in theirs]


def test_cleaning_needs_no_permission_to_list_uploads(
    location: Location, proxy: FaultProxy
) -> None:
    """Objects are removed without that permission."""
    own = location_of_run(location, "run-1")
    open_store(own.uri, own.store).put("read/1/00000", b"x")
    proxy.replace_rules([Rule(Match("GET", "uploads"), Status(403, "AccessDenied"))])
    assert clean(location, "run-1") == 1


def test_a_store_that_refuses_is_given_up_at_once(location: Location, proxy: FaultProxy) -> None:
    """Cleaning makes one request with one retry, so that a run ends soon."""
    proxy.replace_rules([Rule(Match(), Status(503, "SlowDown"))])
    patient = replace(location, store=location.store.model_copy(update={"max_attempts": 50}))
    with pytest.raises(StoreError, match="503"):
        clean(patient, "run-1")
    assert [request.method for request in proxy.requests] == ["HEAD", "HEAD"]
