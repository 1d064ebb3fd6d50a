"""Each fault as a client sees it, rules that change, and an end that leaves nothing behind."""

from __future__ import annotations

import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from iobench.faults import (
    Delay,
    Fault,
    FaultProxy,
    FlipByte,
    Lag,
    Match,
    RateLimit,
    Reset,
    Rule,
    SetHeader,
    Shorten,
    Stall,
    Status,
    Truncate,
)
from iobench.faults.kinds import Point

if TYPE_CHECKING:
    from tests.iobench.faults.conftest import RecordingServer

SLOW_DOWN = Status(503, "SlowDown", "Reduce <it>", headers=(("Retry-After", "3"),))


def connect(proxy: FaultProxy) -> closing[http.client.HTTPConnection]:
    """A client of the proxy, over one connection."""
    return closing(http.client.HTTPConnection(urlsplit(proxy.url).netloc))


def ask(
    proxy: FaultProxy, method: str = "GET", path: str = "/key", body: bytes | None = None
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One request over a connection of its own: status, headers and body of the answer."""
    with connect(proxy) as client:
        client.request(method, path, body=body)
        with client.getresponse() as response:
            return response.status, response.headers, response.read()


def use(proxy: FaultProxy, *faults: Fault) -> None:
    """Disturb every request with these faults."""
    proxy.replace_rules([Rule(Match(), fault) for fault in faults])


def test_status_answers_in_place_of_the_server(proxy: FaultProxy, server: RecordingServer) -> None:
    """A status fault answers with S3's XML and its own headers, and the server sees nothing."""
    use(proxy, SLOW_DOWN)
    status, headers, body = ask(proxy, "PUT", body=b"x" * 300_000)
    assert (status, headers["Retry-After"]) == (503, "3")
    assert b"<Code>SlowDown</Code><Message>Reduce &lt;it&gt;</Message>" in body
    assert server.received == []
    assert proxy.requests[0].faults == (SLOW_DOWN,)
    assert proxy.requests[0].request_bytes == 300_000


@pytest.mark.parametrize(("method", "code"), [("HEAD", 503), ("GET", 304), ("GET", 204)])
def test_status_without_a_body_keeps_the_connection(
    proxy: FaultProxy, server: RecordingServer, method: str, code: int
) -> None:
    """A status fault has no body where HTTP allows none, and the next request is answered."""
    proxy.replace_rules([Rule(Match(times=1), Status(code, "Any"))])
    with connect(proxy) as client:
        client.request(method, "/key")
        with client.getresponse() as response:
            assert (response.status, response.read()) == (code, b"")
        client.request("GET", "/key")
        assert client.getresponse().read() == server.content


@pytest.mark.parametrize("at", ["request", "response"])
def test_delay_sleeps_before_the_server_or_after_it(server: RecordingServer, at: Point) -> None:
    """A delay asks for its sleep before the request is forwarded, or when it has been answered."""
    slept: list[tuple[float, int]] = []

    def sleep(duration_s: float) -> None:
        slept.append((duration_s, len(server.received)))

    with FaultProxy(server.url, [Rule(Match(), Delay(2.5, at))], sleep=sleep) as proxy:
        assert ask(proxy)[0] == 200
    assert slept == [(2.5, 0 if at == "request" else 1)]


def test_rate_limit_paces_a_download(server: RecordingServer) -> None:
    """Two downloads of 100,400 bytes are asked to take, with sleeps, what the rate says."""
    sleeps: list[float] = []
    rules = [Rule(Match("GET"), RateLimit(50_000))]
    with FaultProxy(server.url, rules, clock=lambda: sum(sleeps), sleep=sleeps.append) as proxy:
        assert [ask(proxy)[2] for _ in range(2)] == [server.content] * 2
    assert sum(sleeps) == pytest.approx(200_800 / 50_000)


@pytest.mark.parametrize(("shared", "waits_s"), [(True, [1.0, 2.0]), (False, [1.0, 1.0])])
def test_rate_limit_is_shared_or_not(
    server: RecordingServer, shared: bool, waits_s: list[float]
) -> None:
    """While time stands still, a second connection queues behind the first only if shared."""
    sleeps: list[float] = []
    with FaultProxy(
        server.url,
        [Rule(Match("PUT"), RateLimit(1_000, shared=shared))],
        clock=lambda: 0.0,
        sleep=sleeps.append,
    ) as proxy:
        waits = []
        for _ in range(2):
            ask(proxy, "PUT", body=b"x" * 1_000)
            waits.append(sleeps[-2])  # the last sleep is for the response's body
    assert waits == pytest.approx(waits_s)


@pytest.mark.parametrize(("offset", "index"), [(0, 0), (99_999, 99_999), (-1, 100_399)])
def test_flipped_download_differs_in_one_byte(
    proxy: FaultProxy, server: RecordingServer, offset: int, index: int
) -> None:
    """A flipped download has another byte where it was asked for, and the same headers."""
    use(proxy, FlipByte(offset, mask=0x80))
    expected = bytearray(server.content)
    expected[index] ^= 0x80
    _, headers, body = ask(proxy)
    assert body == expected
    assert headers["ETag"] == '"content"'


def test_flipped_upload_reaches_the_server(proxy: FaultProxy, server: RecordingServer) -> None:
    """A flipped upload arrives with another byte, with a length and chunked alike."""
    use(proxy, FlipByte(-2, "upload", 0x20))
    ask(proxy, "PUT", body=b"abcdef")
    with connect(proxy) as client:
        client.request("PUT", "/key", body=iter([b"abc", b"def"]), encode_chunked=True)
        assert client.getresponse().read() == b"stored"
    assert server.bodies[0] == b"abcdEf"
    chunks = server.bodies[1].split(b"\r\n")
    assert b"".join(chunks[1::2]) == b"abcdEf"


@pytest.mark.parametrize(("path", "after_bytes"), [("/key", 70_001), ("/key", 0), ("/chunked", 5)])
def test_truncated_download_ends_early(proxy: FaultProxy, path: str, after_bytes: int) -> None:
    """A truncated response ends after as many bytes, which its framing shows to the client."""
    use(proxy, Truncate(after_bytes))
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(proxy, path=path)
    assert proxy.requests[0].response_bytes == after_bytes
    if path == "/key":
        assert len(caught.value.partial) == after_bytes


def test_a_shortened_upload_is_whole_for_the_server(
    proxy: FaultProxy, server: RecordingServer
) -> None:
    """The server gets a request of fewer bytes, and the client the answer to that."""
    use(proxy, Shorten(4))
    assert ask(proxy, "PUT", body=b"abcdef")[0] == 200
    assert server.bodies == [b"abcd"]
    assert proxy.requests[0].request_bytes == 6


def test_a_lagging_answer_is_the_one_of_before(proxy: FaultProxy, server: RecordingServer) -> None:
    """The first request for a path is answered by the server, later ones as that one was."""
    use(proxy, Lag())
    answers = [ask(proxy, path=path)[2] for path in ("/key", "/key", "/chunked", "/chunked")]
    assert answers[0] == answers[1] == server.content
    assert answers[2] == answers[3]
    assert [received.line.split()[1] for received in server.received] == ["/key", "/chunked"]
    proxy.clear()
    assert ask(proxy)[2] == server.content
    assert len(server.received) == 3


@pytest.mark.parametrize("at", ["request", "response"])
def test_reset_is_seen_as_a_reset(proxy: FaultProxy, server: RecordingServer, at: Point) -> None:
    """A reset reaches the client as such, before the server has the request or after that."""
    use(proxy, Reset(at))
    with socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port)) as client:
        client.sendall(b"GET /key HTTP/1.1\r\nHost: h\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert proxy.requests[0].status is None
    assert len(server.received) == (0 if at == "request" else 1)


def test_stall_pauses_within_a_download(server: RecordingServer) -> None:
    """A stalled download sleeps once, when exactly as many bytes have been passed on."""
    stalls: list[tuple[float, int]] = []

    def sleep(duration_s: float) -> None:
        stalls.append((duration_s, proxy.requests[0].response_bytes))

    with FaultProxy(server.url, [Rule(Match(), Stall(9, 4_321))], sleep=sleep) as proxy:
        assert ask(proxy)[2] == server.content
    assert stalls == [(9, 4_321)]


def test_stall_pauses_within_an_upload(server: RecordingServer) -> None:
    """A stalled upload sleeps once before the server has all of it, and arrives whole."""
    stalls: list[tuple[float, int]] = []

    def sleep(duration_s: float) -> None:
        stalls.append((duration_s, len(server.received)))

    rules = [Rule(Match("PUT"), Stall(9, 3, "upload"))]
    with FaultProxy(server.url, rules, sleep=sleep) as proxy:
        ask(proxy, "PUT", body=b"abcdef")
    assert stalls == [(9, 0)]
    assert server.bodies == [b"abcdef"]


def test_set_header_replaces_and_removes(proxy: FaultProxy, server: RecordingServer) -> None:
    """A header of the response is replaced, in any case of its name, added, or removed."""
    use(proxy, SetHeader("etag", '"wrong"'), SetHeader("X-New", "1"))
    status, headers, body = ask(proxy)
    assert (status, body) == (200, server.content)
    assert (headers.get_all("ETag"), headers["X-New"]) == (['"wrong"'], "1")
    use(proxy, SetHeader("ETag", None))
    assert ask(proxy)[1]["ETag"] is None


def test_rules_change_while_the_proxy_runs(proxy: FaultProxy) -> None:
    """Other rules hold from the next request on, and clearing drops rules and log."""
    use(proxy, SLOW_DOWN)
    assert ask(proxy)[0] == 503
    proxy.replace_rules([Rule(Match(times=1), Status(500, "InternalError"))])
    assert [ask(proxy)[0] for _ in range(2)] == [500, 200]
    assert [request.status for request in proxy.requests] == [503, 500, 200]
    use(proxy, SLOW_DOWN)
    proxy.clear()
    assert proxy.requests == ()
    assert ask(proxy)[0] == 200


def test_concurrent_requests_are_counted_once_each(proxy: FaultProxy) -> None:
    """Of many requests at once exactly as many are disturbed as the rule says."""
    proxy.replace_rules([Rule(Match("GET", "/key", skip=3, times=7), SLOW_DOWN)])
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: ask(proxy)[0], range(40)))
    assert (statuses.count(503), statuses.count(200)) == (7, 33)
    assert len(proxy.requests) == 40


