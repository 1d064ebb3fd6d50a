"""Retries and addresses of all S3 clients, and errors of their libraries."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore import exceptions as boto

from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import S3Bucket
from iobench.clock import VirtualClock
from iobench.probes.object_store.clients import RequestFailed
from iobench.probes.object_store.native_clients import AwscrtClient, ObstoreClient
from iobench.probes.object_store.s3_client import Body, Boto3Client, S3Client, address_of
from iobench.results.trial import Location

HERE = "http://127.0.0.1:9"


class Failing(S3Client):
    """Fails with each status in turn, then succeeds."""

    def __init__(self, attempts: int, *statuses: str) -> None:
        self.clock = VirtualClock()
        options = StoreOptions(max_attempts=attempts)
        super().__init__(Location("s3://bucket", "empty", options), 1, self.clock)
        self.statuses = list(statuses)

    def _get(self, key: str, span: range | None) -> Body:
        if self.statuses:
            status = self.statuses.pop(0)
            raise RequestFailed(status, f"{status} for a test")
        return 7, None

    def _put(self, key: str, data: bytes, part_bytes: int | None) -> Body:
        return self._get(key, None)

    @staticmethod
    def failure(error: Any) -> RequestFailed:
        """Fail, since this client has no library."""
        raise NotImplementedError


@pytest.mark.parametrize("status", ["429", "500", "503", "connection", "timeout"])
def test_passing_errors_are_retried_and_counted(status: str) -> None:
    """Each retry is counted, after a wait."""
    client = Failing(5, status, status)
    assert client.multipart("key", b"", 5).bytes == 7
    assert client.retries == 2
    assert client.refused == (2 if status in ("429", "503") else 0)
    assert 0.2 <= client.clock.now_s() <= 0.6


@pytest.mark.parametrize(
    ("status", "attempts", "retries"),
    [
        ("400", 5, 0),
        ("403", 5, 0),
        ("404", 5, 0),
        ("416", 5, 0),
        ("truncated", 5, 0),
        ("503", 1, 0),
        ("503", 3, 2),
    ],
)
def test_the_last_failure_is_raised(status: str, attempts: int, retries: int) -> None:
    """Refusals fail at once; other failures are tried ``max_attempts`` times in all."""
    client = Failing(attempts, *[status] * 9)
    with pytest.raises(RequestFailed, match=status):
        client.put("key", b"")
    assert client.retries == retries
    with pytest.raises(RequestFailed, match=status):
        client.get_range("key", 0, 7)
    assert (client.clock.now_s() > 0) == (retries > 0)


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_the_environment_is_asked_last(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Options have precedence over the environment; an empty variable has no effect."""

    def endpoint(url: str | None = None) -> str | None:
        return address_of(S3Bucket("s3://bucket", StoreOptions(endpoint_url=url))).endpoint

    for variable in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert endpoint() is None
    monkeypatch.setenv(name, "")
    assert endpoint() is None
    monkeypatch.setenv(name, "http://elsewhere")
    assert endpoint() == "http://elsewhere"
    assert endpoint(HERE) == HERE


OWN = "endpoint_url = http://elsewhere\n"
PROFILES = {
    "profile": f"[default]\n{OWN}",
    "service": f"[default]\nservices = own\n[services own]\ns3 =\n  {OWN}",
    "ignored": f"[default]\n{OWN}ignore_configured_endpoint_urls = true\n",
    "region": "[default]\nregion = eu-west-1\n",
}


@pytest.mark.parametrize(
    ("profile", "endpoint"),
    [
        ("profile", "http://elsewhere"),
        ("service", "http://elsewhere"),
        ("ignored", None),
        ("region", None),
    ],
)
def test_all_clients_have_the_endpoint_of_the_profile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, profile: str, endpoint: str | None
) -> None:
    """The endpoint of the profile is used as boto3 uses it, and the bucket is then in the path."""
    for variable in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    profiles = tmp_path / "config"
    profiles.write_text(PROFILES[profile])
    monkeypatch.setenv("AWS_CONFIG_FILE", str(profiles))
    address = address_of(S3Bucket("s3://bucket"))
    assert (address.endpoint, address.in_path) == (endpoint, endpoint is not None)
    assert address_of(S3Bucket("s3://bucket", StoreOptions(endpoint_url=HERE))).endpoint == HERE


