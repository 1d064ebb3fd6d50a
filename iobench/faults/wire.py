"""HTTP/1.1 messages as a proxy needs them: heads kept as received, bodies as blocks (RFC 9112)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

BLOCK_BYTES = 256 * 1024
_MAX_LINE_BYTES = 64 * 1024
_MAX_FIELDS = 256
_HOP_BY_HOP = frozenset({"connection", "expect", "keep-alive", "proxy-connection", "upgrade"})

Framing: TypeAlias = int | Literal["chunked", "close"]
"""How a body ends: after so many bytes, with an empty chunk, or with the connection."""


class WireError(ValueError):
    """The peer's bytes are not an HTTP/1.1 message, or end inside one."""


class Readable(Protocol):
    """What a message is read from: the buffered reader of a socket."""

    def readline(self, size: int = -1, /) -> bytes:
        """One line with its end, or ``size`` bytes of it."""

    def read1(self, size: int = -1, /) -> bytes:
        """What is there, up to ``size`` bytes; empty at the end."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the header fields of a message; latin-1 keeps every byte."""

    start: str
    fields: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str | None:
        """The first value of a field, in any case of its name."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def has_token(self, name: str, token: str) -> bool:
        """Whether a comma-separated field lists ``token``, such as ``Connection: close``."""
        values = (value for key, value in self.fields if key.lower() == name.lower())
        return any(token == part.strip().lower() for value in values for part in value.split(","))

    def with_field(self, name: str, value: str | None) -> Head:
        """The same head with this field once, or, for ``None``, without it."""
        kept = tuple(pair for pair in self.fields if pair[0].lower() != name.lower())
        return replace(self, fields=kept if value is None else (*kept, (name, value)))

    def end_to_end(self) -> Head:
        """The same head without the fields that concern one connection only."""
        kept = tuple(pair for pair in self.fields if pair[0].lower() not in _HOP_BY_HOP)
        return replace(self, fields=kept)

    def as_http_1_1(self) -> Head:
        """The same response head, whatever version the server named."""
        return replace(self, start=f"HTTP/1.1 {self.start.partition(' ')[2]}")

    def encode(self) -> bytes:
        """The head's bytes, up to and with the empty line."""
        lines = [self.start, *(f"{name}: {value}" for name, value in self.fields)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    @property
    def method_and_path(self) -> tuple[str, str]:
        """Of a request: its method, and path?query as received."""
        match self.start.split(" "):
            case [method, path, version] if version.startswith("HTTP/1."):
                return method, path
        raise WireError(f"not an HTTP/1.1 request line: {self.start!r}")

    @property
    def status(self) -> int:
        """Of a response: its status code."""
        match self.start.split(" ", 2):
            case [version, code, *_] if version.startswith("HTTP/1.") and code.isdecimal():
                return int(code)
        raise WireError(f"not an HTTP/1.1 status line: {self.start!r}")


def read_head(reader: Readable) -> Head | None:
    """Read one head; ``None`` when the peer closed the connection instead of sending one."""
    start = _read_line(reader) or _read_line(reader)  # one empty line before a request is allowed
    if not start:
        return None
    fields: list[tuple[str, str]] = []
    while line := _read_line(reader, required=True):
        name, colon, value = line.partition(":")
        if not colon or name != name.strip() or len(fields) == _MAX_FIELDS:
            raise WireError(f"not a header field, or too many: {line!r}")
        fields.append((name, value.strip()))
    return Head(start, tuple(fields))


def request_framing(head: Head) -> Framing:
    """How the body of a request ends."""
    return "chunked" if head.has_token("transfer-encoding", "chunked") else _length(head, 0)


def response_framing(head: Head, method: str) -> Framing:
    """How the body of a response to ``method`` ends."""
    if method == "HEAD" or head.status in (204, 304):
        return 0
    if head.has_token("transfer-encoding", "chunked"):
        return "chunked"
    return _length(head, "close")


def _length(head: Head, absent: Framing) -> Framing:
    value = head.get("content-length")
    if value is None:
        return absent
    if not value.isdecimal():
        raise WireError(f"not a Content-Length: {value!r}")
    return int(value)


class Body:
    """A body yet to be read: iterate once over its blocks, without their framing.

    Each block is passed on as it arrives. After the last one, ``trailer`` holds the fields
    that followed a chunked body.
    """

    def __init__(self, reader: Readable, framing: Framing) -> None:
        self._reader = reader
        self.framing = framing
        self.trailer = b""

    def __iter__(self) -> Iterator[bytes]:
        if self.framing == "close":
            while block := self._reader.read1(BLOCK_BYTES):
                yield block
        elif self.framing == "chunked":
            while size := self._chunk_size():
                yield from self._exactly(size)
                if _read_line(self._reader, required=True):
                    raise WireError("a chunk is longer than it says")
            while line := _read_line(self._reader, required=True):
                self.trailer += line.encode("latin-1") + b"\r\n"
        else:
            yield from self._exactly(self.framing)

    def _chunk_size(self) -> int:
        digits = _read_line(self._reader, required=True).partition(";")[0].strip()
        if not re.fullmatch("[0-9A-Fa-f]+", digits):
            raise WireError(f"not a chunk size: {digits!r}")
        return int(digits, 16)

    def _exactly(self, length: int) -> Iterator[bytes]:
        while length:
            block = self._reader.read1(min(length, BLOCK_BYTES))
            if not block:
                raise WireError(f"the connection closed {length} bytes before the body's end")
            length -= len(block)
            yield block


def _read_line(reader: Readable, *, required: bool = False) -> str:
    line = reader.readline(_MAX_LINE_BYTES)
    if not line.endswith(b"\n") and (line or required):
        raise WireError("the connection closed inside a message, or a line is too long")
    return line.rstrip(b"\r\n").decode("latin-1")
