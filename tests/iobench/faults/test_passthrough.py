"""Without rules: both sides see what they would see without the proxy."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from iobench.faults import FaultProxy

if TYPE_CHECKING:
    from tests.iobench.faults.conftest import RecordingServer


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    """An HTTP client of the proxy, over one connection."""
    with closing(http.client.HTTPConnection(urlsplit(proxy.url).netloc)) as connection:
        yield connection


@pytest.fixture
def raw(proxy: FaultProxy) -> Iterator[socket.socket]:
    """A bare connection to the proxy."""
    port = urlsplit(proxy.url).port
    with socket.create_connection(("127.0.0.1", port)) as connection:
        yield connection


def read_all(raw: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    return b"".join(iter(lambda: raw.recv(65_536), b""))


def test_head_arrives_as_sent(raw: socket.socket, server: RecordingServer) -> None:
    """Method, path, query, Host and the order of the fields arrive as the client sent them."""
    line = "GET //bucket//a%2fb+c%20\xe9?list-type=2&prefix=&a=%3D HTTP/1.1"
    fields = (("Zeta", "1"), ("host", "elsewhere:81"), ("X-Amz-Meta-A", "x  y"), ("ZETA", "2"))
    head = "\r\n".join([line, *(f"{name}: {value}" for name, value in fields), "", ""])
    raw.sendall(head.encode("latin-1"))
    raw.shutdown(socket.SHUT_WR)
    assert b" 200 OK\r\n" in read_all(raw)
    assert server.received[0].line == line
    assert server.received[0].fields == fields


@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_upload_is_byte_exact(
    client: http.client.HTTPConnection,
    proxy: FaultProxy,
    server: RecordingServer,
    size: int,
) -> None:
    """A body with a Content-Length arrives whole, and both bodies' sizes are logged."""
    body = (b"0123456789" * (size // 10 + 1))[:size]
    client.request("PUT", "/key", body=body)
    assert client.getresponse().read() == b"stored"
    assert server.bodies == [body]
    (request,) = proxy.requests
    assert (request.method, request.path, request.status) == ("PUT", "/key", 200)
    assert (request.request_bytes, request.response_bytes) == (size, 6)
    assert request.faults == ()


def test_chunked_upload_keeps_its_trailer(raw: socket.socket, server: RecordingServer) -> None:
    """A chunked body arrives chunked, with the fields that follow it."""
    raw.sendall(
        b"PUT /key HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"3\r\nabc\r\n0A\r\n0123456789\r\n0\r\nx-amz-checksum-crc32: AA==\r\n\r\n"
    )
    assert read_all(raw).endswith(b"stored")
    assert server.bodies == [
        b"3\r\nabc\r\na\r\n0123456789\r\n0\r\nx-amz-checksum-crc32: AA==\r\n\r\n"
    ]


def test_upload_that_waits_for_continue_is_asked_for(
    raw: socket.socket, server: RecordingServer
) -> None:
    """A client that expects 100 Continue gets it before it sends its body."""
    raw.sendall(
        b"PUT /key HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"
        b"Connection: close\r\n\r\n"
    )
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert raw.recv(len(interim), socket.MSG_WAITALL) == interim
    raw.sendall(b"body")
    assert read_all(raw).startswith(b"HTTP/1.1 200 OK\r\n")
    assert server.bodies == [b"body"]


@pytest.mark.parametrize(
    ("method", "path", "status", "length"),
    [("HEAD", "/key", 200, "100400"), ("GET", "/204", 204, None), ("GET", "/304", 304, None)],
)
def test_responses_without_body_leave_the_connection_usable(
    client: http.client.HTTPConnection, method: str, path: str, status: int, length: str | None
) -> None:
    """HEAD, 204 and 304 have no body whatever they announce, and the next answer is in order."""
    client.request(method, path)
    with client.getresponse() as response:
        assert (response.status, response.read()) == (status, b"")
        assert response.headers["Content-Length"] == length
    client.request("GET", "/close-silently")
    assert client.getresponse().read() == b"bye"


def test_chunked_response_keeps_its_trailer(raw: socket.socket) -> None:
    """A chunked response arrives chunked, with the fields that follow it."""
    raw.sendall(b"GET /chunked HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    assert read_all(raw).endswith(b"\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n")


def test_response_that_ends_with_the_connection(
    client: http.client.HTTPConnection, server: RecordingServer
) -> None:
    """A response without a length is passed on whole, and ends the client's connection too."""
    client.request("GET", "/until-close")
    with client.getresponse() as response:
        assert response.headers["Connection"] == "close"
        assert response.read() == server.content


def test_old_server_does_not_end_the_connection(client: http.client.HTTPConnection) -> None:
    """A server of HTTP/1.0 is passed on as HTTP/1.1, and the client's connection is kept."""
    for _ in range(2):
        client.request("GET", "/http-1.0")
        with client.getresponse() as response:
            assert (response.version, response.will_close, response.read()) == (11, False, b"old")


def test_connections_are_kept_alive(
    client: http.client.HTTPConnection, server: RecordingServer
) -> None:
    """Requests over one client connection share one connection to the server."""
    for _ in range(3):
        client.request("GET", "/key")
        assert client.getresponse().read() == server.content
    assert len({received.connection for received in server.received}) == 1


def test_connection_the_server_gave_up_is_replaced(
    client: http.client.HTTPConnection, server: RecordingServer
) -> None:
    """A server that closes an idle connection unannounced does not fail the next request."""
    for _ in range(3):
        server.connection_closed.clear()
        client.request("GET", "/close-silently")
        assert client.getresponse().read() == b"bye"
        assert server.connection_closed.wait(60)
    assert len(server.received) == 3


def test_early_answer_arrives(client: http.client.HTTPConnection, proxy: FaultProxy) -> None:
    """An answer that the server gives before it has the body reaches the client."""
    client.request("PUT", "/early", body=b"x" * 1000)
    with client.getresponse() as response:
        assert (response.status, response.read()) == (403, b"no")
    assert proxy.requests[0].request_bytes == 1000


@pytest.mark.parametrize("path", ["/no-answer", "/key"])
def test_server_that_does_not_answer_becomes_a_bad_gateway(
    client: http.client.HTTPConnection, server: RecordingServer, path: str
) -> None:
    """No answer, or no server at all, is a 502 in S3's form, and the connection stays usable."""
    if path == "/key":
        server.shutdown()
        server.server_close()
    for _ in range(2):
        client.request("GET", path, body=b"ignored")
        with client.getresponse() as response:
            assert response.status == 502
            assert b"<Code>BadGateway</Code><Message>no answer from 127.0.0.1" in response.read()


def test_response_that_the_server_breaks_off_stays_broken(
    client: http.client.HTTPConnection,
) -> None:
    """A response that ends before its announced length does so for the client as well."""
    client.request("GET", "/shorter-than-announced")
    with client.getresponse() as response, pytest.raises(http.client.IncompleteRead) as caught:
        response.read()
    assert caught.value.partial == b"abc"


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.1\r\n"])
def test_what_is_not_http_ends_the_connection(
    raw: socket.socket, proxy: FaultProxy, junk: bytes
) -> None:
    """Bytes that are not a request are neither forwarded nor logged."""
    raw.sendall(junk)
    raw.shutdown(socket.SHUT_WR)
    assert read_all(raw) == b""
    assert proxy.requests == ()
