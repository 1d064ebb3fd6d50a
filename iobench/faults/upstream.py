"""The proxy's own requests to the server behind it, over one connection kept alive."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

from iobench.faults.peer import Peer, Peers
from iobench.faults.wire import Body, Head, WireError, read_head, response_framing

Address: TypeAlias = tuple[str, int]


class Behind(Protocol):
    """What answers the requests of one client connection."""

    def forward(self, head: Head, blocks: Iterable[bytes], body: Body) -> tuple[Head, Body]:
        """The answer to a request; ``blocks``, made from ``body``, is read to its end."""
        ...

    def release(self, answer: Head, body: Body) -> None:
        """``body`` has been read, or never will be."""
        ...

    def close(self) -> None:
        """No more requests come."""
        ...


class UpstreamError(ConnectionError):
    """The server behind the proxy gave no answer."""


def parse_upstream(url: str) -> Address:
    """The host and port of ``http://host[:port]``."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(f"upstream must be http://host:port, without TLS or path, not {url!r}")
    return parts.hostname, parts.port or 80


class Upstream:
    """Forwards the requests of one client connection, one after the other."""

    def __init__(self, address: Address, timeout_s: float, peers: Peers) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._peers = peers
        self._peer: Peer | None = None
        self._sent_all = True

    def forward(self, head: Head, blocks: Iterable[bytes], body: Body) -> tuple[Head, Body]:
        """Send a request; return the head of the response, and its body, yet to be read.

        ``blocks``, made from ``body``, is read to its end even if the server has answered
        before. Raises ``UpstreamError`` if no answer comes.
        """
        if self._peer is not None and not self._peer.is_quiet():
            self.close()  # the server has closed a connection that it kept alive
        self._sent_all = self._send(head.end_to_end().encode())
        for piece in framed(blocks, body):
            self._sent_all = self._sent_all and self._send(piece)
        try:
            answer, peer = self._answer()
            framing = response_framing(answer, head.method_and_path[0])
        except (OSError, WireError) as error:
            self.close()
            host, port = self._address
            raise UpstreamError(f"no answer from {host}:{port}: {error}") from error
        return answer, Body(peer.reader, framing)

    def release(self, answer: Head, body: Body) -> None:
        """Keep the connection for the next request, if the server will; ``body`` has been read."""
        if (
            not self._sent_all
            or body.framing == "close"
            or answer.has_token("connection", "close")
            or not answer.start.startswith("HTTP/1.1")
        ):
            self.close()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._peer is not None:
            self._peers.close(self._peer)
            self._peer = None

    def _send(self, data: bytes) -> bool:
        """Whether the server took ``data``; if not, it may have answered already."""
        try:
            if self._peer is None:
                connection = socket.create_connection(self._address, timeout=self._timeout_s)
                self._peer = self._peers.add(connection)
            self._peer.send(data)
        except OSError:
            return False
        return True

    def _answer(self) -> tuple[Head, Peer]:
        if self._peer is None:
            raise ConnectionRefusedError("cannot connect")
        while answer := read_head(self._peer.reader):
            if not 100 <= answer.status <= 199:
                return answer, self._peer
        raise ConnectionResetError("it closed the connection")


def framed(blocks: Iterable[bytes], body: Body) -> Iterator[bytes]:
    """Frame the blocks of ``body`` for the next hop as they were framed on the last."""
    if body.framing != "chunked":
        yield from blocks
        return
    for block in blocks:
        yield b"%x\r\n%b\r\n" % (len(block), block)
    yield b"0\r\n" + body.trailer + b"\r\n"
