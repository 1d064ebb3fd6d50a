"""The behaviour of every object-store client in ``iobench.clients``, in one suite."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import boto3
import pytest

from dataprep.stores import Store, StoreOptions, open_store
from iobench.clock import SystemClock
from iobench.errors import Unavailable
from iobench.probes.object_store.clients import (
    CLIENTS,
    CopyClient,
    ObjectClient,
    RequestFailed,
    Timing,
)
from iobench.results.trial import Location
from iobench.servers.fault_proxy import (
    Delay,
    Fault,
    FaultProxy,
    Match,
    Reset,
    Rule,
    Stall,
    Status,
    Truncate,
)
from iobench.servers.moto_server import MotoServer
from tests.iobench.probes.object_store.kinds import REQUEST_CLIENTS

MIB = 2**20
BODY = bytes(range(251)) * 400
SLOW_DOWN = Status(503, "SlowDown", "Reduce your rate.")
REFUSED = Status(403, "AccessDenied", "Access Denied")
Open = Callable[..., ObjectClient]


@pytest.fixture
def proxy(s3_server: MotoServer) -> Iterator[FaultProxy]:
    """A proxy without rules, in front of the S3 server."""
    with FaultProxy(s3_server.url) as running:
        yield running


@pytest.fixture
def store(bucket: str, s3_server: MotoServer) -> Store:
    """dataprep's store at the prefix ``a/prefix``, where clients read and write."""
    return open_store(f"s3://{bucket}/a/prefix", StoreOptions(endpoint_url=s3_server.url))


@pytest.fixture(params=REQUEST_CLIENTS)
def connect(request: pytest.FixtureRequest, bucket: str, proxy: FaultProxy) -> Iterator[Open]:
    """Open a client of each kind, by default through the proxy."""
    opened: list[ObjectClient] = []

    def connected(url: str | None = None, **options: float) -> ObjectClient:
        settings = {"endpoint_url": url or proxy.url, "max_attempts": 2, **options}
        location = Location(
            f"s3://{bucket}/a/prefix", "empty", StoreOptions.model_validate(settings)
        )
        try:
            client = CLIENTS.load(request.param)(location, 8, SystemClock())
        except Unavailable as error:
            if "is not installed" not in str(error):
                raise
            pytest.skip(str(error))
        assert not isinstance(client, CopyClient)
        opened.append(client)
        return client

    yield connected
    for client in opened:
        client.close()


def refusal(call: Callable[..., object], *arguments: object) -> RequestFailed:
    """Return the failure of a call; its message has one line."""
    with pytest.raises(RequestFailed) as caught:
        call(*arguments)
    assert str(caught.value).strip()
    assert "\n" not in str(caught.value)
    return caught.value


def disturb(proxy: FaultProxy, fault: Fault, path: str = "key", times: int | None = None) -> None:
    """Disturb requests for ``path`` by a fault, and forget earlier requests."""
    proxy.clear()
    proxy.replace_rules([Rule(Match(None, path, times=times), fault)])


def test_a_whole_object_is_read(connect: Open, store: Store) -> None:
    """All bytes arrive, the first before the last."""
    store.put("key", BODY)
    client = connect()
    timing = client.get("key")
    assert timing.bytes == len(BODY)
    assert timing.total_s > 0
    assert client.retries == 0
    if timing.first_byte_s is None:
        assert "time to the first byte" in client.notes[0]
        return
    assert 0 < timing.first_byte_s <= timing.total_s
    assert list(client.notes) == []


def test_an_empty_object_is_an_object(connect: Open, store: Store) -> None:
    """An empty object can be stored and read."""
    store.put("key", b"")
    assert connect().get("key").bytes == 0


def test_a_range_is_read_and_no_more(connect: Open, store: Store, proxy: FaultProxy) -> None:
    """A range that ends with the object is complete, and only its bytes are transferred."""
    store.put("key", BODY)
    client = connect()
    proxy.clear()
    assert client.get_range("key", len(BODY) - 10, 10).bytes == 10
    assert [request.response_bytes for request in proxy.requests] == [10]


def test_a_range_that_ends_early_is_a_failure(connect: Open, store: Store) -> None:
    """Too few bytes are a truncated body; a range behind the end is refused by the server."""
    store.put("key", BODY)
    client = connect()
    assert refusal(client.get_range, "key", len(BODY) - 5, 10).status == "truncated"
    assert refusal(client.get_range, "key", len(BODY) + 5, 10).status == "416"


def test_what_is_put_is_stored(connect: Open, store: Store, proxy: FaultProxy) -> None:
    """One PUT sends all bytes, and has no time of a first byte."""
    client = connect()
    proxy.clear()
    timing = client.put("some/key", BODY)
    assert store.get("some/key") == BODY
    assert (timing.bytes, timing.first_byte_s) == (len(BODY), None)
    assert [request.method for request in proxy.requests] == ["PUT"]


def test_multipart_uploads_have_the_parts_they_are_told(
    connect: Open, store: Store, proxy: FaultProxy
) -> None:
    """A multipart upload sends parts of the given size one after the other."""
    data, client = BODY * 130, connect()
    proxy.clear()
    timing = client.multipart("key", data, 5 * MIB)
    assert store.get("key") == data
    assert (timing.bytes, timing.first_byte_s) == (len(data), None)
    parts = [r.request_bytes for r in proxy.requests if "partNumber" in r.path]
    assert parts == [5 * MIB, 5 * MIB, len(data) - 10 * MIB]


