"""Heads and bodies, read and written."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.faults.upstream import framed
from iobench.faults.wire import (
    Body,
    Framing,
    Head,
    WireError,
    read_head,
    request_framing,
    response_framing,
)

HEAD = b"PUT //a%2Fb?x=1 HTTP/1.1\r\nHost: h:1\r\nX-\xe9: \xfc\r\nhost: again\r\n\r\n"


def test_head_is_kept_byte_for_byte() -> None:
    """A head is encoded as it was read: order, case, repeats and bytes above 127."""
    head = read_head(BytesIO(HEAD))
    assert head is not None
    assert head.encode() == HEAD
    assert head.method_and_path == ("PUT", "//a%2Fb?x=1")


def test_fields_of_one_connection_stay_behind() -> None:
    """What goes on to the next hop lacks the fields that were meant for this one."""
    fields = (("Expect", "100-continue"), ("A", "1"), ("CONNECTION", "close"), ("Keep-Alive", "5"))
    assert Head("PUT / HTTP/1.1", fields).end_to_end().fields == (("A", "1"),)


def test_closed_connection_is_no_head() -> None:
    """A connection that closes between messages gives None."""
    assert read_head(BytesIO(b"")) is None


@pytest.mark.parametrize("size", range(1, len(HEAD)))
def test_head_cut_short_is_an_error(size: int) -> None:
    """A connection that closes inside a head is an error, wherever it does."""
    with pytest.raises(WireError):
        read_head(BytesIO(HEAD[:size]))


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nfolded: a\r\n b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 300 + b"\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_malformed_head_is_an_error(head: bytes) -> None:
    """A head that is no list of fields, or has no bounds, is an error."""
    with pytest.raises(WireError):
        read_head(BytesIO(head))


@pytest.mark.parametrize("start", ["GET /", "GET / HTTP/2", "a b c d", "HTTP/1.1 2x OK"])
def test_malformed_first_line_is_an_error(start: str) -> None:
    """What is neither a request line nor a status line is an error when asked for either."""
    with pytest.raises(WireError, match="request line"):
        _ = Head(start).method_and_path
    with pytest.raises(WireError, match="status line"):
        _ = Head(start).status


@pytest.mark.parametrize(
    ("fields", "framing"),
    [
        ((), 0),
        ((("content-length", "12"),), 12),
        ((("Transfer-Encoding", "Chunked"), ("Content-Length", "12")), "chunked"),
    ],
)
def test_request_framing(fields: tuple[tuple[str, str], ...], framing: Framing) -> None:
    """A request's body is chunked, or as long as announced, or not there."""
    assert request_framing(Head("PUT / HTTP/1.1", fields)) == framing


@pytest.mark.parametrize(
    ("method", "code", "fields", "framing"),
    [
        ("GET", 200, (("Content-Length", "12"),), 12),
        ("GET", 200, (), "close"),
        ("GET", 200, (("Transfer-Encoding", "chunked"),), "chunked"),
        ("HEAD", 200, (("Content-Length", "12"),), 0),
        ("HEAD", 200, (("Transfer-Encoding", "chunked"),), 0),
        ("GET", 304, (("Content-Length", "12"),), 0),
        ("DELETE", 204, (), 0),
    ],
)
def test_response_framing(
    method: str, code: int, fields: tuple[tuple[str, str], ...], framing: Framing
) -> None:
    """A response's body ends as RFC 9112 says, and HEAD, 204 and 304 have none."""
    assert response_framing(Head(f"HTTP/1.1 {code} Any", fields), method) == framing


@pytest.mark.parametrize("length", ["-1", "1_0", "0x4", "", "2, 2"])
def test_malformed_length_is_an_error(length: str) -> None:
    """A Content-Length that is not decimal digits is an error."""
    with pytest.raises(WireError):
        request_framing(Head("PUT / HTTP/1.1", (("Content-Length", length),)))


@given(st.lists(st.binary(min_size=1, max_size=600), max_size=6), st.binary(max_size=20))
def test_chunks_survive_a_round_trip(blocks: list[bytes], rest: bytes) -> None:
    """A chunked body is read back whole with its trailer, and not a byte beyond it is used."""
    sender = Body(BytesIO(), "chunked")
    sender.trailer = b"X-Sum: 1\r\n"
    stream = BytesIO(b"".join(framed(blocks, sender)) + rest)
    body = Body(stream, "chunked")
    assert b"".join(body) == b"".join(blocks)
    assert body.trailer == b"X-Sum: 1\r\n"
    assert stream.read() == rest


@pytest.mark.parametrize(
    ("data", "framing"),
    [
        (b"abc", 4),
        (b"3\r\nabc\r\n", "chunked"),
        (b"4\r\nabc", "chunked"),
        (b"3\r\nabcd\r\n0\r\n\r\n", "chunked"),
        (b"x\r\nabc\r\n0\r\n\r\n", "chunked"),
        (b"-1\r\nabc\r\n0\r\n\r\n", "chunked"),
        (b"3\r\nabc\r\n0\r\n", "chunked"),
    ],
)
def test_broken_body_is_an_error(data: bytes, framing: Framing) -> None:
    """A body that is shorter than announced, or whose chunks are not, is an error."""
    with pytest.raises(WireError):
        list(Body(BytesIO(data), framing))