REFUSAL: Any = {"ResponseMetadata": {"HTTPStatusCode": 503}}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (boto.ReadTimeoutError(endpoint_url=HERE), "timeout"),
        (boto.ConnectTimeoutError(endpoint_url=HERE), "timeout"),
        (boto.EndpointConnectionError(endpoint_url=HERE), "connection"),
        (boto.ConnectionClosedError(endpoint_url=HERE), "connection"),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), "truncated"),
        (boto.ResponseStreamingError(error="broken"), "truncated"),
        (boto.NoCredentialsError(), "connection"),
        (ConnectionResetError("reset"), "connection"),
        (boto.ClientError(REFUSAL, "GetObject"), "503"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_errors_of_boto3(error: Exception, status: str) -> None:
    """Timeouts, truncated bodies, missing connections and answers have different statuses."""
    client = Boto3Client(Location("s3://bucket", "empty"), 1, VirtualClock())
    failed = client.failure(error)
    assert isinstance(error, client.errors)
    assert failed.status == status
    assert "\n" not in str(failed)


XML = b"<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        ({"status_code": 403, "body": XML}, "403", "403 AccessDenied: No."),
        ({"status_code": 404, "body": None}, "404", "404 no message"),
        ({"status_code": 301, "body": b"\xff<Code>Moved</Code>"}, "301", "301 Moved: no message"),
        ({"name": "AWS_ERROR_S3_SLOW_DOWN"}, "503", "AWS_ERROR_S3_SLOW_DOWN: words"),
        ({"name": "AWS_ERROR_S3_INTERNAL_ERROR"}, "500", "AWS_ERROR_S3_INTERNAL_ERROR: words"),
        ({"name": "AWS_IO_SOCKET_TIMEOUT"}, "timeout", "AWS_IO_SOCKET_TIMEOUT: words"),
        ({"name": "AWS_IO_SOCKET_CLOSED"}, "connection", "AWS_IO_SOCKET_CLOSED: words"),
    ],
)
def test_errors_of_awscrt(error: dict[str, object], status: str, message: str) -> None:
    """The status is that of the answer, or the kind of failure of the connection."""
    failure = AwscrtClient.failure(SimpleNamespace(**{"name": "X", "message": "words", **error}))
    assert (failure.status, str(failure)) == (status, message)


ANSWER = (
    "Generic S3 error: Error performing GET http://host/bucket/key in 577.1µs - Server returned "
    "non-2xx status code: 503 Service Unavailable: <?xml version='1.0'?>\n<Error><Code>SlowDown"
    "</Code><Message>Reduce your\nrate.</Message></Error>\n\nDebug source:\nGeneric { retries: 0 }"
)
NO_ANSWER = "Generic S3 error: HTTP error: error sending request\n\nDebug source:\nkind: {}"


@pytest.mark.parametrize(
    ("text", "in_body", "status", "message"),
    [
        (ANSWER, False, "503", "503 SlowDown: Reduce your rate."),
        (NO_ANSWER.format("Connect"), False, "connection", "error sending"),
        (NO_ANSWER.format("Interrupted"), False, "connection", "error sending"),
        (NO_ANSWER.format("Timeout"), False, "timeout", "no answer in time"),
        (NO_ANSWER.format("Timeout"), True, "timeout", "no answer in time"),
        (NO_ANSWER.format("Interrupted"), True, "truncated", "broke off"),
        ("something new", False, "connection", "something new"),
    ],
)
def test_errors_of_obstore(text: str, in_body: bool, status: str, message: str) -> None:
    """The status is found in the text; the message leaves out the debug tree."""
    error = ObstoreClient.failure(RuntimeError(text), in_body=in_body)
    assert error.status == status
    assert message in str(error)
    assert "Debug source" not in str(error)