def test_a_failed_multipart_upload_is_aborted(
    connect: Open, bucket: str, s3_server: MotoServer, proxy: FaultProxy
) -> None:
    """If a part is refused, the upload is aborted, since its parts would cost money."""
    disturb(proxy, REFUSED, "partNumber=2")
    assert refusal(connect().multipart, "key", BODY * 130, 5 * MIB).status == "403"
    s3 = boto3.client("s3", endpoint_url=s3_server.url)
    with closing(s3):
        assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_many_threads_use_one_client(connect: Open) -> None:
    """Parallel requests do not mix up their data."""
    client = connect()
    sizes = [1_000 * number for number in range(1, 17)]

    def put_and_get(size: int) -> Timing:
        client.put(f"key-{size}", BODY[:size])
        return client.get(f"key-{size}")

    with ThreadPoolExecutor(8) as threads:
        assert [timing.bytes for timing in threads.map(put_and_get, sizes)] == sizes


def test_what_is_not_there_is_a_failure(connect: Open) -> None:
    """A missing object is reported by its status."""
    assert refusal(connect().get, "missing").status == "404"


@pytest.mark.parametrize("operation", ["get", "get_range", "put"])
def test_a_busy_store_is_asked_again_and_that_is_counted(
    connect: Open, store: Store, proxy: FaultProxy, operation: str
) -> None:
    """One 503 response counts as one retry and not as a failure."""
    store.put("key", BODY)
    client = connect()
    disturb(proxy, SLOW_DOWN, times=1)
    arguments = {"get": (), "get_range": (10, 90), "put": (BODY,)}[operation]
    getattr(client, operation)("key", *arguments)
    assert client.retries == 1
    assert len(proxy.requests) == 2


def test_a_store_that_stays_busy_is_a_failure(connect: Open, proxy: FaultProxy) -> None:
    """After ``max_attempts`` the request fails with the status."""
    client = connect()
    disturb(proxy, SLOW_DOWN)
    error = refusal(client.get, "key")
    assert (error.status, client.retries, len(proxy.requests)) == ("503", 1, 2)
    assert getattr(client, "refused", 2) == 2
    assert "Reduce your rate." in str(error) or "SLOW_DOWN" in str(error)


def test_a_refusal_is_not_asked_again(connect: Open, proxy: FaultProxy) -> None:
    """A request that is refused for lack of permission is not repeated."""
    client = connect()
    disturb(proxy, REFUSED)
    assert refusal(client.get, "key").status == "403"
    assert refusal(client.put, "key", BODY).status == "403"
    assert (client.retries, len(proxy.requests)) == (0, 2)
    assert getattr(client, "refused", 0) == 0


def test_retries_of_parts_are_counted_or_said_to_be_unseen(
    connect: Open, store: Store, proxy: FaultProxy
) -> None:
    """A part that is sent again is a retry, or the client's ``retries`` is None."""
    client = connect()
    disturb(proxy, SLOW_DOWN, "partNumber=2", times=1)
    client.multipart("key", BODY * 130, 5 * MIB)
    assert store.get("key") == BODY * 130
    assert client.retries == 1 or (client.retries is None and client.notes)


def test_a_body_that_breaks_off_is_a_failure(
    connect: Open, store: Store, proxy: FaultProxy
) -> None:
    """A truncated body is a failure; clients of whole bodies report a closed connection."""
    store.put("key", BODY)
    client = connect()
    reported = {"connection"} if client.get("key").first_byte_s is None else {"truncated"}
    disturb(proxy, Truncate(60_000))
    assert {refusal(client.get, "key").status} == reported
    assert {refusal(client.get_range, "key", 0, 90_000).status} == reported


def test_a_reset_connection_is_a_failure_after_a_retry(connect: Open, proxy: FaultProxy) -> None:
    """Connections that end without an answer are retried and then reported."""
    client = connect()
    disturb(proxy, Reset())
    assert refusal(client.get, "key").status == "connection"
    assert client.retries == 1


def test_a_late_answer_is_a_timeout(connect: Open, store: Store, proxy: FaultProxy) -> None:
    """If no byte arrives for the read timeout, in head or body, the status is ``timeout``."""
    store.put("key", BODY)
    client = connect(read_timeout_s=0.3, max_attempts=1)
    for fault in (Delay(20.0), Stall(20.0, after_bytes=60_000)):
        disturb(proxy, fault)
        assert refusal(client.get, "key").status == "timeout"


def test_nobody_there_is_a_failure(connect: Open) -> None:
    """If nothing listens on the port, the status is ``connection``."""
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        client = connect(f"http://127.0.0.1:{connection.getsockname()[1]}", max_attempts=1)
        assert refusal(client.get, "key").status == "connection"


def test_a_slow_start_shows_in_the_first_byte(
    connect: Open, store: Store, proxy: FaultProxy
) -> None:
    """The time before the answer counts for the first byte, not for the body."""
    store.put("key", BODY)
    client = connect()
    disturb(proxy, Delay(0.2, "response"))
    timing = client.get("key")
    assert timing.total_s > 0.15
    assert timing.first_byte_s is None or timing.first_byte_s > 0.15


def test_a_slow_body_shows_in_the_body(connect: Open, store: Store, proxy: FaultProxy) -> None:
    """The time after the first byte counts for the body."""
    store.put("key", BODY)
    client = connect()
    disturb(proxy, Stall(0.2, after_bytes=1))
    timing = client.get("key")
    assert timing.total_s > 0.15
    assert timing.first_byte_s is None or timing.total_s - timing.first_byte_s > 0.15