def test_leaving_ends_idle_and_stalled_connections(server: RecordingServer) -> None:
    """Leaving the proxy ends every connection and thread, whatever they wait for."""
    with FaultProxy(server.url, [Rule(Match(path="/slow"), Stall(3_600, 1))]) as proxy:
        address = ("127.0.0.1", urlsplit(proxy.url).port)
        idle = socket.create_connection(address)
        slow = socket.create_connection(address)
        slow.sendall(b"GET /slow HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = bytearray()
        while not answer.endswith(b"\r\n\r\n" + server.content[:1]):
            answer += slow.recv(1)
        assert "fault-proxy-connection" in {thread.name for thread in threading.enumerate()}
    with idle, slow:
        assert idle.recv(1) == b""
        assert slow.recv(1) == b""
    assert not [one for one in threading.enumerate() if one.name.startswith("fault-proxy")]


def test_leaving_ends_a_request_that_the_server_keeps() -> None:
    """Leaving the proxy ends a request that the server never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with FaultProxy(f"http://127.0.0.1:{silent.getsockname()[1]}") as proxy:
            client = socket.create_connection(("127.0.0.1", urlsplit(proxy.url).port))
            client.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            accepted, _ = silent.accept()
        with client, accepted:
            assert b"" in (accepted.recv(1_000), accepted.recv(1_000))


@pytest.mark.parametrize(
    "upstream", ["https://127.0.0.1:1", "127.0.0.1:9000", "http://", "http://h:1/prefix"]
)
def test_upstream_that_cannot_be_is_refused(upstream: str) -> None:
    """Only http://host:port can be an upstream, and the error says so."""
    with pytest.raises(ValueError, match="upstream must be http://host:port"):
        FaultProxy(upstream)


def test_proxy_is_entered_once(server: RecordingServer) -> None:
    """A proxy has an address only once entered, and cannot be entered twice."""
    proxy = FaultProxy(server.url)
    with pytest.raises(RuntimeError, match="enter it"):
        _ = proxy.url
    with proxy, pytest.raises(RuntimeError, match="only once"):
        proxy.__enter__()
