"""The fault proxy forwards, disturbs requests by its rules, and stops."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.servers.fault_proxy import (
    Answer,
    Delay,
    Fault,
    FaultProxy,
    FlipByte,
    Match,
    Point,
    RateLimit,
    Reset,
    Rule,
    SetHeader,
    Shorten,
    Stall,
    Status,
    Truncate,
)

CONTENT = bytes(range(251)) * 400
SLOW_DOWN = Status(503, "SlowDown", "Reduce <it>")


class Received(NamedTuple):
    """A request as the server received it."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes


SPECIAL = {
    "/chunked": ({"Transfer-Encoding": "chunked"}, b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"),
    "/until-close": ({"Connection": "close"}, CONTENT),
    "/cut": ({"Content-Length": "10", "Connection": "close"}, b"abc"),
}
"""These paths have headers and a body of their own."""


class Server(ThreadingHTTPServer):
    """A server that answers by the path and records requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.received: list[Received] = []


class Handler(BaseHTTPRequestHandler):
    """One connection of the server."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        if self.path == "/early":
            self.close_connection = True  # The body is not read.
        elif self.path != "/no-answer":
            received = Received(
                self.requestline, list(self.headers.items()), self.rfile.read(length)
            )
            self.server.received.append(received)
        if self.path == "/no-answer":
            self.close_connection = True
        elif self.path in ("/204", "/304"):
            self.answer({}, b"", int(self.path[1:]))
        elif self.path in SPECIAL:
            self.answer(*SPECIAL[self.path])
        else:
            headers = {"Content-Length": str(len(CONTENT)), "ETag": '"content"'}
            self.answer(headers, b"" if self.command == "HEAD" else CONTENT)

    do_HEAD = do_PUT = do_GET  # noqa: N815

    def answer(self, headers: dict[str, str], body: bytes, status: int = 200) -> None:
        """Send a whole answer."""
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a server that records requests."""
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.02,)).start()
        yield running
        running.shutdown()


@pytest.fixture
def proxy(server: Server) -> Iterator[FaultProxy]:
    """Yield a proxy without rules in front of the server."""
    with FaultProxy(server.url) as running:
        yield running


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[http.client.HTTPConnection]:
    """Yield one connection to the proxy."""
    with closing(http.client.HTTPConnection(urlsplit(proxy.url).netloc)) as connection:
        yield connection


def ask(
    proxy: FaultProxy, method: str = "GET", path: str = "/key", body: bytes | None = None
) -> tuple[int, Message, bytes]:
    """Send one request over a new connection; return status, headers and body."""
    with closing(http.client.HTTPConnection(urlsplit(proxy.url).netloc)) as client:
        client.request(method, path, body=body)
        with client.getresponse() as response:
            return response.status, response.headers, response.read()


def use(proxy: FaultProxy, *faults: Fault) -> None:
    """Disturb every request by these faults."""
    proxy.replace_rules([Rule(Match(), fault) for fault in faults])


def raw(proxy: FaultProxy, head: str) -> socket.socket:
    """Connect to the proxy and send the head of a request."""
    connection = socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port))
    connection.sendall(head.replace("\n", "\r\n").encode())
    return connection


class TestWithoutRules:
    def test_a_head_arrives_as_sent(self, proxy: FaultProxy, server: Server) -> None:
        """The server sees the client's path, Host and headers, in their order."""
        line = "GET //bucket//a%2fb+c%20?list-type=2&prefix=&a=%3D HTTP/1.1"
        headers = [("Zeta", "1"), ("host", "elsewhere:81"), ("X-Amz-A", "x  y"), ("ZETA", "2")]
        lines = [line, *(f"{name}: {value}" for name, value in headers), "Connection: close"]
        with raw(proxy, "\n".join([*lines, "", ""])) as connection:
            assert connection.makefile("rb").read().endswith(CONTENT)
        assert server.received[0][:2] == (line, headers)

    @pytest.mark.parametrize("size", [0, 1, 300_000])
    def test_bodies_pass_unchanged(self, proxy: FaultProxy, server: Server, size: int) -> None:
        """Both bodies arrive whole, and their sizes are logged."""
        body = (b"0123456789" * (size // 10 + 1))[:size]
        assert ask(proxy, "PUT", body=body)[2] == CONTENT
        assert server.received[0].body == body
        (request,) = proxy.requests
        assert (request.method, request.path, request.status) == ("PUT", "/key", 200)
        assert (request.request_bytes, request.response_bytes) == (size, len(CONTENT))
        assert request.faults == ()

    def test_a_client_is_told_to_continue(self, proxy: FaultProxy, server: Server) -> None:
        """A client that expects 100 Continue gets it before it sends its body."""
        head = "PUT /key HTTP/1.1\nExpect: 100-continue\nContent-Length: 4\nConnection: close\n\n"
        with raw(proxy, head) as connection:
            interim = b"HTTP/1.1 100 Continue\r\n\r\n"
            assert connection.recv(len(interim), socket.MSG_WAITALL) == interim
            connection.sendall(b"body")
            assert connection.makefile("rb").read().startswith(b"HTTP/1.1 200 OK\r\n")
        assert server.received[0].body == b"body"

    @pytest.mark.parametrize(
        ("method", "path", "status", "body"),
        [
            ("HEAD", "/key", 200, b""),
            ("GET", "/204", 204, b""),
            ("GET", "/304", 304, b""),
            ("GET", "/chunked", 200, b"abcdefg"),
            ("GET", "/until-close", 200, CONTENT),
        ],
    )
    def test_every_kind_of_body(
        self,
        client: http.client.HTTPConnection,
        method: str,
        path: str,
        status: int,
        body: bytes,
    ) -> None:
        """For every way to give a body's length, the connection can be used again."""
        for _ in range(2):
            client.request(method, path)
            with client.getresponse() as response:
                assert (response.status, response.read()) == (status, body)
        if method == "HEAD":
            assert response.headers["Content-Length"] == str(len(CONTENT))

    def test_an_early_answer_arrives(self, proxy: FaultProxy) -> None:
        """An answer that the server gives before it has the body reaches the client."""
        assert ask(proxy, "PUT", "/early", b"x" * 1000)[2] == CONTENT

    @pytest.mark.parametrize("path", ["/no-answer", "/cut", "/key"])
    def test_no_answer_is_a_bad_gateway(
        self, client: http.client.HTTPConnection, server: Server, path: str
    ) -> None:
        """If the server sends no complete answer, the client gets a 502."""
        if path == "/key":
            server.shutdown()
            server.server_close()
        for _ in range(2):
            client.request("GET", path, body=b"ignored")
            with client.getresponse() as response:
                assert response.status == 502
                assert b"<Code>BadGateway</Code><Message>no answer from" in response.read()

    def test_a_function_can_answer(self) -> None:
        """A function of this process can answer instead of a server."""

        def answer(method: str, path: str, headers: Message, body: bytes) -> Answer:
            return Answer(201, [("X-Asked", f"{method} {path}")], memoryview(body)[1:])

        with FaultProxy(answer) as proxy:
            status, headers, body = ask(proxy, "PUT", "/a?b", b"xyz")
        assert (status, headers["X-Asked"], body) == (201, "PUT /a?b", b"yz")


class TestFaults:
    def test_status(self, proxy: FaultProxy, server: Server) -> None:
        """A status fault answers with S3's XML, and the server sees nothing."""
        use(proxy, SLOW_DOWN)
        status, _, body = ask(proxy, "PUT", body=b"x" * 300_000)
        assert status == 503
        assert b"<Code>SlowDown</Code><Message>Reduce &lt;it&gt;</Message>" in body
        assert server.received == []
        assert (proxy.requests[0].faults, proxy.requests[0].request_bytes) == (
            (SLOW_DOWN,),
            300_000,
        )

    @pytest.mark.parametrize(("method", "code"), [("HEAD", 503), ("GET", 304), ("GET", 204)])
    def test_status_without_a_body(
        self, proxy: FaultProxy, client: http.client.HTTPConnection, method: str, code: int
    ) -> None:
        """If HTTP allows no body, there is none, and the next request is answered."""
        proxy.replace_rules([Rule(Match(times=1), Status(code, "Any"))])
        client.request(method, "/key")
        with client.getresponse() as response:
            assert (response.status, response.read()) == (code, b"")
        client.request("GET", "/key")
        assert client.getresponse().read() == CONTENT

    @pytest.mark.parametrize("at", ["request", "response"])
    def test_delay(self, server: Server, at: Point) -> None:
        """A delay sleeps before the request is forwarded, or when it has been answered."""
        slept: list[tuple[float, int]] = []

        def sleep(seconds: float) -> None:
            slept.append((seconds, len(server.received)))

        with FaultProxy(server.url, [Rule(Match(), Delay(2.5, at))], sleep=sleep) as proxy:
            assert ask(proxy)[0] == 200
        assert slept == [(2.5, 0 if at == "request" else 1)]

    @pytest.mark.parametrize(("method", "rate"), [("GET", 50_000.0), ("PUT", 1_000.0)])
    def test_rate_limit(self, server: Server, method: str, rate: float) -> None:
        """All bodies in one direction together pass at the given rate."""
        sleeps: list[float] = []
        rules = [Rule(Match(), RateLimit(rate))]
        with FaultProxy(server.url, rules, clock=lambda: sum(sleeps), sleep=sleeps.append) as proxy:
            for _ in range(2):
                assert ask(proxy, method, body=b"x" * 1000)[2] == CONTENT
        uploads_s, downloads_s = 2 * 1000 / rate, 2 * len(CONTENT) / rate
        assert sum(sleeps) == pytest.approx(uploads_s + downloads_s, abs=0.05)

    @pytest.mark.parametrize("offset", [0, 99_999, -1, 100_400, -100_401])
    def test_flipped_download(self, proxy: FaultProxy, offset: int) -> None:
        """The byte at the offset is changed; a body without that byte is unchanged."""
        use(proxy, FlipByte(offset))
        expected = bytearray(CONTENT)
        if -len(CONTENT) <= offset < len(CONTENT):
            expected[offset] ^= 1
        _, headers, body = ask(proxy)
        assert (body, headers["ETag"]) == (bytes(expected), '"content"')

    def test_changed_uploads(self, proxy: FaultProxy, server: Server) -> None:
        """The server receives a changed or shortened upload as a complete request."""
        for fault in (FlipByte(-2, "upload"), Shorten(4)):
            use(proxy, fault)
            assert ask(proxy, "PUT", body=b"abcdef")[0] == 200
        assert [received.body for received in server.received] == [b"abcddf", b"abcd"]
        assert [request.request_bytes for request in proxy.requests] == [6, 6]

    @pytest.mark.parametrize("after_bytes", [70_001, 0])
    def test_truncate(self, proxy: FaultProxy, after_bytes: int) -> None:
        """The connection ends after the given number of bytes."""
        use(proxy, Truncate(after_bytes))
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(proxy)
        assert len(caught.value.partial) == proxy.requests[0].response_bytes == after_bytes

    @pytest.mark.parametrize("fault", [Truncate(len(CONTENT)), Stall(9, len(CONTENT))])
    def test_a_short_body_passes(self, proxy: FaultProxy, fault: Fault) -> None:
        """A body that is not longer than the fault's offset passes unchanged."""
        use(proxy, fault)
        assert ask(proxy)[2] == CONTENT

    def test_stall(self, server: Server) -> None:
        """A stalled download sleeps once, after exactly the given number of bytes."""
        stalls: list[tuple[float, int]] = []

        def sleep(seconds: float) -> None:
            stalls.append((seconds, stalling.requests[0].response_bytes))

        stalling = FaultProxy(server.url, [Rule(Match(), Stall(9, 4_321))], sleep=sleep)
        with stalling:
            assert ask(stalling)[2] == CONTENT
        assert stalls == [(9, 4_321)]

    @pytest.mark.parametrize("at", ["request", "response"])
    def test_reset(self, proxy: FaultProxy, server: Server, at: Point) -> None:
        """The client sees a reset before or after the server has received the request."""
        use(proxy, Reset(at))
        with (
            raw(proxy, "GET /key HTTP/1.1\n\n") as connection,
            pytest.raises(ConnectionResetError),
        ):
            connection.recv(1)
        assert proxy.requests[0].status is None
        assert len(server.received) == (0 if at == "request" else 1)

    def test_set_header(self, proxy: FaultProxy) -> None:
        """A header is replaced in any case of its name, added, or removed."""
        use(proxy, SetHeader("etag", '"wrong"'), SetHeader("X-New", "1"))
        _, headers, body = ask(proxy)
        assert (headers.get_all("ETag"), headers["X-New"], body) == (['"wrong"'], "1", CONTENT)
        use(proxy, SetHeader("ETag", None))
        assert ask(proxy)[1]["ETag"] is None


class TestRules:
    @pytest.mark.parametrize(
        ("match", "fits"),
        [
            (Match(), True),
            (Match(method="PUT"), False),
            (Match(method="GET"), True),
            (Match(path=r"^/data/train-\d+"), True),
            (Match(path=r"\?versionId=3$"), True),
            (Match(path=r"^train"), False),
            (Match(method="GET", path=r"/val-"), False),
            (Match(method="PUT", path=r"/train-"), False),
        ],
    )
    def test_a_match_needs_method_and_path(self, match: Match, fits: bool) -> None:
        """The method must be equal, and the pattern must be found in path?query."""
        assert match.fits("GET", "/data/train-00001.tfrecord?versionId=3") is fits

    @given(
        skip=st.integers(0, 6),
        times=st.none() | st.integers(0, 6),
        every=st.integers(1, 4),
        count=st.integers(0, 20),
    )
    def test_hits_are_a_slice(self, skip: int, times: int | None, every: int, count: int) -> None:
        """Exactly the matching requests [skip : skip + times : every] are hit."""
        match = Match(skip=skip, times=times, every=every)
        expected = range(count)[skip : None if times is None else skip + times][::every]
        assert [nth for nth in range(count) if match.hits(nth)] == list(expected)

    def test_every_rule_counts_alone(self, proxy: FaultProxy) -> None:
        """Each rule counts all requests that fit it; faults come in the order of the rules."""
        rules = [
            Rule(Match("GET", "/a", times=1), Delay(0)),
            Rule(Match("GET", skip=1), Delay(0.0, "response")),
        ]
        for _ in range(2):
            # New rules begin their counts anew.
            proxy.replace_rules(rules)
            for path in ("/b", "/a", "/a"):
                ask(proxy, path=path)
        matched = [[rule.fault for rule in rules], [rules[1].fault]]
        assert [list(request.faults) for request in proxy.requests] == 2 * [[], *matched]

    def test_rules_change_while_the_proxy_runs(self, proxy: FaultProxy) -> None:
        """New rules apply from the next request on; ``clear`` drops rules and log."""
        use(proxy, SLOW_DOWN)
        assert ask(proxy)[0] == 503
        proxy.replace_rules([Rule(Match(times=1), Status(500, "InternalError"))])
        assert [ask(proxy)[0] for _ in range(2)] == [500, 200]
        assert [request.status for request in proxy.requests] == [503, 500, 200]
        use(proxy, SLOW_DOWN)
        proxy.clear()
        assert proxy.requests == ()
        assert ask(proxy)[0] == 200

    def test_concurrent_requests_are_counted_once_each(self, proxy: FaultProxy) -> None:
        """Exactly the number in the rule is disturbed among many parallel requests."""
        proxy.replace_rules([Rule(Match("GET", "/key", skip=3, times=7), SLOW_DOWN)])
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: ask(proxy)[0], range(40)))
        assert (statuses.count(503), statuses.count(200)) == (7, 33)
        assert len(proxy.requests) == 40


def test_leaving_ends_idle_and_stalled_connections(server: Server) -> None:
    """Leaving the proxy ends all connections and threads."""
    before = set(threading.enumerate())
    with FaultProxy(server.url, [Rule(Match(path="/slow"), Stall(3_600, 1))]) as proxy:
        idle, slow = raw(proxy, ""), raw(proxy, "GET /slow HTTP/1.1\n\n")
        answer = bytearray()
        while not answer.endswith(b"\r\n\r\n" + CONTENT[:1]):
            answer += slow.recv(1)
    with idle, slow:
        assert idle.recv(1) == b""
        assert slow.recv(1) == b""
    assert not [thread for thread in threading.enumerate() if thread not in before]
