"""An HTTP proxy that injects faults between a client and an S3-compatible server.

It listens on loopback, in the process that uses it::

    import boto3
    from iobench.faults import FaultProxy, FlipByte, Match, Rule, Status

    rules = [
        Rule(Match("PUT", times=1), Status(503, "SlowDown", "Please reduce your request rate.")),
        Rule(Match("GET", r"/shards/.*\\.tfrecord", skip=2, times=1), FlipByte(1000)),
    ]
    with FaultProxy("http://127.0.0.1:5000", rules) as proxy:
        client = boto3.client("s3", endpoint_url=proxy.url)
        client.put_object(Bucket="data", Key="shards/0.tfrecord", Body=b"...")
        print(proxy.requests)  # the refused PUT and its retry

A request may have several faults. They act in the order of an exchange, not in the order of the
rules: ``Delay`` and ``Reset`` at the request; ``RateLimit`` of the upload; ``Status``; ``FlipByte``
and ``Shorten`` of the upload; ``Delay`` and ``Reset`` at the response; ``SetHeader``; ``FlipByte``,
``Stall``, ``Truncate`` and ``RateLimit`` of the download. A body is forwarded when all of it has
arrived.
"""

from __future__ import annotations

import contextlib
import re
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
from typing import Any, Literal, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

Direction: TypeAlias = Literal["upload", "download"]
Point: TypeAlias = Literal["request", "response"]
_FaultType = TypeVar("_FaultType")

_BLOCK_BYTES = 256 * 1024
_SLICE_S = 0.02  # a rate limit passes bytes in slices of this length
_CATCH_UP_S = 0.01  # a sleep that ends late is made up for, up to this
_UPSTREAM_TIMEOUT_S = 60.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 s
_NO_BODY = (204, 304)
_OF_ONE_CONNECTION = {"connection", "expect", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait ``s`` seconds before the request is forwarded or before the response begins."""

    s: float
    at: Point = "request"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Limit all bodies of one direction together to ``bytes_per_s``."""

    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with an S3 error instead of forwarding: ``Status(503, "SlowDown")``."""

    code: int
    s3_code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Close the connection after ``after_bytes`` of a longer response body."""

    after_bytes: int


@dataclass(frozen=True, slots=True)
class FlipByte:
    """Flip the lowest bit of the body's byte at ``offset``; negative offsets count from the end.

    A body without that byte passes unchanged.
    """

    offset: int
    direction: Direction = "download"


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection (TCP RST) before the request is forwarded, or after it is answered.

    At the response, the server has executed the request, but the client cannot know.
    """

    at: Point = "request"


@dataclass(frozen=True, slots=True)
class Stall:
    """Pause for ``s`` seconds after ``after_bytes`` of a longer response body."""

    s: float
    after_bytes: int = 1


@dataclass(frozen=True, slots=True)
class SetHeader:
    """Set a header of the response, such as a wrong ``ETag``; ``None`` removes it."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Shorten:
    """Forward only the first ``bytes`` of the request's body, as if no more had been sent."""

    bytes: int


Fault: TypeAlias = (
    Delay | RateLimit | Status | Truncate | FlipByte | Reset | Stall | SetHeader | Shorten
)


@dataclass(frozen=True, slots=True)
class Match:
    """The requests that a rule disturbs: by default all.

    A request fits if ``method`` is equal and the regular expression ``path`` is found in its
    path?query. Of the requests that fit, the first ``skip`` pass, the next ``times`` are hit
    (``None``: all), and the rest pass. With ``every``, only each ``every``-th of those is hit,
    starting with the first.
    """

    method: str | None = None
    path: str | None = None
    skip: int = 0
    times: int | None = None
    every: int = 1

    def fits(self, method: str, path: str) -> bool:
        """Whether a request fits by method and path, counts aside."""
        return self.method in (None, method) and re.search(self.path or "", path) is not None

    def hits(self, nth: int) -> bool:
        """Whether the ``nth`` fitting request, from 0, is hit."""
        if nth < self.skip or (self.times is not None and nth >= self.skip + self.times):
            return False
        return (nth - self.skip) % self.every == 0


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault, and the requests that meet it."""

    match: Match
    fault: Fault


@dataclass(slots=True)
class Request:
    """One request as the client sees it answered; the proxy updates it while bytes pass.

    ``path`` is path?query as received; ``status`` is ``None`` if no response began. Bytes are those
    of the bodies, read from the client and sent to it.
    """

    method: str
    path: str
    faults: tuple[Fault, ...] = ()
    status: int | None = None
    request_bytes: int = 0
    response_bytes: int = 0

    def met(self, kind: type[_FaultType]) -> list[_FaultType]:
        """Faults of one kind."""
        return [fault for fault in self.faults if isinstance(fault, kind)]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. ``headers`` have a Content-Length only if it is not the length of ``body``."""

    status: int
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | memoryview = field(default=b"", repr=False)


Upstream: TypeAlias = Callable[[str, str, Message, bytes], Answer]
"""Answers a request: method, path?query, headers and body."""


def s3_error(status: int, code: str, message: str = "") -> Answer:
    """An error in S3's form."""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        "<RequestId>injected-fault</RequestId></Error>"
    )
    return Answer(status, [("Content-Type", "application/xml")], xml.encode())


