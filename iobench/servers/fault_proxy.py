"""An HTTP proxy that injects faults between a client and an S3-compatible server.

``iobench.servers.faults`` has the faults and the rules; this module also exports their names. The
proxy listens on the loopback interface, in the process that uses it::

    import boto3
    from iobench.servers.fault_proxy import FaultProxy, FlipByte, Match, Rule, Status

    rules = [
        Rule(Match("PUT", times=1), Status(503, "SlowDown", "Please reduce your request rate.")),
        Rule(Match("GET", r"/shards/.*\\.tfrecord", skip=2, times=1), FlipByte(1000)),
    ]
    with FaultProxy("http://127.0.0.1:5000", rules) as proxy:
        client = boto3.client("s3", endpoint_url=proxy.url)
        client.put_object(Bucket="data", Key="shards/0.tfrecord", Body=b"...")
        print(proxy.requests)  # the refused PUT and its retry

A request may have several faults. They act in the order of the steps of an exchange, not in the
order of the rules:

- at the request: ``Delay`` and ``Reset``;
- on the upload: ``RateLimit``, ``Status`` (which answers instead of the server), ``FlipByte`` and
  ``Shorten``;
- at the response: ``Delay``, ``Reset`` and ``SetHeader``;
- on the download: ``FlipByte``, ``Stall``, ``Truncate`` and ``RateLimit``.

A body is forwarded when all of it has arrived.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from iobench.servers.faults import (
    Delay,
    Direction,
    Fault,
    FlipByte,
    Match,
    Point,
    RateLimit,
    Request,
    Reset,
    Rule,
    SetHeader,
    Shorten,
    Stall,
    Status,
    Truncate,
)

__all__ = [
    "Answer",
    "Delay",
    "Direction",
    "Fault",
    "FaultProxy",
    "FlipByte",
    "Match",
    "Point",
    "RateLimit",
    "Request",
    "Reset",
    "Rule",
    "SetHeader",
    "Shorten",
    "Stall",
    "Status",
    "Truncate",
    "Upstream",
    "s3_error",
]

_BLOCK_BYTES = 256 * 1024
"""Maximum size of the blocks in which a response body is sent."""

_SLICE_S = 0.02
"""Length of the slices in which a rate limit passes bytes."""

_MAX_CATCH_UP_S = 0.01
"""Maximum time that a rate limit makes up for after a sleep that took too long."""

_UPSTREAM_TIMEOUT_S = 60.0
"""Maximum time that the proxy waits for the server behind it."""

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s
_STATUSES_WITHOUT_BODY = (204, 304)
# Headers of a single connection, which are not forwarded.
_HOP_HEADERS = {"connection", "expect", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. If its headers have no Content-Length, the length of the body is sent."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | memoryview = field(default=b"", repr=False)


Upstream: TypeAlias = Callable[[str, str, Message, bytes], Answer]
"""A function that answers a request, given its method, path?query, headers and body."""


def s3_error(status: int, code: str, message: str = "") -> Answer:
    """Return an error answer in the form of S3."""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        "<RequestId>injected-fault</RequestId></Error>"
    )
    return Answer(status, [("Content-Type", "application/xml")], xml.encode())


class FaultProxy(ThreadingTCPServer):
    """An HTTP proxy in front of ``upstream`` that disturbs the requests that ``rules`` match.

    Method, path, ``Host``, end-to-end headers and bodies of undisturbed requests pass unchanged, so
    that signatures stay valid. If the upstream does not answer, the client gets a 502.

    Args:
        upstream: the URL of a server, or a function that answers requests in this process.
        rules: the faults, and the requests that they disturb.
        clock: the clock of delays, stalls and rate limits.
        sleep: sleeps for some seconds; by default a sleep that ends when the proxy stops.
    """

    request_queue_size = 128

    def __init__(
        self,
        upstream: str | Upstream,
        rules: Sequence[Rule] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        if isinstance(upstream, str):
            upstream = partial(_forward, urlsplit(upstream).netloc)
        self.answer = upstream
        self.sleep = sleep or self._sleep_until_stopped
        self._clock = clock
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._requests: list[Request] = []
        self._open: set[socket.socket] = set()
        """The connections of clients that are open, or were open."""
        self._free_at_s: dict[tuple[RateLimit, Direction], float] = {}
        """The moment at which all bytes so far have passed a limit."""
        self.replace_rules(rules)
        super().__init__(("127.0.0.1", 0), _Exchange)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.05,), name="fault-proxy", daemon=True
        )

    @property
    def url(self) -> str:
        """The URL of the proxy: ``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far in the order of their arrival, also unfinished ones."""
        return tuple(self._requests)

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Use other rules from the next request on; the counts of requests start at 0."""
        with self._lock:
            self._rules = tuple(rules)
            # For each rule, the number of requests so far that fit it.
            self._matching_requests = [0] * len(self._rules)

    def clear(self) -> None:
        """Drop all rules, and forget all requests."""
        self.replace_rules(())
        self._requests.clear()

    def begin(self, method: str, path: str) -> Request:
        """Log a request, and determine its faults. Each rule counts all requests that fit it."""
        request = Request(method, path)
        with self._lock:
            for index, rule in enumerate(self._rules):
                if rule.match.fits(method, path):
                    if rule.match.hits(self._matching_requests[index]):
                        request.faults += (rule.fault,)
                    self._matching_requests[index] += 1
            self._requests.append(request)
        return request

    def pace(self, limit: RateLimit, direction: Direction, size_bytes: int) -> None:
        """Wait until the limit allows ``size_bytes`` more."""
        with self._lock:
            now_s = self._clock()
            begin_s = self._free_at_s.get((limit, direction), now_s)
            begin_s = max(begin_s, now_s - _MAX_CATCH_UP_S)
            free_at_s = begin_s + size_bytes / limit.bytes_per_s
            self._free_at_s[limit, direction] = free_at_s
        if free_at_s > now_s:
            self.sleep(free_at_s - now_s)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._stopped.set()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):  # Its thread may have closed it meanwhile.
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()  # This joins the threads of all connections.
        self._thread.join()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and remember it, so that it ends when the proxy stops."""
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Close without a shutdown, which would replace a reset by a normal end."""
        request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors of the proxy itself, but not broken connections."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def _sleep_until_stopped(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise ConnectionAbortedError("the proxy has stopped")


