"""The kinds of fault, as plain values.

A request may meet several of them; whatever the order of the rules,
they act in the order of an exchange:

1. ``Delay`` and ``Reset`` at the request, before anything is forwarded;
2. ``Status``, which answers in place of the server, and ``Lag``, where it has an answer;
3. the upload's body: ``FlipByte``, ``Stall``, ``RateLimit``, ``Shorten``;
4. ``Delay`` and ``Reset`` at the response, when the server has done its work;
5. ``SetHeader``;
6. the download's body: ``FlipByte``, ``Truncate``, ``Stall``, ``RateLimit``.

Offsets count bytes of the HTTP body, without the framing of ``Transfer-Encoding: chunked``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Direction: TypeAlias = Literal["upload", "download"]
Point: TypeAlias = Literal["request", "response"]

_FRAMING_FIELDS = frozenset({"connection", "content-length", "transfer-encoding"})


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait ``s`` seconds before the request is forwarded, or before the response begins."""

    s: float
    at: Point = "request"

    def __post_init__(self) -> None:
        _require(self.s >= 0, f"Delay: s must not be negative, not {self.s}")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Pass bodies at no more than ``bytes_per_s``, in each direction on its own.

    ``shared`` limits all connections together, as one network link would; otherwise each
    connection has the whole rate for itself.
    """

    bytes_per_s: float
    shared: bool = True

    def __post_init__(self) -> None:
        _require(
            self.bytes_per_s > 0,
            f"RateLimit: bytes_per_s must be above 0, not {self.bytes_per_s}; use Stall to stop",
        )


@dataclass(frozen=True, slots=True)
class Status:
    """Answer with S3's XML error, without forwarding: ``Status(503, "SlowDown")``."""

    code: int
    s3_code: str
    message: str = ""
    headers: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _require(200 <= self.code <= 599, f"Status: code must be from 200 to 599, not {self.code}")


@dataclass(frozen=True, slots=True)
class Truncate:
    """Close the connection after ``after_bytes`` of the response's body.

    The announced length stays; a body that is no longer than ``after_bytes`` passes whole.
    """

    after_bytes: int

    def __post_init__(self) -> None:
        _require(
            self.after_bytes >= 0,
            f"Truncate: after_bytes must not be negative, not {self.after_bytes}",
        )


@dataclass(frozen=True, slots=True)
class FlipByte:
    """XOR the body's byte at ``offset`` with ``mask``; a negative offset counts from the end.

    A body too short to have that byte passes unchanged.
    """

    offset: int
    direction: Direction = "download"
    mask: int = 0x01

    def __post_init__(self) -> None:
        _require(1 <= self.mask <= 255, f"FlipByte: mask must be from 1 to 255, not {self.mask}")


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection (TCP RST), before forwarding or when the server has answered.

    At the response, the server has done what was asked, and the client cannot know.
    """

    at: Point = "request"


@dataclass(frozen=True, slots=True)
class Stall:
    """Pause for ``s`` seconds in a body, once ``after_bytes`` of it have passed.

    A body that is no longer than ``after_bytes`` passes without a pause.
    """

    s: float
    after_bytes: int = 1
    direction: Direction = "download"

    def __post_init__(self) -> None:
        _require(self.s >= 0, f"Stall: s must not be negative, not {self.s}")
        _require(
            self.after_bytes >= 0,
            f"Stall: after_bytes must not be negative, not {self.after_bytes}",
        )


@dataclass(frozen=True, slots=True)
class SetHeader:
    """Set a header of the response, such as a wrong ``ETag``; ``None`` removes it."""

    name: str
    value: str | None

    def __post_init__(self) -> None:
        _require(
            self.name.lower() not in _FRAMING_FIELDS,
            f"SetHeader: {self.name} frames the message; use Truncate or Reset instead",
        )
        _require(
            not re.search(r"[\r\n]", f"{self.name}{self.value or ''}"),
            "SetHeader: name and value must each be one line",
        )


@dataclass(frozen=True, slots=True)
class Shorten:
    """Give the server the first ``bytes`` of the request's body, as if no more had been sent."""

    bytes: int

    def __post_init__(self) -> None:
        _require(self.bytes >= 0, f"Shorten: bytes must not be negative, not {self.bytes}")


@dataclass(frozen=True, slots=True)
class Lag:
    """Answer as the first request for the same path was that met a ``Lag``, as a stale replica.

    That first one is forwarded.
    """


Fault: TypeAlias = (
    Delay | RateLimit | Status | Truncate | FlipByte | Reset | Stall | SetHeader | Shorten | Lag
)