class FaultProxy(ThreadingTCPServer):
    """An HTTP proxy in front of ``upstream`` that disturbs the requests that ``rules`` match.

    ``upstream`` is a URL, or a function that answers requests in this process. Method, path,
    ``Host``, end-to-end headers and bodies of undisturbed requests pass unchanged, so that
    signatures stay valid. If the upstream does not answer, the client gets a 502.

    ``Delay``, ``Stall`` and ``RateLimit`` use ``clock`` and ``sleep``; by default a sleep ends when
    the proxy stops.
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
        self._free_at: dict[tuple[RateLimit, Direction], float] = {}
        self.replace_rules(rules)
        super().__init__(("127.0.0.1", 0), _Exchange)
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.05,), name="fault-proxy", daemon=True
        )

    @property
    def url(self) -> str:
        """Where clients reach the proxy: ``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests so far in order of arrival, including unfinished ones."""
        return tuple(self._requests)

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Use other rules from the next request on; their counts start at 0."""
        with self._lock:
            self._rules = tuple(rules)
            self._fitting = [0] * len(self._rules)

    def clear(self) -> None:
        """Drop all rules, and forget all requests."""
        self.replace_rules(())
        self._requests.clear()

    def begin(self, method: str, path: str) -> Request:
        """Log a request with its faults. Each rule counts all requests that fit it."""
        request = Request(method, path)
        with self._lock:
            for index, rule in enumerate(self._rules):
                if rule.match.fits(method, path):
                    if rule.match.hits(self._fitting[index]):
                        request.faults += (rule.fault,)
                    self._fitting[index] += 1
            self._requests.append(request)
        return request

    def pace(self, limit: RateLimit, direction: Direction, size_bytes: int) -> None:
        """Wait until the limit allows ``size_bytes`` more."""
        with self._lock:
            now = self._clock()
            begin = max(self._free_at.get((limit, direction), now), now - _CATCH_UP_S)
            free_at = begin + size_bytes / limit.bytes_per_s
            self._free_at[limit, direction] = free_at
        if free_at > now:
            self.sleep(free_at - now)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._stopped.set()
        for connection in tuple(self._open):
            with contextlib.suppress(OSError):  # closed by its thread meanwhile
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()  # joins the threads of all connections
        self._thread.join()

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection, and remember it to end it when the proxy stops."""
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        """Close without shutting down, which would replace a reset by a normal end."""
        request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors of the proxy itself, but not connections that break."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def _sleep_until_stopped(self, seconds: float) -> None:
        if self._stopped.wait(seconds):
            raise ConnectionAbortedError("the proxy has stopped")


class _Exchange(BaseHTTPRequestHandler):
    """Serves one client connection: each request through all its faults and back."""

    server: FaultProxy
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: requests are kept by the proxy."""

    def do_GET(self) -> None:
        """Answer a request of any method; its body must have a Content-Length."""
        path = self.requestline.split()[1]  # self.path merges leading slashes
        request = self.server.begin(self.command, path)
        self._reach("request", request)
        answer = self._answer(request)
        self._reach("response", request)
        self._respond(answer, request)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815  names that http.server looks up

    def _reach(self, point: Point, request: Request) -> None:
        for delay in request.met(Delay):
            if delay.at == point:
                self.server.sleep(delay.s)
        if Reset(point) in request.faults:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            raise ConnectionAbortedError("reset by a fault")

    def _answer(self, request: Request) -> Answer:
        """Read the request's body, and get an answer from a fault or from upstream."""
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        request.request_bytes = len(body)
        if len(body) < length:
            raise ConnectionAbortedError("the client closed the connection inside a body")
        for limit in request.met(RateLimit):
            self.server.pace(limit, "upload", length)
        for status in request.met(Status):
            return s3_error(status.code, status.s3_code, status.message)
        body = bytes(_flipped(body, request, "upload"))
        for shorten in request.met(Shorten):
            body = body[: shorten.bytes]
        return self.server.answer(self.command, request.path, self.headers, body)

    def _respond(self, answer: Answer, request: Request) -> None:
        body = memoryview(_flipped(answer.body, request, "download"))
        headers = {name.lower(): (name, value) for name, value in answer.headers}
        if answer.status not in _NO_BODY:
            headers.setdefault("content-length", ("Content-Length", str(len(body))))
        for fault in request.met(SetHeader):
            headers.pop(fault.name.lower(), None)
            if fault.value is not None:
                headers[fault.name.lower()] = (fault.name, fault.value)
        self.send_response_only(answer.status)
        for name, value in headers.values():
            self.send_header(name, value)
        request.status = answer.status
        self.end_headers()
        if self.command != "HEAD" and answer.status not in _NO_BODY:
            self._send(body, request)

    def _send(self, body: memoryview, request: Request) -> None:
        end = min([len(body), *(fault.after_bytes for fault in request.met(Truncate))])
        sent = 0
        for stall in request.met(Stall):
            if sent < stall.after_bytes < end:
                self._write(body[sent : stall.after_bytes], request)
                self.server.sleep(stall.s)
                sent = stall.after_bytes
        self._write(body[sent:end], request)
        if end < len(body):
            self.close_connection = True

    def _write(self, body: memoryview, request: Request) -> None:
        limits = request.met(RateLimit)
        slices = [max(1, int(limit.bytes_per_s * _SLICE_S)) for limit in limits]
        step = min([_BLOCK_BYTES, *slices])
        for start in range(0, len(body), step):
            block = body[start : start + step]
            for limit in limits:
                self.server.pace(limit, "download", len(block))
            request.response_bytes += len(block)
            self.wfile.write(block)


def _flipped(
    body: bytes | memoryview, request: Request, direction: Direction
) -> bytes | memoryview:
    for fault in request.met(FlipByte):
        if fault.direction == direction and -len(body) <= fault.offset < len(body):
            changed = bytearray(body)
            changed[fault.offset] ^= 1
            body = bytes(changed)
    return body


def _forward(netloc: str, method: str, path: str, headers: Message, body: bytes) -> Answer:
    """Send a request over a new connection, and read the response."""
    connection = HTTPConnection(netloc, timeout=_UPSTREAM_TIMEOUT_S)
    try:
        connection.connect()
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            if name.lower() not in {*_OF_ONE_CONNECTION, "content-length"}:
                connection.putheader(name, value)
        if "Content-Length" in headers:
            connection.putheader("Content-Length", str(len(body)))
        with contextlib.suppress(ConnectionError):  # it may answer before it has the whole body
            connection.endheaders(body)
        response = connection.getresponse()
        given = [
            pair for pair in response.getheaders() if pair[0].lower() not in _OF_ONE_CONNECTION
        ]
        return Answer(response.status, given, response.read())
    except (OSError, HTTPException) as error:
        return s3_error(502, "BadGateway", f"no answer from {netloc}: {error}")
    finally:
        connection.close()