class _Exchange(BaseHTTPRequestHandler):
    """Serves one connection of a client, with the faults of each request."""

    server: FaultProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, since the proxy logs the requests."""

    def do_GET(self) -> None:
        """Answer a request of any method; its body must have a Content-Length."""
        path = self.requestline.split()[1]  # Not self.path, which merges leading slashes.
        request = self.server.begin(self.command, path)
        self._disturb("request", request)
        answer = self._answer(request)
        self._disturb("response", request)
        self._respond(answer, request)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  names that http.server looks up

    def _disturb(self, point: Point, request: Request) -> None:
        """Apply the delays and the reset at a point of the exchange."""
        for delay in request.faults_of(Delay):
            if delay.at == point:
                self.server.sleep(delay.s)
        if Reset(point) in request.faults:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            raise ConnectionAbortedError("reset by a fault")

    def _answer(self, request: Request) -> Answer:
        """Read the body of the request, and return the answer of a fault or of the upstream."""
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        request.request_bytes = len(body)
        if len(body) < length:
            raise ConnectionAbortedError("the client closed the connection inside a body")
        for limit in request.faults_of(RateLimit):
            self.server.pace(limit, "upload", length)
        statuses = request.faults_of(Status)
        if statuses:
            return s3_error(statuses[0].code, statuses[0].s3_code, statuses[0].message)
        body = bytes(_flipped(body, request, "upload"))
        for shorten in request.faults_of(Shorten):
            body = body[: shorten.bytes]
        return self.server.answer(self.command, request.path, self.headers, body)

    def _respond(self, answer: Answer, request: Request) -> None:
        """Send an answer to the client, with its faults."""
        body = memoryview(_flipped(answer.body, request, "download"))
        headers = {name.lower(): (name, value) for name, value in answer.headers}
        if answer.status not in _STATUSES_WITHOUT_BODY:
            headers.setdefault("content-length", ("Content-Length", str(len(body))))
        for fault in request.faults_of(SetHeader):
            headers.pop(fault.name.lower(), None)
            if fault.value is not None:
                headers[fault.name.lower()] = (fault.name, fault.value)
        self.send_response_only(answer.status)
        for name, value in headers.values():
            self.send_header(name, value)
        request.status = answer.status
        self.end_headers()
        if self.command != "HEAD" and answer.status not in _STATUSES_WITHOUT_BODY:
            self._send(body, request)

    def _send(self, body: memoryview, request: Request) -> None:
        """Send a body with stalls, and close the connection if it is truncated."""
        end = len(body)
        for truncate in request.faults_of(Truncate):
            end = min(end, truncate.after_bytes)
        sent = 0
        for stall in request.faults_of(Stall):
            if sent < stall.after_bytes < end:
                self._write(body[sent : stall.after_bytes], request)
                self.server.sleep(stall.s)
                sent = stall.after_bytes
        self._write(body[sent:end], request)
        if end < len(body):
            self.close_connection = True

    def _write(self, body: memoryview, request: Request) -> None:
        """Send a part of a body in blocks, at the rate of the limits."""
        limits = request.faults_of(RateLimit)
        block_bytes = _BLOCK_BYTES
        for limit in limits:
            block_bytes = min(block_bytes, max(1, int(limit.bytes_per_s * _SLICE_S)))
        for start in range(0, len(body), block_bytes):
            block = body[start : start + block_bytes]
            for limit in limits:
                self.server.pace(limit, "download", len(block))
            request.response_bytes += len(block)
            self.wfile.write(block)


def _flipped(
    body: bytes | memoryview, request: Request, direction: Direction
) -> bytes | memoryview:
    """Return a body with the bytes that faults flip."""
    for fault in request.faults_of(FlipByte):
        if fault.direction == direction and -len(body) <= fault.offset < len(body):
            changed = bytearray(body)
            changed[fault.offset] ^= 1
            body = bytes(changed)
    return body


def _forward(netloc: str, method: str, path: str, headers: Message, body: bytes) -> Answer:
    """Send a request to a server over a new connection, and return its answer."""
    connection = HTTPConnection(netloc, timeout=_UPSTREAM_TIMEOUT_S)
    try:
        connection.connect()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            if name.lower() not in {*_HOP_HEADERS, "content-length"}:
                connection.putheader(name, value)
        if "Content-Length" in headers:
            connection.putheader("Content-Length", str(len(body)))
        # The server may answer and close before it has received the complete body.
        with contextlib.suppress(ConnectionError):
            connection.endheaders(body)
        response = connection.getresponse()
        forwarded_headers = []
        for name, value in response.getheaders():
            if name.lower() not in _HOP_HEADERS:
                forwarded_headers.append((name, value))
        return Answer(response.status, forwarded_headers, response.read())
    except (OSError, HTTPException) as error:
        return s3_error(502, "BadGateway", f"no answer from {netloc}: {error}")
    finally:
        connection.close()
