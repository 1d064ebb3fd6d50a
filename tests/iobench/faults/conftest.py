"""Servers to put the proxy in front of: one that records every byte, and moto."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from botocore.config import Config
from moto.server import ThreadedMotoServer

from iobench.faults import FaultProxy

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

CONTENT = bytes(range(251)) * 400
"""What the recording server answers to ``GET``: 100,400 bytes without a short period."""


@dataclass(frozen=True)
class Received:
    """A request as the server saw it; ``body`` of a chunked one still has its framing."""

    line: str
    fields: tuple[tuple[str, str], ...]
    body: bytes
    connection: int


class RecordingServer(ThreadingHTTPServer):
    """Answers by the last part of the path, and keeps what it received."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[Received] = []
        self.connection_closed = threading.Event()
        self.content = CONTENT

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def bodies(self) -> list[bytes]:
        return [received.body for received in self.received]

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.connection_closed.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle_expect_100(self) -> bool:
        return True  # the proxy must not let it come to this

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_PUT(self) -> None:
        if self.requestline.split()[1] == "/early":
            self._answer(403, b"no")
            self.close_connection = True
            return
        self._record(self._body())
        self._answer(200, b"stored", ETag='"stored"')

    def do_HEAD(self) -> None:
        self._record(b"")
        self._head(200, **{"Content-Length": str(len(CONTENT))})

    def do_GET(self) -> None:
        self._record(b"")
        match self.requestline.split()[1]:
            case "/204" | "/304" as path:
                self._head(int(path[1:]))
            case "/chunked":
                self._head(200, **{"Transfer-Encoding": "chunked", "Trailer": "X-Sum"})
                self.wfile.write(b"3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-Sum: 7\r\n\r\n")
            case "/until-close":
                self._head(200)
                self.wfile.write(CONTENT)
                self.close_connection = True
            case "/http-1.0":
                self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold")
                self.close_connection = True
            case "/close-silently":
                self._answer(200, b"bye")
                self.close_connection = True
            case "/shorter-than-announced":
                self._head(200, **{"Content-Length": "10"})
                self.wfile.write(b"abc")
                self.close_connection = True
            case "/no-answer":
                self.close_connection = True
            case _:
                self._answer(200, CONTENT, ETag='"content"')

    def _body(self) -> bytes:
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = b""
        while not body.endswith(b"\r\n\r\n") or b"\r\n0\r\n" not in body:
            body += self.rfile.readline()
        return body

    def _record(self, body: bytes) -> None:
        server = cast(RecordingServer, self.server)
        fields = tuple(self.headers.items())
        port = self.client_address[1]
        server.received.append(Received(self.requestline, fields, body, port))

    def _answer(self, code: int, body: bytes, **fields: str) -> None:
        self._head(code, **{"Content-Length": str(len(body))}, **fields)
        self.wfile.write(body)

    def _head(self, code: int, **fields: str) -> None:
        self.send_response_only(code)
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    """A recording server on a free port."""
    with RecordingServer() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def proxy(server: RecordingServer) -> Iterator[FaultProxy]:
    """A proxy without rules, in front of the recording server."""
    with FaultProxy(server.url) as running:
        yield running


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Moto's S3 server, in this process."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"http://{host}:{port}"
    moto.stop()
    cast(socketserver.BaseServer, moto._server).server_close()


@pytest.fixture
def moto_proxy(moto_url: str) -> Iterator[FaultProxy]:
    """A proxy without rules, in front of moto."""
    with FaultProxy(moto_url) as running:
        yield running


def s3_client(url: str, *, attempts: int = 1) -> S3Client:
    """A boto3 client with path-style addresses, which tries every request ``attempts`` times."""
    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        region_name="us-east-1",
        config=Config(
            s3={"addressing_style": "path"},
            retries={"mode": "standard", "total_max_attempts": attempts},
            proxies={},
        ),
    )


@pytest.fixture
def s3(moto_proxy: FaultProxy) -> Iterator[S3Client]:
    """A boto3 client that tries once, through the proxy to moto, with an empty bucket ``data``."""
    client = s3_client(moto_proxy.url)
    client.create_bucket(Bucket="data")
    moto_proxy.clear()
    yield client
    moto_proxy.clear()
    for entry in client.list_objects_v2(Bucket="data").get("Contents", []):
        client.delete_object(Bucket="data", Key=entry["Key"])
    client.delete_bucket(Bucket="data")
    client.close()


@pytest.fixture
def patient_s3(moto_proxy: FaultProxy, s3: S3Client) -> Iterator[S3Client]:
    """A boto3 client that tries twice, with the bucket of ``s3``."""
    client = s3_client(moto_proxy.url, attempts=2)
    yield client
    client.close()
